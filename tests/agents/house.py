"""A Live over the real stores with a scripted model, and a sink that remembers: for tests of the live path."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from time import monotonic
from typing import Any
from uuid import uuid4

from agents.live import registry
from agents.live.registry import Live, Started
from agents.runtime.events import UserMessage
from agents.runtime.invocation import Limits, Services
from agents.runtime.llm import LLMAgent
from agents.runtime.memorystores import MemoryArtifactStore
from agents.runtime.model import Model, TextPart
from agents.runtime.runner import Runner
from agents.runtime.session import OpenRun, RunRequest
from agents.runtime.testing import WaitFor
from agents.runtime.tools import FunctionTool, ToolContext, ToolResult, ToolSpec
from agents.stores.sessions import PgSessionStore
from agents.wiring import Wiring

PATIENCE_S = 15.0
REDIS_URL = os.environ["REDIS_URL"]


async def as_it_is(request: RunRequest) -> RunRequest:
    return request


def wiring(model: Model, *, tools: Any = (), agent: Any = None, redis_url: str = REDIS_URL, most: int = 50) -> Wiring:
    """Return a wiring whose one agent, "assistant", uses this model."""
    chosen = agent or LLMAgent(name="assistant", instruction="You are helpful.", tools=tools)

    def services(request: RunRequest, opened: OpenRun) -> Services:
        return Services(
            model=model,
            artifacts=MemoryArtifactStore(),
            ledger=opened.ledger,
            now=lambda: datetime.now(UTC),
            new_id=lambda: uuid4().hex,
            monotonic=monotonic,
        )

    runner = Runner(
        agents={chosen.name: chosen},
        default_agent=chosen.name,
        sessions=PgSessionStore(runs_per_owner=most),
        services=services,
        limits=Limits(),
        now=lambda: datetime.now(UTC),
        new_id=lambda: uuid4().hex,
    )
    return Wiring(runner=runner, redis_url=redis_url, runs_per_owner=most, prepare=as_it_is)


@asynccontextmanager
async def house(model: Model, **more: Any) -> AsyncIterator[Live]:
    """Run a Live for the time of the block."""
    live = registry.install(Live(wiring(model, **more)))
    try:
        yield live
    finally:
        await live.close()


@asynccontextmanager
async def two_processes(model: Model, **more: Any) -> AsyncIterator[tuple[Live, Live]]:
    """Run two Lives that share nothing but the database and the log, as two processes would."""
    first, second = Live(wiring(model, **more)), Live(wiring(model, **more))
    first.begin()
    second.begin()
    try:
        yield first, second
    finally:
        await first.close()
        await second.close()


def ask(owner_id: int, words: str = "Hello?", *, thread: str = "t", run: str = "", **more: Any) -> RunRequest:
    run = run or f"r-{uuid4().hex[:8]}"
    message = UserMessage(id=f"u-{run}", parts=(TextPart(text=words),))
    return RunRequest(owner_id=owner_id, thread_id=thread, run_id=run, message=message, **more)


def said(words: str, name: str) -> UserMessage:
    return UserMessage(id=name, parts=(TextPart(text=words),))


class Gate:
    """Where a scripted model stands still: `reached` is set there, `go` lets it on."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.reached = asyncio.Event()
        self.step = WaitFor(self.go, self.reached)


def slow_tool(gate: Gate) -> FunctionTool:
    """A tool, "slow", that stands still at the gate."""

    async def slow(arguments: Any, context: ToolContext) -> ToolResult:
        gate.reached.set()
        await asyncio.wait_for(gate.go.wait(), PATIENCE_S)
        return ToolResult(content="done")

    return FunctionTool(spec=ToolSpec(name="slow", description="Waits."), function=slow)


async def until(true: Callable[[], Any], what: str = "") -> None:
    """Wait until something becomes true; for what nobody announces."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110  # no event says so
            await asyncio.sleep(0.005)


class Ear:
    """A sink that takes everything, unless it is stopped; `stop` makes it a client that does not read."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.resyncs: list[tuple[str, str]] = []
        self.started: list[tuple[str, str]] = []
        self.waits = 0
        self._reading = asyncio.Event()
        self._reading.set()

    def stop(self) -> None:
        self._reading.clear()

    def go_on(self) -> None:
        self._reading.set()

    def try_send(self, *frames: bytes) -> bool:
        if not self._reading.is_set():
            return False
        self.frames += [json.loads(data) for data in frames]
        return True

    async def send(self, data: bytes) -> None:
        self.waits += 1
        await self._reading.wait()
        self.frames.append(json.loads(data))

    def resync(self, thread_id: str, run_id: str) -> None:
        self.resyncs.append((thread_id, run_id))

    def run_started(self, thread_id: str, run_id: str) -> None:
        self.started.append((thread_id, run_id))

    def of(self, run_id: str) -> list[dict[str, Any]]:
        return [f for f in self.frames if f["metadata"]["workbench"]["runId"] == run_id]

    def seqs(self, run_id: str) -> list[int]:
        return [f["metadata"]["workbench"]["seq"] for f in self.of(run_id)]

    def text(self, run_id: str) -> str:
        return "".join(f["delta"] for f in self.of(run_id) if f["type"] == "TEXT_MESSAGE_CONTENT")

    def ends(self, run_id: str) -> list[str]:
        return [f["type"] for f in self.of(run_id) if f["type"] in ("RUN_FINISHED", "RUN_ERROR")]

    async def end(self, run_id: str) -> dict[str, Any]:
        """Wait for the run's terminal event and return it."""
        await until(lambda: self.ends(run_id), f"end of {run_id}")
        return self.of(run_id)[-1]


async def follow(live: Live, started: Started, owner_id: int, **more: Any) -> Ear:
    ear = Ear()
    await live.attach(
        owner_id=owner_id, thread_id=started.thread_id, sink=ear, run_id=started.run_id, **({"after": 0} | more)
    )
    return ear
