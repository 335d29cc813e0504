"""The search over everything, without a browser: what is found, how it is shown, and whose it is."""

import datetime as dt
import io
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import search_entry
from agents.models.event import Event
from agents.models.search_entry import Kind, Text
from agents.models.session import Session
from agents.runtime import codec
from agents.runtime.events import ToolReturned, ToolStatus
from agents.runtime.pieces import content_of, pieces_of
from artifacts import library, saving
from artifacts.models import Artifact, Version
from artifacts.rows import Scope, Source
from tests.workbench.conversations import answered, asked, conversation, ended, run
from tests.workbench.test_landing import fork
from workbench import finding
from workbench.findings import Hit, Wanted, When
from workbench.findings import Kind as Found

HTMX = {"HTTP_HX_REQUEST": "true"}
STATEMENTS = 7  # of a search of all kinds


@pytest.fixture(autouse=True)
def files(settings: Any, tmp_path: Path) -> None:
    backend = "django.core.files.storage.FileSystemStorage"
    options = {"location": str(tmp_path / "files")}
    settings.STORAGES = {**settings.STORAGES, "artifacts": {"BACKEND": backend, "OPTIONS": options}}


@pytest.fixture
def client(alice: Any) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def indexed(session: Session) -> Session:
    """Make what was said findable, as the statement that stores events does."""
    texts: list[Text] = []
    for event in Event.objects.of(session.owner_id).filter(session=session).order_by("position"):
        for offset, piece in pieces_of(content_of(codec.load(event.type, event.payload))):
            place = {"ref": event.position, "position": len(texts) + 1, "offset": offset, "fork": event.fork}
            texts.append(Text(text=piece, created=event.at, **place))
    search_entry.drop(session.owner_id, Kind.EVENT, [session.pk])
    search_entry.add(session.owner_id, Kind.EVENT, session.pk, texts)
    return session


def said(owner: Any, thread_id: str, *texts: str, title: str = "Talk") -> Session:
    session = conversation(owner, thread_id, title=title)
    for n, text in enumerate(texts):
        run(session, f"{thread_id}-{n}", asked(text), answered("I see."), ended())
    return indexed(session)


def saved(owner: Any, name: str, text: str, *, upload: bool = False, session: Any = None) -> str:
    origin = Version.Origin.UPLOAD if upload else Version.Origin.TOOL
    scope = Scope(owner=owner.pk, session=session.pk if session else None)
    shown = name if session else f"user:{name}"
    ref = saving.save(scope, shown, io.BytesIO(text.encode()), Source(origin=Version.Origin.TOOL, mime="text/markdown"))
    if upload:
        Version.objects.of(owner.pk).filter(artifact__public_id=ref.ref.artifact_id).update(origin=origin)
    return ref.ref.artifact_id


def found(owner: Any, q: str, **wanted: Any) -> dict[str, list[Hit]]:
    answer = finding.find(Wanted(owner_id=owner.pk, q=q, **wanted))
    return {group.kind.value: list(group.hits) for group in answer.groups}


def shown(hit: Hit) -> str:
    return "".join(piece for piece, _meant in hit.snippet)


def meant(hit: Hit) -> list[str]:
    return [piece for piece, is_meant in (*hit.title, *hit.snippet) if is_meant]


# What is found


def test_everything_a_person_has_is_searched_at_once(alice: Any) -> None:
    said(alice, "t", "How much gas leaks?", title="The gas leak")
    saved(alice, "Leak report.md", "# Leaks\n\nThe rack leaked 43 kg of gas.\n")
    saved(alice, "survey.md", "The gas leak was at the valve.", upload=True)
    answer = found(alice, "gas leak")
    assert list(answer) == ["conversations", "messages", "documents", "notes"]
    assert meant(answer["conversations"][0]) == ["gas", "leak"]
    assert meant(answer["messages"][0]) == ["gas", "leaks"]
    assert meant(answer["documents"][0]) == ["gas", "leak"]
    assert answer["notes"][0].title == (("Leak report.md", False),), "only one of the words stands in its name"


def test_one_and_two_chinese_characters_suffice(alice: Any) -> None:
    said(alice, "t", "这份合同什么时候到期？", title="关于合同")
    saved(alice, "说明.md", "本合同自签字之日起生效。")
    for q, mark in (("合同", "合同"), ("同", "同")):
        answer = found(alice, q)
        assert set(answer) == {"conversations", "messages", "notes"}
        assert {piece for hits in answer.values() for hit in hits for piece in meant(hit)} == {mark}


def test_message_leads_to_its_event_and_document_to_its_passage(client: Client, alice: Any) -> None:
    session = said(alice, "合同 1/2", "The valve is number 17.")
    event = Event.objects.of(alice.pk).get(session=session, type="user_message")
    document = saved(
        alice, "plan.md", "Start.\n\n" + "Words. " * 300 + "\n\nThe valve is of brass.\n\n" + "More. " * 300
    )
    answer = found(alice, "valve")
    hit = answer["messages"][0]
    page = client.get(hit.address).content.decode()
    assert hit.address.endswith(f"?at={event.event_id}")
    assert f'data-target="{hit.message_id}"' in page
    passage = answer["notes"][0].address
    assert passage.startswith(f"/library/{document}/?v=1&view=text&at=")
    mark = re.search(r'<mark class="hit"[^>]*>.*?</span>(.*?)</mark>', client.get(passage).content.decode(), re.S)
    assert mark
    assert "The valve is of brass." in mark[1]


def test_long_text_shows_the_place_that_is_meant(alice: Any) -> None:
    said(alice, "t", "Nothing of note. " * 400 + "The password of the boiler is swordfish. " + "And so on. " * 300)
    (hit,) = found(alice, "swordfish")["messages"]
    assert "boiler is swordfish" in shown(hit)
    assert len(shown(hit)) < 200


def test_name_is_found_by_a_part_of_it_without_accents_and_case(alice: Any) -> None:
    said(alice, "t", title="Résumé of the HARBOUR")
    Session.objects.of(alice.pk).update(last_position=1)
    saved(alice, "Survey_Harbour_2025.md", "Words.", upload=True)
    for q in ("resume", "RÉSUMÉ", "harb", "ésum harbour"):
        assert found(alice, q)["conversations"], q
    assert meant(found(alice, "harb")["documents"][0]) == ["Harb"]
    for q in ("user", "100%", "resume_of", "harbor"):
        assert not found(alice, q), q


def test_decomposed_text_is_found_and_accents_alone_find_no_names(alice: Any) -> None:
    said(alice, "t", "Notre e\u0301cole ouvre lundi.", title="Talk")
    saved(alice, "plan.md", "Something else.")
    assert meant(found(alice, "école")["messages"][0]) == ["e\u0301cole"]
    assert found(alice, "\u0301 \u0300") == {}


def test_document_stands_once_by_name_with_its_best_passage_and_at_most_three_times(alice: Any) -> None:
    text = "\n\n".join(f"Part {n}. The valve again. " + "Filler. " * 200 for n in range(6))
    saved(alice, "valve.md", text)
    saved(alice, "other.md", "A valve.")
    hits = found(alice, "valve", kind=Found.NOTES)["notes"]
    assert [hit.title for hit in hits].count((("valve", True), (".md", False))) == 1
    assert hits[0].title[0] == ("valve", True)
    assert hits[0].snippet
    assert len(hits) == 4


def test_texts_with_more_of_the_words_come_first_and_mere_neighbours_are_left_out(alice: Any) -> None:
    said(alice, "t", "Gas and gas and gas.", "Beside it.", "The gas leak.", "Beside that.")
    assert [shown(hit) for hit in found(alice, "gas leak")["messages"]] == ["The gas leak.", "Gas and gas and gas."]


def test_quoted_words_must_stand_together(alice: Any) -> None:
    said(alice, "t", "The gas main leaks.", "The main gas pipe.")
    assert [shown(hit) for hit in found(alice, '"main gas"')["messages"]] == ["The main gas pipe."]


def test_results_of_steps_are_found_and_lead_to_the_step(client: Client, alice: Any) -> None:
    session = conversation(alice, "t", title="Steps")
    returned = ToolReturned(id="t1", call_id="c1", name="read_artifact", content="A swordfish.", status=ToolStatus.OK)
    run(session, "r", asked("Read"), returned, answered("Done."), ended())
    (hit,) = found(indexed(session).owner, "swordfish")["messages"]
    assert (hit.who, hit.message_id) == ("Looked at the files", "")
    assert 'data-target="c1"' in client.get(hit.address).content.decode()


def test_message_of_another_version_says_so_and_leads_there(client: Client, alice: Any) -> None:
    session = conversation(alice, "t", title="Forked")
    run(session, "r1", asked("One."), answered("The first swordfish."), ended())
    run(fork(session, 2), "r2", answered("The second swordfish."), ended())
    indexed(session)
    hits = {shown(hit): hit for hit in found(alice, "swordfish")["messages"]}
    assert not hits["The second swordfish."].other_version
    assert hits["The first swordfish."].other_version
    assert "another version" in client.get("/search/?q=swordfish", **HTMX).content.decode()
    assert "another version of this conversation" in client.get(hits["The first swordfish."].address).content.decode()


# What is not


def test_deleted_conversations_and_documents_never_appear(client: Client, alice: Any) -> None:
    session = said(alice, "t", "The swordfish.", title="Swordfish talk")
    attached = saved(alice, "swordfish attached.md", "A swordfish.", session=session)
    document = saved(alice, "swordfish.md", "A swordfish.")
    assert set(found(alice, "swordfish")) == {"conversations", "messages", "notes"}
    library.delete(alice.pk, [document])
    assert len(found(alice, "swordfish")["notes"]) == 1
    client.post("/c/t/delete/")
    assert found(alice, "swordfish") == {}
    client.post("/c/t/restore/")
    assert set(found(alice, "swordfish")) == {"conversations", "messages", "notes"}
    assert attached in found(alice, "swordfish")["notes"][0].address


def test_nobody_finds_what_is_anothers(client: Client, alice: Any, bob: Any) -> None:
    session = said(bob, "bobs", "The swordfish.", title="Swordfish of Bob")
    document = saved(bob, "swordfish.md", "A swordfish.")
    shelf = library.make_collection(bob.pk, "Bob's shelf")
    library.move(bob.pk, [document], shelf.id)
    said(alice, "bobs", "Hello.")  # the same thread id
    assert set(found(bob, "swordfish")) == {"conversations", "messages", "notes"}
    for query in (
        {}, {"in": "bobs"}, {"in": "bobs", "here": "bobs"}, {"kind": "notes", "collection": shelf.id},
        {"kind": "messages"}, {"when": "week"},
    ):  # fmt: skip
        html = client.get(f"/search/?{urlencode({'q': 'swordfish', **query})}").content.decode()
        assert "Nothing found" in html, query
        assert "of Bob" not in html
        assert "shelf" not in html
    # an entry of alice's that names bob's rows finds nothing either
    place = {"ref": 2, "position": 1}
    search_entry.add(alice.pk, Kind.EVENT, session.pk, [Text(text="swordfish", created=timezone.now(), **place)])
    passage = Version.objects.of(bob.pk).get().passages.get()
    here = {"ref": passage.pk, "position": 1}
    search_entry.add(alice.pk, Kind.PASSAGE, 1, [Text(text="swordfish", created=timezone.now(), **here)])
    assert found(alice, "swordfish") == {}


def test_stranger_is_asked_to_sign_in(db: None) -> None:
    response = Client().get("/search/?q=x")
    assert (response.status_code, response["Location"]) == (302, "/signin/?next=/search/%3Fq%3Dx")


# Filters


def test_kind_narrows_and_shows_more_of_it(alice: Any) -> None:
    said(alice, "t", *[f"Gas number {n}." for n in range(8)], title="Gas")
    answer = finding.find(Wanted(owner_id=alice.pk, q="gas"))
    group = answer.groups[1]
    assert (len(group.hits), group.count, group.all) == (5, "8", "/search/?q=gas&kind=messages")
    answer = finding.find(Wanted(owner_id=alice.pk, q="gas", kind=Found.MESSAGES))
    assert [(len(group.hits), group.all) for group in answer.groups] == [(8, "")]


def test_date_narrows_every_kind(alice: Any) -> None:
    session = said(alice, "t", "The gas.", title="Gas")
    document = saved(alice, "gas.md", "Gas.")
    old = timezone.now() - dt.timedelta(days=10)
    Session.objects.of(alice.pk).filter(pk=session.pk).update(active_at=old)
    search_entry.SearchEntry.objects.of(alice.pk).update(created=old)
    Artifact.objects.of(alice.pk).filter(public_id=document).update(changed_at=old)
    assert found(alice, "gas", when=When.WEEK) == {}
    assert found(alice, "gas", when=When.TODAY) == {}
    assert set(found(alice, "gas", when=When.MONTH)) == {"conversations", "messages", "notes"}


def test_conversation_and_collection_narrow(client: Client, alice: Any) -> None:
    here = said(alice, "here", "The gas here.", title="Gas here")
    said(alice, "there", "The gas there.", title="Gas there")
    saved(alice, "attached.md", "Gas.", session=here)
    document = saved(alice, "shelved.md", "Gas.")
    shelf = library.make_collection(alice.pk, "Shelf")
    library.move(alice.pk, [document], shelf.id)
    answer = found(alice, "gas", thread="here")
    assert {kind: len(hits) for kind, hits in answer.items()} == {"messages": 1, "notes": 1}
    html = client.get(f"/search/?q=gas&kind=notes&collection={shelf.id}").content.decode()
    assert "shelved.md" in html
    assert "attached.md" not in html
    assert f'<option value="{shelf.id}" selected>' in html


@pytest.mark.parametrize(
    "query",
    ["kind=x", "when=x", "collection=x", "kind=notes&collection=x", "in=%00", "q=%00", "q=" + "x" * 5000, "q=%22"],
)
def test_what_makes_no_sense_counts_as_not_said(client: Client, query: str) -> None:
    assert client.get(f"/search/?{query}").status_code == 200
    assert client.get(f"/search/?{query}", **HTMX).status_code == 200


# How it is shown


def test_without_words_the_conversations_used_last_stand_there(client: Client, alice: Any) -> None:
    for n in range(10):
        session = conversation(alice, f"t{n}", title=f"No {n}.", age=dt.timedelta(minutes=n))
        run(session, f"r{n}", asked("x"), ended())
    html = client.get("/search/", **HTMX).content.decode()
    assert re.findall(r">(No \d\.)<", html) == [f"No {n}." for n in range(8)]
    assert 'data-count="8 recent conversations"' in html


def test_dialog_is_a_listbox_and_the_page_needs_no_script(client: Client, alice: Any) -> None:
    said(alice, "t", "The gas.", title="Gas")
    dialog = client.get("/search/?q=gas&here=t", **HTMX).content.decode()
    assert 'role="listbox"' in dialog
    assert dialog.count('role="option"') == 2
    assert 'data-count="2 results"' in dialog
    assert 'type="checkbox" name="in" value="t"' in dialog
    page = client.get("/search/?q=gas").content.decode()
    main = page[page.index("<main") : page.index("</main>")]
    assert 'role="option"' not in main
    assert '<form action="/search/"' in main
    assert "<mark>Gas</mark>" in main
    assert "<mark>gas</mark>" in main


def test_nothing_found_says_what_was_searched_and_what_to_do(client: Client, alice: Any) -> None:
    said(alice, "t", "The gas.")
    saved(alice, "a.md", "x")
    saved(alice, "b.md", "y")
    for how in ({}, HTMX):
        html = client.get("/search/?q=glycol&when=week", **how).content.decode()
        assert "Nothing in 1 conversation and 2 documents: titles, messages, names and text." in html
        assert 'href="/search/?q=glycol"' in html
        assert 'href="/?ask=glycol"' in html


def test_what_people_and_documents_say_is_escaped(client: Client, alice: Any) -> None:
    evil = "<script>alert(1)</script> swordfish"
    said(alice, "t", evil, title=evil)
    saved(alice, "swordfish.md", evil)
    for how in ({}, HTMX):
        html = client.get(f"/search/?{urlencode({'q': evil})}", **how).content.decode()
        assert "<script>alert" not in html
        assert "swordfish" in html


def test_search_takes_few_statements_whatever_it_finds(alice: Any, django_assert_num_queries: Any) -> None:
    for n in range(12):
        said(alice, f"t{n}", *[f"Gas number {n} {i}." for i in range(4)], title=f"Gas {n}")
        saved(alice, f"gas {n}.md", "The gas.")
    with django_assert_num_queries(STATEMENTS):
        found(alice, "gas")
    with django_assert_num_queries(3):
        found(alice, "gas", kind=Found.MESSAGES)
    with django_assert_num_queries(1):
        found(alice, "gas", kind=Found.CONVERSATIONS)
    with django_assert_num_queries(1):
        finding.find(Wanted(owner_id=alice.pk))


def test_search_speaks_chinese(client: Client, alice: Any) -> None:
    said(alice, "t", "这份合同", title="关于合同")
    client.cookies["django_language"] = "zh-hans"
    html = client.get("/search/?q=合同").content.decode()
    assert "2 条结果" in html
    for word in ("对话", "消息", "全部", "任意日期"):
        assert word in html
