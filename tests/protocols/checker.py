"""Says whether frames are a valid AG-UI 1.0 stream, by the published validator and the published models.

Every test that sees a stream of ours, in any room, sends it through `check`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from ag_ui.core import Event
from ag_ui_validate.pytest_plugin import assert_valid_agui
from pydantic import TypeAdapter

_EVENT: TypeAdapter[Any] = TypeAdapter(Event)

# A model may write arguments that are not JSON, and a run may stop in the middle of them; AG-UI allows both
# ("conventionally a JSON document, though the protocol does not validate it").
_NOT_OURS = {"AGUI204": "off"}
_MAY_BE_NULL = ("snapshot", "value", "delta", "patch", "state", "content", "messages", "metadata", "rawEvent", "result")


def check(frames: Iterable[bytes | tuple[int, bytes]], *, first_seq: int | None = 1) -> list[dict[str, Any]]:
    """Return the frames as events, after asserting that they are complete runs, valid and numbered without gaps.

    first_seq: of the first frame; None = frames that carry no number (history).
    """
    raw = [frame if isinstance(frame, bytes) else frame[1] for frame in frames]
    events: list[dict[str, Any]] = [orjson.loads(frame) for frame in raw]
    assert events, "no frames"
    for event in events:
        _EVENT.validate_python(event)
        nulls = [name for name, value in event.items() if value is None and name not in _MAY_BE_NULL]
        assert not nulls, f"null instead of absent: {nulls} in {event['type']}"
        assert isinstance(event.get("timestamp", 0), int)
    assert_valid_agui(events, severity_overrides=_NOT_OURS, max_warnings=0)
    if first_seq is not None:
        seqs = [ours(event)["seq"] for event in events]
        assert seqs == list(range(first_seq, first_seq + len(events))), f"gap or double in {seqs}"
    return events


def ours(event: dict[str, Any]) -> dict[str, Any]:
    """Return metadata.workbench of an event."""
    details: dict[str, Any] = event["metadata"]["workbench"]
    return details


def types(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def apply(events: Sequence[dict[str, Any]], messages: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Return the messages a client holds after the events, by the applier's rules (spec 5.4), activities left out."""
    held: list[dict[str, Any]] = [dict(message) for message in messages]
    for event in events:
        _APPLY.get(event["type"], lambda held, event: None)(held, event)
    return held


def _find(held: list[dict[str, Any]], message_id: str) -> dict[str, Any] | None:
    return next((message for message in held if message["id"] == message_id), None)


def _started(held: list[dict[str, Any]], event: dict[str, Any]) -> None:
    for message in event.get("input", {}).get("messages", []):
        if not _find(held, message["id"]):
            held.append(dict(message))


def _snapshot(held: list[dict[str, Any]], event: dict[str, Any]) -> None:
    new = {message["id"]: dict(message) for message in event["messages"]}
    kept = [new.pop(message["id"]) for message in held if message["id"] in new]
    held[:] = kept + list(new.values())


def _open(held: list[dict[str, Any]], event: dict[str, Any]) -> None:
    if not _find(held, event["messageId"]):
        held.append({"id": event["messageId"], "role": event.get("role", "assistant"), "content": ""})


def _append(held: list[dict[str, Any]], event: dict[str, Any]) -> None:
    message = _find(held, event["messageId"])
    assert message is not None
    message["content"] = message.get("content", "") + event["delta"]


def _call(held: list[dict[str, Any]], event: dict[str, Any]) -> None:
    parent = event.get("parentMessageId") or event["toolCallId"]
    message = _find(held, parent)
    if message is None:
        message = {"id": parent, "role": "assistant"}
        held.append(message)
    function = {"name": event["toolCallName"], "arguments": ""}
    message.setdefault("toolCalls", []).append({"id": event["toolCallId"], "type": "function", "function": function})


def _arguments(held: list[dict[str, Any]], event: dict[str, Any]) -> None:
    for message in held:
        for call in message.get("toolCalls", []):
            if call["id"] == event["toolCallId"]:
                call["function"]["arguments"] += event["delta"]


def _result(held: list[dict[str, Any]], event: dict[str, Any]) -> None:
    message = {"id": event["messageId"], "role": "tool", "toolCallId": event["toolCallId"], "content": event["content"]}
    for at, candidate in enumerate(held):
        if any(call["id"] == event["toolCallId"] for call in candidate.get("toolCalls", [])):
            at += 1
            while at < len(held) and held[at]["role"] == "tool":
                at += 1
            held.insert(at, message)
            return
    held.append(message)


_APPLY: dict[str, Any] = {
    "RUN_STARTED": _started,
    "MESSAGES_SNAPSHOT": _snapshot,
    "TEXT_MESSAGE_START": _open,
    "REASONING_MESSAGE_START": _open,
    "TEXT_MESSAGE_CONTENT": _append,
    "REASONING_MESSAGE_CONTENT": _append,
    "TOOL_CALL_START": _call,
    "TOOL_CALL_ARGS": _arguments,
    "TOOL_CALL_RESULT": _result,
}
