"""A RunAgentInput as the owner's request. Pure: nothing is looked up, nothing is fetched.

A client's history is not trusted: only the last user message, or the answers to external calls at the end, become the
run's input. Earlier user and assistant texts are the seed of an empty session. System and developer messages, and
members we do not know, are left out.
"""

import base64
import binascii
import mimetypes
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeVar
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from agents.runtime.errors import Rejected
from agents.runtime.events import AssistantMessage, ToolReturned, ToolStatus, UserMessage, UserMessageKind
from agents.runtime.model import FilePart, Part, TextPart, ToolSpec
from agents.runtime.planning import cap_context
from agents.runtime.session import Action, RunRequest, Upload
from agents.runtime.zones import zone_named

LEAST_WINDOW: Final = 1_000
MOST_WINDOW: Final = 10_000_000
ID_CHARS = 128
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


def run_input(
    data: bytes | str | Mapping[str, Any], *, owner_id: int, agent: str = "", origin: str = "api"
) -> RunRequest:
    """Return a RunAgentInput as the owner's request. agent: from the address, "" = the default. Raises Rejected.

    Every id is at most 128 characters. Files come as artifact references, or as base64 data (an upload); a URL is
    refused, because it would be fetched by us.
    """
    value = json_object(data) if isinstance(data, bytes | str) else data
    wire = parse(_Input, value)
    ours = parse(_Ours, _member(wire.forwarded_props, "workbench") or {})
    if wire.resume:
        raise Rejected("invalid_input", "There is no open question to answer.")
    if ours.action in (Action.EDIT, Action.RETRY) and not ours.message_id:
        raise Rejected("invalid_input", f"{ours.action.value} needs forwardedProps.workbench.messageId.")
    request: dict[str, Any] = {}
    if ours.action not in _NO_MESSAGE:
        request = _turn(wire, ours.action)
    return RunRequest(
        owner_id=owner_id,
        thread_id=identifier(wire.thread_id, "threadId"),
        run_id=identifier(wire.run_id, "runId"),
        agent=agent,
        model=ours.model,
        window_tokens=ours.window,
        action=ours.action,
        message_id=identifier(ours.message_id, "messageId") if ours.message_id else "",
        external_tools=_tools(wire.tools or []),
        sources=chosen_sources(ours.sources),
        sources_given="sources" in ours.model_fields_set,
        state=_state(wire.state),
        parent_run_id=identifier(wire.parent_run_id, "parentRunId") if wire.parent_run_id else "",
        render_html=ours.render == "html",
        origin=origin,
        zone=ours.time_zone if zone_named(ours.time_zone) else "",
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


class Wire(BaseModel):
    """A shape on the wire. AG-UI's own leave out what they do not know; our frames refuse it."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", strict=True)


class Message(Wire):
    """A message as AG-UI has it, of whatever role."""

    id: str = ""
    role: str
    content: str | list[dict[str, Any]] | None = None
    tool_call_id: str = ""
    error: str | None = None


class _Tool(Wire):
    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None


class _Context(Wire):
    description: str
    value: str


class _Input(Wire):
    thread_id: str
    run_id: str
    parent_run_id: str | None = None
    messages: list[dict[str, Any]] = Field(default_factory=list)
    state: Any = None
    tools: list[_Tool] | None = None
    context: list[_Context] | None = None
    forwarded_props: Any = None
    resume: list[dict[str, Any]] | None = None


class _Ours(Wire):
    """forwardedProps.workbench"""

    model_config = ConfigDict(strict=False)

    action: Action = Action.SEND
    message_id: str = ""
    model: str = ""
    window: Annotated[int, Field(ge=LEAST_WINDOW, le=MOST_WINDOW)] | None = None
    render: Literal["text", "html"] = "text"
    sources: list[UUID] | None = None
    time_zone: str = ""


def _turn(wire: _Input, action: Action) -> dict[str, Any]:
    """Return the RunRequest's fields that carry the input: the last user message, or the answers at the end."""
    if not wire.messages:
        raise Rejected("invalid_input", "There are no messages.")
    last = parse(Message, wire.messages[-1])
    if last.role == "tool" and action is Action.SEND:
        return {"tool_results": _tool_results(wire.messages)}
    if last.role != "user":
        raise Rejected("unsupported_role", "The last message must be from the user, or a tool result.")
    parts, uploads = parts_of(last.content)
    if not uploads and not says_something(parts):
        raise Rejected("invalid_input", "The message is empty.")
    message = UserMessage(id=identifier(last.id, "message id"), parts=parts, context=_context(wire.context or []))
    seed = _seed(wire.messages[-SEED_MESSAGES - 1 : -1], last.id) if action is Action.SEND else ()
    return {"message": message, "uploads": uploads, "seed": seed}


def parts_of(content: str | list[dict[str, Any]] | None) -> tuple[tuple[Part, ...], tuple[Upload, ...]]:
    """Return a user message's content as parts, and the files it brings along. Raises Rejected."""
    if content is None or content == "":
        return (), ()
    if isinstance(content, str):
        return (TextPart(text=clean_text(content)),), ()
    parts: list[Part] = []
    uploads: list[Upload] = []
    for value in content:
        kind = value.get("type")
        if kind == "text" and isinstance(value.get("text"), str):
            parts.append(TextPart(text=clean_text(value["text"])))
        elif kind in _MEDIA or kind == "binary":
            found = _file(str(kind), value)
            if isinstance(found, Upload):
                uploads.append(found)
            else:
                parts.append(found)
        # a kind of part we do not know is left out, as AG-UI asks
    return tuple(parts), tuple(uploads)


def says_something(parts: Sequence[Part]) -> bool:
    """Return whether there is a file, or a text that is more than blanks."""
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
    return Upload(name=clean_text(name) or f"file{mimetypes.guess_extension(mime) or ''}", mime=mime, data=content)


def _tool_results(messages: list[dict[str, Any]]) -> tuple[ToolReturned, ...]:
    """Return the unbroken row of tool messages at the end, in order."""
    trailing: list[Message] = []
    for value in reversed(messages):
        if value.get("role") != "tool":
            break
        trailing.append(parse(Message, value))
    seen: set[str] = set()
    results = []
    for message in reversed(trailing):
        call_id = identifier(message.tool_call_id, "toolCallId")
        if call_id in seen:
            raise Rejected("tool_result_duplicate", "One call has two results.")
        seen.add(call_id)
        results.append(
            ToolReturned(
                id=identifier(message.id, "message id"),
                call_id=call_id,
                name="",
                content=_flat(message) or clean_text(message.error or ""),
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
        message = parse(Message, value)
        text = _flat(message)
        if not text.strip() or not _ID.fullmatch(message.id) or message.id in taken:
            continue
        taken.add(message.id)
        if message.role == "user":
            seed.append(UserMessage(id=message.id, parts=(TextPart(text=text),), kind=UserMessageKind.SEED))
        else:
            seed.append(AssistantMessage(id=message.id, response_id=message.id, text=text, seeded=True))
    return tuple(seed)


def _flat(message: Message) -> str:
    if message.content is None or isinstance(message.content, str):
        return clean_text(message.content or "")
    texts = (part["text"] for part in message.content if isinstance(part.get("text"), str))
    return clean_text("".join(texts))


def chosen_sources(ids: list[UUID] | None) -> tuple[str, ...] | None:
    """Return the documents to answer from, each once; None = all. Raises Rejected for more than SOURCES."""
    if ids is None:
        return None
    if len(ids) > SOURCES:
        raise Rejected("invalid_input", f"More than {SOURCES} sources.")
    return tuple(dict.fromkeys(str(one) for one in ids))


def _context(items: list[_Context]) -> tuple[tuple[str, str], ...]:
    """Return what the person has open, cut at 16 KB altogether."""
    return cap_context([(clean_text(item.description), clean_text(item.value)) for item in items])


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
        specs.append(ToolSpec(name=tool.name, description=clean_text(tool.description), parameters=parameters))
    return tuple(specs)


def _state(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Rejected("invalid_input", "The state must be an object.")
    # what belongs to everybody or to one run is not a client's to write
    return {clean_text(key): _json(item) for key, item in value.items() if not key.startswith(("app:", "temp:"))}


def parse(model: type[_Model], value: Any) -> _Model:
    """Return the value in its shape. Raises Rejected with the first thing that is wrong."""
    try:
        return model.model_validate(value)
    except ValidationError as e:
        where = ".".join(str(step) for step in e.errors()[0]["loc"])
        raise Rejected("invalid_input", f"{where or 'input'}: {e.errors()[0]['msg']}"[:200]) from e


def identifier(value: str, what: str) -> str:
    """Return an id of a client, checked. what: its name on the wire. Raises Rejected."""
    if not _ID.fullmatch(value):
        raise Rejected("invalid_input", f"{what} must be 1 to {ID_CHARS} printable characters.")
    return value


def clean_text(value: str) -> str:
    """Return text as PostgreSQL can hold it."""
    return value.replace("\x00", "\ufffd")


def _json(value: Any, depth: int = 0) -> Any:
    """Return a JSON value as PostgreSQL can hold it, if it is not nested too deep."""
    if depth > JSON_DEPTH:
        raise Rejected("invalid_input", f"JSON nested deeper than {JSON_DEPTH}.")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_json(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): _json(item, depth + 1) for key, item in value.items()}
    return value


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None
