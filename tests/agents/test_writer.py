"""The batching writer: batches, the fence, bad rows, and a database that goes away."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from django.contrib.auth import get_user_model
from django.db import connections

from agents import jobs
from agents.models.event import Event
from agents.models.job import Job
from agents.models.model_call import ModelCall as ModelCallRow
from agents.models.run import Run
from agents.models.session import Session as SessionRow
from agents.models.session import State
from agents.runtime import codec
from agents.runtime.errors import RecordInvalid, RunFenced, StorageUnavailable
from agents.runtime.model import Usage
from agents.runtime.session import ModelCall, OpenRun, PartRef, RunEnd, RunStatus
from agents.stores import db, pool, writer
from agents.stores.sessions import PgLedger, PgSessionStore
from tests.agents.records import FINISHED, answer, changed, finished, new_id, planner, request, stamp

pytestmark = pytest.mark.usefixtures("hot_stores")


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    user = await db.in_thread(get_user_model().objects.create_user)("alice")
    return int(user.pk)


async def opened(owner_id: int, thread_id: str = "t", run_id: str = "r") -> OpenRun:
    return await PgSessionStore().open_run(request(owner_id, thread_id, run_id), planner(run_id=run_id))


async def positions(run: OpenRun) -> list[int]:
    rows = await pool.fetch(
        "SELECT position FROM agents_event WHERE session_id = %s ORDER BY position", (int(run.session.id),)
    )
    return [row[0] for row in rows]


async def writer_backend() -> int:
    """Return the backend of the writer's own connection."""
    connection = await writer.current()._connected()
    return connection.info.backend_pid


async def kill(backend: int) -> None:
    await pool.fetch("SELECT pg_terminate_backend(%s, 5000)", (backend,))


@asynccontextmanager
async def row_lock(run: OpenRun) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """Hold the session's row as somebody else's transaction would."""
    async with await pool.connect() as connection, connection.transaction():
        await connection.execute("SELECT id FROM agents_session WHERE id = %s FOR UPDATE", (int(run.session.id),))
        yield connection


async def test_what_waits_together_is_stored_in_one_statement() -> None:
    owner = (await db.in_thread(get_user_model().objects.create_user)("bob")).pk
    runs = [await opened(owner, f"t{n}") for n in range(40)]
    before = writer.current().batches
    await asyncio.gather(*(run.ledger.append([stamp(answer("a")), stamp(answer("b"))]) for run in runs))
    assert writer.current().batches - before == 1
    for run in runs:
        assert await positions(run) == [1, 2, 3]


async def test_a_batch_never_passes_five_hundred_rows(alice: int) -> None:
    runs = [await opened(alice, f"t{n}") for n in range(20)]
    before = writer.current().batches
    await asyncio.gather(*(run.ledger.append([stamp(answer("x")) for _ in range(60)]) for run in runs))
    assert writer.current().batches - before == 3  # 8 appends of 60 each fit into 500
    for run in runs:
        assert await positions(run) == list(range(1, 62))


async def test_one_fenced_run_in_a_batch_does_not_touch_the_others(alice: int) -> None:
    good, bad = await opened(alice, "good"), await opened(alice, "bad")
    await pool.fetch("UPDATE agents_run SET epoch = epoch + 1 WHERE id = %s", (bad.run_key,))
    results = await asyncio.gather(
        good.ledger.append([stamp(answer("x"))]),
        bad.ledger.append([stamp(answer("x"))]),
        good.ledger.append([stamp(answer("y"))]),
        return_exceptions=True,
    )
    assert isinstance(results[1], RunFenced)
    assert await positions(good) == [1, 2, 3]
    assert await positions(bad) == [1]


async def test_a_deleted_session_fences_its_run(alice: int) -> None:
    run = await opened(alice)
    await db.in_thread(lambda: SessionRow.objects.of(alice).all().delete())()
    with pytest.raises(RunFenced):
        await run.ledger.append([stamp(answer("x"))])


async def test_one_bad_row_fails_alone(alice: int) -> None:
    runs = [await opened(alice, f"t{n}") for n in range(9)]
    bad = stamp(answer("x"), id="x" * 129)  # longer than the column
    asked = [run.ledger.append([bad if n == 4 else stamp(answer("x"))]) for n, run in enumerate(runs)]
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(r) for r in results if isinstance(r, Exception)] == [RecordInvalid]
    assert isinstance(results[4], RecordInvalid)
    assert [len(await positions(run)) for run in runs] == [2, 2, 2, 2, 1, 2, 2, 2, 2]
    assert len(await runs[4].ledger.append([stamp(answer("after"))])) == 1


async def test_context_1_3_after_a_failed_append_the_same_id_can_be_stored(alice: int) -> None:
    """Spec context 1, test 3, second half."""
    run = await opened(alice)
    with pytest.raises(RecordInvalid):
        await run.ledger.append([stamp(answer("x"), id="once"), stamp(answer("x"), id="x" * 129)])
    stored = await run.ledger.append([stamp(answer("x"), id="once")])
    assert stored[0].position == 2


async def test_the_end_of_a_run_is_stored_with_its_last_record_and_plants_its_jobs(alice: int) -> None:
    run = await opened(alice)
    end = RunEnd(
        status=RunStatus.FAILED,
        usage=Usage(prompt=10, cached=4, completion=3, reasoning=1),
        error_code="model_busy",
        error_message="The model\0 is busy.",
        model_calls=2,
    )
    await run.ledger.append([stamp(finished())], end=end)
    row = await db.in_thread(lambda: Run.objects.of(alice).get())()
    assert (row.status, row.error_code, row.error_message) == ("failed", "model_busy", "The model\ufffd is busy.")
    assert (row.prompt_tokens, row.cached_tokens, row.completion_tokens, row.reasoning_tokens) == (10, 4, 3, 1)
    assert row.model_calls == 2
    assert row.ended_at is not None
    planted = await db.in_thread(
        lambda: list(Job.objects.order_by("id").values("kind", "owner_id", "status", "range"))
    )()
    assert [job["kind"] for job in planted] == jobs.after_run() == [jobs.EMBED, jobs.MEMORY, jobs.REVIEW, jobs.TITLE]
    assert planted[3] == {"kind": "title", "owner_id": alice, "status": "queued", "range": {"run": "r"}}


async def test_a_session_with_a_title_gets_no_title_job(alice: int) -> None:
    run = await opened(alice)
    await db.in_thread(lambda: SessionRow.objects.of(alice).update(title="My own"))()
    await run.ledger.append([stamp(finished())], end=FINISHED)
    assert not await db.in_thread(lambda: Job.objects.filter(kind=jobs.TITLE).exists())()


async def test_jobs_that_are_queued_already_are_not_planted_twice(alice: int) -> None:
    for run_id in ("r1", "r2"):
        run = await opened(alice, run_id=run_id)
        await run.ledger.append([stamp(finished(), run_id=run_id)], end=FINISHED)
    assert await db.in_thread(lambda: Job.objects.filter(kind=jobs.TITLE).count())() == 1


async def test_model_calls_ride_with_the_next_append(alice: int) -> None:
    run = await opened(alice)
    call = ModelCall(
        id=new_id("call"),
        run_id="r",
        invocation_id="i1",
        purpose="chat",
        provider="openai",
        model="m",
        usage=Usage(prompt=5, completion=2),
        ttft_ms=12.5,
        latency_ms=80.0,
        finish_reason="stop",
        parts=(PartRef(kind="event", ref="e1", tokens=3, position=1),),
        request_sha256="00",
        started_at=datetime(2026, 3, 1, tzinfo=UTC),
    )
    before = writer.current().batches
    await run.ledger.model_called(call)
    await run.ledger.model_called(call)
    await run.ledger.append([stamp(answer("x"))])
    assert writer.current().batches - before == 1
    rows = await db.in_thread(lambda: list(ModelCallRow.objects.of(alice)))()
    assert [(r.call_id, r.run_id, r.prompt_tokens, r.ttft_ms) for r in rows] == [(call.id, run.run_key, 5, 12.5)]
    assert rows[0].parts == [{"kind": "event", "ref": "e1", "tokens": 3, "position": 1}]


async def test_prefixed_state_is_routed_in_the_statement_that_stores_the_record(alice: int) -> None:
    run = await opened(alice)
    await run.ledger.append([stamp(changed(a=1, app__x={"y": 1}, user__z=1)), stamp(changed(user__z=2, a=None))])
    session = await db.in_thread(lambda: SessionRow.objects.of(alice).get())()
    rows = await db.in_thread(
        lambda: list(State.objects.order_by("scope").values_list("scope", "owner", "agent", "key", "value"))
    )()
    assert session.state == {"a": None}
    assert rows == [("app", None, "assistant", "x", {"y": 1}), ("user", alice, "", "z", 2)]


async def test_a_killed_connection_loses_nothing_and_stores_nothing_twice(alice: int) -> None:
    runs = [await opened(alice, f"t{n}") for n in range(5)]
    backend = await writer_backend()

    async def write(run: OpenRun) -> None:
        for n in range(40):
            await run.ledger.append([stamp(answer(str(n)))])
            if n == 10 and run is runs[0]:
                await kill(backend)

    await asyncio.gather(*(write(run) for run in runs))
    for run in runs:
        assert await positions(run) == list(range(1, 42))
    assert await writer_backend() != backend


async def test_an_end_whose_answer_was_lost_is_found_again_and_not_taken_for_a_fence(alice: int) -> None:
    run = await opened(alice)
    last = stamp(finished())
    first = await run.ledger.append([last], end=FINISHED)
    # the same append once more, as the writer sends it again after a broken connection
    again = await run.ledger.append([last], end=FINISHED)
    assert again == first
    with pytest.raises(RunFenced):
        await run.ledger.append([stamp(answer("something else"))])


async def test_a_batch_whose_first_copy_is_still_on_its_way_is_stored_once(alice: int) -> None:
    run = await opened(alice)
    record = stamp(answer("x"))
    backend = await writer_backend()
    async with asyncio.timeout(10), row_lock(run) as other:
        # what a first copy would store, not yet committed when the second asks
        await other.execute(
            "INSERT INTO agents_event (owner_id, session_id, position, fork, run_id, event_id, type, invocation_id,"
            " author, branch, filter_key, origin, payload, tokens, at)"
            " VALUES (%s, %s, 2, 0, %s, %s, 'assistant_message', 'i1', 'assistant', '', '', '{}', %s, 7, now())",
            (alice, int(run.session.id), run.run_key, record.id, json.dumps(codec.dump(record.record))),
        )
        await other.execute("UPDATE agents_session SET last_position = 2 WHERE id = %s", (int(run.session.id),))
        asked = asyncio.ensure_future(run.ledger.append([record]))
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = %s"
        while not await pool.fetch(waits, (backend,)):  # noqa: ASYNC110  # the server has no event to wait on
            await asyncio.sleep(0.01)  # each look is a round trip; the lock wait has no other sign
    assert (await asked)[0].position == 2
    assert await positions(run) == [1, 2]


async def test_a_locked_session_does_not_hold_the_others_up(alice: int) -> None:
    held, free = await opened(alice, "held"), await opened(alice, "free")
    async with row_lock(held):
        waiting = asyncio.ensure_future(held.ledger.append([stamp(answer("x"))]))
        async with asyncio.timeout(5):
            for n in range(10):
                await free.ledger.append([stamp(answer(str(n)))])
        assert not waiting.done()
    assert (await waiting)[0].position == 2


async def test_a_database_that_stays_away_is_told_after_a_while(alice: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = await opened(alice)
    backend = await writer_backend()
    monkeypatch.setitem(connections["default"].settings_dict, "PORT", 1)  # nobody listens there
    await kill(backend)
    monkeypatch.setattr(pool, "AWAY_S", 1.0)
    with pytest.raises(StorageUnavailable):
        await run.ledger.append([stamp(answer("x"))])
    monkeypatch.undo()
    assert (await run.ledger.append([stamp(answer("y"))]))[0].position == 2


async def test_a_server_that_hangs_is_left_behind(alice: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = await opened(alice)
    backend = await writer_backend()
    connection = await writer.current()._connected()
    await connection.execute("SET lock_timeout = 0")
    monkeypatch.setattr(pool, "AWAY_S", 1.0)
    async with row_lock(run):
        async with asyncio.timeout(5):
            with pytest.raises(StorageUnavailable):
                await run.ledger.append([stamp(answer("x"))])
    monkeypatch.undo()
    assert await writer_backend() != backend


async def test_two_processes_race_for_one_session_and_leave_no_gap(alice: int) -> None:
    """Each process has its own writer. One run after the other, each taken over by the other process in the middle."""
    here, there = writer.Writer(), writer.Writer()
    run = await opened(alice)
    epoch, fenced = 1, 0
    for turn in range(10):
        mine, other = (here, there) if turn % 2 else (there, here)
        ledger = PgLedger(run_key=run.run_key, epoch=epoch, writer=mine)
        late = PgLedger(run_key=run.run_key, epoch=epoch, writer=other)
        await asyncio.gather(*(ledger.append([stamp(answer(str(n)))]) for n in range(5)))
        write = asyncio.gather(*(late.append([stamp(answer("late"))]) for _ in range(5)), return_exceptions=True)
        await pool.fetch("UPDATE agents_run SET epoch = epoch + 1 WHERE id = %s", (run.run_key,))
        epoch += 1
        results = await write
        assert all(isinstance(r, RunFenced | tuple) for r in results)
        fenced += sum(isinstance(r, RunFenced) for r in results)
        with pytest.raises(RunFenced):
            await ledger.append([stamp(answer("dead"))])
    await here.close()
    await there.close()
    found = await positions(run)
    assert found == list(range(1, len(found) + 1))
    assert len(found) == 1 + 10 * 5 + (50 - fenced)
    row = await db.in_thread(lambda: SessionRow.objects.of(alice).get())()
    assert row.last_position == len(found)


async def test_two_processes_open_runs_and_write_without_gaps(alice: int) -> None:
    """Sessions of two processes in one database at once: many batches of each cross, and no deadlock comes of it."""
    here, there = writer.Writer(), writer.Writer()
    runs = [await opened(alice, f"t{n}") for n in range(16)]

    async def write(run: OpenRun, own: writer.Writer) -> None:
        ledger = PgLedger(run_key=run.run_key, epoch=1, writer=own)
        for n in range(30):
            await ledger.append([stamp(changed(user__n=n, app__m=n)), stamp(answer(str(n)))])

    await asyncio.gather(*(write(run, (here, there)[n % 2]) for n, run in enumerate(runs)))
    await here.close()
    await there.close()
    for run in runs:
        assert await positions(run) == list(range(1, 62))


async def test_close_stores_what_is_queued(alice: int) -> None:
    run = await opened(alice)
    own = writer.Writer()
    asked = own.append(run_key=run.run_key, epoch=1, records=[stamp(answer("x"))])
    await own.close()
    assert (await asked)[0].position == 2
    with pytest.raises(StorageUnavailable):
        await own.append(run_key=run.run_key, epoch=1, records=[stamp(answer("y"))])


async def test_events_belong_to_the_owner_of_their_session(alice: int) -> None:
    run = await opened(alice)
    await run.ledger.append([stamp(answer("x"))])
    owners = await db.in_thread(lambda: set(Event.objects.of_everyone().values_list("owner_id", flat=True)))()
    assert owners == {alice}
