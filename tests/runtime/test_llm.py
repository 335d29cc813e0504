import asyncio
from typing import Any

import pytest

from agents.runtime.errors import ModelError
from agents.runtime.events import (
    AssistantMessage,
    ReasoningDelta,
    RunFailed,
    RunFinished,
    TextDelta,
    ToolCallDelta,
    ToolReturned,
    ToolStatus,
)
from agents.runtime.invocation import Hooks, Invocation
from agents.runtime.llm import LLMAgent
from agents.runtime.memorystores import Clock, MemorySessionStore
from agents.runtime.model import FinishReason, Message, ModelRequest, Role, ToolCall, ToolCallChunk, Usage
from agents.runtime.session import CancelReason, CancelToken
from agents.runtime.testing import (
    Do,
    ScriptedModel,
    WaitFor,
    call,
    collect,
    finish,
    memory_runner,
    reasoning,
    text,
    turn,
    usage,
)
from agents.runtime.toolset import Gates
from tests.runtime.samples import Q, end_of, every_call_has_one_result, of, request, soon, texts, tool


async def test_segments_of_one_answer_share_its_response_id_and_text_after_a_call_begins_another() -> None:
    model = ScriptedModel(turn(reasoning("Hm."), text("Let me see."), call("c1", "look", {}), text("And")), text("Ok"))
    emitted = await collect(memory_runner(model, tools=(tool("look"),)), request())
    first, second, last = of(emitted, AssistantMessage)
    assert (first.id, second.id) == (first.response_id, f"{first.response_id}:2")
    assert second.response_id == first.response_id != last.response_id
    assert (first.text, second.text, last.text) == ("Let me see.", "And", "Ok")
    assert [c.id for c in first.tool_calls] == ["c1"] and not second.tool_calls
    deltas = [(type(e.event), e.event.message_id) for e in emitted if hasattr(e.event, "message_id")]
    assert deltas == [
        (ReasoningDelta, first.id),
        (TextDelta, first.id),
        (ToolCallDelta, first.id),
        (TextDelta, second.id),
        (TextDelta, last.id),
    ]
    answer = model.requests[1].messages[2]
    assert (answer.text, [c.id for c in answer.tool_calls]) == ("Let me see.And", ["c1"])


async def test_a_thought_after_a_text_begins_another_segment() -> None:
    model = ScriptedModel(turn(reasoning("a"), text("b"), reasoning("c"), text("d")))
    emitted = await collect(memory_runner(model), request())
    assert [(m.reasoning, m.text) for m in of(emitted, AssistantMessage)] == [("a", "b"), ("c", "d")]


async def test_reasoning_time_is_measured_from_the_first_thought_to_the_first_word() -> None:
    clock = Clock()
    model = ScriptedModel(turn(reasoning("a"), Do(lambda: clock.advance(1.5)), reasoning("b"), text("c")))
    emitted = await collect(memory_runner(model, clock=clock), request())
    assert of(emitted, AssistantMessage)[0].reasoning_ms == 1500


async def test_every_call_is_booked_with_its_times_usage_and_parts() -> None:
    clock, store = Clock(), MemorySessionStore()
    first = turn(Do(lambda: clock.advance(0.2)), call("c1", "look", {}), Do(lambda: clock.advance(0.3)), usage(10, 2))
    model = ScriptedModel(first, turn(text("ok"), usage(20, 4)))
    runner = memory_runner(model, tools=(tool("look"),), store=store, clock=clock)
    emitted = await collect(runner, request())
    one, two = store.model_calls(owner_id=1, thread_id="t", run_id="r1")
    assert one.ttft_ms == pytest.approx(200) and one.latency_ms == pytest.approx(500)
    assert (one.purpose, one.provider, one.model, one.finish_reason) == ("chat", "testing", "scripted", "tool_calls")
    assert [p.kind for p in one.parts] == ["system", "tools", "event"]
    assert [p.tag for p in two.parts] == ["instruction", "tools", "user", "assistant", "tool"]
    assert one.request_sha256 != two.request_sha256
    assert end_of(emitted).usage == Usage(prompt=30, completion=6)


async def test_a_failed_call_is_booked_with_its_error() -> None:
    store = MemorySessionStore()
    emitted = await collect(memory_runner(ScriptedModel(turn(ModelError("no"))), store=store), request())
    (booked,) = store.model_calls(owner_id=1, thread_id="t", run_id="r1")
    assert (booked.error_code, booked.finish_reason, booked.ttft_ms) == ("model_error", "error", None)
    end = end_of(emitted)
    assert isinstance(end, RunFailed) and end.message == "no"


async def test_an_answer_that_hit_its_length_limit_is_kept_and_marked() -> None:
    model = ScriptedModel(turn(text("so far"), finish(FinishReason.LENGTH)))
    emitted = await collect(memory_runner(model), request())
    assert of(emitted, AssistantMessage)[0].finish_reason is FinishReason.LENGTH
    assert isinstance(end_of(emitted), RunFinished)


async def test_a_call_whose_arguments_were_cut_off_is_not_run() -> None:
    model = ScriptedModel(
        turn(call("c1", "look", '{"q": "half a docum'), finish(FinishReason.LENGTH)), turn(text("sorry"))
    )
    emitted = await collect(memory_runner(model, tools=(tool("look", parameters=Q),)), request())
    (result,) = of(emitted, ToolReturned)
    assert result.status is ToolStatus.ERROR and "cut off" in result.content


async def test_a_withheld_answer_without_a_word_fails_and_with_words_is_kept() -> None:
    refused = end_of(await collect(memory_runner(ScriptedModel(turn(finish(FinishReason.CONTENT_FILTER)))), request()))
    assert isinstance(refused, RunFailed) and refused.code == "model_refused"
    model = ScriptedModel(turn(text("Some"), finish(FinishReason.CONTENT_FILTER)))
    emitted = await collect(memory_runner(model), request())
    assert of(emitted, AssistantMessage)[0].finish_reason is FinishReason.CONTENT_FILTER


async def test_2_14_calls_with_one_index_or_one_id_are_distinct_calls_with_distinct_ids() -> None:
    store = MemorySessionStore()
    same_index = turn(call("a", "look", {"n": 1}), call("b", "look", {"n": 2}))
    same_id = turn(call("x", "look", {"n": 3}), call("x", "look", {"n": 4}, index=1))
    model = ScriptedModel(same_index, same_id, turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("look"),), store=store), request())
    assert [r.content for r in of(emitted, ToolReturned)] == [f"look: {{'n': {n}}}" for n in (1, 2, 3, 4)]
    assert len({r.call_id for r in of(emitted, ToolReturned)}) == 4
    assert every_call_has_one_result(store.stored(owner_id=1, thread_id="t"))


async def test_an_id_that_an_earlier_answer_used_gets_a_new_one() -> None:
    store = MemorySessionStore()
    model = ScriptedModel(turn(call("call_0", "look", {})), turn(call("call_0", "look", {})), turn(text("ok")))
    await collect(memory_runner(model, tools=(tool("look"),), store=store), request())
    assert every_call_has_one_result(store.stored(owner_id=1, thread_id="t"))


async def test_a_call_without_a_name_is_answered_so_that_the_model_can_mend_it() -> None:
    model = ScriptedModel(turn([ToolCallChunk(index=0, id="c1", arguments="{}")]), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("look"),)), request())
    (result,) = of(emitted, ToolReturned)
    assert result.status is ToolStatus.ERROR and "not found" in result.content
    assert texts(emitted)[-1] == "ok"


async def test_2_2_an_unknown_and_a_known_tool_both_get_their_result_and_the_loop_goes_on() -> None:
    model = ScriptedModel(turn(call("c1", "lok", {}), call("c2", "look", {})), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("look"),)), request())
    unknown, known = of(emitted, ToolReturned)
    assert unknown.content == "Error: tool not found: lok; did you mean look?"
    assert known.status is ToolStatus.OK
    assert [m.role for m in model.requests[1].messages[-2:]] == [Role.TOOL, Role.TOOL]


async def test_2_3_external_calls_are_left_pending_and_nothing_runs() -> None:
    store = MemorySessionStore()
    external = tool("ask_person").spec
    model = ScriptedModel(turn(call("c1", "ask_person", {}), call("c2", "ask_person", {})))
    runner = memory_runner(model, tools=(tool("look"),), store=store)
    emitted = await collect(runner, request(external_tools=(external,)))
    end = end_of(emitted)
    assert isinstance(end, RunFinished) and end.pending_call_ids == ("c1", "c2")
    assert not of(emitted, ToolReturned)
    assert [t.name for t in model.requests[0].tools] == ["look", "ask_person"]


async def test_2_3_in_a_mixed_round_the_own_tool_runs_once_and_the_external_one_stays_pending() -> None:
    model = ScriptedModel(turn(call("c1", "ask_person", {}), call("c2", "look", {})))
    runner = memory_runner(model, tools=(tool("look"),))
    emitted = await collect(runner, request(external_tools=(tool("ask_person").spec,)))
    end = end_of(emitted)
    assert isinstance(end, RunFinished) and end.pending_call_ids == ("c1",)
    assert [r.call_id for r in of(emitted, ToolReturned)] == ["c2"]


async def test_3_3_an_external_tool_named_like_an_own_one_does_not_replace_it() -> None:
    model = ScriptedModel(turn(call("c1", "look", {})), turn(text("ok")))
    runner = memory_runner(model, tools=(tool("look"),))
    emitted = await collect(runner, request(external_tools=(tool("look").spec,)))
    assert of(emitted, ToolReturned)[0].content == "look: {}"
    assert len(model.requests[0].tools) == 1


async def test_3_4_a_hidden_tool_that_the_model_names_is_not_found_and_not_run() -> None:
    ran: list[str] = []

    async def secret(arguments: Any, context: Any) -> Any:
        ran.append(context.call_id)

    agent = LLMAgent(
        name="assistant",
        instruction="",
        tools=(tool("look"), tool("secret", secret)),
        gates=Gates(visible=lambda t: t.spec.name != "secret"),
    )
    model = ScriptedModel(turn(call("c1", "secret", {})), turn(text("ok")))
    runner = memory_runner(model, agent=agent)
    emitted = await collect(runner, request(external_tools=(tool("secret").spec,)))
    assert "tool not found" in of(emitted, ToolReturned)[0].content
    assert ran == [] and [t.name for t in model.requests[0].tools] == ["look"]


async def test_a_tool_the_server_may_not_run_is_left_to_the_caller() -> None:
    agent = LLMAgent(name="assistant", instruction="", tools=(tool("look"),), gates=Gates(executes=lambda t: False))
    model = ScriptedModel(turn(call("c1", "look", {})))
    end = end_of(await collect(memory_runner(model, agent=agent), request()))
    assert isinstance(end, RunFinished) and end.pending_call_ids == ("c1",)


def test_two_tools_of_one_name_are_refused_when_the_agent_is_made() -> None:
    with pytest.raises(ValueError, match="look"):
        LLMAgent(name="a", instruction="", tools=(tool("look"), tool("look")))


async def test_cancel_between_tools_and_model_makes_no_further_call() -> None:
    cancel = CancelToken()

    async def look(arguments: Any, context: Any) -> Any:
        cancel.cancel(CancelReason.USER)
        return await tool("look").function(arguments, context)

    store = MemorySessionStore()
    model = ScriptedModel(turn(call("c1", "look", {})))
    emitted = await collect(memory_runner(model, tools=(tool("look", look),), store=store), request(), cancel)
    assert len(model.requests) == 1
    assert every_call_has_one_result(store.stored(owner_id=1, thread_id="t"))
    assert isinstance(end_of(emitted), RunFinished)


async def test_a_cancelled_call_of_a_tool_leaves_a_history_that_goes_on() -> None:
    store, reached, cancel = MemorySessionStore(), asyncio.Event(), CancelToken()
    model = ScriptedModel(
        turn(text("Calling"), call("c1", "look", '{"q": "ab'), WaitFor(asyncio.Event(), reached)), turn(text("Fine."))
    )
    runner = memory_runner(model, tools=(tool("look"),), store=store)
    running = asyncio.create_task(collect(runner, request(), cancel))
    await soon(reached)
    cancel.cancel(CancelReason.USER)
    emitted = await running
    assert [r.status for r in of(emitted, ToolReturned)] == [ToolStatus.CANCELLED]
    await collect(runner, request("Go on", run_id="r2"))
    messages = model.requests[1].messages
    assert [m.role.value for m in messages] == ["system", "user", "assistant", "tool", "user"]
    assert messages[2].tool_calls[0].arguments == '{"q": "ab"}'


# Hooks (spec 1.8)


async def test_a_before_model_hook_may_answer_and_the_model_is_not_asked() -> None:
    async def hook(invocation: Invocation, request: ModelRequest) -> ModelRequest | str | None:
        return "From the hook."

    model = ScriptedModel()
    emitted = await collect(memory_runner(model, hooks=Hooks(before_model=(hook,))), request())
    assert texts(emitted) == ["From the hook."] and model.requests == []


async def test_before_model_hooks_change_the_request_one_after_the_other_the_runners_first() -> None:
    def add(word: str) -> Any:
        async def hook(invocation: Invocation, request: ModelRequest) -> ModelRequest | str | None:
            extra = Message(role=Role.USER, name=word)
            return ModelRequest(messages=(*request.messages, extra), tools=request.tools)

        return hook

    model = ScriptedModel(turn(text("ok")))
    agent = LLMAgent(name="assistant", instruction="x", hooks=Hooks(before_model=(add("agent"),)))
    await collect(memory_runner(model, agent=agent, hooks=Hooks(before_model=(add("runner"),))), request())
    assert [m.name for m in model.requests[0].messages[-2:]] == ["runner", "agent"]


async def test_an_after_model_hook_replaces_the_answer_and_the_first_result_ends_the_chain() -> None:
    async def replace(invocation: Invocation, segments: Any) -> Any:
        return (AssistantMessage(id="x", response_id="x", text="replaced"),)

    async def never(invocation: Invocation, segments: Any) -> Any:
        raise AssertionError

    model = ScriptedModel(turn(text("original")))
    hooks = Hooks(after_model=(replace, never))
    assert texts(await collect(memory_runner(model, hooks=hooks), request())) == ["replaced"]


async def test_agent_hooks_may_answer_instead_and_append() -> None:
    async def before(invocation: Invocation) -> str | None:
        return "Instead."

    async def after(invocation: Invocation) -> str | None:
        return "And more."

    hooks = Hooks(before_agent=(before,), after_agent=(after,))
    emitted = await collect(memory_runner(ScriptedModel(), hooks=hooks), request())
    assert texts(emitted) == ["Instead.", "And more."]


async def test_a_model_hook_that_raises_fails_the_run() -> None:
    async def broken(invocation: Invocation, request: ModelRequest) -> ModelRequest | str | None:
        raise ModelError("hook says no")

    end = end_of(await collect(memory_runner(ScriptedModel(), hooks=Hooks(before_model=(broken,))), request()))
    assert isinstance(end, RunFailed) and end.message == "hook says no"


async def test_an_event_hook_may_replace_an_event_before_it_is_stored() -> None:
    async def shout(invocation: Invocation, event: Any) -> Any:
        if isinstance(event, AssistantMessage):
            return AssistantMessage(id=event.id, response_id=event.response_id, text=event.text.upper())
        return None

    agent = LLMAgent(name="assistant", instruction="x", hooks=Hooks(on_event=(shout,)))
    assert texts(await collect(memory_runner(ScriptedModel(turn(text("hey"))), agent=agent), request())) == ["HEY"]


async def test_tool_hooks_change_arguments_replace_results_and_may_answer_instead() -> None:
    async def before(invocation: Invocation, call: ToolCall, arguments: Any) -> Any:
        return {**arguments, "extra": 1}

    async def after(invocation: Invocation, call: ToolCall, result: Any) -> Any:
        return type(result)(content=result.content + "!", status=result.status)

    model = ScriptedModel(turn(call("c1", "look", {})), turn(text("ok")))
    hooks = Hooks(before_tool=(before,), after_tool=(after,))
    emitted = await collect(memory_runner(model, tools=(tool("look"),), hooks=hooks), request())
    assert of(emitted, ToolReturned)[0].content == "look: {'extra': 1}!"
