"""A scripted model, and runs over it and the in-memory stores (memorystores.py), for tests here and elsewhere.

model = ScriptedModel(turn(reasoning("Hm."), call("c1", "lookup", {"q": "x"})), turn(text("It is ", "42.")))
runner = memory_runner(model, tools=(lookup,))
emitted = await collect(runner, RunRequest(owner_id=1, thread_id="t", run_id="r", message=said("What is it?")))
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Any

from agents.runtime.code import Workspace
from agents.runtime.context.window import GUESS, resolve
from agents.runtime.events import Emitted, UserMessage
from agents.runtime.invocation import NO_HOOKS, Agent, Hooks, Limits, Services
from agents.runtime.llm import LLMAgent
from agents.runtime.memory.memories import MemoryStore
from agents.runtime.memoryknowledge import MemoryKnowledge
from agents.runtime.memoryrecall import MemoryRecall
from agents.runtime.memorystores import Clock, Ids, MemoryArtifactStore, MemorySessionStore
from agents.runtime.metrics import NO_METRICS, Metrics
from agents.runtime.model import (
    Chunk,
    FinishChunk,
    FinishReason,
    ModelInfo,
    ModelRequest,
    ReasoningChunk,
    TextChunk,
    TextPart,
    ToolCallChunk,
    Usage,
    UsageChunk,
)
from agents.runtime.recall import Recall
from agents.runtime.runner import Runner
from agents.runtime.session import (
    CancelToken,
    OpenRun,
    RunRequest,
)
from agents.runtime.skills.memoryskills import MemorySkills
from agents.runtime.summary.asking import Summarizer
from agents.runtime.tokens import Calibration, Uncalibrated
from agents.runtime.tools import PermissionPolicy, Tool

LIMITS = Limits()
WAIT_S = 10.0  # a script that waits longer than this is a broken test


@dataclass(frozen=True, slots=True)
class WaitFor:
    """The stream stands still until the event is set; `reached` tells the test that it got here."""

    event: asyncio.Event
    reached: asyncio.Event | None = None


@dataclass(frozen=True, slots=True)
class Do:
    """Something that happens in the middle of the stream."""

    action: Callable[[], object]


Step = Chunk | BaseException | WaitFor | Do
Turn = Sequence[Step] | Callable[[ModelRequest], Sequence[Step]]


def text(*pieces: str) -> list[Step]:
    return [TextChunk(piece) for piece in pieces]


def reasoning(*pieces: str) -> list[Step]:
    return [ReasoningChunk(piece) for piece in pieces]


def call(call_id: str, name: str, arguments: Mapping[str, Any] | str, *, index: int = 0, pieces: int = 1) -> list[Step]:
    """Return the fragments of one tool call; a string is sent as it is, cut into `pieces`."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    size = max(1, -(-len(raw) // pieces))
    parts = [raw[i : i + size] for i in range(0, len(raw), size)] or [""]
    first: Step = ToolCallChunk(index=index, id=call_id, name=name, arguments=parts[0])
    return [first, *(ToolCallChunk(index=index, id=call_id, arguments=part) for part in parts[1:])]


def usage(prompt: int = 0, completion: int = 0, *, cached: int = 0, reasoning: int = 0) -> list[Step]:
    return [UsageChunk(Usage(prompt=prompt, cached=cached, completion=completion, reasoning=reasoning))]


def finish(reason: FinishReason) -> list[Step]:
    return [FinishChunk(reason)]


def turn(*steps: Iterable[Step] | Step) -> list[Step]:
    """Return one answer of the model, flat."""
    out: list[Step] = []
    for step in steps:
        if isinstance(step, Iterable):
            out.extend(step)
        else:
            out.append(step)
    return out


class ScriptedModel:
    """A Model that plays its turns in order, one per call.

    A turn without a finish gets the fitting one; one that ends in an error gets none. `requests`: what was asked.
    `closed`: how many streams were closed before their end. Fails the test when there are more calls than turns.
    """

    def __init__(self, *turns: Turn, info: ModelInfo | None = None, repeat_last: bool = False) -> None:
        self.turns = list(turns)
        self.requests: list[ModelRequest] = []
        self.closed = 0
        self.repeat_last = repeat_last
        self._info = info or ModelInfo(name="scripted", provider="testing", window_tokens=32_768)

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        self.requests.append(request)
        position = len(self.requests) - 1
        if self.repeat_last:
            position = min(position, len(self.turns) - 1)
        if position >= len(self.turns):
            raise AssertionError(f"the script has {len(self.turns)} turns, this is call {position + 1}")
        chosen = self.turns[position]
        steps = chosen(request) if callable(chosen) else chosen
        complete = False
        try:
            async for chunk in _play(steps):
                yield chunk
            complete = True
        finally:
            self.closed += not complete


async def _play(steps: Sequence[Step]) -> AsyncIterator[Chunk]:
    finished = calls = False
    for step in steps:
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, Do):
            step.action()
        elif isinstance(step, WaitFor):
            if step.reached is not None:
                step.reached.set()
            await asyncio.wait_for(step.event.wait(), WAIT_S)
        else:
            finished = finished or isinstance(step, FinishChunk)
            calls = calls or isinstance(step, ToolCallChunk)
            yield step
    if not finished:
        yield FinishChunk(FinishReason.TOOL_CALLS if calls else FinishReason.STOP)


def said(words: str, *, id: str = "u1", **more: Any) -> UserMessage:
    """Return a user message of plain text."""
    return UserMessage(id=id, parts=(TextPart(text=words),), **more)


@dataclass(slots=True, kw_only=True)
class Around:
    """What stands around a run of `memory_runner`, with what it has unless a test says otherwise.

    knowledge: narrowed to what each run may use. recall: None = that of the store. summarizer: None = nobody writes
    summaries. memories: None = nothing is remembered. skills: the library, of which each run gets a snapshot.
    workspace: where code runs, the same for all runs.
    """

    clock: Clock = field(default_factory=Clock)
    ids: Ids | None = None
    hooks: Hooks = NO_HOOKS
    permission: PermissionPolicy | None = None
    metrics: Metrics = NO_METRICS
    knowledge: MemoryKnowledge = field(default_factory=MemoryKnowledge)
    recall: Recall | None = None
    summarizer: Summarizer | None = None
    calibration: Calibration = field(default_factory=Uncalibrated)
    memories: MemoryStore | None = None
    skills: MemorySkills | None = None
    workspace: Workspace | None = None
    zone: tzinfo = UTC


def memory_runner(
    model: Any,
    *,
    tools: Sequence[Tool] = (),
    agent: Agent | None = None,
    store: MemorySessionStore | None = None,
    artifacts: MemoryArtifactStore | None = None,
    limits: Limits = LIMITS,
    **more: Any,
) -> Runner:
    """Return a Runner over in-memory stores with one agent, "assistant". more: fields of Around."""
    around = Around(**more)
    sessions = store or MemorySessionStore()
    ids = around.ids or sessions.ids
    files = artifacts or MemoryArtifactStore()
    chosen = agent or LLMAgent(name="assistant", instruction="You are helpful.", tools=tools)

    def services(request: RunRequest, opened: OpenRun) -> Services:
        return Services(
            model=model,
            artifacts=files,
            ledger=opened.ledger,
            now=around.clock.now,
            new_id=ids,
            monotonic=around.clock.monotonic,
            knowledge=around.knowledge.narrowed(opened.sources),
            recall=around.recall or MemoryRecall.of_run(sessions, opened),
            memories=around.memories,
            workspace=around.workspace,
            skills=around.skills.snapshot() if around.skills is not None else None,
            zone=around.zone,
            metrics=around.metrics.of_run(opened.session.id, request.run_id),
            summarizer=around.summarizer,
            calibration=around.calibration,
            summaries=sessions.summaries_of(opened.session.id),
            window=lambda: resolve(model.info.name, model=model.info.window_tokens) if model is not None else GUESS,
        )

    return Runner(
        agents={chosen.name: chosen},
        default_agent=chosen.name,
        sessions=sessions,
        services=services,
        limits=limits,
        now=around.clock.now,
        new_id=ids,
        permission=around.permission,
        hooks=around.hooks,
        metrics=around.metrics,
    )


async def collect(runner: Runner, request: RunRequest, cancel: CancelToken | None = None) -> list[Emitted]:
    """Open the run and return everything it emits."""
    opened = await runner.open(request)
    return [emitted async for emitted in runner.run(opened, cancel or CancelToken())]
