import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from agents.runtime.errors import LimitExceeded, ToolFailed
from agents.runtime.events import (
    RunFailed,
    RunFinished,
    StateChanged,
    ToolProgress,
    ToolReturned,
    ToolStarted,
    ToolStatus,
)
from agents.runtime.invocation import Limits
from agents.runtime.memorystores import MemoryArtifactStore, MemorySessionStore
from agents.runtime.session import CancelReason, CancelToken
from agents.runtime.testing import ScriptedModel, call, collect, memory_runner, text, turn
from agents.runtime.tools import (
    Family,
    FunctionTool,
    Permission,
    Tool,
    ToolContext,
    ToolResult,
    Traits,
    Verdict,
)
from tests.runtime.samples import Q, end_of, every_call_has_one_result, of, request, soon, tool

SAFE = Traits(concurrency_safe=True, read_only=True)


def two_calls(name: str = "look") -> ScriptedModel:
    return ScriptedModel(turn(call("c1", name, {"n": 1}), call("c2", name, {"n": 2})), turn(text("ok")))


class Asking(FunctionTool):
    """A tool with a word of its own about permission."""

    verdict = Verdict.ALLOW

    def permission(self, arguments: Mapping[str, Any], context: ToolContext) -> Permission:
        return Permission(verdict=self.verdict, reason="not today")


async def hang(running: asyncio.Event, stopped: asyncio.Event) -> ToolResult:
    """Say that the tool runs, and when it is stopped; it ends no other way."""
    running.set()
    try:
        await asyncio.Event().wait()
    finally:
        stopped.set()
    raise AssertionError


async def test_2_1_serial_calls_run_in_call_order_one_after_the_other() -> None:
    log: list[str] = []

    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        log.append(f"begin {context.call_id}")
        await asyncio.sleep(0)
        log.append(f"end {context.call_id}")
        return ToolResult(content=context.call_id)

    emitted = await collect(memory_runner(two_calls(), tools=(tool("look", look),)), request())
    assert log == ["begin c1", "end c1", "begin c2", "end c2"]
    assert [r.call_id for r in of(emitted, ToolReturned)] == ["c1", "c2"]


async def test_2_1_parallel_results_are_in_call_order_even_if_they_finish_reversed() -> None:
    second_done = asyncio.Event()
    finished: list[str] = []

    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        if context.call_id == "c1":
            await soon(second_done)
        finished.append(context.call_id)
        second_done.set()
        return ToolResult(content=context.call_id)

    model = two_calls()
    runner = memory_runner(model, tools=(tool("look", look, traits=SAFE),), limits=Limits(parallel_tools=4))
    emitted = await collect(runner, request())
    assert finished == ["c2", "c1"]
    assert [r.call_id for r in of(emitted, ToolReturned)] == ["c1", "c2"]
    assert [m.text for m in model.requests[1].messages[-2:]] == ["c1", "c2"]


@pytest.mark.parametrize(
    ("traits", "limit", "calls", "most"),
    [
        (SAFE, 2, 5, 2),
        (SAFE, 8, 5, 5),
        (Traits(concurrency_safe=True, group="g"), 8, 3, 1),
        (Traits(concurrency_safe=False), 8, 3, 1),
    ],
    ids=["overall limit", "no limit reached", "one group", "not safe beside others"],
)
async def test_3_11_no_more_calls_at_once_than_allowed(traits: Traits, limit: int, calls: int, most: int) -> None:
    running = peak = 0

    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        for _ in range(10):
            await asyncio.sleep(0)
        running -= 1
        return ToolResult(content="x")

    model = ScriptedModel(turn(*[call(f"c{n}", "look", {}) for n in range(calls)]), turn(text("ok")))
    runner = memory_runner(model, tools=(tool("look", look, traits=traits),), limits=Limits(parallel_tools=limit))
    emitted = await collect(runner, request())
    assert peak == most
    assert len(of(emitted, ToolReturned)) == calls


async def test_2_4_a_tool_that_raises_becomes_an_error_the_model_reads(caplog: pytest.LogCaptureFixture) -> None:
    async def failing(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        if arguments["n"] == 1:
            raise ToolFailed("No such page.")
        raise RuntimeError("password=hunter2")

    model = two_calls()
    emitted = await collect(memory_runner(model, tools=(tool("look", failing),)), request())
    known, unknown = of(emitted, ToolReturned)
    assert (known.content, known.status) == ("Error: No such page.", ToolStatus.ERROR)
    assert unknown.status is ToolStatus.ERROR and "hunter2" not in unknown.content
    assert "tool look failed" in caplog.text
    assert len(model.requests) == 2 and isinstance(end_of(emitted), RunFinished)


async def test_2_4_a_tool_that_stops_the_run_cancels_its_siblings() -> None:
    sibling_running, stopped = asyncio.Event(), asyncio.Event()

    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        if context.call_id == "c2":
            await soon(sibling_running)
            raise LimitExceeded("Out of budget.")
        return await hang(sibling_running, stopped)

    store = MemorySessionStore()
    runner = memory_runner(
        two_calls(), tools=(tool("look", look, traits=SAFE),), limits=Limits(parallel_tools=2), store=store
    )
    end = end_of(await collect(runner, request()))
    assert isinstance(end, RunFailed) and end.message == "Out of budget."
    assert stopped.is_set()
    assert every_call_has_one_result(store.stored(owner_id=1, thread_id="t"))


async def test_2_4_a_result_that_ends_the_run_is_the_last_thing_and_the_run_succeeds() -> None:
    async def done(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content="enough", end_run=True)

    model = ScriptedModel(turn(call("c1", "done", {})))
    emitted = await collect(memory_runner(model, tools=(tool("done", done),)), request())
    end = end_of(emitted)
    assert isinstance(end, RunFinished) and end.pending_call_ids == ()
    assert len(model.requests) == 1


@pytest.mark.parametrize("who", ["tool", "policy"])
async def test_3_1_a_denied_call_is_not_made_the_model_sees_it_and_no_state_changes(who: str) -> None:
    async def body(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        raise AssertionError("ran")

    class Denied(Asking):
        verdict = Verdict.DENY if who == "tool" else Verdict.ALLOW

    def policy(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Permission:
        return Permission(verdict=Verdict.DENY if who == "policy" else Verdict.ALLOW, reason="not today")

    denied = Denied(spec=tool("look").spec, function=body)
    model = ScriptedModel(turn(call("c1", "look", {})), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(denied,), permission=policy), request())
    (result,) = of(emitted, ToolReturned)
    assert result.status is ToolStatus.DENIED
    assert json.loads(result.content) == {"status": "denied", "tool": "look", "reason": "not today"}
    assert not of(emitted, StateChanged) and not of(emitted, ToolStarted)
    assert model.requests[1].messages[-1].text == result.content


async def test_3_2_a_call_that_needs_a_person_is_refused_with_a_clear_result_for_now() -> None:
    async def body(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        raise AssertionError("ran")

    def policy(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Permission:
        return Permission(verdict=Verdict.ASK)

    model = ScriptedModel(turn(call("c1", "look", {})), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("look", body),), permission=policy), request())
    (result,) = of(emitted, ToolReturned)
    assert result.status is ToolStatus.APPROVAL_REQUIRED
    assert "approval of a person" in json.loads(result.content)["reason"]


async def test_3_5_progress_is_shown_while_a_tool_works_and_only_the_result_is_history() -> None:
    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        context.progress("half", 1, 2)
        await asyncio.sleep(0)
        return ToolResult(content="whole")

    model = ScriptedModel(turn(call("c1", "look", {})), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("look", look),)), request())
    kinds = [type(e.event) for e in emitted if isinstance(e.event, ToolStarted | ToolProgress | ToolReturned)]
    assert kinds == [ToolStarted, ToolProgress, ToolReturned]
    assert of(emitted, ToolProgress) == [ToolProgress("c1", "half", 1, 2)]
    assert [m.text for m in model.requests[1].messages if m.role.value == "tool"] == ["whole"]


async def test_3_10_arguments_that_are_no_json_come_back_as_an_error_and_sloppy_ones_are_repaired() -> None:
    model = ScriptedModel(turn(call("c1", "look", "no json"), call("c2", "look", "{'q': 'x',}")), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("look", parameters=Q),)), request())
    bad, good = of(emitted, ToolReturned)
    assert bad.status is ToolStatus.ERROR and "JSON object" in bad.content
    assert good.content == "look: {'q': 'x'}"
    sent = model.requests[1].messages[2].tool_calls
    assert all(isinstance(json.loads(c.arguments), dict) for c in sent)


async def test_arguments_that_do_not_fit_the_schema_are_explained_to_the_model() -> None:
    model = ScriptedModel(turn(call("c1", "look", {"q": 3}), call("c2", "look", {})), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("look", parameters=Q),)), request())
    wrong, missing = of(emitted, ToolReturned)
    assert '"q" must be string, not integer.' in wrong.content
    assert '"q" is required.' in missing.content


async def test_3_12_a_result_with_markup_and_other_scripts_arrives_as_it_is() -> None:
    words = '<b>&amp;</b> "quoted" 你好 🙂'

    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=words, data={"html": words})

    model = ScriptedModel(turn(call("c1", "look", {})), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("look", look),)), request())
    assert of(emitted, ToolReturned)[0].content == words
    assert model.requests[1].messages[-1].text == words


async def test_a_tool_that_does_not_answer_in_time_is_stopped() -> None:
    stopped = asyncio.Event()

    async def slow(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return await hang(asyncio.Event(), stopped)

    model = ScriptedModel(turn(call("c1", "slow", {})), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("slow", slow, traits=Traits(timeout_s=0.02)),)), request())
    (result,) = of(emitted, ToolReturned)
    assert result.status is ToolStatus.TIMEOUT and "0.02 seconds" in result.content
    assert stopped.is_set()


async def test_a_tool_that_swallows_its_cancellation_does_not_hold_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.runtime.toolround.STOP_GRACE_S", 0.02)
    release, running = asyncio.Event(), asyncio.Event()

    async def stubborn(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        running.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return ToolResult(content="at last")

    cancel, store = CancelToken(), MemorySessionStore()
    model = ScriptedModel(turn(call("c1", "stubborn", {})))
    runner = memory_runner(model, tools=(tool("stubborn", stubborn),), store=store)
    run = asyncio.create_task(collect(runner, request(), cancel))
    await soon(running)
    cancel.cancel(CancelReason.USER)
    emitted = await asyncio.wait_for(run, 5)
    assert [r.status for r in of(emitted, ToolReturned)] == [ToolStatus.CANCELLED]
    release.set()


async def test_one_call_is_stopped_and_the_run_goes_on_without_it() -> None:
    running, stopped = asyncio.Event(), asyncio.Event()

    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        if context.call_id == "c3":
            return ToolResult(content="third")
        return await hang(running, stopped)

    cancel, store = CancelToken(), MemorySessionStore()
    calls = [call(f"c{n}", "look", {}) for n in (1, 2, 3)]
    model = ScriptedModel(turn(*calls), turn(text("Without them.")))
    run = asyncio.create_task(
        collect(memory_runner(model, tools=(tool("look", look),), store=store), request(), cancel)
    )
    await soon(running)
    assert cancel.cancel_call("c2")  # it waits for its turn
    assert not cancel.cancel_call("c2") and not cancel.cancel_call("unknown")
    assert cancel.cancel_call("c1")
    emitted = await run
    assert stopped.is_set()
    assert [(r.call_id, r.status, r.content) for r in of(emitted, ToolReturned)] == [
        ("c1", ToolStatus.CANCELLED, "cancelled: the person stopped this step"),
        ("c2", ToolStatus.CANCELLED, "cancelled: the person stopped this step"),
        ("c3", ToolStatus.OK, "third"),
    ]
    assert isinstance(end_of(emitted), RunFinished)
    assert not cancel.cancel_call("c1")


async def test_cancel_stops_running_tools_at_once_and_every_call_gets_its_result() -> None:
    running, stopped = asyncio.Event(), asyncio.Event()

    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        if context.call_id == "c1":
            return ToolResult(content="quick", state={"seen": 1})
        return await hang(running, stopped)

    cancel, store = CancelToken(), MemorySessionStore()
    calls = [call(f"c{n}", "look", {}) for n in (1, 2, 3)]
    runner = memory_runner(ScriptedModel(turn(*calls)), tools=(tool("look", look),), store=store)
    run = asyncio.create_task(collect(runner, request(), cancel))
    await soon(running)
    cancel.cancel(CancelReason.USER)
    emitted = await run
    assert stopped.is_set()
    assert [(r.call_id, r.status) for r in of(emitted, ToolReturned)] == [
        ("c1", ToolStatus.OK),
        ("c2", ToolStatus.CANCELLED),
        ("c3", ToolStatus.CANCELLED),
    ]
    assert of(emitted, StateChanged) == [StateChanged(delta={"seen": 1})]
    assert every_call_has_one_result(store.stored(owner_id=1, thread_id="t"))


@pytest.mark.parametrize(("read_only", "tries"), [(True, 3), (False, 1)])
async def test_only_a_read_only_tool_is_tried_again(
    read_only: bool, tries: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("agents.runtime.toolround.BACKOFF_S", 0.001)
    caplog.set_level(logging.CRITICAL)
    count = 0

    async def flaky(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        nonlocal count
        count += 1
        raise ConnectionResetError

    traits = Traits(read_only=read_only, retries=2)
    model = ScriptedModel(turn(call("c1", "flaky", {})), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("flaky", flaky, traits=traits),)), request())
    assert count == tries
    assert of(emitted, ToolReturned)[0].status is ToolStatus.ERROR


async def test_a_failed_result_is_never_tried_again() -> None:
    count = 0

    async def failing(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        nonlocal count
        count += 1
        raise ToolFailed("no")

    traits = Traits(read_only=True, retries=2)
    model = ScriptedModel(turn(call("c1", "failing", {})), turn(text("ok")))
    await collect(memory_runner(model, tools=(tool("failing", failing, traits=traits),)), request())
    assert count == 1


async def test_where_two_calls_write_one_key_the_later_call_wins_and_a_failed_one_writes_nothing() -> None:
    async def write(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        status = ToolStatus.ERROR if arguments["n"] == 3 else ToolStatus.OK
        return ToolResult(content="x", state={"n": arguments["n"], "user:last": arguments["n"]}, status=status)

    calls = [call(f"c{n}", "write", {"n": n}) for n in (1, 2, 3)]
    model = ScriptedModel(turn(*calls), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("write", write),)), request())
    assert of(emitted, StateChanged) == [StateChanged(delta={"n": 2, "user:last": 2})]


async def test_a_result_over_the_limit_is_kept_whole_as_an_artifact_and_the_model_is_told_how_to_read_on() -> None:
    whole = "\n".join(f"line {n}: {'数' * 10}" for n in range(2000))

    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=whole, summary="2000 lines")

    files = MemoryArtifactStore()
    model = ScriptedModel(turn(call("c1", "look", {})), turn(text("ok")))
    traits = Traits(family=Family.FILES)
    runner = memory_runner(model, tools=(tool("look", look, traits=traits),), artifacts=files)
    emitted = await collect(runner, request())
    (result,) = of(emitted, ToolReturned)
    assert result.artifact is not None
    assert (await files.load(result.artifact)).decode() == whole
    assert result.size_bytes == len(whole.encode()) and result.sha256 == result.artifact.sha256
    assert len(result.content.encode()) <= 16 * 1024
    assert result.content.startswith("line 0:") and result.content.endswith("数")
    assert "read_artifact" in result.content and result.artifact.uri in result.content
    assert model.requests[1].messages[-1].text == result.content
    assert files.origins[result.artifact.name, 1]["kind"] == "guard"


async def test_a_result_with_half_a_surrogate_pair_is_stored_as_far_as_it_can_be() -> None:
    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content="a\ud83d b \ud83d\ude42")

    model = ScriptedModel(turn(call("c1", "look", {})), turn(text("ok")))
    emitted = await collect(memory_runner(model, tools=(tool("look", look),)), request())
    assert of(emitted, ToolReturned)[0].content == "a\ufffd b 🙂"


async def test_progress_of_a_call_that_is_over_is_not_shown() -> None:
    first: list[ToolContext] = []

    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        first.append(context)
        first[0].progress(f"from {context.call_id}", None, None)
        await asyncio.sleep(0)
        return ToolResult(content="x")

    emitted = await collect(memory_runner(two_calls(), tools=(tool("look", look),)), request())
    assert [p.text for p in of(emitted, ToolProgress)] == ["from c1"]
