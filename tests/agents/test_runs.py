"""Leases, cancelling, the inbox, and closing a run whose process died."""

import ast
import asyncio
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from django.contrib.auth import get_user_model

from agents.runtime.errors import Rejected, RunFenced
from agents.runtime.events import RunFailed, Stamped, UserMessage
from agents.runtime.session import OpenRun, RunEnd, RunStatus
from agents.stores import db, histories, inbox, pool, runs, sessions, writer
from agents.stores.sessions import PgSessionStore
from tests.agents import counting
from tests.agents.records import FINISHED, answer, finished, planner, request, stamp, texts, user
from tests.agents.wall import walled

pytestmark = pytest.mark.usefixtures("hot_stores")

LOST = RunEnd(status=RunStatus.LOST, error_code="lost")


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    person = await db.in_thread(get_user_model().objects.create_user)("alice")
    return int(person.pk)


async def opened(owner_id: int, thread_id: str = "t", run_id: str = "r", message: UserMessage | None = None) -> OpenRun:
    asked = request(owner_id, thread_id, run_id, message=message or user("hello", id=f"m-{run_id}"))
    return await PgSessionStore().open_run(asked, planner(asked.message, run_id=run_id))


async def let_lease_run_out(run: OpenRun) -> None:
    await pool.fetch(
        "UPDATE agents_run SET lease_expires_at = now() - interval '1 second' WHERE id = %s", (run.run_key,)
    )


async def lost(run: runs.Lost) -> tuple[Sequence[Stamped], RunEnd]:
    return [stamp(answer("so far")), stamp(RunFailed(code="lost", message="The server stopped."))], LOST


async def test_a_heartbeat_renews_every_lease_in_one_statement_and_tells_who_is_fenced(alice: int) -> None:
    mine = [await opened(alice, f"t{n}") for n in range(3)]
    await let_lease_run_out(mine[0])
    await pool.fetch("UPDATE agents_run SET epoch = 2 WHERE id = %s", (mine[1].run_key,))
    with counting.counted() as statements:
        beats = await runs.heartbeat([(run.run_key, 1) for run in mine])
    assert statements.total == 1
    assert [(beat.run_key, beat.alive) for beat in beats] == [
        (mine[0].run_key, True),
        (mine[1].run_key, False),
        (mine[2].run_key, True),
    ]
    assert await runs.expired() == ()
    left = await pool.fetch(
        "SELECT extract(epoch FROM lease_expires_at - clock_timestamp()) FROM agents_run WHERE id = %s",
        (mine[0].run_key,),
    )
    assert 13 < left[0][0] <= runs.LEASE_S


async def test_a_heartbeat_carries_the_wish_to_stop_and_the_news_of_the_inbox(alice: int) -> None:
    run = await opened(alice)
    assert await runs.heartbeat([(run.run_key, 1)]) == (runs.Beat(run_key=run.run_key, alive=True),)
    assert await runs.request_cancel(owner_id=alice, thread_id="t", run_id="r")
    await inbox.put(owner_id=alice, thread_id="t", message=user("go left", id="s"), kind=inbox.Kind.STEER, run_id="r")
    beat = (await runs.heartbeat([(run.run_key, 1)]))[0]
    assert (beat.cancel_requested, beat.inbox_waiting) == (True, True)


async def test_steering_costs_no_statement_when_nothing_came(alice: int) -> None:
    run = await opened(alice)
    await run.ledger.steered()
    with counting.counted() as statements:
        for _ in range(5):
            assert await run.ledger.steered() == ()
    assert statements.total == 0
    await inbox.put(owner_id=alice, thread_id="t", message=user("go", id="s"), kind=inbox.Kind.STEER, run_id="r")
    assert [m.id for m in await run.ledger.steered()] == ["s"]


async def test_1_3_status_and_cancel_of_a_run(alice: int) -> None:
    run = await opened(alice)
    await run.ledger.append([stamp(answer("x"))])
    found = await runs.status(owner_id=alice, thread_id="t", run_id="r")
    assert found is not None
    assert (found.run.status, found.event_count, found.run.agent) == (RunStatus.RUNNING, 3, "assistant")
    assert found.last_event_at is not None
    assert (await runs.active_run(owner_id=alice, thread_id="t")) == found.run
    assert await runs.running_count(owner_id=alice) == 1
    await run.ledger.append([stamp(finished())], end=FINISHED)
    assert not await runs.request_cancel(owner_id=alice, thread_id="t", run_id="r")
    assert not await runs.request_cancel(owner_id=alice, thread_id="t", run_id="unknown")
    assert await runs.active_run(owner_id=alice, thread_id="t") is None
    assert await runs.running_count(owner_id=alice) == 0
    ended = await runs.find_run(owner_id=alice, thread_id="t", run_id="r")
    assert ended is not None
    assert ended.status is RunStatus.FINISHED


async def test_a_lost_run_is_closed_once_and_its_owner_is_fenced(alice: int) -> None:
    run = await opened(alice)
    await run.ledger.append([stamp(answer("started"))])
    assert await runs.expired() == ()
    await let_lease_run_out(run)
    (expired,) = await runs.expired()
    assert (expired.run_id, expired.thread_id, expired.owner_id) == ("r", "t", alice)
    results = await asyncio.gather(*(runs.close_lost(expired, lost) for _ in range(5)))
    assert sorted(len(stored) for stored in results) == [0, 0, 0, 0, 2]
    assert await runs.close_lost(expired, lost) == ()
    with pytest.raises(RunFenced):
        await run.ledger.append([stamp(answer("I am back"))])
    history = (await sessions.visible(owner_id=alice, thread_id="t")).stored
    assert [s.position for s in history] == [1, 2, 3, 4, 5]
    assert texts(history) == ["hello", "started", "so far"]
    found = await runs.find_run(owner_id=alice, thread_id="t", run_id="r")
    assert found is not None
    assert (found.status, found.error_code, found.epoch) == (RunStatus.LOST, "lost", 2)
    await opened(alice, run_id="next")


async def test_the_owner_is_fenced_before_the_closing_is_written(alice: int) -> None:
    run = await opened(alice)
    await let_lease_run_out(run)
    (expired,) = await runs.expired()

    async def closing(taken: runs.Lost) -> tuple[Sequence[Stamped], RunEnd]:
        assert [s.record.type for s in taken.records] == ["run_started", "user_message"]
        with pytest.raises(RunFenced):
            await run.ledger.append([stamp(answer("awake again"))])
        assert not (await runs.heartbeat([(run.run_key, 1)]))[0].alive
        return await lost(taken)

    assert len(await runs.close_lost(expired, closing)) == 2


async def test_a_sweep_that_dies_half_way_is_followed_by_another(alice: int) -> None:
    run = await opened(alice)
    await let_lease_run_out(run)
    (expired,) = await runs.expired()

    async def dies(taken: runs.Lost) -> tuple[Sequence[Stamped], RunEnd]:
        raise ConnectionError("killed")

    with pytest.raises(ConnectionError):
        await runs.close_lost(expired, dies)
    await let_lease_run_out(run)
    (again,) = await runs.expired()
    assert again.epoch == 2
    assert len(await runs.close_lost(again, lost)) == 2


async def test_a_run_that_was_renewed_in_time_is_not_taken_over(alice: int) -> None:
    run = await opened(alice)
    await let_lease_run_out(run)
    (expired,) = await runs.expired()
    await runs.heartbeat([(run.run_key, 1)])
    assert await runs.close_lost(expired, lost) == ()
    await run.ledger.append([stamp(answer("still here"))])


async def test_steering_that_a_lost_run_took_but_never_stored_waits_again(alice: int) -> None:
    run = await opened(alice)
    for name in ("s1", "s2"):
        await inbox.put(owner_id=alice, thread_id="t", message=user(name, id=name), kind=inbox.Kind.STEER, run_id="r")
    taken = await run.ledger.steered()
    await run.ledger.append([stamp(taken[0])])
    await let_lease_run_out(run)
    (expired,) = await runs.expired()
    await runs.close_lost(expired, lost)
    assert [w.message.id for w in await inbox.waiting(owner_id=alice, thread_id="t")] == ["s2"]


async def test_a_message_for_a_run_that_is_over_fails_rather_than_vanishes(alice: int) -> None:
    """Spec runtime 1.3: after the end, steering fails."""
    run = await opened(alice)
    await run.ledger.append([stamp(finished())], end=FINISHED)
    with pytest.raises(Rejected) as refused:
        await inbox.put(owner_id=alice, thread_id="t", message=user("x", id="s"), kind=inbox.Kind.STEER, run_id="r")
    assert refused.value.code == "invalid_input"
    assert await inbox.waiting(owner_id=alice, thread_id="t") == ()


async def test_a_message_the_run_did_not_read_any_more_starts_the_next_one_once(alice: int) -> None:
    run = await opened(alice)
    await inbox.put(owner_id=alice, thread_id="t", message=user("late", id="s"), kind=inbox.Kind.STEER, run_id="r")
    assert await inbox.put(owner_id=alice, thread_id="t", message=user("then", id="q"), kind=inbox.Kind.QUEUE)
    assert not await inbox.put(owner_id=alice, thread_id="t", message=user("then", id="q"), kind=inbox.Kind.QUEUE)
    await run.ledger.append([stamp(finished())], end=FINISHED)
    queued = await inbox.next_queued(owner_id=alice, thread_id="t")
    assert queued is not None
    assert (queued.message.id, queued.message.kind.value) == ("s", "turn")
    following = await opened(alice, run_id="queue-s", message=queued.message)
    assert await following.ledger.steered() == ()  # it is this run's turn, not a message into it
    assert [w.message.id for w in await inbox.waiting(owner_id=alice, thread_id="t")] == ["q"]
    assert (await inbox.take_back(owner_id=alice, thread_id="t", message_id="q")) == user("then", id="q")
    assert await inbox.take_back(owner_id=alice, thread_id="t", message_id="q") is None
    assert await inbox.take_back(owner_id=alice, thread_id="t", message_id="s") is None


async def test_only_one_holds_an_advisory_lock(alice: int) -> None:
    async with pool.try_lock("sweep") as first:
        async with pool.try_lock("sweep") as second, pool.try_lock("other") as other:
            assert (first, second, other) == (True, False, True)
    async with pool.try_lock("sweep") as again:
        assert again


async def test_opening_a_run_over_500_events_takes_three_statements(alice: int) -> None:
    run = await opened(alice)
    for _ in range(10):
        await run.ledger.append([stamp(answer("x" * 200)) for _ in range(50)])
    await run.ledger.append([stamp(finished())], end=FINISHED)
    histories._histories.clear()  # as a process that does not know the conversation
    with counting.counted() as statements:
        following = await opened(alice, run_id="r2")
    assert len(following.history) == 503
    assert statements.total == 3


async def test_warming_up_stores_nothing(alice: int) -> None:
    await sessions.warm_up()
    await writer.current().warm_up()
    assert await pool.fetch("SELECT count(*) FROM agents_session", ()) == [(0,)]


async def test_an_opening_whose_answer_was_lost_is_recognised_as_our_own(
    alice: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await opened(alice)).ledger.append([stamp(finished())], end=FINISHED)
    async with walled(monkeypatch) as wall, asyncio.timeout(10):
        wall.lose = b"precious words"  # the statement that stores them
        opening = asyncio.ensure_future(opened(alice, run_id="r2", message=user("precious words", id="m-r2")))
        async with await psycopg.AsyncConnection.connect(**wall.real) as beside:
            stored = "SELECT 1 FROM agents_run WHERE client_id = 'r2'"
            while not await (await beside.execute(stored)).fetchone():  # noqa: ASYNC110  # the server has no event
                await asyncio.sleep(0.01)
        assert not opening.done()
        await wall.cut()
        run = await opening
    assert [s.position for s in run.records] == [4, 5]
    assert [s.position for s in run.history] == [1, 2, 3]
    await run.ledger.append([stamp(answer("goes on"))])


async def test_history_is_paged_from_the_newest(alice: int) -> None:
    run = await opened(alice)
    await run.ledger.append([stamp(answer(str(n))) for n in range(10)])
    newest = await sessions.history(alice, "t", limit=4)
    assert (texts(newest.stored), newest.truncated, newest.running) == (["6", "7", "8", "9"], True, "r")
    older = await sessions.history(alice, "t", limit=8, before=newest.stored[0].position)
    assert texts(older.stored) == ["hello", "0", "1", "2", "3", "4", "5"]
    assert not older.truncated
    assert await db.in_thread(sessions.read_history)(alice, "t", limit=4) == newest
    with pytest.raises(Rejected) as refused:
        await sessions.history(alice, "unknown")
    assert refused.value.code == "thread_not_found"


async def test_a_deleted_conversation_takes_no_run(alice: int) -> None:
    run = await opened(alice)
    await run.ledger.append([stamp(finished())], end=FINISHED)
    await pool.fetch("UPDATE agents_session SET deleted_at = now() WHERE owner_id = %s", (alice,))
    with pytest.raises(Rejected) as refused:
        await opened(alice, run_id="r2")
    assert refused.value.code == "thread_not_found"


async def test_stores_survive_a_new_event_loop(alice: int) -> None:
    run = await opened(alice)

    def elsewhere() -> int:
        async def go() -> int:
            count = await runs.running_count(owner_id=alice)
            await writer.close()
            await pool.close()
            return count

        return asyncio.run(go())

    assert await asyncio.to_thread(elsewhere) == 1
    await run.ledger.append([stamp(answer("x"))])


def test_no_coroutine_of_the_orm_is_called_in_agents() -> None:
    """They run on Channels' one thread-sensitive thread; the door is stores/db.py."""
    methods = {
        "aget", "acreate", "aget_or_create", "aupdate_or_create", "abulk_create", "abulk_update", "acount", "aexists",
        "aiterator", "alatest", "aearliest", "afirst", "alast", "aaggregate", "adelete", "aupdate", "acontains",
        "asave", "arefresh_from_db", "aexplain", "ain_bulk",
    }  # fmt: skip
    root = Path(__file__).resolve().parents[2] / "agents"
    found = [
        f"{path.relative_to(root)}:{node.lineno} {node.func.attr}"
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods
    ]
    assert found == []
