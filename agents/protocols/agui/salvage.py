"""What a dead run had said but not stored, read back from its frames.

The frames are ours, but the process that wrote them died, so the last message of each kind may be cut anywhere.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from agents.protocols.agui import history
from agents.runtime.context.citing import link
from agents.runtime.events import AssistantMessage
from agents.runtime.jsonrepair import NotJson, parse_object
from agents.runtime.knowledge import Cited
from agents.runtime.model import FinishReason, ToolCall

CITATION = "workbench.citation"


@dataclass(slots=True)
class _Draft:
    """One assistant message as far as its frames tell."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    citations: list[Cited] = field(default_factory=list)
    calls: dict[str, tuple[str, list[str]]] = field(default_factory=dict)  # id -> name, arguments so far


def unstored(frames: Iterable[bytes], stored: Iterable[AssistantMessage]) -> tuple[AssistantMessage, ...]:
    """Return the assistant messages that the frames tell of and the store does not have, in order, marked ERROR.

    frames: a run's, from its first. stored: the run's assistant messages that are stored.
    """
    messages = tuple(stored)
    message_ids = {message.id for message in messages}
    call_ids = {call.id for message in messages for call in message.tool_calls}
    drafts: dict[str, _Draft] = {}
    calls: dict[str, _Draft] = {}
    for frame in frames:
        event = _event(frame)
        if event is not None:
            _take(event, drafts, calls)
    out = []
    for message_id, draft in drafts.items():
        draft.calls = {call_id: call for call_id, call in draft.calls.items() if call_id not in call_ids}
        if message_id not in message_ids and _says(draft):
            out.append(_message(message_id, draft))
    return tuple(out)


def _event(frame: bytes) -> dict[str, Any] | None:
    try:
        event = orjson.loads(frame)
    except orjson.JSONDecodeError:
        return None
    return event if isinstance(event, dict) else None


def _take(event: dict[str, Any], drafts: dict[str, _Draft], calls: dict[str, _Draft]) -> None:
    message_id = event.get("messageId") or ""
    match event.get("type"):
        case "TEXT_MESSAGE_START" if event.get("role", "assistant") == "assistant":
            drafts.setdefault(message_id, _Draft())
        case "TEXT_MESSAGE_CONTENT" if message_id in drafts:
            drafts[message_id].text.append(event.get("delta", ""))
        case "CUSTOM" if event.get("name") == CITATION and (value := event["value"]).get("messageId") in drafts:
            drafts[value["messageId"]].citations.append(history.cited(value))
        case "REASONING_MESSAGE_CONTENT":
            owner = message_id.removeprefix(history.reasoning_id(""))
            drafts.setdefault(owner, _Draft()).reasoning.append(event.get("delta", ""))
        case "TOOL_CALL_START":
            call_id = event["toolCallId"]
            owner = event.get("parentMessageId") or call_id
            draft = calls[call_id] = drafts.setdefault(owner, _Draft())
            draft.calls[call_id] = (event.get("toolCallName", ""), [])
        case "TOOL_CALL_ARGS" if event.get("toolCallId") in calls:
            calls[event["toolCallId"]].calls[event["toolCallId"]][1].append(event.get("delta", ""))
        case _:
            pass


def _says(draft: _Draft) -> bool:
    return bool(draft.calls) or any(draft.text) or any(draft.reasoning)


def _message(message_id: str, draft: _Draft) -> AssistantMessage:
    text = "".join(draft.text)
    return AssistantMessage(
        id=message_id,
        response_id=message_id.partition(":")[0],
        text=text,
        reasoning="".join(draft.reasoning),
        tool_calls=tuple(
            ToolCall(id=call_id, name=name, arguments=_arguments("".join(pieces)))
            for call_id, (name, pieces) in draft.calls.items()
        ),
        finish_reason=FinishReason.ERROR,
        citations=tuple(cited for cited in draft.citations if link(cited) in text),
    )


def _arguments(text: str) -> str:
    """Return arguments that a provider takes back; what was cut too early counts as none."""
    try:
        return parse_object(text).text
    except NotJson:
        return "{}"
