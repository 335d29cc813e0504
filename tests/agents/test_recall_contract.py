"""What every Recall promises: one suite over the one in memory and the one in PostgreSQL."""

from collections.abc import AsyncIterator
from typing import Any, Protocol

import pytest
import pytest_asyncio
from django.contrib.auth import get_user_model

from agents.runtime.events import Record, Stored, ToolReturned, ToolStatus
from agents.runtime.memoryrecall import MemoryRecall
from agents.runtime.memorystores import MemorySessionStore
from agents.runtime.recall import Anchor, EventMissing, Recall, RecallScope
from agents.runtime.session import Action, OpenRun, SessionStore
from agents.runtime.summaries import Boundary, Summary
from agents.stores import db, pool, sessions, writer
from agents.stores.recall import PgRecall
from agents.stores.summaries import PgSummaries
from tests.agents.records import AT, FINISHED, answer, finished, new_id, planner, request, stamp, user

HIDDEN, CURRENT = RecallScope.CURRENT_HIDDEN, RecallScope.CURRENT_SESSION
OTHERS, ALL = RecallScope.OTHER_SESSIONS, RecallScope.ALL_SESSIONS


class House(Protocol):
    """A store with the past that its runs see."""

    store: SessionStore
    alice: int
    bob: int

    def recall(self, opened: OpenRun) -> Recall: ...

    async def visible(self, owner_id: int, thread_id: str = "t") -> tuple[Stored, ...]: ...

    async def summarise(self, opened: OpenRun, summary: Summary) -> None: ...


class MemoryHouse:
    def __init__(self) -> None:
        self.store = MemorySessionStore()
        self.alice, self.bob = 1, 2

    def recall(self, opened: OpenRun) -> Recall:
        return MemoryRecall.of_run(self.store, opened)

    async def visible(self, owner_id: int, thread_id: str = "t") -> tuple[Stored, ...]:
        return self.store.stored(owner_id=owner_id, thread_id=thread_id)

    async def summarise(self, opened: OpenRun, summary: Summary) -> None:
        assert await self.store.summaries_of(opened.session.id).advance(summary)


class PgHouse:
    def __init__(self, alice: int, bob: int) -> None:
        self.store = sessions.PgSessionStore()
        self.alice, self.bob = alice, bob

    def recall(self, opened: OpenRun) -> Recall:
        session = opened.session
        return PgRecall(
            session.owner_id,
            int(session.id),
            fork=session.fork,
            filter_key="assistant",
            before=opened.records[0].position,
        )

    async def visible(self, owner_id: int, thread_id: str = "t") -> tuple[Stored, ...]:
        return (await sessions.visible(owner_id=owner_id, thread_id=thread_id)).stored

    async def summarise(self, opened: OpenRun, summary: Summary) -> None:
        session = opened.session
        store = PgSummaries(owner_id=session.owner_id, session_id=int(session.id), fork=session.fork)
        assert await store.advance(summary)


@pytest_asyncio.fixture(params=["memory", "postgresql"])
async def house(request: pytest.FixtureRequest, transactional_db: Any) -> AsyncIterator[House]:
    if request.param == "memory":
        yield MemoryHouse()
        return
    make = db.in_thread(get_user_model().objects.create_user)
    alice, bob = await make("alice"), await make("bob")
    yield PgHouse(alice.pk, bob.pk)
    await writer.close()
    await pool.close()


async def say(
    house: House,
    words: str,
    *replies: Record | str,
    owner: int = 0,
    thread: str = "t",
    fork_after: int | None = None,
    end: bool = True,
) -> OpenRun:
    """Play a whole turn and return how it was opened: RunStarted, the question, answers and results, RunFinished."""
    run_id = new_id("r")
    message = user(words, id=f"m-{run_id}")
    more = {} if fork_after is None else {"action": Action.EDIT, "message_id": message.id}
    asked = request(owner or house.alice, thread, run_id, message=message, **more)
    opened = await house.store.open_run(asked, planner(message, run_id=run_id, fork_after=fork_after))
    if replies:
        records = [answer(reply) if isinstance(reply, str) else reply for reply in replies]
        await opened.ledger.append([stamp(record, run_id=run_id) for record in records])
    if end:
        await opened.ledger.append([stamp(finished(), run_id=run_id)], end=FINISHED)
    return opened


async def summarised(house: House, opened: OpenRun, at: Stored) -> None:
    boundary = Boundary(position=at.position, fork=at.fork, event_id=at.id, at=at.at)
    await house.summarise(
        opened,
        Summary(
            id=new_id("s"),
            text="They agreed on\na harbour.",
            filter_key="assistant",
            boundary=boundary,
            read_from=1,
            made_at=AT,
        ),
    )


def returned(call: str, content: str, **more: Any) -> ToolReturned:
    return ToolReturned(id=new_id("t"), call_id=call, name=more.pop("name", "look"), content=content, **more)


async def texts(recall: Recall, query: str, scope: RecallScope = CURRENT, **more: Any) -> list[str]:
    """Return the texts that are found which hold the query's first word or characters, hits and what stands around."""
    found = [one.piece.text for one in await recall.search(query, scope=scope, **more)]
    return [text for text in found if query[:2] in text]


async def event(house: House, words: str, **more: Any) -> Stored:
    """Return the event of the visible chain that says this."""
    return next(s for s in await house.visible(more.pop("owner", house.alice), **more) if words in str(s.record))


# Scopes


async def test_context_7_1_without_a_summary_nothing_is_hidden_and_the_session_is_found(house: House) -> None:
    await say(house, "The harbour has forty moorings.", "Noted.")
    now = await say(house, "How many moorings?", end=False)
    assert await texts(house.recall(now), "moorings", HIDDEN) == []
    assert await texts(house.recall(now), "moorings", CURRENT) == ["The harbour has forty moorings."]
    assert await texts(house.recall(now), "moorings", ALL) == []


async def test_context_7_2_what_lies_at_the_cutoff_is_found_and_what_comes_behind_it_is_not(house: House) -> None:
    first = await say(house, "A mooring costs nine hundred.", "A mooring it is.")
    await summarised(house, first, await event(house, "A mooring it is."))
    await say(house, "The mooring costs a thousand now.", "So be it.")
    now = await say(house, "What does a mooring cost?", end=False)
    hidden = await house.recall(now).search("mooring", scope=HIDDEN)
    assert {one.piece.text for one in hidden} == {"A mooring costs nine hundred.", "A mooring it is."}
    assert {one.scope for one in hidden} == {HIDDEN}
    assert len(await texts(house.recall(now), "mooring", CURRENT)) == 3


async def test_other_sessions_are_those_of_the_same_person_and_not_this_one(house: House) -> None:
    await say(house, "The cup is called Lindgren.", thread="old")
    await say(house, "The cup is called Other.", owner=house.bob, thread="old")
    await say(house, "The cup is here.")
    now = await say(house, "What is the cup called?", end=False)
    found = await house.recall(now).search("cup", scope=OTHERS)
    assert [(one.piece.text, one.piece.thread_id, one.scope) for one in found] == [
        ("The cup is called Lindgren.", "old", OTHERS)
    ]
    assert await texts(house.recall(now), "cup", ALL) == ["The cup is called Lindgren."]


async def test_all_sessions_are_what_is_hidden_here_and_the_others(house: House) -> None:
    await say(house, "The cup is called Lindgren.", thread="old")
    first = await say(house, "The cup is won in autumn.", "Good.")
    await summarised(house, first, await event(house, "Good."))
    await say(house, "The cup is seen here.", "Yes.")
    now = await say(house, "What of the cup?", end=False)
    assert set(await texts(house.recall(now), "cup", ALL)) == {
        "The cup is called Lindgren.",
        "The cup is won in autumn.",
    }


async def test_the_runs_own_question_is_not_found(house: House) -> None:
    now = await say(house, "What of the cup?", "The cup is here.", end=False)
    assert await texts(house.recall(now), "cup", CURRENT) == []


async def test_what_a_summary_of_the_run_itself_hides_is_found_but_not_its_question(house: House) -> None:
    now = await say(house, "What of the cup?", "I look for the cup.", returned("c1", "The cup is here."), end=False)
    await summarised(house, now, await event(house, "The cup is here."))
    assert set(await texts(house.recall(now), "cup", HIDDEN)) == {"I look for the cup.", "The cup is here."}
    assert await texts(house.recall(now), "cup", CURRENT) == []


async def test_of_this_conversation_only_the_visible_line_is_found(house: House) -> None:
    await say(house, "Hello.", "Hello.")
    before = await say(house, "The budget is ninety.", "Noted, budget ninety.")
    now = await say(house, "The budget is seventy.", "Noted.", fork_after=before.records[0].position - 1)
    now = await say(house, "What is the budget?", end=False)
    assert await texts(house.recall(now), "budget", CURRENT) == ["The budget is seventy."]
    old = before.records[1]
    with pytest.raises(EventMissing):
        await house.recall(now).load(Anchor(event_id=old.id), before=1, after=1)
    elsewhere = await say(house, "And the budget?", thread="u", end=False)
    found = await house.recall(elsewhere).load(Anchor(thread_id="t", event_id=old.id), before=1, after=1)
    assert [piece.text for piece in found.pieces] == ["Hello.", "The budget is ninety.", "Noted, budget ninety."]
    assert found.replaced
    shown = await house.recall(elsewhere).load(Anchor(thread_id="t", event_id=now.records[1].id), before=0, after=0)
    assert not shown.replaced


async def test_what_another_conversation_replaced_is_not_found(house: House) -> None:
    await say(house, "The key of the boathouse is under the mat.", thread="mat")
    before = await say(house, "The key of the boathouse is number 0.", thread="t")
    for number in range(1, 40):  # more than one search gives
        words = f"The key of the boathouse is number {number}."
        await say(house, words, thread="t", fork_after=before.records[0].position - 1)
    now = await say(house, "Where is it?", thread="new", end=False)
    expected = {"The key of the boathouse is under the mat.", "The key of the boathouse is number 39."}
    for scope in (OTHERS, ALL):
        assert set(await texts(house.recall(now), "The key of the boathouse", scope, limit=3)) == expected


# What is found


async def test_context_7_3_a_blank_query_finds_nothing(house: House) -> None:
    await say(house, "The harbour.", "Noted.")
    now = await say(house, "And?", end=False)
    assert await texts(house.recall(now), " \n") == []


async def test_context_7_4_a_query_of_several_clauses_finds_each_once(house: House) -> None:
    for words in ("The deposit is nine hundred.", "Marina sails the yacht.", "The cup is in autumn.", "It rains."):
        await say(house, words)
    now = await say(house, "Well?", end=False)
    found = [one.piece.text for one in await house.recall(now).search("deposit, the yacht and the cup", scope=CURRENT)]
    assert {"The deposit is nine hundred.", "Marina sails the yacht.", "The cup is in autumn."} <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("query", ["预算", "预算是多少来着"])
async def test_context_7_10_two_characters_find_a_chinese_message(house: House, query: str) -> None:
    await say(house, "项目预算定为九十万元。", "好的。")
    await say(house, "天气很好。", "是的。")
    now = await say(house, "?", end=False)
    assert (await texts(house.recall(now), query))[0] == "项目预算定为九十万元。"


async def test_hits_come_before_their_neighbours_and_everything_once(house: House) -> None:
    await say(house, "Before.", "The mooring costs nine hundred.")
    await say(house, "After.", "Later.")
    now = await say(house, "?", end=False)
    found = await house.recall(now).search("mooring nine hundred", scope=CURRENT, limit=1)
    assert (found[0].piece.text, found[0].score > 0) == ("The mooring costs nine hundred.", True)
    assert {one.piece.text for one in found if one.score == 0} >= {"Before.", "After."}


async def test_a_hit_in_a_long_text_says_where_it_begins(house: House) -> None:
    long = "水 " * 1_000 + "The mooring costs nine hundred. " + "air " * 1_000
    await say(house, "Read it.", returned("c1", long), "Read.")
    now = await say(house, "?", end=False)
    hit = (await house.recall(now).search("mooring", scope=CURRENT))[0].piece
    assert "The mooring costs" in hit.text
    assert long.encode()[hit.offset :].decode().startswith(hit.text)
    assert long[hit.start :].startswith(hit.text)
    assert (hit.content_bytes, hit.tool_call_id, hit.message_id) == (len(long.encode()), "c1", "c1")


async def test_results_of_the_session_tools_and_failures_are_not_found(house: House) -> None:
    failed = returned("c2", "mooring", status=ToolStatus.ERROR)
    await say(house, "Look.", returned("c1", "The mooring.", name="session_search"), failed)
    now = await say(house, "?", end=False)
    assert await texts(house.recall(now), "mooring") == []


# Loading


async def test_a_record_is_loaded_with_its_neighbours(house: House) -> None:
    await say(house, "One.", "Two.", returned("c1", "Three."), "Four.")
    now = await say(house, "?", end=False)
    asked = await event(house, "Three.")
    window = await house.recall(now).load(Anchor(event_id=asked.id), before=1, after=2)
    assert [piece.text for piece in window.pieces] == ["Two.", "Three.", "Four.", "?"]
    assert (window.pieces[window.anchor].event_id, window.summary_id) == (asked.id, "")
    assert [piece.role for piece in window.pieces] == ["assistant", "tool", "assistant", "user"]
    first = await house.recall(now).load(Anchor(event_id=(await event(house, "One.")).id), before=4, after=0)
    assert ([piece.text for piece in first.pieces], first.anchor) == (["One."], 0)


async def test_a_record_that_a_summary_covers_comes_with_it(house: House) -> None:
    first = await say(house, "One.", "Two.")
    await summarised(house, first, await event(house, "Two."))
    now = await say(house, "Three.", end=False)
    recall = house.recall(now)
    covered = await recall.load(Anchor(event_id=(await event(house, "One.")).id), before=0, after=1)
    assert covered.summary_text == "They agreed on\na harbour." and covered.summary_id
    behind = await recall.load(Anchor(event_id=(await event(house, "Three.")).id), before=0, after=1)
    assert behind.summary_id == ""


async def test_context_7_7_a_stale_id_falls_back_on_the_call(house: House) -> None:
    await say(house, "One.", returned("c1", "The old result."))
    await say(house, "Again.", returned("c1", "The new result."), returned("c2", "failed", status=ToolStatus.ERROR))
    now = await say(house, "?", end=False)
    recall = house.recall(now)

    async def loaded(**anchor: str) -> str:
        window = await recall.load(Anchor(**anchor), before=0, after=1)
        return window.pieces[window.anchor].text

    assert await loaded(event_id="stale", call_id="c1") == "The new result."
    assert await loaded(call_id="c1") == "The new result."
    assert await loaded(call_id="c2") == "failed"  # a placeholder may stand for it
    assert await loaded(message_id=(await event(house, "Again.")).record.id) == "Again."  # type: ignore[union-attr]  # a message
    with pytest.raises(EventMissing, match='no event "stale"'):
        await loaded(event_id="stale")
    with pytest.raises(EventMissing):
        await loaded(event_id="stale", call_id="c9")


async def test_context_7_5_what_is_somebody_elses_is_not_there(house: House) -> None:
    await say(house, "Bob's secret.", owner=house.bob, thread="b")
    secret = await event(house, "Bob's secret.", owner=house.bob, thread_id="b")
    now = await say(house, "?", end=False)
    said = []
    for anchor in (
        Anchor(thread_id="b", event_id=secret.id),
        Anchor(thread_id="nobody", event_id=secret.id),
        Anchor(event_id=secret.id),
        Anchor(thread_id="b", message_id=secret.record.id),  # type: ignore[union-attr]  # a message
    ):
        with pytest.raises(EventMissing) as refused:
            await house.recall(now).load(anchor, before=1, after=1)
        said.append(str(refused.value).replace(anchor.named, "X"))
    assert len(set(said)) == 1
    assert await texts(house.recall(now), "secret", OTHERS) == []


async def test_context_7_11_the_number_of_a_turn_is_no_event_id(house: House) -> None:
    await say(house, "One.", "Two.")
    now = await say(house, "?", end=False)
    for number in ("2", "turn 2", "12"):
        with pytest.raises(EventMissing, match=r"exactly as it stands there \(not the number of a turn\)"):
            await house.recall(now).load(Anchor(event_id=number), before=1, after=1)
