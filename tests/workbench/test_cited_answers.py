"""Stored answers that cite: what the page needs to draw their chips, and places in words."""

import html
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import resolve, reverse
from django.utils import timezone, translation

from agents import wiring
from agents.admin import READ_BODIES
from agents.models.session import Session
from agents.protocols.agui import blocks
from agents.protocols.agui.footnotes import Footnotes
from agents.runtime.context.assemble import Frame, View, assemble
from agents.runtime.context.words import FINISH
from agents.runtime.events import AssistantMessage, Origin, RunStarted, Stored, ToolReturned, UserMessageKind
from agents.runtime.knowledge import Citation, Cited, Place
from agents.runtime.model import ToolCall
from agents.stores import sessions
from agents.tools import footnotes
from tests.workbench.conversations import answered, asked, conversation, ended, run
from tests.workbench.test_inspector import call_of, fetch
from tests.workbench.test_views_context import summarised as summary_row
from workbench import citations, documentwords, places, transcript

NOW = timezone.now()
ORIGIN = Origin(run_id="r", invocation_id="i", author="assistant")
CITED = Cited(
    number=1,
    citation=Citation(
        id="k3f2ab",
        artifact_id="00000000-0000-4000-8000-000000000000",
        version=2,
        name="报告.pdf",
        start=120,
        end=240,
        place=Place(page=3, heading=("Results", "Costs")),
        quote='It lost "43 kg" <b>of gas</b>.',
    ),
)


def shown(alice: Any, message: AssistantMessage) -> str:
    client = Client()
    client.force_login(alice)
    run(conversation(alice, "t"), "r", asked("How much?"), message, ended())
    return client.get("/c/t/").content.decode().partition('id="transcript"')[2].partition("</main>")[0]


def test_a_stored_answer_carries_its_citations(alice: Any) -> None:
    page = shown(alice, replace(answered("It lost 43 kg. [1](#c-k3f2ab)"), citations=(CITED,)))
    found = re.search(r'<div class="prose"[^>]*data-citations="([^"]*)"', page)
    assert found
    (one,) = json.loads(html.unescape(found[1]))
    assert (one["number"], one["id"], one["documentId"]) == (1, "k3f2ab", CITED.citation.artifact_id)
    assert (one["quote"], one["place"]) == (CITED.citation.quote, {"page": 3, "heading": ["Results", "Costs"]})
    assert '<a href="#c-k3f2ab" class="cite-chip"' in page
    assert "<b>of gas" not in page


def quoting(thread_id: str, message_id: str = "u1") -> Cited:
    """A message as an answer cites it."""
    said = replace(
        CITED.citation,
        artifact_id="",
        version=0,
        name="Rent <talks>",
        place=Place(),
        thread_id=thread_id,
        message_id=message_id,
        at=datetime(2026, 5, 3, 14, 2, tzinfo=UTC),
    )
    return Cited(number=1, citation=said)


def cites(page: str) -> dict[str, Any]:
    found = re.search(r'<div class="prose[^>]*data-citations="([^"]*)"', page)
    assert found
    (one,) = json.loads(html.unescape(found[1]))
    return dict(one)


def test_an_answer_that_cites_a_message_carries_its_thread_its_date_and_its_quote(alice: Any) -> None:
    conversation(alice, "talks")
    page = shown(alice, replace(answered("It is 1,450. [1](#c-k3f2ab)"), citations=(quoting("talks"),)))
    assert cites(page) == {
        "number": 1,
        "id": "k3f2ab",
        "message": {"threadId": "talks", "id": "u1", "at": "2026-05-03T14:02:00+00:00"},
        "name": "Rent <talks>",
        "start": 120,
        "end": 240,
        "quote": CITED.citation.quote,
    }
    assert '<a href="#c-k3f2ab" class="cite-chip"' in page
    assert "Rent <talks>" not in page


def test_a_message_of_a_deleted_foreign_or_unknown_conversation_is_gone_and_keeps_its_quote(
    alice: Any, bob: Any
) -> None:
    conversation(bob, "bobs")
    conversation(alice, "mine")
    conversation(alice, "deleted")
    Session.objects.of(alice.pk).filter(thread_id="deleted").update(deleted_at=NOW)
    threads = ("mine", "deleted", "bobs", "unknown")
    messages = [
        replace(answered("It is 1,450. [1](#c-k3f2ab)"), citations=(quoting(thread_id),)) for thread_id in threads
    ]
    session = conversation(alice, "t")
    for n, message in enumerate(messages):
        run(session, f"r{n}", asked("How much?"), message, ended())
    client = Client()
    client.force_login(alice)
    page = client.get("/c/t/").content.decode()
    found = re.findall(r'<div class="prose"[^>]*data-citations="([^"]*)"', page)
    said = [json.loads(html.unescape(one))[0] for one in found]
    assert [(one["message"]["threadId"], one["message"].get("gone", False)) for one in said] == [
        ("mine", False),
        ("deleted", True),
        ("bobs", True),
        ("unknown", True),
    ]
    assert {one["quote"] for one in said} == {CITED.citation.quote}
    client.post("/c/deleted/restore/")
    older = client.get("/c/t/messages/").content.decode()
    assert older.count("&quot;gone&quot;: true") == 2


def test_asking_whether_conversations_are_there_is_one_statement_and_none_without_messages(
    alice: Any, django_assert_num_queries: Any
) -> None:
    conversation(alice, "a")
    with django_assert_num_queries(1):
        assert citations.gone(alice.pk, [quoting(name).citation for name in "abab"]) == {"b"}
    with django_assert_num_queries(0):
        assert citations.gone(alice.pk, [CITED.citation]) == frozenset()


def test_a_summary_that_cites_a_message_says_whether_it_is_gone(alice: Any) -> None:
    session = conversation(alice, "t")
    run(session, "r1", asked("How much?"), answered("1,450."), ended())
    source = quoting("unknown").citation
    summary_row(session, session.last_position, "It is 1,450 [[c:k3f2ab]].", citations=(source,))
    client = Client()
    client.force_login(alice)
    page = client.get("/c/t/").content.decode()
    assert cites(page.partition("compaction-body")[2])["message"]["gone"] is True


@pytest.mark.parametrize("thread_id", ["t", "3b1f7c2a-0000-4000-8000-000000000000", "under_score.dot"])
def test_a_reports_link_to_a_message_is_that_of_the_page(thread_id: str) -> None:
    message = quoting(thread_id, "call_1-a.b").citation
    assert footnotes.message_path(message) == citations.address(message)
    assert citations.address(message) == f"{reverse('session', args=[thread_id])}?at=call_1-a.b"


@pytest.mark.parametrize(
    ("thread_id", "message_id"), [("a/b", "u"), ("~x", "u"), ("..", "u"), ("t", "u 1"), ("冷库", "u")]
)
def test_an_id_that_an_address_cannot_carry_as_it_is_has_an_address_but_no_link_in_a_file(
    thread_id: str, message_id: str
) -> None:
    message = quoting(thread_id, message_id).citation
    assert footnotes.message_path(message) == ""
    address = urlsplit(citations.address(message))
    assert resolve(unquote(address.path)).kwargs == {"thread_id": thread_id}
    assert parse_qs(address.query) == {"at": [message_id]}


def test_the_footnote_of_a_message_is_a_link_in_the_reports_preview() -> None:
    message = quoting("talks").citation
    report = footnotes.with_sources("r.md", "It is 1,450 [[c:k3f2ab]].\n", {"k3f2ab": message}).content
    drawn = "".join(blocks.render_block(block, Footnotes(report)) for block in blocks.split(report))
    assert '<a href="/c/talks/?at=u1"' in drawn
    assert ">Rent &lt;talks&gt;</a>, 2026-05-03: “It lost" in drawn


@pytest.mark.parametrize("said", [True, False])
def test_that_documents_do_not_answer_is_a_state(alice: Any, said: bool) -> None:
    page = shown(alice, replace(answered("Nothing says so."), not_in_documents=said))
    banner = re.search(r'<div class="notice" data-state="info" data-slot="none"( hidden)?>', page)
    assert banner
    assert bool(banner[1]) is not said


@pytest.mark.parametrize(
    ("sources", "words"), [(None, ""), ((), "No documents"), (("a",), "1 document"), (("a", "b"), "2 documents")]
)
def test_an_answer_says_what_it_could_use(sources: tuple[str, ...] | None, words: str) -> None:
    begun = RunStarted(agent="assistant", model="test", sources=sources)
    records = (begun, asked("How much?"), answered("43 kg"), ended())
    stored = [
        Stored(position=n, fork=0, id=f"e{n}", at=NOW, origin=ORIGIN, record=record)
        for n, record in enumerate(records, 1)
    ]
    answer = transcript.build(stored)[-1]
    assert isinstance(answer, transcript.Answer)
    assert answer.scope == (f"Answered from: {words}" if words else "")


@pytest.mark.parametrize(
    ("sources", "english", "chinese"),
    [
        (None, "Your documents do not answer this.", "你的文档没有给出答案。"),
        (("a",), "The chosen documents do not say this.", "所选文档没有提到。"),
    ],
)
def test_what_does_not_answer_are_the_documents_that_were_chosen(
    alice: Any, sources: tuple[str, ...] | None, english: str, chinese: str
) -> None:
    begun = RunStarted(agent="assistant", model="test", sources=sources)
    answer = replace(answered("Nothing says so."), not_in_documents=True)
    run(conversation(alice, "t"), "r", begun, asked("How much?"), answer, ended())
    client = Client()
    client.force_login(alice)
    for language, words in (("en", english), ("zh-hans", chinese)):
        page = client.get("/c/t/", headers={"Accept-Language": language}).content.decode()
        assert f'data-slot="none-text">{words}<' in page


def searching(*names: str) -> AssistantMessage:
    """A message that calls these tools, one after the other, as c0, c1 and so on."""
    calls = tuple(ToolCall(id=f"c{n}", name=name, arguments="{}") for n, name in enumerate(names))
    return replace(answered(""), tool_calls=calls)


def returned(call: int, name: str, data: dict[str, Any], *citations: Citation) -> ToolReturned:
    return ToolReturned(id=f"t{call}", call_id=f"c{call}", name=name, content="…", data=data, citations=citations)


def hit(document: str, version: int = 1) -> dict[str, Any]:
    return {"id": "k3f2ab", "documentId": document, "version": version, "name": f"{document[:1]}.md", "place": ""}


def record(thread_id: str, message_id: str) -> dict[str, Any]:
    when = "2026-05-03T14:02:00+00:00"
    return {"session_id": thread_id, "message_id": message_id, "title": "Rent <talks>", "created": when}


def left(page: str) -> list[list[dict[str, Any]]]:
    """What each answer on the page says it found and did not use, without the fields of a passage."""
    said = [json.loads(html.unescape(one)) for one in re.findall(r'<article[^>]* data-unused="([^"]*)"', page)]
    fields = ("documentId", "version", "message", "name")
    return [[{name: one[name] for name in fields if name in one} for one in unused] for unused in said]


def test_what_a_run_found_and_does_not_cite_is_told(alice: Any) -> None:
    talks = [quoting(thread, message).citation for thread, message in (("t", "u1"), ("gone", "u7"))]
    run(
        conversation(alice, "t"),
        "r",
        asked("How much?"),
        searching("search_knowledge", "read_document", "session_search", "list_documents"),
        returned(0, "search_knowledge", {"hits": [hit(CITED.citation.artifact_id), hit("b"), hit("a"), hit("b")]}),
        returned(1, "read_document", {**hit("a", 2), "anchor": "line 1"}),
        returned(2, "session_search", {"hits": [record("t", "u1"), record("gone", "u7")]}, *talks),
        returned(3, "list_documents", {"documents": 9}),
        replace(answered("It lost 43 kg. [1](#c-k3f2ab)"), citations=(CITED, replace(quoting("t"), number=2))),
        ended(),
    )
    client = Client()
    client.force_login(alice)
    for address in ("/c/t/", "/c/t/messages/"):
        assert left(client.get(address).content.decode()) == [
            [
                {"documentId": "b", "version": 1, "name": "b.md"},
                {"documentId": "a", "version": 2, "name": "a.md"},
            ]
        ]


def test_nothing_is_told_of_what_was_all_used_or_of_another_run(alice: Any) -> None:
    session = conversation(alice, "t")
    found = returned(0, "search_knowledge", {"hits": [hit(CITED.citation.artifact_id)]})
    cites = replace(answered("It lost 43 kg. [1](#c-k3f2ab)"), citations=(CITED,))
    run(session, "r1", asked("How much?"), searching("search_knowledge"), found, cites, ended())
    run(session, "r2", asked("And where?"), searching("search_knowledge"), found, answered("In the hall."), ended())
    client = Client()
    client.force_login(alice)
    (one,) = left(client.get("/c/t/").content.decode())
    assert [found["documentId"] for found in one] == [CITED.citation.artifact_id]


def test_of_a_steered_run_the_last_answer_tells_what_none_of_its_answers_cites(alice: Any) -> None:
    steer = replace(asked("Only the hall."), id="u2", kind=UserMessageKind.STEER)
    found = returned(0, "search_knowledge", {"hits": [hit(CITED.citation.artifact_id), hit("b")]})
    cites = replace(answered("It lost 43 kg. [1](#c-k3f2ab)"), citations=(CITED,))
    records = (asked("How much?"), searching("search_knowledge"), found, cites, steer, answered("Nothing."), ended())
    run(conversation(alice, "t"), "r", *records)
    client = Client()
    client.force_login(alice)
    assert [[one["name"] for one in named] for named in left(client.get("/c/t/").content.decode())] == [["b.md"]]


PLACES = [
    (Place(), "", ""),
    (Place(page=3), "Page 3", "第 3 页"),
    (Place(page=3, heading=("A", "B"), lines=(1, 2)), "Page 3, “B”", "第 3 页，“B”"),
    (Place(sheet="Prices", rows=(2, 40)), "Sheet Prices, Rows 2 to 40", "工作表 Prices，第 2 至 40 行"),
    (Place(rows=(7, 7)), "Row 7", "第 7 行"),
    (Place(lines=(4, 9)), "Lines 4 to 9", "第 4 至 9 行"),
    (Place(heading=("方案",), lines=(4, 9)), "“方案”", "“方案”"),
]


@pytest.mark.parametrize(("place", "english", "chinese"), PLACES)
def test_places_are_told_in_both_languages(place: Place, english: str, chinese: str) -> None:
    assert places.words(place) == english
    with translation.override("zh-hans"):
        assert places.words(place) == chinese


def test_every_word_of_the_scripts_is_translated() -> None:
    english = documentwords.script_words()
    with translation.override("zh-hans"):
        chinese = documentwords.script_words()
    same = {key for key, words in english.items() if chinese[key] == words}
    assert same == {"placeHeading", "citeQuote"}  # quotation marks around a name


def test_part_of_a_request_that_quotes_messages_leads_to_them_and_says_which_are_deleted(
    alice: Any, django_user_model: Any
) -> None:
    conversation(alice, "talks")
    session = conversation(alice, "t")
    calls = replace(answered(""), tool_calls=(ToolCall(id="c1", name="list_documents", arguments="{}"),))
    one, gone = quoting("talks").citation, quoting("unknown").citation
    piece = replace(one, id="k3f2ac", start=400)  # of the same message
    result = ToolReturned(id="t2", call_id="c1", name="list_documents", content="43 kg.", citations=(one, piece, gone))
    row = run(session, "r1", asked("How much?"), calls, result)
    view = View(agent="assistant", run_id="other", invocation_id="j", filter_key="", summaries={}, blocks=())
    frame = Frame(instruction=wiring.agents()[0].instruction, max_tokens=500, tail=FINISH)
    call_of(session, assemble(sessions.read_history(alice.pk, "t").stored, frame, view), row)
    staff = django_user_model.objects.create_user("staff", password="x", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename=READ_BODIES.split(".")[1]))
    own = fetch(alice).content.decode()
    (quoted,) = re.findall(r"Messages it quotes:.*?</p>", own, re.DOTALL)
    assert re.findall(r'href="([^"]*)"', quoted) == ["/c/talks/?at=u1"]
    assert re.search(r">Rent &lt;talks&gt;, 2026-05-03 \d\d:02:00</a>", quoted)
    assert re.search(r">Rent &lt;talks&gt;, 2026-05-03 \d\d:02:00 \(deleted\)</span>", quoted)
    foreign = fetch(staff, f"/sessions/t/inspector/?owner={alice.pk}").content.decode()
    assert "Messages it quotes:" in foreign and "/c/talks/" not in foreign
