"""What a client sends, as RunRequest and ClientFrame. Pure: nothing is looked up, nothing is fetched.

A client's history is not trusted: only the last user message, or the answers to external calls at the end, become the
run's input. Earlier user and assistant texts are the seed of an empty session. System and developer messages, and
members we do not know, are left out.
"""

import base64
import binascii
import mimetypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from agents.runtime.errors import Rejected
from agents.runtime.events import AssistantMessage, ToolReturned, ToolStatus, UserMessage, UserMessageKind
from agents.runtime.model import FilePart, Part, TextPart, ToolSpec
from agents.runtime.planning import cap_context
from agents.runtime.session import Action, RunRequest, Upload

ID_CHARS = 128
HISTORY_MESSAGES = 500  # records of one page of history, at most
SEED_MESSAGES = 500
EXTERNAL_TOOLS = 128
JSON_DEPTH = 64
SOURCES = 200
_ID = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,128}")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HANDLE = re.compile(r"artifact://([0-9a-fA-F-]{1,64})@(\d{1,9})")
_MEDIA = ("image", "audio", "video", "document")
_NO_MESSAGE = (Action.RETRY, Action.CONTINUE)
_Model = TypeVar("_Model", bound=BaseModel)


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
        return _parse(_FRAMES[kind], value).frame()
    except Rejected as error:
        raise RejectedFrame(error, value) from error


def cancel_request(data: bytes) -> CancelFrame:
    """Return the body of a cancel over HTTP, which is the frame without its type. Raises Rejected."""
    return _parse(_Cancel, {**json_object(data), "type": "cancel"}).frame()


def history_request(data: bytes) -> HistoryRequest:
    """Return the body of a request for history. Raises Rejected."""
    asked = _parse(_History, json_object(data))
    limit = max(1, min(asked.limit, HISTORY_MESSAGES))
    return HistoryRequest(thread_id=_id(asked.thread_id, "threadId"), limit=limit, before=asked.before)


def thread_named(value: Mapping[str, Any]) -> str:
    """Return the thread that an input names, "" if it names none that can be: for answers to inputs we refuse."""
    named = value.get("threadId")
    return named if isinstance(named, str) and len(named) <= ID_CHARS else ""


def run_input(
    data: bytes | str | Mapping[str, Any], *, owner_id: int, agent: str = "", origin: str = "api"
) -> RunRequest:
    """Return a RunAgentInput as the owner's request. agent: from the address, "" = the default. Raises Rejected.

    Every id is at most 128 characters. Files come as artifact references, or as base64 data (an upload); a URL is
    refused, because it would be fetched by us.
    """
    value = json_object(data) if isinstance(data, bytes | str) else data
    wire = _parse(_Input, value)
    ours = _parse(_Ours, _member(wire.forwarded_props, "workbench") or {})
    if wire.resume:
        raise Rejected("invalid_input", "There is no open question to answer.")
    if ours.action in (Action.EDIT, Action.RETRY) and not ours.message_id:
        raise Rejected("invalid_input", f"{ours.action.value} needs forwardedProps.workbench.messageId.")
    request: dict[str, Any] = {}
    if ours.action not in _NO_MESSAGE:
        request = _turn(wire, ours.action)
    return RunRequest(
        owner_id=owner_id,
        thread_id=_id(wire.thread_id, "threadId"),
        run_id=_id(wire.run_id, "runId"),
        agent=agent,
        model=ours.model,
        action=ours.action,
        message_id=_id(ours.message_id, "messageId") if ours.message_id else "",
        external_tools=_tools(wire.tools or []),
        sources=_sources(ours.sources),
        sources_given="sources" in ours.model_fields_set,
        state=_state(wire.state),
        parent_run_id=_id(wire.parent_run_id, "parentRunId") if wire.parent_run_id else "",
        render_html=ours.render == "html",
        origin=origin,
        **request,
    )


def json_object(data: bytes | str) -> dict[str, Any]:
    """Return bytes as a JSON object. Raises Rejected."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as e:
        raise Rejected("invalid_input", "Not JSON.") from e
    if not isinstance(value, dict):
        raise Rejected("invalid_input", "Not a JSON object.")
    return value


# --- shapes: AG-UI's own leave out what they do not know, our frames refuse it


class _Wire(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", strict=True)


class _Message(_Wire):
    id: str = ""
    role: str
    content: str | list[dict[str, Any]] | None = None
    tool_call_id: str = ""
    error: str | None = None


class _Tool(_Wire):
    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None


class _Context(_Wire):
    description: str
    value: str


class _Input(_Wire):
    thread_id: str
    run_id: str
    parent_run_id: str | None = None
    messages: list[dict[str, Any]] = Field(default_factory=list)
    state: Any = None
    tools: list[_Tool] | None = None
    context: list[_Context] | None = None
    forwarded_props: Any = None
    resume: list[dict[str, Any]] | None = None


class _History(_Wire):
    thread_id: str
    limit: int = HISTORY_MESSAGES
    before: int | None = None


class _Ours(_Wire):
    """forwardedProps.workbench"""

    model_config = ConfigDict(strict=False)

    action: Action = Action.SEND
    message_id: str = ""
    model: str = ""
    render: Literal["text", "html"] = "text"
    sources: list[UUID] | None = None


class _Frame(_Wire):
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
        thread_id, run_id = _id(self.thread_id, "threadId"), _id(self.run_id, "runId")
        return CancelFrame(thread_id=thread_id, run_id=run_id, call_id=self.tool_call_id, request_id=self.request_id)


class _Attach(_Frame):
    thread_id: str
    run_id: str | None = None
    after: int | None = Field(default=None, ge=0, le=2**53)

    def frame(self) -> ClientFrame:
        run_id = None if self.run_id is None else _id(self.run_id, "runId")
        thread_id = _id(self.thread_id, "threadId")
        return AttachFrame(thread_id=thread_id, run_id=run_id, after=self.after, request_id=self.request_id)


class _Detach(_Frame):
    thread_id: str

    def frame(self) -> ClientFrame:
        return DetachFrame(thread_id=_id(self.thread_id, "threadId"), request_id=self.request_id)


class _Steer(_Frame):
    thread_id: str
    run_id: str
    message: dict[str, Any]
    mode: Literal["steer", "queue"] = "steer"
    sources: list[Annotated[UUID, Field(strict=False)]] | None = None  # JSON has no type for ids

    def frame(self) -> ClientFrame:
        message = _parse(_Message, self.message)
        if message.role != "user":
            raise Rejected("unsupported_role", "Only a user message can be sent into a run.")
        parts, uploads = _parts(message.content)
        if uploads:
            raise Rejected("invalid_input", "Upload the file first and send its reference.")
        if not _says_something(parts):
            raise Rejected("invalid_input", "The message is empty.")
        kind = UserMessageKind.STEER if self.mode == "steer" else UserMessageKind.TURN
        return SteerFrame(
            thread_id=_id(self.thread_id, "threadId"),
            run_id=_id(self.run_id, "runId"),
            message=UserMessage(
                id=_id(message.id, "message id"),
                parts=parts,
                kind=kind,
                sources=_sources(self.sources) if self.mode == "queue" else None,
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


# --- the turn


def _turn(wire: _Input, action: Action) -> dict[str, Any]:
    """Return the RunRequest's fields that carry the input: the last user message, or the answers at the end."""
    if not wire.messages:
        raise Rejected("invalid_input", "There are no messages.")
    last = _parse(_Message, wire.messages[-1])
    if last.role == "tool" and action is Action.SEND:
        return {"tool_results": _tool_results(wire.messages)}
    if last.role != "user":
        raise Rejected("unsupported_role", "The last message must be from the user, or a tool result.")
    parts, uploads = _parts(last.content)
    if not uploads and not _says_something(parts):
        raise Rejected("invalid_input", "The message is empty.")
    message = UserMessage(id=_id(last.id, "message id"), parts=parts, context=_context(wire.context or []))
    seed = _seed(wire.messages[-SEED_MESSAGES - 1 : -1], last.id) if action is Action.SEND else ()
    return {"message": message, "uploads": uploads, "seed": seed}


def _parts(content: str | list[dict[str, Any]] | None) -> tuple[tuple[Part, ...], tuple[Upload, ...]]:
    if content is None or content == "":
        return (), ()
    if isinstance(content, str):
        return (TextPart(text=_text(content)),), ()
    parts: list[Part] = []
    uploads: list[Upload] = []
    for value in content:
        kind = value.get("type")
        if kind == "text" and isinstance(value.get("text"), str):
            parts.append(TextPart(text=_text(value["text"])))
        elif kind in _MEDIA or kind == "binary":
            found = _file(str(kind), value)
            if isinstance(found, Upload):
                uploads.append(found)
            else:
                parts.append(found)
        # a kind of part we do not know is left out, as AG-UI asks
    return tuple(parts), tuple(uploads)


def _says_something(parts: Sequence[Part]) -> bool:
    return any(isinstance(part, FilePart) or part.text.strip() for part in parts)


def _file(media: str, value: Mapping[str, Any]) -> FilePart | Upload:
    source = value.get("source")
    if media == "binary":  # the form of AG-UI before 1.0
        source = {"type": "data", "value": value.get("data"), "mimeType": value.get("mimeType")}
    if not isinstance(source, Mapping):
        raise Rejected("invalid_input", "A file part needs a source.")
    details = value.get("metadata")
    name = _member(details, "name") or _member(details, "filename") or value.get("filename") or ""
    match source.get("type"):
        case "file":
            handle = _HANDLE.fullmatch(str(source.get("value") or source.get("file")))
            if not handle:
                raise Rejected("invalid_input", "A file reference looks like artifact://<id>@<version>.")
            return FilePart(artifact_id=handle[1], version=int(handle[2]), name="", mime="", size_bytes=0, media=media)
        case "data":
            return _upload(str(name), source)
        case "url":
            raise Rejected("invalid_input", "Files are not fetched from an address: send the file itself.")
    raise Rejected("invalid_input", "Unknown source of a file part.")


def _upload(name: str, source: Mapping[str, Any]) -> Upload:
    data, mime = source.get("value"), str(source.get("mimeType") or "")
    if not isinstance(data, str):
        raise Rejected("invalid_input", "File data must be base64 text.")
    if data.startswith("data:"):
        head, _, data = data.partition(",")
        mime = mime or head[5:].removesuffix(";base64")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as e:
        raise Rejected("invalid_input", "File data is not valid base64.") from e
    mime = mime.split(";")[0].strip().lower() or "application/octet-stream"
    return Upload(name=_text(name) or f"file{mimetypes.guess_extension(mime) or ''}", mime=mime, data=content)


def _tool_results(messages: list[dict[str, Any]]) -> tuple[ToolReturned, ...]:
    """Return the unbroken row of tool messages at the end, in order."""
    trailing: list[_Message] = []
    for value in reversed(messages):
        if value.get("role") != "tool":
            break
        trailing.append(_parse(_Message, value))
    seen: set[str] = set()
    results = []
    for message in reversed(trailing):
        call_id = _id(message.tool_call_id, "toolCallId")
        if call_id in seen:
            raise Rejected("tool_result_duplicate", "One call has two results.")
        seen.add(call_id)
        results.append(
            ToolReturned(
                id=_id(message.id, "message id"),
                call_id=call_id,
                name="",
                content=_flat(message) or _text(message.error or ""),
                status=ToolStatus.ERROR if message.error else ToolStatus.OK,
                external=True,
            )
        )
    return tuple(results)


def _seed(messages: list[dict[str, Any]], last_id: str) -> tuple[UserMessage | AssistantMessage, ...]:
    """Return earlier texts for an empty session. Calls and their results stay out: there is nothing to pair them.

    Of messages with one id the first counts; last_id: the new message's, which no earlier one may have.
    """
    seed: list[UserMessage | AssistantMessage] = []
    taken = {last_id}
    for value in messages:
        if value.get("role") not in ("user", "assistant"):
            continue
        message = _parse(_Message, value)
        text = _flat(message)
        if not text.strip() or not _ID.fullmatch(message.id) or message.id in taken:
            continue
        taken.add(message.id)
        if message.role == "user":
            seed.append(UserMessage(id=message.id, parts=(TextPart(text=text),), kind=UserMessageKind.SEED))
        else:
            seed.append(AssistantMessage(id=message.id, response_id=message.id, text=text, seeded=True))
    return tuple(seed)


def _flat(message: _Message) -> str:
    if message.content is None or isinstance(message.content, str):
        return _text(message.content or "")
    texts = (part["text"] for part in message.content if isinstance(part.get("text"), str))
    return _text("".join(texts))


def _sources(ids: list[UUID] | None) -> tuple[str, ...] | None:
    if ids is None:
        return None
    if len(ids) > SOURCES:
        raise Rejected("invalid_input", f"More than {SOURCES} sources.")
    return tuple(dict.fromkeys(str(one) for one in ids))


def _context(items: list[_Context]) -> tuple[tuple[str, str], ...]:
    """Return what the person has open, cut at 16 KB altogether."""
    return cap_context([(_text(item.description), _text(item.value)) for item in items])


def _tools(tools: list[_Tool]) -> tuple[ToolSpec, ...]:
    if len(tools) > EXTERNAL_TOOLS:
        raise Rejected("invalid_input", f"More than {EXTERNAL_TOOLS} tools.")
    specs: list[ToolSpec] = []
    for tool in tools:
        if not _TOOL_NAME.fullmatch(tool.name):
            raise Rejected("invalid_input", "A tool's name is 1 to 64 letters, digits, _ or -.")
        if tool.name in {spec.name for spec in specs}:
            raise Rejected("invalid_input", "Two tools have one name.")
        parameters = _json(tool.parameters or {"type": "object", "properties": {}})
        specs.append(ToolSpec(name=tool.name, description=_text(tool.description), parameters=parameters))
    return tuple(specs)


def _state(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Rejected("invalid_input", "The state must be an object.")
    # what belongs to everybody or to one run is not a client's to write
    return {_text(key): _json(item) for key, item in value.items() if not key.startswith(("app:", "temp:"))}


# --- small checks


def _parse(model: type[_Model], value: Any) -> _Model:
    try:
        return model.model_validate(value)
    except ValidationError as e:
        where = ".".join(str(step) for step in e.errors()[0]["loc"])
        raise Rejected("invalid_input", f"{where or 'input'}: {e.errors()[0]['msg']}"[:200]) from e


def _id(value: str, what: str) -> str:
    if not _ID.fullmatch(value):
        raise Rejected("invalid_input", f"{what} must be 1 to {ID_CHARS} printable characters.")
    return value


def _text(value: str) -> str:
    """Return text as PostgreSQL can hold it."""
    return value.replace("\x00", "\ufffd")


def _json(value: Any, depth: int = 0) -> Any:
    """Return a JSON value as PostgreSQL can hold it, if it is not nested too deep."""
    if depth > JSON_DEPTH:
        raise Rejected("invalid_input", f"JSON nested deeper than {JSON_DEPTH}.")
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return [_json(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_text(key): _json(item, depth + 1) for key, item in value.items()}
    return value


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None
