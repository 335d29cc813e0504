"""What a run does about its context: summaries between its steps and before a call, compaction, preloads, jobs."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from agents.runtime.context.assemble import assemble
from agents.runtime.context.digests import request_sha256
from agents.runtime.context.injection import Block
from agents.runtime.context.window import Window
from agents.runtime.errors import ModelUnavailable
from agents.runtime.events import (
    AssistantMessage,
    ContextCompacted,
    Emitted,
    Preloaded,
    Summarising,
    ToolReturned,
    WindowUsed,
)
from agents.runtime.invocation import Invocation
from agents.runtime.llm import LLMAgent
from agents.runtime.memorystores import MemorySessionStore
from agents.runtime.model import FinishReason, ModelInfo, Role
from agents.runtime.policy import ANALYST, ContextPolicy
from agents.runtime.preparing import outgrown
from agents.runtime.session import Action, CancelReason, CancelToken
from agents.runtime.summary.summarizer import ModelSummarizer
from agents.runtime.testing import ScriptedModel, WaitFor, call, collect, finish, memory_runner, text, turn, usage
from agents.runtime.tokens import DEFAULT_RATES
from agents.runtime.tools import ToolContext, ToolResult
from tests.runtime.conversations import FRAME, Chat, view
from tests.runtime.measuring import Remembering, measured
from tests.runtime.samples import end_of, of, request, texts, tool

INFO = ModelInfo(name="small", provider="testing", window_tokens=8_192)
WORDS = "The harbour has forty moorings and the club pays nine hundred crowns for each of them every year. "
ZH_WORDS = "港口有四十个泊位，俱乐部每年为每个泊位支付九百元。"
EAGER = replace(ANALYST, keep_rounds=0, summary_least=1, template="brief", fork="off")


def summarizer(model: ScriptedModel) -> ModelSummarizer:
    return ModelSummarizer(model)


def told(emitted: list[Emitted]) -> list[str]:
    return [e.state for e in of(emitted, Summarising)]


async def long_result(arguments: Any, context: ToolContext) -> ToolResult:
    return ToolResult(content=WORDS * 80)


class Talk:
    """One conversation with a small model: `say` plays turns and returns what came out."""

    def __init__(self, policy: ContextPolicy, *summaries: Any, preloads: Any = (), tools: Any = None) -> None:
        self.store = MemorySessionStore()
        self.writer = ScriptedModel(*summaries, info=replace(INFO, name="writer"))
        self.policy = policy
        self.preloads = preloads
        self.tools = [tool("look", long_result)] if tools is None else tools
        self.model = ScriptedModel()
        self.runs = 0

    async def say(self, words: str, *turns: Any, cancel: CancelToken | None = None, **more: Any) -> list[Emitted]:
        self.runs += 1
        self.model = ScriptedModel(*turns, info=INFO)
        agent = LLMAgent(
            name="assistant", instruction="Help.", tools=self.tools, policy=self.policy, preloads=self.preloads
        )
        runner = memory_runner(self.model, agent=agent, store=self.store, summarizer=summarizer(self.writer))
        if more.get("action") in (Action.RETRY, Action.CONTINUE):
            return await collect(runner, request(run_id=f"r{self.runs}", message=None, **more), cancel)
        return await collect(runner, request(words, run_id=f"r{self.runs}", **more), cancel)

    @property
    def rows(self) -> list[Any]:
        return self.store.summaries_of(self.store.session(owner_id=1, thread_id="t").id).rows


async def test_context_5_10_a_request_of_70_percent_is_summarised_before_it_is_sent() -> None:
    talk = Talk(replace(EAGER, summarise_in="background"), turn(text("They spoke of moorings.")))
    for _ in range(4):
        assert told(await talk.say(WORDS * 60, turn(text("Noted.")))) == []
    emitted = await talk.say(WORDS * 60, turn(text("Yes.")))
    assert told(emitted) == ["started", "done"]
    started, done = of(emitted, Summarising)
    assert started.tokens_before >= int(8_192 * 0.7) > done.tokens_after
    assert done.summary_id == talk.rows[0].id and done.position == talk.rows[0].boundary.position
    sent = talk.model.requests[0]
    assert "They spoke of moorings." in sent.messages[0].text + sent.messages[1].text
    assert sent.messages[-1].text.endswith(WORDS * 60)
    assert texts(emitted) == ["Yes."]


def test_context_5_10_the_share_of_the_window_is_reached_and_not_only_passed() -> None:
    chat = Chat()
    chat.ask(ZH_WORDS, run="r1")
    frame = replace(FRAME, tools=(tool("look").spec,))
    made = assemble(chat.events, frame, view("r1"))
    tools = dict(made.window_used.parts)["tools"]

    def fires(messages: int, window: int) -> bool:
        request = replace(made, tokens=messages + tools)
        return outgrown(request, ContextPolicy(), Window(tokens=window, source="model"))

    assert tools > 0
    assert fires(5_734, 8_192) and not fires(5_733, 8_192)
    assert fires(2_000, 2_500) and not fires(1_999, 2_500)  # the floor
    assert fires(1_000, 1_000) and not fires(999, 1_000)  # which is never above the window


async def test_context_5_11_without_an_advance_the_same_request_is_sent() -> None:
    talk = Talk(replace(EAGER, summarise_in="background", tailor=False), turn(text("")), turn(text("")))
    for _ in range(4):
        await talk.say(WORDS * 60, turn(text("Noted.")))
    emitted = await talk.say(WORDS * 60, turn(text("Yes.")))
    assert told(emitted) == ["started", "failed"]
    assert [m.text for m in talk.model.requests[0].messages][1:] == [
        part for _ in range(4) for part in (WORDS * 60, "Noted.")
    ] + [WORDS * 60]
    assert talk.rows == []


async def test_context_5_12_a_summarizer_that_fails_leaves_the_run_alone() -> None:
    talk = Talk(replace(EAGER, summarise_in="background"), turn(ModelUnavailable()))
    for _ in range(4):
        await talk.say(WORDS * 60, turn(text("Noted.")))
    emitted = await talk.say(WORDS * 60, turn(text("Yes.")))
    assert told(emitted) == ["started", "failed"]
    assert texts(emitted) == ["Yes."]
    assert end_of(emitted).type == "run_finished"


async def test_context_2_14_a_run_summarises_between_its_steps_and_keeps_its_question_and_last_round() -> None:
    talk = Talk(
        replace(EAGER, summary_ratio=0.3, keep_tokens=1_000, presummary_ratio=0.0, compact=False),
        turn(text("Looked at the moorings twice.")),
    )
    emitted = await talk.say(
        "How many moorings?",
        turn(call("c1", "look", {})),
        turn(call("c2", "look", {}), call("c3", "look", {})),
        turn(text("Forty.")),
    )
    assert told(emitted) == ["started", "done"]
    last = talk.model.requests[-1]
    assert "Looked at the moorings twice." in last.messages[1].text
    assert "How many moorings?" in last.messages[1].text
    kept = [c.id for m in last.messages for c in m.tool_calls]
    assert kept == ["c2", "c3"]
    assert [m.tool_call_id for m in last.messages if m.role is Role.TOOL] == ["c2", "c3"]


async def test_a_fork_is_counted_with_the_usage_of_the_call_before_it() -> None:
    sink = Remembering()
    policy = replace(EAGER, summary_ratio=0.3, keep_tokens=1_000, presummary_ratio=0.0, compact=False, fork="on")
    agent = LLMAgent(name="assistant", instruction="Help.", tools=[tool("look", long_result)], policy=policy)
    model = ScriptedModel(
        turn(call("c1", "look", {}), usage(90, 5)),
        turn(call("c2", "look", {}), usage(1_900, 5, cached=1_024)),
        turn(text("Forty.")),
        info=INFO,
    )
    writer = ScriptedModel(turn(text("They looked at 泊位.")), info=replace(INFO, name="scripted"))
    runner = memory_runner(model, agent=agent, summarizer=summarizer(writer), metrics=measured(sink))
    assert told(await collect(runner, request("How many moorings?"))) == ["started", "done"]
    assert sink.all("summary_fork_parent_prompt_tokens") == [1_900]
    assert sink.all("summary_fork_parent_cached_tokens") == [1_024]


async def test_the_first_request_of_a_run_is_not_held_up_by_a_summary_between_steps() -> None:
    talk = Talk(replace(EAGER, summary_ratio=None, presummary_ratio=0.0))
    await talk.say("One", turn(text("Noted.")))
    emitted = await talk.say("Two", turn(text("Noted.")))
    assert told(emitted) == []


async def test_context_2_12_a_job_is_asked_for_when_a_trigger_has_fired_and_not_before() -> None:
    talk = Talk(ContextPolicy(summary_ratio=0.3, keep_rounds=0, summary_least=1))
    await talk.say(WORDS, turn(text("Noted.")))
    assert talk.store.summary_jobs(owner_id=1, thread_id="t", run_id="r1") == 0
    await talk.say(WORDS * 80, turn(text(WORDS * 80)))
    assert talk.store.summary_jobs(owner_id=1, thread_id="t", run_id="r2") == 1


async def test_a_job_is_asked_for_every_50_events_of_a_long_run() -> None:
    policy = ContextPolicy(
        summary_ratio=0.5, presummary_ratio=0.0, keep_rounds=0, summary_least=1, tailor=False, compact=False
    )
    talk = Talk(policy)
    await talk.say(WORDS * 80, turn(text("Noted.")))
    assert talk.store.summary_jobs(owner_id=1, thread_id="t", run_id="r1") == 0
    steps = [turn(call(f"c{n}", "look", {})) for n in range(30)]
    await talk.say("Look thirty times.", *steps, turn(text("Done.")))
    assert talk.store.summary_jobs(owner_id=1, thread_id="t", run_id="r2") == 2  # in the middle, and at the end


async def test_what_the_window_holds_is_told_before_each_call() -> None:
    talk = Talk(ContextPolicy())
    emitted = await talk.say(ZH_WORDS, turn(call("c1", "look", {})), turn(text("Forty.")))
    first, second = of(emitted, WindowUsed)
    assert (first.window, first.source) == (8_192, "model")
    assert dict(first.parts).keys() == {"system", "tools", "history"}
    assert second.tokens == sum(tokens for tag, tokens in second.parts if tag != "dropped") > first.tokens
    assert dict(second.parts)["results"] > 1_000


async def test_a_step_of_compaction_is_stored_before_the_call_it_is_for_and_holds_afterwards() -> None:
    talk = Talk(ContextPolicy(compact_keep_requests=0, keep_rounds=0, summarise=False))
    await talk.say("Look", turn(call("c1", "look", {})), turn(text("Forty.")))
    emitted = await talk.say("Again", turn(text("Forty.")))
    (step,) = of(emitted, ContextCompacted)
    assert (step.results, step.tokens > 500) == (1, True)
    place = [type(e.event) for e in emitted]
    assert place.index(ContextCompacted) < place.index(WindowUsed) < place.index(AssistantMessage)
    compacted = next(m for m in talk.model.requests[0].messages if m.role is Role.TOOL)
    assert len(compacted.text) < 1_000
    again = await talk.say("Once more", turn(text("Forty.")))
    assert of(again, ContextCompacted) == []
    assert next(m for m in talk.model.requests[0].messages if m.role is Role.TOOL) == compacted
    original = next(
        s.record for s in talk.store.stored(owner_id=1, thread_id="t") if isinstance(s.record, ToolReturned)
    )
    assert original.content == WORDS * 80


async def test_preloads_are_asked_once_per_run_and_a_retry_shows_the_same() -> None:
    asked: list[str] = []

    async def memory(invocation: Invocation) -> Block:
        asked.append(invocation.run_id)
        return Block(kind="memory", text=f"Memory as of {invocation.run_id}: 安娜喜欢简短的回答。")

    async def nothing(invocation: Invocation) -> None:
        return None

    talk = Talk(ContextPolicy(), preloads=(memory, nothing))
    emitted = await talk.say("Look", turn(call("c1", "look", {})), turn(text("Forty.")))
    assert asked == ["r1"]
    assert len(of(emitted, Preloaded)) == 1
    first, second = talk.model.requests
    assert all("Memory as of r1" in sent.messages[1].text for sent in (first, second))
    await talk.say("", turn(text("Forty.")), action=Action.RETRY)
    assert asked == ["r1"]
    assert request_sha256(talk.model.requests[0]) == request_sha256(first)
    await talk.say("", turn(text("Forty."), finish(FinishReason.LENGTH)), action=Action.RETRY)
    assert request_sha256(talk.model.requests[0]) == request_sha256(first)
    await talk.say("", turn(text("Moorings.")), action=Action.CONTINUE)
    assert asked == ["r1"]
    assert talk.model.requests[0].messages[: len(first.messages)] == first.messages


async def test_a_run_that_is_stopped_while_it_summarises_ends_at_once() -> None:
    reached, never = asyncio.Event(), asyncio.Event()
    talk = Talk(replace(EAGER, summarise_in="background"), turn(WaitFor(never, reached), text("Never.")))
    for _ in range(4):
        await talk.say(WORDS * 60, turn(text("Noted.")))
    cancel = CancelToken()
    running = asyncio.ensure_future(talk.say(WORDS * 60, turn(text("Yes.")), cancel=cancel))
    await asyncio.wait_for(reached.wait(), 10)
    cancel.cancel(CancelReason.USER)
    emitted = await asyncio.wait_for(running, 10)
    assert told(emitted) == ["started"]
    assert end_of(emitted).type == "run_finished"
    assert talk.model.requests == [] and talk.rows == []
    assert talk.writer.closed == 1


@pytest.mark.parametrize("ratio", [0.0, 0.3])
async def test_a_summary_that_hangs_holds_a_run_once_and_a_job_makes_it_then(ratio: float) -> None:
    never = asyncio.Event()
    between = replace(EAGER, summary_ratio=0.3, keep_tokens=1_000, compact=False)
    policy = replace(between, presummary_ratio=ratio, summary_wait_s=0.05)  # 0 = between the steps
    talk = Talk(policy, turn(WaitFor(never), text("Never.")), turn(text("Late.")))
    assert told(await talk.say(WORDS * 60, turn(text("Noted.")))) == []
    steps = [turn(call(f"c{n}", "look", {})) for n in range(8)]
    async with asyncio.timeout(10):
        emitted = await talk.say("Look eight times.", *steps, turn(text("Done.")))
    assert told(emitted) == ["started", "failed"]
    assert texts(emitted)[-1] == "Done." and end_of(emitted).type == "run_finished"
    assert len(talk.writer.requests) == 1 and talk.writer.closed == 1
    assert talk.store.summary_jobs(owner_id=1, thread_id="t", run_id="r2") == 2  # at once, and at the end


async def test_a_run_waits_longer_for_a_summary_that_its_request_cannot_do_without() -> None:
    policy = replace(EAGER, summarise_in="background", tailor=False, summary_wait_s=0.01)
    slow = asyncio.Event()
    talk = Talk(policy, turn(WaitFor(slow), text("They spoke of moorings.")))
    for _ in range(4):
        await talk.say(WORDS * 60, turn(text("Noted.")))
    asyncio.get_running_loop().call_later(0.2, slow.set)  # twenty times as long as it would wait
    assert told(await talk.say(WORDS * 60, turn(text("Yes.")))) == ["started", "done"]


async def test_a_run_does_not_wait_twice_for_a_summary_that_somebody_else_makes() -> None:
    policy = replace(EAGER, summary_ratio=0.3, keep_tokens=1_000, presummary_ratio=0.0, compact=False)
    talk = Talk(replace(policy, summary_wait_s=0.6), turn(text("Not asked for.")))  # half of it waits for the other
    await talk.say("Hello", turn(text("Hello.")))
    store = talk.store.summaries_of(talk.store.session(owner_id=1, thread_id="t").id)
    steps = [turn(call(f"c{n}", "look", {})) for n in range(8)]
    async with store.hold("assistant", wait_s=1.0), asyncio.timeout(10):
        emitted = await talk.say("Look eight times.", *steps, turn(text("Done.")))
    assert told(emitted) == ["started", "skipped"]
    assert talk.writer.requests == [] and texts(emitted)[-1] == "Done."


async def test_a_refused_summary_is_not_asked_for_at_every_step() -> None:
    talk = Talk(
        replace(EAGER, summary_ratio=0.3, keep_tokens=1_000, presummary_ratio=0.0, compact=False, tailor=False),
        *[turn(text(""))] * 2,
    )
    steps = [turn(call(f"c{n}", "look", {})) for n in range(4)]
    emitted = await talk.say("Look four times.", *steps, turn(text("Done.")))
    assert told(emitted) == ["started", "failed"]
    assert texts(emitted)[-1] == "Done."


@pytest.mark.parametrize("reported", [100, 0])
async def test_what_a_call_cost_teaches_the_estimate(reported: int) -> None:
    class Learning:
        def __init__(self) -> None:
            self.learnt: list[int] = []

        def learn(self, mix: Any, prompt_tokens: int) -> None:
            self.learnt.append(prompt_tokens)

        @property
        def rates(self) -> Any:
            return DEFAULT_RATES

    learning = Learning()
    model = ScriptedModel(turn(text("a"), usage(reported, 1)), info=INFO)
    await collect(memory_runner(model, calibration=learning), request())
    assert learning.learnt == [reported]
