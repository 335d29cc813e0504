"""Tools, requests and records that several tests of this room need."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agents.runtime.events import (
    AssistantMessage,
    Emitted,
    Origin,
    Record,
    RunFailed,
    RunFinished,
    Stored,
    ToolReturned,
    UserMessage,
)
from agents.runtime.model import ToolSpec
from agents.runtime.session import RunRequest
from agents.runtime.testing import said
from agents.runtime.tools import FunctionTool, ToolContext, ToolResult, Traits

AT = datetime(2026, 1, 1, tzinfo=UTC)
TRAITS = Traits()
Q = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


def tool(
    name: str,
    function: Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolResult]] | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    traits: Traits = TRAITS,
) -> FunctionTool:
    async def echo(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=f"{name}: {dict(arguments)}")

    return FunctionTool(
        spec=ToolSpec(name=name, description=f"The tool {name}.", parameters=parameters or {"type": "object"}),
        function=function or echo,
        traits=traits,
    )


def request(text: str = "Hello", *, run_id: str = "r1", **more: Any) -> RunRequest:
    message = said(text, id=f"u-{run_id}") if "message" not in more else more.pop("message")
    return RunRequest(owner_id=1, thread_id=more.pop("thread_id", "t"), run_id=run_id, message=message, **more)


def records(emitted: Sequence[Emitted]) -> list[Record]:
    return [e.event for e in emitted if e.position is not None]  # type: ignore[misc]  # a position means a Record


def of(emitted: Sequence[Emitted], kind: type) -> list[Any]:
    return [e.event for e in emitted if isinstance(e.event, kind)]


def end_of(emitted: Sequence[Emitted]) -> RunFinished | RunFailed:
    """Return the last event, having checked that it is the only end."""
    ends = of(emitted, RunFinished) + of(emitted, RunFailed)
    assert len(ends) == 1, ends
    assert emitted[-1].event is ends[0]
    end: RunFinished | RunFailed = ends[0]
    return end


def every_call_has_one_result(history: Sequence[Stored]) -> bool:
    calls = [c.id for s in history if isinstance(s.record, AssistantMessage) for c in s.record.tool_calls]
    results = [s.record.call_id for s in history if isinstance(s.record, ToolReturned)]
    return sorted(calls) == sorted(results) and len(set(calls)) == len(calls)


def texts(emitted: Sequence[Emitted]) -> list[str]:
    return [m.text for m in of(emitted, AssistantMessage)]


def stored(position: int, record: Record, *, author: str = "", run_id: str = "r1", filter_key: str = "a") -> Stored:
    who = author or ("user" if isinstance(record, UserMessage) else "a")
    origin = Origin(run_id=run_id, invocation_id=f"i-{run_id}", author=who, branch=filter_key, filter_key=filter_key)
    return Stored(position=position, fork=0, id=f"e{position}", at=AT, origin=origin, record=record)


async def soon(event: asyncio.Event) -> None:
    """Wait for what must happen; a test that would hang fails instead."""
    await asyncio.wait_for(event.wait(), 5)
