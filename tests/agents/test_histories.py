"""The history a run begins with: the same whether this process knew it or read it, whatever happened in between."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from django.contrib.auth import get_user_model

from agents.models.event import Event
from agents.models.session import Session
from agents.runtime.events import Stored
from agents.runtime.session import Action, OpenRun
from agents.stores import db, histories, lines, pool, sessions, writer
from agents.stores.histories import Histories
from agents.stores.sessions import PgSessionStore
from tests.agents.counting import counted
from tests.agents.records import AT, FINISHED, answer, finished, planner, request, stamp, texts, user

LONG = histories.MIN_EVENTS


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    person = await db.in_thread(get_user_model().objects.create_user)("alice")
    return int(person.pk)


async def say(owner_id: int, words: str, *, run_id: str, answers: int = 1, fork_after: int | None = None) -> OpenRun:
    """Play a whole turn and return how it was opened."""
    message = user(words, id=f"m-{run_id}")
    action = Action.SEND if fork_after is None else Action.EDIT
    asked = request(owner_id, run_id=run_id, message=message, action=action)
    opened = await PgSessionStore().open_run(asked, planner(message, run_id=run_id, fork_after=fork_after))
    for n in range(answers):
        await opened.ledger.append([stamp(answer(f"{words} {n}"), run_id=run_id)])
    await opened.ledger.append([stamp(finished(), run_id=run_id)], end=FINISHED)
    return opened


async def stored(owner_id: int) -> tuple[Stored, ...]:
    return (await sessions.visible(owner_id=owner_id, thread_id="t")).stored


async def elsewhere(work: Callable[[], Awaitable[object]]) -> None:
    """Do something as another process does it: in a loop with a pool, a writer and histories of its own."""

    async def alone() -> None:
        await work()
        await writer.close()
        await pool.close()

    await asyncio.to_thread(lambda: asyncio.run(alone()))


async def test_a_chain_that_is_known_is_not_read_again(alice: int) -> None:
    await say(alice, "first", run_id="r1", answers=LONG)
    there = await stored(alice)
    with counted() as statements:
        opened = await PgSessionStore().open_run(request(alice, run_id="r2"), planner(run_id="r2"))
    assert opened.history == there
    assert statements.total == 2  # what is there, and the new run


async def test_a_short_chain_is_read_as_before(alice: int) -> None:
    await say(alice, "first", run_id="r1")
    there = await stored(alice)
    assert (await say(alice, "second", run_id="r2")).history == there


async def test_what_another_process_appended_is_read_and_nothing_else(alice: int) -> None:
    await say(alice, "first", run_id="r1", answers=LONG)
    known = await stored(alice)
    await elsewhere(lambda: say(alice, "second", run_id="r2"))
    there = await stored(alice)
    assert len(there) == len(known) + 4
    with counted() as statements:
        opened = await say(alice, "third", run_id="r3", answers=0)
    assert opened.history == there
    assert statements.total == 4  # what is there, the new events, the new run, its end
    assert (await say(alice, "fourth", run_id="r4")).history == (*there, *(await stored(alice))[len(there) : -4])


async def test_an_edit_shows_the_fork_and_not_what_it_replaced(alice: int) -> None:
    await say(alice, "first", run_id="r1", answers=LONG)
    shared = await stored(alice)
    await say(alice, "second", run_id="r2", answers=LONG)
    edited = await say(alice, "other", run_id="r3", answers=LONG, fork_after=shared[-1].position)
    assert edited.history == shared
    there = await stored(alice)
    assert "second 0" not in texts(there)
    assert (await say(alice, "more", run_id="r4")).history == there


async def test_going_back_to_another_line_shows_that_line(alice: int) -> None:
    await say(alice, "first", run_id="r1", answers=LONG)
    shared = await stored(alice)
    await say(alice, "second", run_id="r2", answers=LONG)
    trunk = await stored(alice)
    await say(alice, "other", run_id="r3", answers=LONG, fork_after=shared[-1].position)
    other = await stored(alice)
    await db.in_thread(lines.choose)(owner_id=alice, thread_id="t", fork=0)
    assert (await say(alice, "third", run_id="r4")).history == trunk
    await db.in_thread(lines.choose)(owner_id=alice, thread_id="t", fork=1)
    assert (await say(alice, "fourth", run_id="r5")).history == other


async def test_a_thread_that_was_deleted_and_begun_anew_has_no_history(alice: int) -> None:
    await say(alice, "first", run_id="r1", answers=LONG)
    await db.in_thread(Session.objects.of(alice).filter(thread_id="t").delete)()
    assert (await say(alice, "again", run_id="r2")).history == ()


@pytest.mark.parametrize("more", [0, 1])
async def test_a_database_that_went_back_and_took_another_way_is_read_anew(alice: int, more: int) -> None:
    """A standby that took over without the last transactions: the same positions, other events, perhaps more."""
    await say(alice, "first", run_id="r1", answers=LONG)
    last = (await stored(alice))[-1]
    rows = Event.objects.of(alice).filter(position=last.position)
    await db.in_thread(rows.update)(event_id="another")
    if more:
        await elsewhere(lambda: say(alice, "second", run_id="r2"))
    there = await stored(alice)
    assert "another" in {event.id for event in there}
    assert (await say(alice, "third", run_id="r3")).history == there


async def test_a_run_that_was_fenced_leaves_nothing_behind(alice: int) -> None:
    opened = await PgSessionStore().open_run(request(alice, run_id="r1"), planner(run_id="r1"))
    await opened.ledger.append([stamp(answer(str(n)), run_id="r1") for n in range(LONG)])
    assert histories.current().find((int(opened.session.id), 0)) is None


def events(count: int, size: int) -> list[Stored]:
    made = [stamp(answer("x" * size)) for _ in range(count)]
    return [
        Stored(position=n, fork=0, id=one.id, at=AT, origin=one.origin, record=one.record, tokens=7)
        for n, one in enumerate(made, 1)
    ]


def test_the_oldest_chains_go_when_there_are_too_many_bytes() -> None:
    kept = Histories(lambda: 0.0, max_bytes=250_000, min_events=2)
    for session in (1, 2, 3):
        kept.keep((session, 0), events(10, 5_000))
    assert [kept.find((session, 0)) is not None for session in (1, 2, 3)] == [False, True, True]
    kept.keep((3, 0), events(100, 5_000))  # too large by itself
    assert [kept.find((session, 0)) is not None for session in (1, 2, 3)] == [False, True, False]
    assert kept.size > 100_000


def test_a_chain_that_grew_counts_once() -> None:
    kept = Histories(lambda: 0.0, min_events=2)
    chain = events(10, 1_000)
    kept.keep((1, 0), chain[:6])
    kept.keep((1, 0), chain)
    once = Histories(lambda: 0.0, min_events=2)
    once.keep((1, 0), chain)
    assert kept.size == once.size > 10_000


def test_a_chain_nobody_went_on_with_is_forgotten() -> None:
    now = 0.0
    kept = Histories(lambda: now, min_events=2)
    kept.keep((1, 0), events(2, 10))
    now = histories.IDLE_S + 1
    assert kept.find((1, 0)) is None
    assert kept.size == 0
