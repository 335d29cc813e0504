"""The memories page, without a browser: the list and its forms."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from agents.models.event import Event
from agents.models.memory import Memory as MemoryRow
from agents.models.session import Session
from agents.runtime.events import UserMessage
from agents.runtime.memory.dates import Period, Precision
from agents.runtime.memory.memories import MOST_MEMORIES, Draft, Kind, Origin, Source
from agents.runtime.model import TextPart
from agents.stores.memoryrows import MemoryRows
from tests.workbench.conversations import conversation, run
from tests.workbench.memorypages import (
    HTMX,
    NOW,
    edit,
    form,
    held,
    page,
    remembered,
    said,
    signed_in,
    texts,
    token_in,
    words,
)


@pytest.fixture
def client(alice: Any) -> Client:
    return signed_in(alice)


# The list


def test_the_page_says_what_memory_is_for_while_there_is_none(client: Client) -> None:
    html = page(client)
    assert "Nothing is remembered yet" in html
    assert "For example, say in a conversation" in html
    assert 'id="forget" aria-labelledby="forget-title" hidden' in html


def test_a_memory_is_shown_with_kind_time_people_place_and_where_it_comes_from(client: Client, alice: Any) -> None:
    session = conversation(alice, "t-1", title="Cold store")
    run(session, "r-1", UserMessage(id="m-1", parts=(TextPart(text="I moved to Oslo."),)))
    event = Event.objects.of(alice.pk).get(type="user_message")
    origin = Origin(thread_id="t-1", event_id=event.event_id, position=event.position)
    day = Period(start=datetime(2026, 5, 3, tzinfo=UTC), end=datetime(2026, 5, 4, tzinfo=UTC), precision=Precision.DAY)
    remembered(
        alice,
        "Moved the plant.",
        kind=Kind.EPISODE,
        event_time=day,
        participants=("Ana", "李明"),
        location="Oslo",
        origin=origin,
    )
    html = page(client)
    assert "Episode" in html
    assert "2026-05-03 · with Ana, 李明 · Oslo" in words(html)
    assert f'href="/c/t-1/?at={event.event_id}">from this message</a>' in html
    landed = client.get(f"/c/t-1/?at={event.event_id}").content.decode()
    assert "I moved to Oslo." in landed
    assert "That message is not in this conversation any more" not in landed


def test_where_a_memory_comes_from_is_said_in_words(client: Client, alice: Any) -> None:
    gone = Origin(thread_id="t-gone", event_id="e", position=1)
    remembered(alice, "one", origin=gone)
    remembered(alice, "two", source=Source.PERSON)
    remembered(alice, "three", source=Source.TOOL)
    shown = words(page(client))
    assert "conversation deleted" in shown
    assert "typed in by you" in shown
    assert "by the assistant" in shown


def test_a_message_of_a_deleted_conversation_is_no_link(client: Client, alice: Any) -> None:
    session = conversation(alice, "t-2", title="x")
    run(session, "r-1", UserMessage(id="m-1", parts=(TextPart(text="a"),)))
    remembered(alice, "from there", origin=Origin(thread_id="t-2", event_id="e", position=1))
    assert "from this message" in page(client)
    Session.objects.of(alice.pk).update(deleted_at=NOW)
    html = page(client)
    assert "conversation deleted" in html
    assert "/c/t-2/" not in html


def test_the_newest_stands_first_and_columns_sort(client: Client, alice: Any) -> None:
    for number, text in enumerate(("beta", "alpha", "gamma")):
        MemoryRows(alice.pk, now=lambda n=number: NOW + timedelta(minutes=n)).add(
            Draft(text=text, source=Source.PERSON)
        )
    ids = {memory.text: memory.id for memory in MemoryRows(alice.pk).read()}
    MemoryRows(alice.pk, now=lambda: NOW + timedelta(hours=1)).used([ids["alpha"]])
    MemoryRows(alice.pk, now=lambda: NOW + timedelta(hours=2)).used([ids["beta"]])
    assert texts(page(client)) == ["gamma", "alpha", "beta"]
    assert texts(page(client, sort="updated")) == ["beta", "alpha", "gamma"]
    assert texts(page(client, sort="text")) == ["alpha", "beta", "gamma"]
    assert texts(page(client, sort="-text")) == ["gamma", "beta", "alpha"]
    assert texts(page(client, sort="-used")) == ["beta", "alpha", "gamma"]
    assert texts(page(client, sort="used")) == ["gamma", "alpha", "beta"]
    assert texts(page(client, sort="nonsense")) == ["gamma", "alpha", "beta"]
    assert 'aria-sort="ascending"' in page(client, sort="text")


def test_a_search_finds_parts_of_words_and_two_chinese_characters(client: Client, alice: Any) -> None:
    remembered(alice, "Reports are written in Chinese, tables first.", topics=("format",))
    remembered(alice, "李明在上海管理冷库。", participants=("李明",), location="上海")
    remembered(alice, "The board meets on Mondays.", kind=Kind.EPISODE)
    assert texts(page(client, q="冷库")) == ["李明在上海管理冷库。"]
    assert texts(page(client, q="TABLE rep")) == ["Reports are written in Chinese, tables first."]
    assert texts(page(client, q="format")) == ["Reports are written in Chinese, tables first."]
    assert texts(page(client, kind="episode")) == ["The board meets on Mondays."]
    nothing = page(client, q="meets", kind="fact")
    assert texts(nothing) == []
    assert "No memory matches this search" in nothing
    assert "3 memories were looked at." in nothing
    assert 'Episodes <span class="chip-count">1</span>' in nothing


@pytest.mark.parametrize("q", ["%", "\\", "'; drop table", "\x00", "<script>alert(1)</script>", "x" * 5_000])
def test_a_search_for_anything_is_answered(client: Client, alice: Any, q: str) -> None:
    remembered(alice, "Plain.")
    assert "<script>alert" not in page(client, q=q)


def test_fifty_are_shown_and_more_on_demand(client: Client, alice: Any) -> None:
    for number in range(60):
        remembered(alice, f"Memory number {number}.")
    html = page(client, q="number")
    assert len(texts(html)) == 50
    assert "50 of 60 memories" in html
    more = re.search(r'href="(/memories/[^"]*)" data-show data-key="more"', html)[1].replace("&amp;", "&")  # type: ignore[index]
    rest = client.get(more).content.decode()
    assert len(texts(rest)) == 60
    assert 'data-key="more"' not in rest
    assert len(texts(page(client, show="9" * 30))) == 50


def test_texts_are_shown_as_they_are_and_never_as_markup(client: Client, alice: Any) -> None:
    remembered(alice, "<b>bold</b> & “quoted”")
    html = page(client)
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; “quoted”" in html


def test_the_list_costs_a_fixed_number_of_statements(
    client: Client, alice: Any, django_assert_max_num_queries: Any
) -> None:
    for number in range(30):
        old = remembered(alice, f"Old {number}.", origin=Origin(thread_id=f"t{number}", event_id="e", position=1))
        MemoryRows(alice.pk).supersede(old.id, Draft(text=f"New {number}.", source=Source.PERSON))
    with django_assert_max_num_queries(9):
        page(client)


# Writing


def test_a_memory_is_typed_in(client: Client, alice: Any) -> None:
    typed = {
        "text": "我喜欢先看表格。\n  再看结论。",
        "kind": "episode",
        "when": "2026-05",
        "people": "Ana，李明; Bo",
        "place": " Oslo ",
    }
    response = client.post("/memories/add/", typed, **HTMX)
    assert response.status_code == 200
    assert said(response) == "Remembered"
    [memory] = MemoryRows(alice.pk).read()
    assert memory.text == "我喜欢先看表格。 再看结论。"
    assert (memory.kind, memory.source, memory.origin) == (Kind.EPISODE, Source.PERSON, None)
    assert (memory.participants, memory.location) == (("Ana", "李明", "Bo"), "Oslo")
    assert memory.event_time is not None
    assert memory.event_time.precision is Precision.MONTH


def test_a_time_is_read_in_the_time_zone_of_the_person(client: Client, alice: Any) -> None:
    client.cookies["tz"] = "Asia/Shanghai"
    client.post("/memories/add/", {"text": "Moved.", "kind": "episode", "when": "2026-05-03"}, **HTMX)
    [memory] = MemoryRows(alice.pk).read()
    assert memory.event_time is not None
    assert memory.event_time.start == datetime(2026, 5, 2, 16, tzinfo=UTC)
    assert "2026-05-03" in page(client)


def test_the_same_form_sent_twice_makes_one_memory(client: Client, alice: Any) -> None:
    for told in ("Remembered", "This is remembered already."):
        assert said(client.post("/memories/add/", {"text": "Once.", "kind": "fact"}, **HTMX)) == told
    assert held(alice) == ["Once."]


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        ({"text": "  \x00 "}, "A memory needs a text."),
        ({"text": "字" * 2_001}, "at most 2,000 characters, this one has 2,001"),
        ({"when": "someday soon"}, "This time cannot be read."),
        ({"when": "2026-02-31"}, "This time cannot be read."),
        ({"when": "1" * 5_000}, "This time cannot be read."),
        ({"when": "9999-12-31 20:00"}, "This time cannot be read."),
        ({"when": "week of 9999-12-29"}, "This time cannot be read."),
        ({"when": "0001-01-01"}, "This time cannot be read."),
        ({"people": ",".join(f"p{n}" for n in range(21))}, "At most 20 people"),
        ({"people": "p" * 101}, "At most 20 people"),
        ({"place": "p" * 201}, "A place has at most 200 characters."),
        ({"kind": "rumour"}, "Choose a kind."),
    ],
)
def test_what_cannot_be_stored_is_said_at_its_field_and_kept(
    client: Client, alice: Any, typed: dict[str, str], error: str
) -> None:
    sent = {"text": "Kept text.", "kind": "fact", **typed}
    for how in (HTMX, {}):
        response = client.post("/memories/add/", sent, **how)
        assert response.status_code == 422
        html = response.content.decode()
        assert error in html
        assert 'aria-invalid="true"' in html
        assert sent["text"].replace("\0", "") in html.replace("\0", "")
    assert held(alice) == []


def test_control_characters_are_left_out(client: Client, alice: Any) -> None:
    client.post(
        "/memories/add/",
        {"text": "One\x00\x07 line\r\nand \ud83d".encode("utf-8", "replace").decode(), "kind": "fact"},
        **HTMX,
    )
    assert held(alice) == ["One line and ?"]


def test_two_thousand_characters_of_chinese_are_fine(client: Client, alice: Any) -> None:
    assert client.post("/memories/add/", {"text": "字" * 2_000, "kind": "fact"}, **HTMX).status_code == 200
    assert held(alice) == ["字" * 2_000]


def test_when_there_is_no_room_it_is_said_what_had_to_go(client: Client, alice: Any) -> None:
    MemoryRow.objects.of(alice.pk).bulk_create(
        MemoryRow(
            owner=alice,
            memory_id=f"m{n}",
            text=f"Text {n}",
            kind="fact",
            source="person",
            content_hash=str(n),
            created_at=NOW,
            updated_at=NOW,
        )
        for n in range(MOST_MEMORIES)
    )
    response = client.post("/memories/add/", {"text": "One more.", "kind": "fact"}, **HTMX)
    assert "There is room for 1,000 memories: 1" in said(response)


# Editing


def test_a_memory_is_edited_and_what_was_not_touched_stays(client: Client, alice: Any) -> None:
    week = Period(
        start=datetime(2026, 3, 9, tzinfo=UTC), end=datetime(2026, 3, 16, tzinfo=UTC), precision=Precision.WEEK
    )
    origin = Origin(thread_id="t", event_id="e", position=3)
    memory = remembered(alice, "Old.", event_time=week, participants=("Smith, John",), topics=("work",), origin=origin)
    shown = client.get(f"/memories/{memory.id}/edit/", **HTMX).content.decode()
    assert 'value="week of 2026-03-09"' in shown
    assert 'value="Smith, John"' in shown
    assert edit(client, memory, text="New.", when="week of 2026-03-09").status_code == 200
    [now] = MemoryRows(alice.pk).read()
    assert (now.id, now.text, now.version) == (memory.id, "New.", 2)
    assert (now.event_time, now.participants, now.topics) == (week, ("Smith, John",), ("work",))
    assert (now.source, now.origin) == (Source.PERSON, origin)


def test_a_week_is_read_back_as_the_form_shows_it(client: Client, alice: Any) -> None:
    client.cookies["tz"] = "America/New_York"
    client.post("/memories/add/", {"text": "Audit.", "kind": "episode", "when": "week of 2026-03-02"}, **HTMX)
    [memory] = MemoryRows(alice.pk).read()
    assert memory.event_time is not None
    assert memory.event_time.start == datetime(2026, 3, 2, 5, tzinfo=UTC)
    assert memory.event_time.end == datetime(2026, 3, 9, 4, tzinfo=UTC), "the clocks went forward on Sunday"


def test_a_time_is_taken_away_by_emptying_its_field(client: Client, alice: Any) -> None:
    client.post("/memories/add/", {"text": "Audit.", "kind": "episode", "when": "2026"}, **HTMX)
    [memory] = MemoryRows(alice.pk).read()
    edit(client, memory, when="")
    assert MemoryRows(alice.pk).read()[0].event_time is None


def test_two_windows_that_edit_one_memory_lose_nothing(client: Client, alice: Any) -> None:
    memory = remembered(alice, "First.")
    assert edit(client, memory, text="From one window.").status_code == 200
    refused = edit(client, memory, text="From the other.")
    assert refused.status_code == 409
    assert refused.headers["HX-Reswap"] == "outerHTML"
    html = refused.content.decode()
    assert "From one window." in html
    assert "From the other." in html
    assert held(alice) == ["From one window."]
    version = int(re.search(r'name="version" value="(\d+)"', html)[1])  # type: ignore[index]
    assert edit(client, memory, text="From the other.", version=version).status_code == 200
    assert held(alice) == ["From the other."]


def test_an_edit_sent_twice_is_no_conflict(client: Client, alice: Any) -> None:
    memory = remembered(alice, "First.")
    assert [edit(client, memory, text="Second.").status_code for _ in range(2)] == [200, 200]
    assert MemoryRows(alice.pk).read()[0].version == 2


def test_what_was_typed_about_a_memory_that_is_gone_is_given_back(client: Client, alice: Any) -> None:
    memory = remembered(alice, "First.")
    MemoryRows(alice.pk).delete(memory.id, by=Source.PERSON)
    for how in (HTMX, {}):
        answer = client.post(f"/memories/{memory.id}/edit/", form(memory, text="Long thoughts."), **how)
        assert answer.status_code == 404
        html = answer.content.decode()
        assert "Long thoughts." in html
        assert "is not there any more" in html
        assert 'action="/memories/add/"' in html
    assert client.post("/memories/add/", {"text": "Long thoughts.", "kind": "fact", "row": "1"}, **HTMX).content == b""
    assert held(alice) == ["Long thoughts."]


def test_a_text_that_another_memory_has_is_refused_at_the_field(client: Client, alice: Any) -> None:
    one, _other = remembered(alice, "One."), remembered(alice, "Other.")
    refused = edit(client, one, text="other")
    assert refused.status_code == 422
    assert "Another memory says exactly this." in refused.content.decode()
    assert held(alice) == ["One.", "Other."]


def test_without_a_script_the_page_can_do_the_same(client: Client, alice: Any) -> None:
    memory = remembered(alice, "First.")
    assert 'name="version" value="1"' in client.get(f"/memories/{memory.id}/edit/").content.decode()
    assert 'name="version" value="1"' in page(client, edit=memory.id)
    sent = client.post(f"/memories/{memory.id}/edit/", form(memory, text="Second."))
    assert (sent.status_code, sent.headers["Location"]) == (302, "/memories/")
    refused = client.post(f"/memories/{memory.id}/edit/", form(memory, text="Third."))
    assert refused.status_code == 409
    assert "Third." in refused.content.decode()
    assert client.post("/memories/add/", {"text": "More.", "kind": "fact"}).headers["Location"] == "/memories/"
    assert client.post(f"/memories/{memory.id}/mute/", {"muted": "1"}).headers["Location"] == "/memories/"
    toast = client.post("/memories/delete/", {"id": memory.id}).content.decode()
    assert client.post("/memories/restore/", {"token": token_in(toast)}).headers["Location"] == "/memories/"
    assert held(alice) == ["More.", "Second."]
    wrong = client.post("/memories/forget/", {"word": "no"})
    assert wrong.status_code == 422
    assert "Type “forget” to confirm." in wrong.content.decode()
    assert client.post("/memories/forget/", {"word": "forget"}).headers["Location"] == "/memories/"
    assert held(alice) == []
