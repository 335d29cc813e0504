import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from agents.runtime.errors import ModelBusy, Rejected, RunFenced, StreamCut
from agents.runtime.events import (
    AssistantMessage,
    Emitted,
    Event,
    Outcome,
    RunFailed,
    RunFinished,
    RunStarted,
    StateChanged,
    TextDelta,
    ToolReturned,
    ToolStatus,
    UserMessage,
    UserMessageKind,
    Waiting,
)
from agents.runtime.invocation import Hooks, Invocation, Limits
from agents.runtime.memorystores import MemorySessionStore
from agents.runtime.model import FinishReason, RetryChunk, TextPart, ToolCall, Usage
from agents.runtime.session import CancelReason, CancelToken, RunStatus
from agents.runtime.testing import ScriptedModel, WaitFor, call, collect, memory_runner, said, text, turn, usage
from tests.runtime.samples import end_of, every_call_has_one_result, of, records, request, soon, texts, tool


class PlainAgent:
    """An agent without a model: yields what it is given, raising what is an exception."""

    name = "assistant"

    def __init__(self, *steps: object) -> None:
        self.steps = steps

    async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        for step in self.steps:
            if isinstance(step, BaseException):
                raise step
            if isinstance(step, asyncio.Event):
                await step.wait()
            else:
                yield step  # type: ignore[misc]  # the test gives events


def answer(words: str, id: str = "m1") -> AssistantMessage:
    return AssistantMessage(id=id, response_id=id, text=words)


async def test_a_question_is_answered_and_everything_is_stored_in_order() -> None:
    store = MemorySessionStore()
    model = ScriptedModel(turn(text("It is ", "42."), usage(12, 3, cached=8)))
    emitted = await collect(memory_runner(model, store=store), request("What is it?"))
    assert [type(r) for r in records(emitted)] == [RunStarted, UserMessage, AssistantMessage, RunFinished]
    assert [e.position for e in emitted if e.position] == [1, 2, 3, 4]
    assert [e.event.text for e in emitted if isinstance(e.event, TextDelta)] == ["It is ", "42."]
    end = end_of(emitted)
    assert end == RunFinished(outcome=Outcome.SUCCESS, usage=Usage(prompt=12, completion=3, cached=8))
    stored_records = [s.record for s in store.stored(owner_id=1, thread_id="t")]
    assert stored_records == records(emitted)
    run_end = store.run_end(owner_id=1, thread_id="t", run_id="r1")
    assert run_end and (run_end.status, run_end.model_calls) == (RunStatus.FINISHED, 1)


async def test_1_1_a_second_start_with_the_same_run_id_fails_and_the_first_goes_on() -> None:
    store, go = MemorySessionStore(), asyncio.Event()
    runner = memory_runner(ScriptedModel(turn(WaitFor(go), text("done"))), store=store)
    opened = await runner.open(request())
    with pytest.raises(Rejected) as refused:
        await runner.open(request())
    assert refused.value.code == "run_id_reused"
    go.set()
    assert isinstance(end_of([e async for e in runner.run(opened, CancelToken())]), RunFinished)


async def test_1_2_a_second_run_on_a_thread_conflicts_until_the_first_is_over() -> None:
    runner = memory_runner(ScriptedModel(turn(text("a")), turn(text("b"))))
    opened = await runner.open(request())
    with pytest.raises(Rejected) as refused:
        await runner.open(request(run_id="r2"))
    assert refused.value.code == "run_conflict"
    await runner.open(request(run_id="r2", thread_id="other"))
    [e async for e in runner.run(opened, CancelToken())]
    assert texts(await collect(runner, request(run_id="r3"))) == ["b"]


async def test_1_3_a_store_that_fails_at_the_start_gives_the_error_and_no_events() -> None:
    store = MemorySessionStore()
    store.outage = True
    runner = memory_runner(ScriptedModel(turn(text("a"))), store=store)
    with pytest.raises(Exception, match="database"):
        await runner.open(request())
    store.outage = False
    assert isinstance(end_of(await collect(runner, request())), RunFinished)


async def test_1_4_the_user_message_stays_when_the_agent_raises_at_once_and_the_run_fails_once() -> None:
    store = MemorySessionStore()
    runner = memory_runner(None, agent=PlainAgent(ValueError("secret detail")), store=store)
    opened = await runner.open(request("Hi"))
    emitted: list[Emitted] = []
    with pytest.raises(ValueError) as raised:
        async for one in runner.run(opened, CancelToken()):
            emitted.append(one)
    emitted.append(await runner.fail(opened, raised.value))
    end = end_of(emitted)
    assert isinstance(end, RunFailed)
    assert (end.code, end.retryable) == ("internal", False)
    assert end.reference and "secret" not in end.message
    kinds = [s.record.type for s in store.stored(owner_id=1, thread_id="t")]
    assert kinds == ["run_started", "user_message", "run_failed"]


async def test_context_1_5_an_agent_that_cannot_start_leaves_the_user_message_then_the_error() -> None:
    store = MemorySessionStore()
    emitted = await collect(memory_runner(None, agent=PlainAgent(ModelBusy()), store=store), request())
    kinds = [s.record.type for s in store.stored(owner_id=1, thread_id="t")]
    assert kinds == ["run_started", "user_message", "run_failed"]
    end = end_of(emitted)
    assert isinstance(end, RunFailed) and end.retryable and end.code == "model_busy"


async def test_1_5_cancel_while_the_model_streams_ends_the_run_with_the_partial_text_kept() -> None:
    store, reached, never = MemorySessionStore(), asyncio.Event(), asyncio.Event()
    model = ScriptedModel(turn(text("Half an "), WaitFor(never, reached), text("answer")))
    runner, cancel = memory_runner(model, store=store), CancelToken()
    opened = await runner.open(request())

    async def stop() -> None:
        await soon(reached)
        assert cancel.cancel(CancelReason.USER)

    stopping = asyncio.create_task(stop())
    emitted = [e async for e in runner.run(opened, cancel)]
    await stopping
    assert end_of(emitted) == RunFinished(outcome=Outcome.CANCELLED)
    partial = of(emitted, AssistantMessage)
    assert [(m.text, m.finish_reason) for m in partial] == [("Half an ", FinishReason.CANCELLED)]
    assert model.closed == 1
    assert not cancel.cancel(CancelReason.USER)
    run_end = store.run_end(owner_id=1, thread_id="t", run_id="r1")
    assert run_end and run_end.status is RunStatus.CANCELLED
    (booked,) = store.model_calls(owner_id=1, thread_id="t", run_id="r1")
    assert booked.finish_reason == "cancelled" and booked.parts and booked.request_sha256


async def test_1_6_cancelling_the_task_ends_the_run_in_order_before_the_cancellation_passes_on() -> None:
    store, reached = MemorySessionStore(), asyncio.Event()
    runner = memory_runner(ScriptedModel(turn(text("Half"), WaitFor(asyncio.Event(), reached))), store=store)
    emitted: list[Emitted] = []

    async def work() -> None:
        opened = await runner.open(request())
        async for one in runner.run(opened, CancelToken()):
            emitted.append(one)

    task = asyncio.create_task(work())
    await soon(reached)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    end = end_of(emitted)
    assert isinstance(end, RunFailed) and (end.code, end.retryable) == ("shutting_down", True)
    assert texts(emitted) == ["Half"]
    assert [s.record for s in store.stored(owner_id=1, thread_id="t")] == records(emitted)


async def test_1_6_a_run_that_takes_too_long_is_ended_with_its_text_kept() -> None:
    model = ScriptedModel(turn(text("Half"), WaitFor(asyncio.Event())))
    emitted = await collect(memory_runner(model, limits=Limits(duration_s=0.5)), request())
    end = end_of(emitted)
    assert isinstance(end, RunFailed) and end.code == "run_timeout"
    assert texts(emitted) == ["Half"]


async def test_1_7_the_next_model_request_holds_the_result_of_the_tool() -> None:
    model = ScriptedModel(turn(call("c1", "look", {})), turn(text("done")))
    await collect(memory_runner(model, tools=(tool("look"),)), request())
    assert [m.role.value for m in model.requests[1].messages] == ["system", "user", "assistant", "tool"]
    assert model.requests[1].messages[-1].text == "look: {}"


async def test_1_8_when_the_database_goes_away_the_run_ends_storage_unavailable() -> None:
    store = MemorySessionStore()

    def away(_: object) -> list[object]:
        store.outage = True
        return text("lost words")  # type: ignore[return-value]

    emitted = await collect(memory_runner(ScriptedModel(away), store=store), request())  # type: ignore[arg-type]
    end = end_of(emitted)
    assert isinstance(end, RunFailed) and (end.code, end.retryable) == ("storage_unavailable", True)
    assert emitted[-1].position is None


async def test_1_9_an_event_hook_that_raises_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(invocation: Invocation, event: Event) -> Event | None:
        raise RuntimeError("hook")

    store = MemorySessionStore()
    runner = memory_runner(ScriptedModel(turn(text("a"))), store=store, hooks=Hooks(on_event=(broken,)))
    emitted = await collect(runner, request())
    assert texts(emitted) == ["a"]
    assert [s.record.type for s in store.stored(owner_id=1, thread_id="t")][2] == "assistant_message"
    assert "event hook failed" in caplog.text


async def test_1_10_two_model_calls_allowed_with_endless_tools_are_exactly_two() -> None:
    store = MemorySessionStore()
    model = ScriptedModel(lambda r: call(f"c{len(r.messages)}", "look", {}), repeat_last=True)
    runner = memory_runner(model, tools=(tool("look"),), store=store, limits=Limits(model_calls=2))
    end = end_of(await collect(runner, request()))
    assert len(model.requests) == 2
    assert isinstance(end, RunFailed) and (end.code, end.retryable) == ("run_limit", False)
    assert every_call_has_one_result(store.stored(owner_id=1, thread_id="t"))


async def test_1_10_the_limit_of_the_whole_run_counts_too() -> None:
    model = ScriptedModel(lambda r: call(f"c{len(r.messages)}", "look", {}), repeat_last=True)
    limits = Limits(model_calls=None, tool_rounds=None, model_calls_run=3)
    end = end_of(await collect(memory_runner(model, tools=(tool("look"),), limits=limits), request()))
    assert len(model.requests) == 3 and isinstance(end, RunFailed)


async def test_too_many_tool_rounds_end_the_run_and_the_pending_tools_are_not_run() -> None:
    ran: list[str] = []

    async def look(arguments, context):  # type: ignore[no-untyped-def]
        ran.append(context.call_id)
        return await tool("look").function(arguments, context)

    store = MemorySessionStore()
    model = ScriptedModel(lambda r: call(f"c{len(r.messages)}", "look", {}), repeat_last=True)
    runner = memory_runner(model, tools=(tool("look", look),), store=store, limits=Limits(tool_rounds=2))
    emitted = await collect(runner, request())
    assert isinstance(end_of(emitted), RunFailed)
    assert (len(ran), len(model.requests)) == (2, 3)
    assert of(emitted, ToolReturned)[-1].status is ToolStatus.ERROR
    assert every_call_has_one_result(store.stored(owner_id=1, thread_id="t"))


async def test_the_last_call_may_be_made_without_tools_and_answers() -> None:
    model = ScriptedModel(turn(call("c1", "look", {})), turn(text("what I have")))
    limits = Limits(model_calls=2, finish_without_tools=True)
    emitted = await collect(memory_runner(model, tools=(tool("look"),), limits=limits), request())
    assert isinstance(end_of(emitted), RunFinished)
    assert model.requests[0].tools and not model.requests[1].tools
    assert "no more tools" in model.requests[1].messages[-1].text


async def test_a_tool_called_in_the_last_step_is_refused() -> None:
    store = MemorySessionStore()
    model = ScriptedModel(turn(call("c1", "look", {})), turn(call("c2", "look", {})))
    limits = Limits(model_calls=2, finish_without_tools=True)
    runner = memory_runner(model, tools=(tool("look"),), limits=limits, store=store)
    emitted = await collect(runner, request())
    assert [r.status for r in of(emitted, ToolReturned)] == [ToolStatus.OK, ToolStatus.ERROR]
    end = end_of(emitted)
    assert isinstance(end, RunFailed) and end.code == "run_limit"
    assert every_call_has_one_result(store.stored(owner_id=1, thread_id="t"))


async def test_1_11_steering_comes_after_the_tool_results_and_before_the_next_model_call() -> None:
    store = MemorySessionStore()

    async def look(arguments, context):  # type: ignore[no-untyped-def]
        assert store.steer(owner_id=1, thread_id="t", run_id="r1", message=said("Faster!", id="s1"))
        return await tool("look").function(arguments, context)

    model = ScriptedModel(turn(call("c1", "look", {})), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("look", look),), store=store), request())
    assert [m.role.value for m in model.requests[1].messages][-2:] == ["tool", "user"]
    steered = [e for e in emitted if isinstance(e.event, UserMessage)][-1]
    assert isinstance(steered.event, UserMessage) and steered.event.kind is UserMessageKind.STEER
    assert steered.origin.author == "user"
    assert not store.steer(owner_id=1, thread_id="t", run_id="r1", message=said("Late", id="s2"))


async def test_steering_that_comes_while_the_last_answer_is_written_is_answered_too() -> None:
    store = MemorySessionStore()

    def first(_: object) -> list[object]:
        store.steer(owner_id=1, thread_id="t", run_id="r1", message=said("And then?", id="s1"))
        return text("First.")  # type: ignore[return-value]

    model = ScriptedModel(first, turn(text("Second.")))  # type: ignore[arg-type]
    emitted = await collect(memory_runner(model, store=store), request())
    assert texts(emitted) == ["First.", "Second."]
    assert isinstance(end_of(emitted), RunFinished)


async def test_1_12_seed_history_is_stored_once_for_an_empty_session_and_ignored_later() -> None:
    seed = (said("Old question", id="o1"), answer("Old answer", "o2"), said("New", id="u-r1"))
    model = ScriptedModel(turn(text("a")), turn(text("b")))
    runner = memory_runner(model)
    await collect(runner, request("New", seed=seed))
    assert [m.text for m in model.requests[0].messages[1:]] == ["Old question", "Old answer", "New"]
    await collect(runner, request("Next", run_id="r2", seed=seed))
    assert [m.text for m in model.requests[1].messages[1:]] == ["Old question", "Old answer", "New", "a", "Next"]


async def test_context_1_11_seed_history_for_a_session_with_events_is_not_stored() -> None:
    store = MemorySessionStore()
    runner = memory_runner(ScriptedModel(turn(text("a")), turn(text("b"))), store=store)
    await collect(runner, request())
    await collect(runner, request(run_id="r2", seed=(said("Old", id="o1"),)))
    kinds = [s.record.kind for s in store.stored(owner_id=1, thread_id="t") if isinstance(s.record, UserMessage)]
    assert kinds == [UserMessageKind.TURN, UserMessageKind.TURN]


async def test_1_13_an_unknown_error_in_the_agent_ends_the_run_and_leaves_nothing_behind() -> None:
    store = MemorySessionStore()
    broken = PlainAgent(
        AssistantMessage(id="m", response_id="m", tool_calls=(ToolCall(id="c1", name="x", arguments="{}"),)),
        KeyError("boom"),
    )
    runner = memory_runner(None, agent=broken, store=store)
    opened = await runner.open(request())
    with pytest.raises(KeyError) as raised:
        [e async for e in runner.run(opened, CancelToken())]
    await runner.fail(opened, raised.value)
    assert every_call_has_one_result(store.stored(owner_id=1, thread_id="t"))
    assert runner._going == {}
    await runner.open(request(run_id="r2"))


async def test_an_unknown_error_of_the_provider_keeps_the_text_that_was_being_written() -> None:
    store = MemorySessionStore()
    runner = memory_runner(ScriptedModel(turn(text("Half"), ZeroDivisionError())), store=store)
    opened = await runner.open(request())
    with pytest.raises(ZeroDivisionError) as raised:
        [e async for e in runner.run(opened, CancelToken())]
    failed = await runner.fail(opened, raised.value)
    assert isinstance(failed.event, RunFailed)
    kept = [s.record for s in store.stored(owner_id=1, thread_id="t") if isinstance(s.record, AssistantMessage)]
    assert [(m.text, m.finish_reason) for m in kept] == [("Half", FinishReason.ERROR)]


async def test_1_14_deltas_are_never_stored_and_a_change_of_state_alone_is() -> None:
    store = MemorySessionStore()
    agent = PlainAgent(TextDelta("m1", "a"), TextDelta("m1", "b"), StateChanged(delta={"step": 1}), answer("ab"))
    emitted = await collect(memory_runner(None, agent=agent, store=store), request())
    kinds = [s.record.type for s in store.stored(owner_id=1, thread_id="t")]
    assert kinds == ["run_started", "user_message", "state_changed", "assistant_message", "run_finished"]
    assert [e.position for e in emitted if isinstance(e.event, TextDelta)] == [None, None]


async def test_context_1_1_partial_deltas_and_one_final_answer_are_one_stored_event() -> None:
    store = MemorySessionStore()
    await collect(memory_runner(ScriptedModel(turn(text(*"abc"))), store=store), request())
    assert [s.record.text for s in store.stored(owner_id=1, thread_id="t") if s.record.type == "assistant_message"] == [
        "abc"
    ]


async def test_context_1_2_state_of_this_run_only_is_seen_by_tools_and_never_stored() -> None:
    seen: list[object] = []

    async def look(arguments, context):  # type: ignore[no-untyped-def]
        seen.append(dict(context.state))
        return await tool("look").function(arguments, context)

    store = MemorySessionStore()
    agent = PlainAgent(StateChanged(delta={"temp:x": 1, "kept": None}), StateChanged(delta={"temp:only": 2}))
    emitted = await collect(memory_runner(None, agent=agent, store=store), request())
    assert of(emitted, StateChanged) == [StateChanged(delta={"kept": None})]
    assert store.session(owner_id=1, thread_id="t").state == {"kept": None}
    model = ScriptedModel(turn(call("c1", "look", {})), turn(text("ok")))
    runner = memory_runner(model, tools=(tool("look", look),), store=store)
    await collect(runner, request(run_id="r2", state={"temp:y": 3, "page": 2}))
    assert seen == [{"kept": None, "page": 2, "temp:y": 3}]
    assert store.session(owner_id=1, thread_id="t").state == {"kept": None, "page": 2}


async def test_context_1_13_a_final_answer_is_stored_even_if_the_follower_leaves_right_after_the_last_token() -> None:
    store, cancel = MemorySessionStore(), CancelToken()
    runner = memory_runner(ScriptedModel(turn(text("whole"))), store=store)
    opened = await runner.open(request())
    async for emitted in runner.run(opened, cancel):
        if isinstance(emitted.event, TextDelta):
            cancel.cancel(CancelReason.USER)
    assert [s.record.text for s in store.stored(owner_id=1, thread_id="t") if s.record.type == "assistant_message"] == [
        "whole"
    ]


async def test_a_run_closed_by_another_process_stops_without_a_word() -> None:
    store = MemorySessionStore()

    def closed(_: object) -> list[object]:
        store.fence(owner_id=1, thread_id="t", run_id="r1")
        return text("too late")  # type: ignore[return-value]

    runner = memory_runner(ScriptedModel(closed), store=store)  # type: ignore[arg-type]
    opened = await runner.open(request())
    with pytest.raises(RunFenced):
        [e async for e in runner.run(opened, CancelToken())]
    assert len(store.stored(owner_id=1, thread_id="t")) == 2
    assert runner._going == {}


async def test_a_fenced_token_stops_the_run_and_stores_nothing_more() -> None:
    store, cancel = MemorySessionStore(), CancelToken()
    runner = memory_runner(ScriptedModel(turn(text("a", "b"))), store=store)
    opened = await runner.open(request())
    with pytest.raises(RunFenced):
        async for emitted in runner.run(opened, cancel):
            if isinstance(emitted.event, TextDelta):
                cancel.cancel(CancelReason.FENCED)
    assert len(store.stored(owner_id=1, thread_id="t")) == 2


async def test_a_cut_stream_keeps_the_partial_text_and_the_run_may_be_tried_again() -> None:
    store = MemorySessionStore()
    model = ScriptedModel(turn(text("Half"), call("c1", "look", '{"q": "ab'), StreamCut()))
    emitted = await collect(memory_runner(model, tools=(tool("look"),), store=store), request())
    end = end_of(emitted)
    assert isinstance(end, RunFailed) and (end.code, end.retryable) == ("stream_cut", True)
    (kept,) = of(emitted, AssistantMessage)
    assert (kept.text, kept.finish_reason) == ("Half", FinishReason.ERROR)
    assert every_call_has_one_result(store.stored(owner_id=1, thread_id="t"))


async def test_the_providers_waiting_is_shown() -> None:
    model = ScriptedModel(turn(RetryChunk(1.5, "busy"), text("a")))
    emitted = await collect(memory_runner(model), request())
    assert of(emitted, Waiting) == [Waiting(1.5, "busy")]


async def test_an_answer_without_a_word_is_an_error_the_person_sees() -> None:
    end = end_of(await collect(memory_runner(ScriptedModel(turn())), request()))
    assert isinstance(end, RunFailed) and (end.code, end.retryable) == ("empty_answer", True)


async def test_an_agent_that_ignores_the_stop_is_torn_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.runtime.runner.STOP_GRACE_S", 0.02)
    cancel = CancelToken()
    runner = memory_runner(None, agent=PlainAgent(answer("first"), asyncio.Event()))
    opened = await runner.open(request())
    emitted = []
    async for one in runner.run(opened, cancel):
        emitted.append(one)
        if isinstance(one.event, AssistantMessage):
            cancel.cancel(CancelReason.USER)
    assert end_of(emitted) == RunFinished(outcome=Outcome.CANCELLED)
    task = asyncio.current_task()
    assert task is not None and not task.cancelling()


async def test_an_agent_must_not_end_the_run_itself() -> None:
    runner = memory_runner(None, agent=PlainAgent(RunFinished(outcome=Outcome.SUCCESS)))
    opened = await runner.open(request())
    with pytest.raises(TypeError, match="run_finished"):
        [e async for e in runner.run(opened, CancelToken())]


async def test_an_unknown_agent_is_refused_at_the_door() -> None:
    with pytest.raises(Rejected) as refused:
        await memory_runner(ScriptedModel()).open(request(agent="ghost"))
    assert refused.value.code == "agent_unavailable"


async def test_every_event_carries_the_origin_of_its_run() -> None:
    emitted = await collect(memory_runner(ScriptedModel(turn(text("a")))), request())
    origins = {(e.origin.run_id, e.origin.branch, e.origin.filter_key) for e in emitted}
    assert origins == {("r1", "assistant", "assistant")}
    assert len({e.origin.invocation_id for e in emitted}) == 1
    assert [e.origin.author for e in emitted] == ["user", "user", *["assistant"] * 4]


async def test_one_line_is_logged_at_the_start_and_one_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agents.runtime.runner")
    await collect(memory_runner(ScriptedModel(turn(text("a secret")))), request("private words"))
    lines = [r.getMessage() for r in caplog.records if r.name == "agents.runtime.runner"]
    assert len(lines) == 2
    assert "secret" not in caplog.text and "private" not in caplog.text


async def test_the_message_given_to_the_model_is_the_stored_one() -> None:
    model = ScriptedModel(turn(text("a")))
    await collect(memory_runner(model), request(message=said("Hi")))
    assert model.requests[0].messages[1].parts == (TextPart(text="Hi"),)


async def test_a_model_that_is_not_there_after_all_ends_the_run_with_its_message() -> None:
    store = MemorySessionStore()

    class Gone(ScriptedModel):
        pass

    runner = memory_runner(Gone(), store=store)

    def refuse(*_: object) -> object:
        raise Rejected("model_unavailable", "There is no such model.")

    runner._services = refuse  # type: ignore[assignment]
    end = end_of(await collect(runner, request()))
    assert isinstance(end, RunFailed) and (end.code, end.message) == ("model_unavailable", "There is no such model.")
    run_end = store.run_end(owner_id=1, thread_id="t", run_id="r1")
    assert run_end and run_end.status is RunStatus.FAILED and runner._going == {}


async def test_failing_while_the_database_is_away_still_gives_the_end() -> None:
    store = MemorySessionStore()
    runner = memory_runner(ScriptedModel(turn(text("Half"), ZeroDivisionError())), store=store)
    opened = await runner.open(request())
    with pytest.raises(ZeroDivisionError) as raised:
        async for emitted in runner.run(opened, CancelToken()):
            store.outage = isinstance(emitted.event, TextDelta)
    failed = await runner.fail(opened, raised.value)
    assert isinstance(failed.event, RunFailed) and failed.position is None
    assert runner._going == {}


async def test_a_hook_that_hangs_after_the_answer_loses_neither_the_answer_nor_the_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agents.runtime.runner.STOP_GRACE_S", 0.02)
    hanging = asyncio.Event()

    async def hang(invocation: Invocation, segments: object) -> None:
        hanging.set()
        await asyncio.Event().wait()

    cancel = CancelToken()
    runner = memory_runner(ScriptedModel(turn(text("Whole"))), hooks=Hooks(after_model=(hang,)))
    run = asyncio.create_task(collect(runner, request(), cancel))
    await soon(hanging)
    cancel.cancel(CancelReason.USER)
    emitted = await asyncio.wait_for(run, 5)
    assert texts(emitted) == ["Whole"]
    assert end_of(emitted) == RunFinished(outcome=Outcome.CANCELLED)


async def test_an_agent_that_waits_again_after_a_slow_follower_is_torn_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.runtime.runner.STOP_GRACE_S", 0.0)
    monkeypatch.setattr("agents.runtime.runner.LOOK_AGAIN_S", 0.01)
    cancel = CancelToken()
    runner = memory_runner(None, agent=PlainAgent(answer("first"), asyncio.Event()))
    opened = await runner.open(request())
    emitted = []
    async for one in runner.run(opened, cancel):
        emitted.append(one)
        if isinstance(one.event, AssistantMessage):
            cancel.cancel(CancelReason.USER)
            for _ in range(5):  # the follower is at work while the grace ends
                await asyncio.sleep(0)
    assert end_of(emitted) == RunFinished(outcome=Outcome.CANCELLED)
