"""What a client sends over the socket and over HTTP, as ClientFrame. Pure: nothing is looked up, nothing is fetched."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from agents.protocols.agui.runinput import (
    ID_CHARS,
    Message,
    Wire,
    chosen_sources,
    identifier,
    json_object,
    parse,
    parts_of,
    says_something,
)
from agents.runtime.errors import Rejected
from agents.runtime.events import UserMessage, UserMessageKind

HISTORY_MESSAGES = 500  # records of one page of history, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFrame:
    """Start a run. input: a RunAgentInput, not yet looked at; give it to run_input."""

    input: Mapping[str, Any]
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelFrame:
    """Stop a run, or with call_id one of its tool calls."""

    thread_id: str
    run_id: str
    call_id: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachFrame:
    """Follow a thread. after: the last seq the client has of run_id (of the run that goes on if there is no run_id);
    None = it has nothing and wants the history first."""

    thread_id: str
    run_id: str | None = None
    after: int | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachFrame:
    thread_id: str
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteerFrame:
    """A message into a running run (steer) or for after it (queue)."""

    thread_id: str
    run_id: str
    message: UserMessage
    mode: Literal["steer", "queue"] = "steer"
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PingFrame:
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRequest:
    """A page of a thread's messages (HTTP only). limit: 1 to 500. before: a position; None = the newest page."""

    thread_id: str
    limit: int
    before: int | None


class RejectedFrame(Rejected):
    """A frame that could be read as far as telling which it is. what, request_id, thread_id: for the answer to it."""

    def __init__(self, error: Rejected, value: Mapping[str, Any]) -> None:
        super().__init__(error.code, error.message)
        self.what = str(value["type"])
        request_id = value.get("requestId")
        self.request_id = request_id if isinstance(request_id, str) and len(request_id) <= ID_CHARS else ""
        self.thread_id = thread_named(value)


ClientFrame = RunFrame | CancelFrame | AttachFrame | DetachFrame | SteerFrame | PingFrame


def frame(data: bytes | str) -> ClientFrame:
    """Return one WebSocket message as a frame. A bare RunAgentInput (no `type`) is a run.

    Raises Rejected, and RejectedFrame if it is known which frame it was to be.
    """
    value = json_object(data)
    kind = value.get("type")
    if kind is None:
        return RunFrame(input=value)
    if not isinstance(kind, str) or kind not in _FRAMES:
        raise Rejected("invalid_input", "Unknown frame type.")
    try:
        return parse(_FRAMES[kind], value).frame()
    except Rejected as error:
        raise RejectedFrame(error, value) from error


def cancel_request(data: bytes) -> CancelFrame:
    """Return the body of a cancel over HTTP, which is the frame without its type. Raises Rejected."""
    return parse(_Cancel, {**json_object(data), "type": "cancel"}).frame()


def history_request(data: bytes) -> HistoryRequest:
    """Return the body of a request for history. Raises Rejected."""
    asked = parse(_History, json_object(data))
    limit = max(1, min(asked.limit, HISTORY_MESSAGES))
    return HistoryRequest(thread_id=identifier(asked.thread_id, "threadId"), limit=limit, before=asked.before)


def thread_named(value: Mapping[str, Any]) -> str:
    """Return the thread that an input names, "" if it names none that can be: for answers to inputs we refuse."""
    named = value.get("threadId")
    return named if isinstance(named, str) and len(named) <= ID_CHARS else ""


class _History(Wire):
    thread_id: str
    limit: int = HISTORY_MESSAGES
    before: int | None = None


class _Frame(Wire):
    model_config = ConfigDict(extra="forbid")

    type: str
    request_id: str = Field(default="", max_length=ID_CHARS)


class _Run(_Frame):
    input: dict[str, Any]

    def frame(self) -> ClientFrame:
        return RunFrame(input=self.input, request_id=self.request_id)


class _Cancel(_Frame):
    thread_id: str
    run_id: str
    tool_call_id: str = Field(default="", max_length=ID_CHARS)

    def frame(self) -> CancelFrame:
        thread_id, run_id = identifier(self.thread_id, "threadId"), identifier(self.run_id, "runId")
        return CancelFrame(thread_id=thread_id, run_id=run_id, call_id=self.tool_call_id, request_id=self.request_id)


class _Attach(_Frame):
    thread_id: str
    run_id: str | None = None
    after: int | None = Field(default=None, ge=0, le=2**53)

    def frame(self) -> ClientFrame:
        run_id = None if self.run_id is None else identifier(self.run_id, "runId")
        thread_id = identifier(self.thread_id, "threadId")
        return AttachFrame(thread_id=thread_id, run_id=run_id, after=self.after, request_id=self.request_id)


class _Detach(_Frame):
    thread_id: str

    def frame(self) -> ClientFrame:
        return DetachFrame(thread_id=identifier(self.thread_id, "threadId"), request_id=self.request_id)


class _Steer(_Frame):
    thread_id: str
    run_id: str
    message: dict[str, Any]
    mode: Literal["steer", "queue"] = "steer"
    sources: list[Annotated[UUID, Field(strict=False)]] | None = None  # JSON has no type for ids

    def frame(self) -> ClientFrame:
        message = parse(Message, self.message)
        if message.role != "user":
            raise Rejected("unsupported_role", "Only a user message can be sent into a run.")
        parts, uploads = parts_of(message.content)
        if uploads:
            raise Rejected("invalid_input", "Upload the file first and send its reference.")
        if not says_something(parts):
            raise Rejected("invalid_input", "The message is empty.")
        kind = UserMessageKind.STEER if self.mode == "steer" else UserMessageKind.TURN
        return SteerFrame(
            thread_id=identifier(self.thread_id, "threadId"),
            run_id=identifier(self.run_id, "runId"),
            message=UserMessage(
                id=identifier(message.id, "message id"),
                parts=parts,
                kind=kind,
                sources=chosen_sources(self.sources) if self.mode == "queue" else None,
            ),
            mode=self.mode,
            request_id=self.request_id,
        )


class _Ping(_Frame):
    def frame(self) -> ClientFrame:
        return PingFrame(request_id=self.request_id)


_FRAMES: dict[str, type[_Run | _Cancel | _Attach | _Detach | _Steer | _Ping]] = {
    "run": _Run,
    "cancel": _Cancel,
    "attach": _Attach,
    "detach": _Detach,
    "steer": _Steer,
    "ping": _Ping,
}
