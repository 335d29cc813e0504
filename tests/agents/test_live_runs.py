"""Runs as one process keeps them: started, followed, cancelled, steered, one after another."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from agents.live import registry
from agents.live.feed import Attachment
from agents.runtime.errors import Rejected, StorageUnavailable
from agents.runtime.events import Event, UserMessage
from agents.runtime.invocation import Invocation
from agents.runtime.model import FilePart
from agents.runtime.session import CancelReason, RunRequest, RunStatus
from agents.runtime.testing import ScriptedModel, call, text, turn
from agents.runtime.tools import FunctionTool, ToolContext, ToolResult, ToolSpec
from agents.stores import inbox, pool, runs, sessions
from tests.agents.house import PATIENCE_S, Ear, Gate, ask, follow, house, said, slow_tool, until

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_run_streams_to_a_follower_without_a_gap(alice: Any) -> None:
    async with house(ScriptedModel(turn(text("Hello ", "you.")))) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        end = await ear.end(started.run_id)
        assert end["type"] == "RUN_FINISHED"
        assert ear.text(started.run_id) == "Hello you."
        assert ear.seqs(started.run_id) == list(range(1, len(ear.frames) + 1))


async def test_4_11_reconnecting_at_frame_k_gives_exactly_the_remaining_frames(alice: Any) -> None:
    """Spec 4, test 11: while the run goes on and after it has ended, from memory and from the log."""
    gate = Gate()
    async with house(ScriptedModel(turn(text("one ", "two "), gate.step, text("three")))) as live:
        started = await live.start(ask(alice.id))
        whole = await follow(live, started, alice.id)
        await gate.reached.wait()
        seen = len(whole.frames)
        again = await follow(live, started, alice.id, after=2)
        await until(lambda: len(again.frames) == len(whole.frames) - 2)
        gate.go.set()
        await again.end(started.run_id)
        assert again.frames == whole.frames[2:]
        later = await follow(live, started, alice.id, after=seen)
        await later.end(started.run_id)
        assert later.frames == whole.frames[seen:]
        assert await live.log.drained(5)
        for feed in tuple(live.following.feeds.values()):
            live.following.forget(feed)
        from_log = await follow(live, started, alice.id, after=1)
        await from_log.end(started.run_id)
        assert from_log.frames == whole.frames[1:]


async def test_1_6_a_run_that_nobody_follows_completes(alice: Any) -> None:
    """Spec 1, test 6: the consumer disconnects, the run goes on."""
    gate = Gate()
    async with house(ScriptedModel(turn(text("a "), gate.step, text("b")))) as live:
        started = await live.start(ask(alice.id))
        ear = Ear()
        attachment = await live.attach(owner_id=alice.id, thread_id="t", sink=ear, run_id=started.run_id, after=0)
        await gate.reached.wait()
        attachment.detach()
        gate.go.set()
        await until(lambda: not live.runs)
        found = await runs.find_run(owner_id=alice.id, thread_id="t", run_id=started.run_id)
        assert found is not None and found.status is RunStatus.FINISHED
        assert ear.ends(started.run_id) == []


async def test_1_1_the_same_run_sent_again_gets_the_same_answer(alice: Any) -> None:
    """Spec 1, test 1, as architecture.md 4 has it: sent again is answered again, and nothing is started twice."""
    gate = Gate()
    model = ScriptedModel(turn(gate.step, text("once")))
    async with house(model) as live:
        request = ask(alice.id, run="r1")
        first, second = await asyncio.gather(live.start(request), live.start(request))
        assert (first.duplicate, second.duplicate) == (False, True)
        third = await live.start(request)
        assert third.duplicate and third.session_id == first.session_id
        ear = await follow(live, first, alice.id)
        gate.go.set()
        assert (await ear.end("r1"))["type"] == "RUN_FINISHED"
        assert (await live.start(request)).duplicate
        assert len(model.requests) == 1


async def test_a_run_id_is_not_used_for_another_message(alice: Any) -> None:
    async with house(ScriptedModel(turn(text("a")))) as live:
        started = await live.start(ask(alice.id, run="r1"))
        await (await follow(live, started, alice.id)).end("r1")
        other = ask(alice.id, "Something else", run="other")
        with pytest.raises(Rejected) as refused:
            await live.start(type(other)(owner_id=alice.id, thread_id="t", run_id="r1", message=other.message))
        assert refused.value.code == "run_id_reused"


async def test_1_2_two_starts_on_one_thread_conflict_until_the_first_is_over(alice: Any) -> None:
    """Spec 1, test 2, and spec 4, test 4: the first is untouched."""
    gate = Gate()
    async with house(ScriptedModel(turn(gate.step, text("a")), turn(text("b")))) as live:
        first = await live.start(ask(alice.id))
        ear = await follow(live, first, alice.id)
        with pytest.raises(Rejected) as refused:
            await live.start(ask(alice.id))
        assert refused.value.code == "run_conflict"
        gate.go.set()
        assert (await ear.end(first.run_id))["type"] == "RUN_FINISHED"
        second = await live.start(ask(alice.id))
        assert (await ear.end(second.run_id))["type"] == "RUN_FINISHED"
        assert ear.started == [("t", second.run_id)]


async def test_1_3_a_store_that_refuses_leaves_nothing_behind(alice: Any) -> None:
    """Spec 1, test 3: no registry entry, no events."""
    async with house(ScriptedModel()) as live:
        with pytest.raises(Rejected):
            await live.start(ask(alice.id, agent="nobody"))
        assert not live.runs and not live.following.feeds
        with pytest.raises(Rejected):
            await sessions.history(alice.id, "t")


async def test_1_5_cancel_ends_the_run_and_a_second_cancel_is_too_late(alice: Any) -> None:
    """Spec 1, test 5; spec 4, tests 8 and 15."""
    gate = Gate()
    model = ScriptedModel(turn(text("partial "), gate.step, text("never")))
    async with house(model) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await gate.reached.wait()
        asked = {"owner_id": alice.id, "thread_id": "t", "run_id": started.run_id}
        assert await live.cancel(**asked)
        assert not await live.cancel(**asked)
        end = await ear.end(started.run_id)
        assert end["type"] == "RUN_FINISHED" and end["outcome"]["type"] == "cancelled"
        assert ear.text(started.run_id) == "partial "
        assert ear.frames[-1] is end and model.closed == 1
        await until(lambda: not live.runs)
        assert not await live.cancel(**asked)
        found = await runs.find_run(owner_id=alice.id, thread_id="t", run_id=started.run_id)
        assert found is not None and found.status is RunStatus.CANCELLED


async def test_one_step_is_stopped_and_the_answer_goes_on(alice: Any) -> None:
    gate = Gate()
    model = ScriptedModel(turn(call("c1", "slow", {})), turn(text("Without it.")))
    async with house(model, tools=(slow_tool(gate),)) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await gate.reached.wait()
        asked = {"owner_id": alice.id, "thread_id": "t", "run_id": started.run_id}
        assert not await live.cancel(**asked, call_id="c2")
        assert await live.cancel(**asked, call_id="c1")
        assert (await ear.end(started.run_id))["outcome"] == {"type": "success"}
        assert ear.text(started.run_id) == "Without it."
        (result,) = [f for f in ear.frames if f["type"] == "TOOL_CALL_RESULT"]
        assert result["metadata"]["workbench"]["status"] == "cancelled"


async def test_1_5b_nobody_cancels_the_run_of_another(alice: Any, bob: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(gate.step, text("a")))) as live:
        started = await live.start(ask(alice.id))
        await gate.reached.wait()
        assert not await live.cancel(owner_id=bob.id, thread_id="t", run_id=started.run_id)
        gate.go.set()
        ear = await follow(live, started, alice.id)
        assert (await ear.end(started.run_id))["outcome"]["type"] == "success"


class Breaks:
    """An agent with a mistake in it."""

    name = "assistant"

    async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        raise ZeroDivisionError("not for people")
        yield  # an async generator


async def test_1_13_an_agent_that_breaks_ends_its_run_with_a_reference(
    alice: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Spec 1, tests 4 and 13: one stored error, the registry is clean, the message is neutral."""
    async with house(ScriptedModel(), agent=Breaks()) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        end = await ear.end(started.run_id)
        assert end["type"] == "RUN_ERROR" and end["code"] == "internal"
        assert "not for people" not in str(end) and end["metadata"]["workbench"]["reference"]
        await until(lambda: not live.runs)
        stored = (await sessions.history(alice.id, "t")).stored
        assert [item.record.type for item in stored] == ["run_started", "user_message", "run_failed"]
        assert "ZeroDivisionError" in caplog.text


async def test_1_11_a_steering_message_is_read_between_the_steps(alice: Any) -> None:
    """Spec 1, test 11: after the tool's result, before the next model call; after the end: refused."""
    waiting, go_on = asyncio.Event(), asyncio.Event()

    async def slow(arguments: Any, context: ToolContext) -> ToolResult:
        waiting.set()
        await asyncio.wait_for(go_on.wait(), 10)
        return ToolResult(content="done")

    tool = FunctionTool(spec=ToolSpec(name="slow", description="Waits."), function=slow)
    model = ScriptedModel(turn(call("c1", "slow", {})), turn(text("with that")))
    async with house(model, tools=(tool,)) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await waiting.wait()
        steer = {"owner_id": alice.id, "thread_id": "t", "run_id": started.run_id, "kind": "steer"}
        await live.steer(**steer, message=said("Be short.", "s1"))
        go_on.set()
        await ear.end(started.run_id)
        assert model.requests[1].messages[-1].text.endswith("Be short.")
        await until(lambda: not live.runs)
        with pytest.raises(Rejected):
            await live.steer(**steer, message=said("Too late.", "s2"))


async def test_a_queued_message_starts_the_next_run_after_a_good_end(alice: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(gate.step, text("first")), turn(text("second")))) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        queue = {"owner_id": alice.id, "thread_id": "t", "run_id": started.run_id, "kind": "queue"}
        await live.steer(**queue, message=said("And then?", "q1"))
        await live.steer(**queue, message=said("And then?", "q1"))
        gate.go.set()
        await ear.end("queued-q1")
        assert ear.text("queued-q1") == "second"
        assert ear.started == [("t", "queued-q1")]
        await until(lambda: not live.runs)
        assert await runs.active_run(owner_id=alice.id, thread_id="t") is None


async def test_a_queued_message_waits_after_a_cancel(alice: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(gate.step, text("first")))) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await gate.reached.wait()
        await live.steer(
            owner_id=alice.id, thread_id="t", run_id=started.run_id, kind="queue", message=said("And?", "q1")
        )
        await live.cancel(owner_id=alice.id, thread_id="t", run_id=started.run_id)
        await ear.end(started.run_id)
        await until(lambda: not live.runs)
        assert ear.started == []


async def test_a_queued_message_that_finds_no_run_starts_one(alice: Any) -> None:
    async with house(ScriptedModel(turn(text("first")), turn(text("second")))) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await ear.end(started.run_id)
        await until(lambda: not live.runs)
        await live.steer(
            owner_id=alice.id, thread_id="t", run_id=started.run_id, kind="queue", message=said("And?", "q1")
        )
        assert (await ear.end("queued-q1"))["type"] == "RUN_FINISHED"
        assert ear.text("queued-q1") == "second"


async def test_an_owner_has_at_most_so_many_runs_at_once(alice: Any, bob: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(gate.step, text("a")), repeat_last=True), most=2) as live:
        await live.start(ask(alice.id, thread="one"))
        known = ask(alice.id, thread="two")
        await live.start(known)
        with pytest.raises(Rejected) as refused:
            await live.start(ask(alice.id, thread="three"))
        assert refused.value.code == "rate_limited"
        assert (await live.start(known)).duplicate
        await live.start(ask(bob.id, thread="one"))
        gate.go.set()
        await until(lambda: not live.runs)
        await live.start(ask(alice.id, thread="three"))


async def test_racing_starts_of_one_owner_do_not_pass_the_limit(alice: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(gate.step, text("a")), repeat_last=True), most=3) as live:
        answers = await asyncio.gather(
            *(live.start(ask(alice.id, thread=f"t{n}")) for n in range(8)), return_exceptions=True
        )
        assert len(live.runs) == 3
        assert sum(isinstance(a, Rejected) and a.code == "rate_limited" for a in answers) == 5
        gate.go.set()


async def test_draining_lets_runs_end_and_takes_no_new_ones(alice: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(text("a "), gate.step, text("b")))) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await gate.reached.wait()
        draining = asyncio.create_task(live.drain(10))
        await until(lambda: live.draining)
        with pytest.raises(Rejected) as refused:
            await live.start(ask(alice.id, thread="other"))
        assert refused.value.code == "shutting_down"
        gate.go.set()
        await draining
        assert ear.ends(started.run_id) == ["RUN_FINISHED"]


async def test_a_drain_without_patience_ends_runs_in_order(alice: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(text("kept "), gate.step, text("b")))) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await gate.reached.wait()
        await live.drain(0.01)
        assert ear.ends(started.run_id) == ["RUN_ERROR"]
        assert ear.of(started.run_id)[-1]["code"] == "shutting_down"
    found = await runs.find_run(owner_id=alice.id, thread_id="t", run_id=started.run_id)
    assert found is not None and found.status is RunStatus.FAILED
    history = await sessions.history(alice.id, "t")
    assert any(getattr(item.record, "text", "") == "kept " for item in history.stored)


async def test_a_client_that_reads_nothing_costs_the_run_nothing(alice: Any) -> None:
    """Ten times the tail go past it; it reads on from the log, and misses and doubles nothing."""
    pieces = [f"piece {n} " + "x" * 4000 + "\n" for n in range(2_000)]
    async with house(ScriptedModel(turn(text(*pieces)))) as live:
        started = await live.start(ask(alice.id))
        deaf, other = Ear(), Ear()
        deaf.stop()
        for ear in (deaf, other):
            await live.attach(owner_id=alice.id, thread_id="t", sink=ear, run_id=started.run_id, after=0)
        await other.end(started.run_id)
        feed = live.following.feeds[(alice.id, "t", started.run_id)]
        await live.log.drained(5)
        assert feed.seq - feed.forget() < feed.seq, "the tail is a part only"
        assert len(deaf.frames) == 0
        deaf.go_on()
        await deaf.end(started.run_id)
        assert deaf.frames == other.frames
        assert deaf.text(started.run_id) == "".join(pieces)


async def test_attaching_without_after_shows_history_first_and_then_the_run_from_its_beginning(alice: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(text("old")), turn(text("new "), gate.step, text("text")))) as live:
        first = await live.start(ask(alice.id))
        await (await follow(live, first, alice.id)).end(first.run_id)
        await until(lambda: not live.runs)
        second = await live.start(ask(alice.id))
        await gate.reached.wait()
        ear, seen = Ear(), []

        async def opening(attachment: Attachment) -> None:
            gate.go.set()
            await until(lambda: not live.runs, "the run ends while the history is read")
            seen.append((attachment.mode, attachment.run_id, set(attachment.coming), len(ear.frames)))

        await live.attach(owner_id=alice.id, thread_id="t", sink=ear, opening=opening)
        await ear.end(second.run_id)
        assert seen == [("snapshot", second.run_id, {second.run_id}, 0)]
        assert ear.seqs(second.run_id) == list(range(1, len(ear.frames) + 1))
        assert ear.of(first.run_id) == []


async def test_an_attachment_to_a_quiet_thread_follows_the_next_run(alice: Any) -> None:
    async with house(ScriptedModel(turn(text("a")), repeat_last=True)) as live:
        ear = Ear()
        attachment = await live.attach(owner_id=alice.id, thread_id="t", sink=ear)
        assert (attachment.mode, attachment.run_id) == ("idle", None)
        for _ in range(2):
            started = await live.start(ask(alice.id))
            await ear.end(started.run_id)
            await until(lambda: not live.runs)
        attachment.detach()
        last = await live.start(ask(alice.id))
        await until(lambda: not live.runs)
        assert ear.of(last.run_id) == []


async def test_after_past_the_end_of_the_log_is_answered_by_resync(alice: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(text("a "), gate.step, text("b")))) as live:
        started = await live.start(ask(alice.id))
        await gate.reached.wait()
        ear = await follow(live, started, alice.id, after=1_000)
        assert ear.resyncs == [("t", started.run_id)]
        gate.go.set()
        await until(lambda: not live.runs)
        assert ear.frames == []


async def test_a_model_that_never_makes_us_wait_does_not_own_the_loop(alice: Any) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async with house(ScriptedModel(turn(text(*["x"] * 20_000)))) as live:
        ticking = asyncio.create_task(tick())
        started = await live.start(ask(alice.id))
        await (await follow(live, started, alice.id)).end(started.run_id)
        ticking.cancel()
        assert ticks > 20_000 / 64


async def test_a_run_that_is_fenced_stops_without_a_word(alice: Any) -> None:
    gate = Gate()
    async with house(ScriptedModel(turn(text("a "), gate.step, text("b")))) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await gate.reached.wait()
        (run,) = live.runs.values()
        run.fence()
        await until(lambda: not live.runs)
        await until(lambda: ear.resyncs)
        assert ear.ends(started.run_id) == [] and run.token.reason is CancelReason.FENCED


async def test_a_heartbeat_whose_statement_fails_goes_on_and_renews_the_lease(
    alice: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without it every run of the process would be lost in the end."""
    monkeypatch.setattr("agents.live.beat.BEAT_S", 0.01)
    monkeypatch.setattr("agents.live.beat.RETRY_S", 0.01)
    gate = Gate()

    async def rename(column: str, to: str) -> None:
        await pool.fetch(f"ALTER TABLE agents_run RENAME COLUMN {column} TO {to}", ())

    async with house(ScriptedModel(turn(gate.step, text("a")))) as live:
        started = await live.start(ask(alice.id))
        await gate.reached.wait()
        await rename("lease_expires_at", "gone")  # as a half-done migration leaves it
        try:
            await until(lambda: caplog.text.count("heartbeat failed") > 1)
        finally:
            await rename("gone", "lease_expires_at")
        await pool.fetch("UPDATE agents_run SET lease_expires_at = now() - interval '1 hour'", ())
        async with asyncio.timeout(PATIENCE_S):
            renewed = "SELECT 1 FROM agents_run WHERE lease_expires_at > now()"
            while not await pool.fetch(renewed, ()):  # noqa: ASYNC110  # nobody announces a renewed lease
                await asyncio.sleep(0.01)
        gate.go.set()
        assert (await (await follow(live, started, alice.id)).end(started.run_id))["type"] == "RUN_FINISHED"


async def test_a_service_that_breaks_off_is_started_again(
    alice: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("agents.live.registry.SERVE_AGAIN_S", 0.01)
    rounds: list[int] = []

    async def service() -> None:
        rounds.append(len(rounds))
        if len(rounds) == 1:
            raise ZeroDivisionError("a mistake")
        await asyncio.Event().wait()

    async with house(ScriptedModel()) as live:
        live._serve("test", service)
        await until(lambda: rounds == [0, 1])
    assert "live's test broke off" in caplog.text


async def test_a_run_whose_caller_goes_away_while_it_starts_runs_all_the_same(alice: Any) -> None:
    """Else its row would say "running" with nobody to execute it, and the conversation would wait for a sweep."""
    async with house(ScriptedModel(turn(text("here")))) as live:
        request = ask(alice.id)
        caller = asyncio.create_task(live.start(request))
        await until(lambda: live._starting)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        again = await live.start(request)
        assert again.duplicate
        ear = await follow(live, again, alice.id)
        assert (await ear.end(request.run_id))["type"] == "RUN_FINISHED"


async def test_a_queued_message_with_a_long_id_starts_its_run(alice: Any) -> None:
    name = "q" * 128
    async with house(ScriptedModel(turn(text("first")), turn(text("second")))) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await ear.end(started.run_id)
        await until(lambda: not live.runs)
        await live.steer(
            owner_id=alice.id, thread_id="t", run_id=started.run_id, kind="queue", message=said("And?", name)
        )
        run_id = registry.queued_run_id(name)
        assert len(run_id) <= 128
        await ear.end(run_id)


@pytest.mark.parametrize("kind", ["steer", "queue"])
async def test_a_message_into_a_run_needs_an_id_the_conversation_has_not(alice: Any, kind: str) -> None:
    """A queued one could never start, and everything behind it would wait for ever."""
    gate = Gate()
    async with house(ScriptedModel(turn(gate.step, text("first")))) as live:
        request = ask(alice.id)
        started = await live.start(request)
        await gate.reached.wait()
        assert request.message is not None
        with pytest.raises(Rejected, match="already in the conversation"):
            await live.steer(
                owner_id=alice.id, thread_id="t", run_id=started.run_id, kind=kind, message=request.message
            )
        assert await inbox.waiting(owner_id=alice.id, thread_id="t") == ()
        gate.go.set()


async def test_a_file_in_a_message_into_a_run_is_looked_up_for_its_owner(alice: Any) -> None:
    """A reference from outside carries neither name nor kind, and may be nobody's."""
    gate = Gate()
    whole = FilePart(artifact_id="a", version=1, name="survey.pdf", mime="application/pdf", size_bytes=9)

    async def look_up(request: RunRequest) -> RunRequest:
        assert request.message is not None
        if request.message.id == "bad":
            raise Rejected("invalid_input", "An attached file is not there any more.")
        return replace(request, message=replace(request.message, parts=(whole,))) if request.thread_id else request

    async with house(ScriptedModel(turn(gate.step, text("first")), repeat_last=True)) as live:
        started = await live.start(ask(alice.id))
        await gate.reached.wait()
        live.wiring = replace(live.wiring, prepare=look_up)
        bare = FilePart(artifact_id="a", version=1, name="", mime="", size_bytes=0)
        steer = {"owner_id": alice.id, "thread_id": "t", "run_id": started.run_id, "kind": "queue"}
        await live.steer(**steer, message=UserMessage(id="good", parts=(bare,)))
        with pytest.raises(Rejected, match="not there"):
            await live.steer(**steer, message=UserMessage(id="bad", parts=(bare,)))
        assert [w.message.parts for w in await inbox.waiting(owner_id=alice.id, thread_id="t")] == [(whole,)]
        await live.cancel(owner_id=alice.id, thread_id="t", run_id=started.run_id)
        await until(lambda: not live.runs)


async def test_a_process_that_slept_keeps_its_own_runs(alice: Any) -> None:
    """Its leases are out when it wakes up, and its own sweep may come before its heartbeat."""
    gate = Gate()
    async with house(ScriptedModel(turn(text("a"), gate.step, text("b")))) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await gate.reached.wait()
        await pool.fetch("UPDATE agents_run SET lease_expires_at = clock_timestamp() - interval '1 min'", ())
        sweeping = asyncio.create_task(live._beat.sweep())
        try:
            async with asyncio.timeout(PATIENCE_S):
                while await runs.expired():  # noqa: ASYNC110  # no event says so
                    await asyncio.sleep(0.01)
            gate.go.set()
            assert (await ear.end(started.run_id))["type"] == "RUN_FINISHED"
        finally:
            sweeping.cancel()


async def test_one_run_id_for_two_messages_at_once_runs_the_first_and_refuses_the_second(alice: Any) -> None:
    """Taken for the same request, the second message would be gone without a word."""
    async with house(ScriptedModel(turn(text("here")), repeat_last=True)) as live:
        first = ask(alice.id, run="r")
        second = replace(first, message=said("Something else.", "u-other"))
        answers = await asyncio.gather(live.start(first), live.start(second), return_exceptions=True)
        assert isinstance(answers[0], registry.Started) and not answers[0].duplicate
        assert isinstance(answers[1], Rejected)


async def test_a_dead_run_does_not_stand_in_the_way_of_the_next_message(alice: Any) -> None:
    """After an outage of the database, say: its end could not be stored, and the sweep has not come by yet."""
    async with house(ScriptedModel(turn(text("here")), repeat_last=True)) as live:
        dead = await live.wiring.runner.open(ask(alice.id, run="dead"))
        with pytest.raises(Rejected, match="conflict"):
            await live.start(ask(alice.id, run="early"))
        await pool.fetch("UPDATE agents_run SET lease_expires_at = clock_timestamp() - interval '1 min'", ())
        started = await live.start(ask(alice.id, run="next"))
        ear = await follow(live, started, alice.id)
        assert (await ear.end("next"))["type"] == "RUN_FINISHED"
        found = await runs.find_run(owner_id=alice.id, thread_id="t", run_id="dead")
        assert found is not None and found.status is RunStatus.LOST and found.run_key == dead.run_key


async def test_a_run_whose_end_could_not_be_stored_is_closed_once_the_database_is_back(alice: Any) -> None:
    gate = Gate()

    async def away(*_: Any, **__: Any) -> Any:
        raise StorageUnavailable

    async with house(ScriptedModel(turn(text("a"), gate.step, text("b")), turn(text("c")))) as live:
        started = await live.start(ask(alice.id))
        ear = await follow(live, started, alice.id)
        await gate.reached.wait()
        (run,) = live.runs.values()
        setattr(run.opened.ledger, "append", away)  # noqa: B010  # a protocol's method
        gate.go.set()
        end = await ear.end(started.run_id)
        assert (end["type"], end["code"]) == ("RUN_ERROR", "storage_unavailable")
        async with asyncio.timeout(PATIENCE_S):
            while await runs.active_run(owner_id=alice.id, thread_id="t"):  # noqa: ASYNC110  # no event says so
                await asyncio.sleep(0.01)
        again = await live.start(ask(alice.id))
        assert (await (await follow(live, again, alice.id)).end(again.run_id))["type"] == "RUN_FINISHED"
