"""What the sweep puts in order: lost runs, jobs nobody works on, deleted conversations."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents import jobs
from agents.background import sweep
from agents.live.registry import Live
from agents.models.job import Job
from agents.models.session import Session
from agents.runlog import RunLog
from agents.runtime.events import ToolReturned, ToolStatus
from agents.runtime.testing import ScriptedModel, call, reasoning, text, turn
from agents.runtime.tools import FunctionTool, ToolContext, ToolResult, ToolSpec
from agents.stores import db, pool, runs, sessions
from tests.agents.house import REDIS_URL, Ear, Gate, ask, follow, house, two_processes, until, wiring

pytestmark = pytest.mark.django_db(transaction=True)


async def expire() -> None:
    await pool.fetch("UPDATE agents_run SET lease_expires_at = now() - interval '1 second'", ())


async def die(live: Live) -> None:
    """End a Live as kill -9 would: nothing more is stored or logged."""
    live.log._closed = True
    for run in live.runs.values():
        run.opened.ledger.epoch = -1  # type: ignore[attr-defined]  # what it appends from now on is refused


async def test_open_calls_of_a_lost_run_get_one_result_and_are_not_run_again(alice: Any) -> None:
    gate, ran = Gate(), []

    async def slow(arguments: Any, context: ToolContext) -> ToolResult:
        ran.append(context.call_id)
        gate.reached.set()
        await gate.go.wait()
        return ToolResult(content="done")

    tool = FunctionTool(spec=ToolSpec(name="slow", description="Waits."), function=slow)
    model = ScriptedModel(turn(reasoning("Hm."), text("I look. "), call("c1", "slow", {}), call("c2", "slow", {})))
    async with two_processes(model, tools=(tool,)) as (here, there):
        started = await here.start(ask(alice.id))
        await gate.reached.wait()
        await here.log.drained(5)
        await die(here)
        await expire()
        assert await sweep.close_lost_runs(there.log) == 1
        stored = (await sessions.history(alice.id, "t")).stored
        results = [s.record for s in stored if isinstance(s.record, ToolReturned)]
        assert [(r.call_id, r.status) for r in results] == [("c1", ToolStatus.LOST), ("c2", ToolStatus.LOST)]
        assert stored[-1].record.type == "run_failed"
        assert await sweep.close_lost_runs(there.log) == 0
        assert (await sessions.history(alice.id, "t")).stored == stored
        gate.go.set()
        assert ran == ["c1"]
        ear = await follow(there, started, alice.id)
        end = await ear.end(started.run_id)
        assert end["code"] == "lost"


async def test_what_was_streamed_and_not_stored_is_kept_with_reasoning_and_calls(alice: Any) -> None:
    gate = Gate()
    script = turn(reasoning("Let me ", "think."), text("So "), call("c1", "look", '{"q": "a'), gate.step)
    async with two_processes(ScriptedModel(script)) as (here, there):
        await here.start(ask(alice.id))
        await gate.reached.wait()
        await here.log.drained(5)
        await die(here)
        await expire()
        assert await sweep.close_lost_runs(there.log) == 1
        stored = [s.record for s in (await sessions.history(alice.id, "t")).stored]
        assert [r.type for r in stored] == [
            "run_started",
            "user_message",
            "assistant_message",
            "tool_returned",
            "run_failed",
        ]
        kept: Any = stored[2]
        assert (kept.text, kept.reasoning, kept.finish_reason.value) == ("So ", "Let me think.", "error")
        assert [(c.id, c.name, c.arguments) for c in kept.tool_calls] == [("c1", "look", '{"q": "a"}')]
        gate.go.set()


async def test_the_next_message_after_a_lost_run_works(alice: Any) -> None:
    gate = Gate()
    model = ScriptedModel(turn(text("part "), call("c1", "look", "{"), gate.step), turn(text("fine")))
    async with two_processes(model) as (here, there):
        await here.start(ask(alice.id))
        await gate.reached.wait()
        await here.log.drained(5)
        await die(here)
        await expire()
        await sweep.close_lost_runs(there.log)
        ear = Ear()
        await there.attach(owner_id=alice.id, thread_id="t", sink=ear)
        second = await there.start(ask(alice.id))
        assert (await ear.end(second.run_id))["type"] == "RUN_FINISHED"
        gate.go.set()


async def test_a_run_that_lives_is_left_alone(alice: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(text("a "), gate.step, text("b")))) as live:
        started = await live.start(ask(alice.id))
        await gate.reached.wait()
        assert await sweep.close_lost_runs(live.log) == 0
        await expire()
        await live._beat.once()
        assert await sweep.close_lost_runs(live.log) == 0
        gate.go.set()
        assert (await (await follow(live, started, alice.id)).end(started.run_id))["type"] == "RUN_FINISHED"


async def test_only_one_process_sweeps_at_a_time(alice: Any) -> None:
    log = RunLog(REDIS_URL)
    async with pool.try_lock(sweep.LOCK) as mine:
        assert mine
        assert await sweep.close_lost_runs(log) == 0
    await log.close()
    await pool.close()


async def test_without_its_log_a_lost_run_is_closed_with_what_is_stored(alice: Any) -> None:
    gate = Gate()
    here = Live(wiring(ScriptedModel(turn(text("gone "), gate.step)), redis_url="redis://127.0.0.1:1/0"))
    started = await here.start(ask(alice.id))
    await gate.reached.wait()
    await die(here)
    await expire()
    away = RunLog("redis://127.0.0.1:1/0")
    assert await sweep.close_lost_runs(away) == 1
    await away.close()
    found = await runs.find_run(owner_id=alice.id, thread_id="t", run_id=started.run_id)
    assert found is not None and found.status.value == "lost"
    gate.go.set()
    await until(lambda: not here.runs)
    await here.close()


def plant(kind: str = jobs.TITLE, **more: Any) -> Job:
    now = timezone.now()
    return Job.objects.create(kind=kind, next_at=now - timedelta(minutes=1), created_at=now, **more)


def test_a_job_is_claimed_once() -> None:
    job = plant()
    first = jobs.claim(job.pk)
    assert first is not None and first.attempt == 1
    assert jobs.claim(job.pk) is None
    jobs.done(first)
    assert jobs.claim(job.pk) is None
    job.refresh_from_db()
    assert job.status == Job.Status.DONE and job.ended_at is not None


def test_a_job_whose_worker_died_is_claimed_again() -> None:
    job = plant()
    assert jobs.claim(job.pk) is not None
    Job.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert tuple(jobs.due()) == (job.pk,)
    again = jobs.claim(job.pk)
    assert again is not None and again.attempt == 2


def test_a_job_that_fails_waits_longer_each_time_and_is_dead_in_the_end() -> None:
    job = plant()
    waits = []
    for _ in range(jobs.MAX_ATTEMPTS):
        taken = jobs.claim(job.pk)
        assert taken is not None
        jobs.failed(taken, "ValueError", "no")
        job.refresh_from_db()
        waits.append((job.next_at - timezone.now()).total_seconds())
    assert job.status == Job.Status.DEAD and job.error_code == "ValueError"
    assert waits[:4] == sorted(waits[:4]) and waits[0] > 5


def test_a_failed_job_gives_way_to_a_newer_one_for_the_same() -> None:
    job = plant()
    taken = jobs.claim(job.pk)
    assert taken is not None
    newer = plant()
    jobs.failed(taken, "ValueError", "no")
    job.refresh_from_db()
    assert job.status == Job.Status.DEAD and job.error_code == "superseded"
    assert jobs.claim(newer.pk) is not None


def test_a_job_the_broker_never_heard_of_is_sent_again_and_not_every_time() -> None:
    job = plant()
    assert tuple(jobs.due()) == (job.pk,)
    assert not jobs.due()
    Job.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert tuple(jobs.due()) == (job.pk,)


async def test_a_deleted_conversation_is_purged_after_the_undo_time(alice: Any) -> None:
    async with house(ScriptedModel(turn(text("a")), repeat_last=True)) as live:
        for thread in ("old", "fresh", "kept"):
            started = await live.start(ask(alice.id, thread=thread))
            await (await follow(live, started, alice.id)).end(started.run_id)
        await until(lambda: not live.runs)
        old = timezone.now() - sweep.UNDO_TIME - timedelta(seconds=5)

        def delete() -> None:
            Session.objects.of(alice.id).filter(thread_id="old").update(deleted_at=old)
            Session.objects.of(alice.id).filter(thread_id="fresh").update(deleted_at=timezone.now())

        await db.in_thread(delete)()
        await db.in_thread(sweep._trim)()
        left = await db.in_thread(lambda: set(Session.objects.of(alice.id).values_list("thread_id", flat=True)))()
        assert left == {"fresh", "kept"}


async def test_a_lost_run_with_more_open_calls_than_one_append_takes_leaves_none_without_its_result(alice: Any) -> None:
    gate = Gate()
    calls = [call(f"c{n}", "look", {}, index=n) for n in range(70)]
    async with two_processes(ScriptedModel(turn(*calls, gate.step))) as (here, there):
        await here.start(ask(alice.id))
        await gate.reached.wait()
        await here.log.drained(5)
        await die(here)
        await expire()
        assert await sweep.close_lost_runs(there.log) == 1
        stored = [s.record for s in (await sessions.history(alice.id, "t")).stored]
        returned = [r.call_id for r in stored if isinstance(r, ToolReturned)]
        assert returned == [f"c{n}" for n in range(70)]
        assert [r.type for r in stored].count("run_failed") == 1
        gate.go.set()
