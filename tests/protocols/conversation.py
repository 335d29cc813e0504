"""Short ways to write down what happens in a run."""

from datetime import UTC, datetime
from typing import Any

from agents.protocols.agui.encode import RunEncoder
from agents.runtime.events import (
    AssistantMessage,
    Emitted,
    Event,
    Origin,
    Outcome,
    RunFinished,
    RunStarted,
    Stored,
    ToolReturned,
    ToolStatus,
    UserMessage,
)
from agents.runtime.model import FinishReason, TextPart, ToolCall, Usage

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ORIGIN = Origin(run_id="r1", invocation_id="i1", author="assistant")
STARTED = RunStarted(agent="assistant", model="scripted")
FINISHED = RunFinished(outcome=Outcome.SUCCESS, usage=Usage(prompt=10, cached=4, completion=5, reasoning=2))
CANCELLED = RunFinished(outcome=Outcome.CANCELLED)


def asked(text: str, message_id: str = "u1") -> UserMessage:
    return UserMessage(id=message_id, parts=(TextPart(text=text),))


def answered(message_id: str, text: str = "", **more: Any) -> AssistantMessage:
    more.setdefault("response_id", message_id.split(":")[0])
    return AssistantMessage(id=message_id, text=text, **more)


def stopped(message_id: str, text: str, **more: Any) -> AssistantMessage:
    return answered(message_id, text, finish_reason=FinishReason.CANCELLED, **more)


def call(call_id: str, name: str = "read", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def returned(call_id: str, content: str = "done", **more: Any) -> ToolReturned:
    more.setdefault("id", f"t-{call_id}")
    more.setdefault("name", "read")
    return ToolReturned(call_id=call_id, content=content, **more)


def lost(call_id: str) -> ToolReturned:
    return returned(call_id, "The server restarted.", status=ToolStatus.LOST)


def emit(event: Event, *, origin: Origin = ORIGIN) -> Emitted:
    return Emitted(event, None, origin, AT)


def encode(*events: Event, encoder: RunEncoder | None = None) -> list[bytes]:
    encoder = encoder or RunEncoder(thread_id="th", run_id="r1")
    return [data for event in events for _, data in encoder.encode(emit(event))]


def stored(*records: Any, run_id: str = "r1", first: int = 1) -> list[Stored]:
    origin = Origin(run_id=run_id, invocation_id="i1", author="assistant")
    return [
        Stored(position=n, fork=0, id=f"e{n}", at=AT, origin=origin, record=record)
        for n, record in enumerate(records, first)
    ]
