"""Runs seen from another process: two Lives that share the database and the log, and nothing else."""

import asyncio
from typing import Any

import pytest
from redis.asyncio import Redis

from agents.background import sweep
from agents.live.registry import Live
from agents.runlog import RunLog, stream
from agents.runtime.errors import Rejected
from agents.runtime.session import RunStatus
from agents.runtime.testing import ScriptedModel, call, text, turn
from agents.runtime.tools import FunctionTool, ToolContext, ToolResult, ToolSpec
from agents.stores import pool, runs, sessions
from tests.agents.house import REDIS_URL, Ear, Gate, ask, follow, house, said, slow_tool, two_processes, until

pytestmark = pytest.mark.django_db(transaction=True)


async def expire_leases() -> None:
    await pool.fetch("UPDATE agents_run SET lease_expires_at = now() - interval '1 second'", ())


def name_of(live: Live) -> str:
    (run,) = live.runs.values()
    return run.feed.stream


async def client_id(live: Live) -> int:
    """Return the server's number of the connection that this Live writes its log by."""
    await live.log._line.send_command("CLIENT", "ID")
    return int(await live.log._line.read_response())


async def test_another_process_follows_a_run_from_the_middle(alice: Any) -> None:
    gate = Gate()
    async with two_processes(ScriptedModel(turn(text("one ", "two "), gate.step, text("three")))) as (here, there):
        started = await here.start(ask(alice.id))
        near = await follow(here, started, alice.id)
        await gate.reached.wait()
        assert await here.log.drained(5)
        far = await follow(there, started, alice.id, after=2)
        await until(lambda: len(far.frames) == len(near.frames) - 2)
        gate.go.set()
        await far.end(started.run_id)
        await near.end(started.run_id)
        assert far.frames == near.frames[2:]


async def test_an_idle_attachment_follows_runs_that_another_process_starts(alice: Any) -> None:
    async with two_processes(ScriptedModel(turn(text("a ", "b")), repeat_last=True)) as (here, there):
        ear = Ear()
        await there.attach(owner_id=alice.id, thread_id="t", sink=ear)
        await until(lambda: there.following.remote._places, "the reader reads")
        for _ in range(2):
            started = await here.start(ask(alice.id))
            await ear.end(started.run_id)
            assert ear.text(started.run_id) == "a b"
            assert ear.seqs(started.run_id) == list(range(1, len(ear.of(started.run_id)) + 1))
            await until(lambda: not here.runs)


async def test_many_followers_elsewhere_share_one_reader(alice: Any) -> None:
    gate = Gate()
    async with two_processes(ScriptedModel(turn(text("a "), gate.step, text("b")), repeat_last=True)) as (here, there):
        started = [await here.start(ask(alice.id, thread=f"t{n}")) for n in range(10)]
        ears = [await follow(there, one, alice.id) for one in started for _ in range(2)]
        assert len(there.following.remote.feeds()) == 10
        gate.go.set()
        for n, ear in enumerate(ears):
            await ear.end(started[n // 2].run_id)
        assert there.following.remote.feeds() == ()


async def test_4_7_cancel_from_another_process(alice: Any) -> None:
    """Spec 4.7: success means accepted; the owner ends the run."""
    gate = Gate()
    async with two_processes(ScriptedModel(turn(text("a "), gate.step, text("b")))) as (here, there):
        started = await here.start(ask(alice.id))
        ear = await follow(here, started, alice.id)
        await gate.reached.wait()
        await until(lambda: here.following.remote._places)
        asked = {"owner_id": alice.id, "thread_id": "t", "run_id": started.run_id}
        assert await there.cancel(**asked)
        assert not await there.cancel(**asked)
        assert (await ear.end(started.run_id))["outcome"]["type"] == "cancelled"
        await until(lambda: not here.runs)
        assert not await there.cancel(**asked)


async def test_a_step_is_stopped_from_another_process(alice: Any) -> None:
    gate = Gate()
    model = ScriptedModel(turn(call("c1", "slow", {})), turn(text("Without it.")))
    async with two_processes(model, tools=(slow_tool(gate),)) as (here, there):
        started = await here.start(ask(alice.id))
        ear = await follow(here, started, alice.id)
        await gate.reached.wait()
        await until(lambda: here.following.remote._places)
        asked = {"owner_id": alice.id, "thread_id": "t", "run_id": started.run_id}
        assert await there.cancel(**asked, call_id="c1")
        assert (await ear.end(started.run_id))["outcome"] == {"type": "success"}
        await until(lambda: not here.runs)
        assert not await there.cancel(**asked, call_id="c1")


async def test_a_cancel_that_got_lost_is_read_with_the_heartbeat(alice: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(text("a "), gate.step, text("b")))) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await gate.reached.wait()
        await runs.request_cancel(owner_id=alice.id, thread_id="t", run_id=started.run_id)
        await live._beat.once()
        assert (await ear.end(started.run_id))["outcome"]["type"] == "cancelled"


async def test_steering_from_another_process(alice: Any) -> None:
    waiting, go_on = asyncio.Event(), asyncio.Event()

    async def slow(arguments: Any, context: ToolContext) -> ToolResult:
        waiting.set()
        await asyncio.wait_for(go_on.wait(), 10)
        return ToolResult(content="done")

    tool = FunctionTool(spec=ToolSpec(name="slow", description="Waits."), function=slow)
    model = ScriptedModel(turn(call("c1", "slow", {})), turn(text("with that")))
    async with two_processes(model, tools=(tool,)) as (here, there):
        started = await here.start(ask(alice.id))
        ear = await follow(here, started, alice.id)
        await waiting.wait()
        await there.steer(
            owner_id=alice.id, thread_id="t", run_id=started.run_id, kind="steer", message=said("Be short.", "s1")
        )
        go_on.set()
        await ear.end(started.run_id)
        assert model.requests[1].messages[-1].text.endswith("Be short.")


async def test_two_processes_racing_for_one_thread_start_one_run(alice: Any) -> None:
    gate = Gate()
    model = ScriptedModel(turn(gate.step, text("a")))
    async with two_processes(model) as (here, there):
        answers = await asyncio.gather(
            *(live.start(ask(alice.id)) for live in (here, there) * 3), return_exceptions=True
        )
        won = [answer for answer in answers if not isinstance(answer, BaseException)]
        assert len(won) == 1
        assert {a.code for a in answers if isinstance(a, Rejected)} == {"run_conflict"}
        gate.go.set()
        await until(lambda: not here.runs and not there.runs)
        assert len(model.requests) == 1


async def test_a_queued_message_is_started_once_though_two_processes_try(alice: Any) -> None:
    model = ScriptedModel(turn(text("first")), turn(text("second")))
    async with two_processes(model) as (here, there):
        started = await here.start(ask(alice.id))
        ear = await follow(here, started, alice.id)
        await ear.end(started.run_id)
        await until(lambda: not here.runs)
        queue = {"owner_id": alice.id, "thread_id": "t", "run_id": started.run_id, "kind": "queue"}
        await asyncio.gather(*(live.steer(**queue, message=said("And?", "q1")) for live in (here, there)))
        await ear.end("queued-q1")
        assert len(model.requests) == 2


async def test_1_15_a_run_whose_owner_went_silent_is_closed_by_another_process(alice: Any) -> None:
    """Spec 1, test 15: exactly one terminal event, the text is kept, and the owner that wakes up stays silent."""
    gate = Gate()
    async with two_processes(ScriptedModel(turn(text("kept "), gate.step, text("never stored")))) as (here, there):
        started = await here.start(ask(alice.id))
        near = await follow(here, started, alice.id)
        far = await follow(there, started, alice.id)
        await gate.reached.wait()
        assert await here.log.drained(5)
        await expire_leases()
        assert await sweep.close_lost_runs(there.log) == 1
        assert await sweep.close_lost_runs(there.log) == 0
        end = await far.end(started.run_id)
        assert (end["type"], end["code"]) == ("RUN_ERROR", "lost")
        gate.go.set()
        await until(lambda: not here.runs)
        await until(lambda: near.resyncs)
        assert near.ends(started.run_id) == []
        assert far.seqs(started.run_id) == list(range(1, len(far.of(started.run_id)) + 1))
        assert far.ends(started.run_id) == ["RUN_ERROR"]
        stored = (await sessions.history(alice.id, "t")).stored
        assert [s.record.type for s in stored] == ["run_started", "user_message", "assistant_message", "run_failed"]
        assert getattr(stored[2].record, "text", "") == "kept "
        assert [s.position for s in stored] == [1, 2, 3, 4]
        found = await runs.find_run(owner_id=alice.id, thread_id="t", run_id=started.run_id)
        assert found is not None and found.status is RunStatus.LOST


async def test_frames_that_only_a_dead_owner_gave_out_bring_a_resync(alice: Any) -> None:
    """Killed between the delivery to its own clients and the write to the log."""
    gate, behind = Gate(), Gate()
    script = turn(text("logged "), gate.step, text("not logged "), behind.step, text("never"))
    async with two_processes(ScriptedModel(script)) as (here, there):
        started = await here.start(ask(alice.id))
        near = await follow(here, started, alice.id)
        await gate.reached.wait()
        assert await here.log.drained(5)
        await here.log.close()
        gate.go.set()
        await behind.reached.wait()
        await until(lambda: near.text(started.run_id).endswith("not logged "))
        last = near.seqs(started.run_id)[-1]
        await expire_leases()
        assert await sweep.close_lost_runs(there.log) == 1
        again = await follow(there, started, alice.id, after=last)
        assert again.resyncs == [("t", started.run_id)] and again.frames == []
        early = await follow(there, started, alice.id, after=1)
        assert (await early.end(started.run_id))["code"] == "lost"
        behind.go.set()


async def test_a_lost_log_brings_followers_elsewhere_a_resync(alice: Any) -> None:
    gate = Gate()
    async with two_processes(ScriptedModel(turn(text("a "), gate.step, text("b")))) as (here, there):
        started = await here.start(ask(alice.id))
        await gate.reached.wait()
        far = await follow(there, started, alice.id)
        await until(lambda: far.frames)
        redis = Redis.from_url(REDIS_URL)
        await redis.delete(name_of(here))
        await redis.aclose()
        await expire_leases()
        await sweep.close_lost_runs(there.log)
        await there.check_remote()
        await until(lambda: far.resyncs or far.ends(started.run_id))
        assert far.seqs(started.run_id) == list(range(1, len(far.frames) + 1))
        gate.go.set()


async def test_valkey_away_does_not_touch_the_run(alice: Any) -> None:
    async with house(ScriptedModel(turn(text("a ", "b"))), redis_url="redis://127.0.0.1:1/0") as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        assert (await ear.end(started.run_id))["outcome"]["type"] == "success"
        assert ear.text(started.run_id) == "a b"


async def test_what_the_log_did_not_take_is_written_once_it_is_back(alice: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(text("a "), gate.step, text("b ", "c")))) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await gate.reached.wait()
        assert await live.log.drained(5)
        name = name_of(live)
        redis = Redis.from_url(REDIS_URL)
        await redis.delete(name)  # the server lost what it had
        await redis.xadd(name, {"e": 1, "f": b"{}"}, id="1-0")  # all but its beginning
        await redis.client_kill_filter(_id=await client_id(live))  # and went away meanwhile
        gate.go.set()
        await ear.end(started.run_id)
        await until(lambda: not live.runs)
        assert await live.log.drained(5)
        frames, end = await live.log.frames(name)
        await redis.aclose()
        assert end is not None and end.ended and end.seq == len(ear.frames) == len(frames)


async def test_a_run_too_long_for_its_log_is_not_replayed_from_the_middle(
    alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.live.feed.TAIL_FRAMES", 10)
    gate = Gate()
    async with house(ScriptedModel(turn(text(*["x\n"] * 200), gate.step, text("end")))) as live:
        started = await live.start(ask(alice.id))
        whole = await follow(live, started, alice.id)
        await gate.reached.wait()
        assert await live.log.drained(5)
        redis = Redis.from_url(REDIS_URL)
        await redis.xtrim(name_of(live), maxlen=1, approximate=False)
        await redis.aclose()
        ear = Ear()
        attachment = await live.attach(owner_id=alice.id, thread_id="t", sink=ear)
        waits = attachment.mode == "idle"
        gate.go.set()
        await whole.end(started.run_id)
        await until(lambda: ear.resyncs if waits else ear.ends(started.run_id))
        assert waits == (ear.frames == [])


async def test_runlog_names_differ_when_a_new_database_counts_from_one_again() -> None:
    assert stream(1, "a") != stream(1, "b")
    log = RunLog(REDIS_URL)
    assert await log.end(stream(0, "nobody")) is None
    await log.close()
