"""Stored records as AG-UI messages: what MESSAGES_SNAPSHOT carries, and the closed run that shows a conversation.

Ids are the ones of the live stream, so that a snapshot replaces what a client already holds instead of doubling it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from agents.runtime.artifacts import ArtifactRef
from agents.runtime.events import AssistantMessage, Stored, ToolReturned, ToolStatus, UserMessage, UserMessageKind
from agents.runtime.knowledge import Citation, Cited, place_from_json, place_to_json
from agents.runtime.model import FilePart, FinishReason, Part, TextPart

PROVIDER = "workbench"
FAILED = frozenset({ToolStatus.ERROR, ToolStatus.DENIED, ToolStatus.CANCELLED, ToolStatus.TIMEOUT, ToolStatus.LOST})
COMPLETE = frozenset({FinishReason.STOP, FinishReason.TOOL_CALLS})

JSON = dict[str, Any]


def messages(stored: Sequence[Stored]) -> list[JSON]:
    """Return the records of one visible chain, oldest first, as AG-UI messages.

    A result stands behind the message that made the call, results of one message in the order of its calls; a result
    whose call is not among the records is left out. A message without text, reasoning and calls is left out.
    """
    slots: list[list[JSON]] = []  # a message and what stands directly behind it
    calls: dict[str, tuple[list[JSON], list[str]]] = {}  # call id -> the slot and the order of its message's calls
    for item in stored:
        match item.record:
            case UserMessage():
                slots.append([user_message(item.record, position=item.position)])
            case AssistantMessage() as record:
                if record.reasoning:
                    slots.append([reasoning_message(record, position=item.position)])
                if record.text or record.tool_calls or record.not_in_documents:
                    slot = [assistant_message(record, position=item.position)]
                    slots.append(slot)
                    order = [call.id for call in record.tool_calls]
                    calls.update((call_id, (slot, order)) for call_id in order)
            case ToolReturned() as record if record.call_id in calls:
                slot, order = calls[record.call_id]
                _insert(slot, order, tool_message(record, position=item.position))
            case _:
                pass  # state and run boundaries are no messages
    return [message for slot in slots for message in slot]


def before_run(stored: Sequence[Stored], run_id: str) -> list[Stored]:
    """Return the records without those of one run: what to show before that run's own frames are replayed."""
    return [item for item in stored if item.origin.run_id != run_id]


def snapshot_run(
    thread_id: str, run_id: str, stored: Sequence[Stored], truncated: bool, state: Mapping[str, Any]
) -> list[bytes]:
    """Return the frames of a closed run that shows a conversation: it numbers nothing, so its frames have no seq.

    run_id: any id no run has. truncated: older messages exist. state: the session's, keys with a prefix are left out.
    """
    ours: JSON = {"threadId": thread_id, "runId": run_id, "history": True}
    metadata = {"workbench": ours}
    events: list[JSON] = [
        {"type": "RUN_STARTED", "threadId": thread_id, "runId": run_id, "protocolVersion": "1.0"},
        {"type": "MESSAGES_SNAPSHOT", "messages": messages(stored)},
        {"type": "STATE_SNAPSHOT", "snapshot": visible_state(state)},
        {"type": "RUN_FINISHED", "threadId": thread_id, "runId": run_id, "outcome": {"type": "success"}},
    ]
    events[1]["metadata"] = {"workbench": {**ours, "truncated": truncated}}
    return [orjson.dumps({**event, "metadata": event.get("metadata", metadata)}) for event in events]


def page(thread_id: str, stored: Sequence[Stored], *, truncated: bool, before: int | None) -> JSON:
    """Return a page of history as plain JSON. before: where the next older page ends; None = there is none."""
    found: JSON = {"threadId": thread_id, "messages": messages(stored), "truncated": truncated}
    return found if before is None else {**found, "before": before}


def user_message(record: UserMessage, *, position: int | None = None) -> JSON:
    message: JSON = {"id": record.id, "role": "user", "content": content(record.parts)}
    extra = _position(position)
    if record.kind is UserMessageKind.STEER:
        extra["kind"] = "steer"
    if record.sources is not None:
        extra["sources"] = list(record.sources)
    return _with_metadata(message, extra)


def reasoning_message(record: AssistantMessage, *, position: int | None = None) -> JSON:
    extra = _position(position)
    if record.reasoning_ms:
        extra["reasoningMs"] = record.reasoning_ms
    return _with_metadata({"id": reasoning_id(record.id), "role": "reasoning", "content": record.reasoning}, extra)


def assistant_message(record: AssistantMessage, *, position: int | None = None) -> JSON:
    message: JSON = {"id": record.id, "role": "assistant"}
    if record.text:
        message["content"] = record.text
    if record.tool_calls:
        message["toolCalls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in record.tool_calls
        ]
    extra = {**_position(position), **answer_details(record)}
    if record.citations:
        extra["citations"] = [citation(cited) for cited in record.citations]
    return _with_metadata(message, extra)


def answer_details(record: AssistantMessage) -> JSON:
    """Return what a page shows of an answer beside its text and citations; what is as usual is left out."""
    details: JSON = {}
    if record.finish_reason not in COMPLETE:
        details["finishReason"] = record.finish_reason.value
    if record.not_in_documents:
        details["notInDocuments"] = True
    return details


def tool_message(record: ToolReturned, *, position: int | None = None) -> JSON:
    message: JSON = {"id": record.id, "role": "tool", "toolCallId": record.call_id, "content": record.content}
    if record.status in FAILED:
        message["error"] = record.summary or record.failure
    return _with_metadata(message, {**_position(position), **result_details(record)})


def result_details(record: ToolReturned) -> JSON:
    """Return what a page shows of a result beside its content; empty things are left out."""
    details: JSON = {"status": record.status.value}
    if record.name:
        details["name"] = record.name
    if record.summary:
        details["summary"] = record.summary
    if record.failure:
        details["code"] = record.failure
    if record.elapsed_ms:
        details["elapsedMs"] = record.elapsed_ms
    if record.artifacts:
        details["artifacts"] = [artifact(ref) for ref in record.artifacts]
    if record.artifact:
        details["whole"] = artifact(record.artifact)  # the guarded result's full text
    if record.data:
        details["data"] = dict(record.data)
    return details


def artifact(ref: ArtifactRef) -> JSON:
    return {
        "artifactId": ref.artifact_id,
        "name": ref.name,
        "version": ref.version,
        "mime": ref.mime,
        "sizeBytes": ref.size_bytes,
        "sha256": ref.sha256,
    }


def citation(cited: Cited) -> JSON:
    """Return a citation as frames and messages hold it, of a document or, with `message`, of a conversation.

    Of a place the fields that say something.
    """
    of = cited.citation
    said: JSON = {"name": of.name, "start": of.start, "end": of.end}
    if of.message_id:
        at = {} if of.at is None else {"at": of.at.isoformat()}
        said = {"message": {"threadId": of.thread_id, "id": of.message_id, **at}, **said}
    else:
        said = {"documentId": of.artifact_id, "version": of.version, **said, "place": place_to_json(of.place)}
    return {"number": cited.number, "id": of.id, **said, "quote": of.quote}


def cited(value: Mapping[str, Any]) -> Cited:
    """Return what `citation` wrote down."""
    message = value.get("message", {})
    return Cited(
        number=value["number"],
        citation=Citation(
            id=value["id"],
            artifact_id=value.get("documentId", ""),
            version=value.get("version", 0),
            name=value["name"],
            start=value["start"],
            end=value["end"],
            place=place_from_json(value.get("place", {})),
            quote=value["quote"],
            thread_id=message.get("threadId", ""),
            message_id=message.get("id", ""),
            at=datetime.fromisoformat(message["at"]) if "at" in message else None,
        ),
    )


def content(parts: Sequence[Part]) -> str | list[JSON]:
    """Return a user message's content: a string if it is one text, else parts."""
    if all(isinstance(part, TextPart) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, TextPart))
    return [_part(part) for part in parts]


def reasoning_id(message_id: str) -> str:
    return f"reasoning-{message_id}"


def visible_state(state: Mapping[str, Any]) -> JSON:
    """Return the keys that leave the server: what belongs to all people or to one run stays inside."""
    return {key: value for key, value in state.items() if not key.startswith(("app:", "temp:"))}


def _part(part: Part) -> JSON:
    if isinstance(part, FilePart):
        source = {"type": "file", "value": file_handle(part), "provider": PROVIDER, "mimeType": part.mime}
        return {"type": part.media, "source": source, "metadata": {"name": part.name, "sizeBytes": part.size_bytes}}
    return {"type": "text", "text": part.text}


def file_handle(part: FilePart) -> str:
    return f"artifact://{part.artifact_id}@{part.version}"


def _insert(slot: list[JSON], order: list[str], message: JSON) -> None:
    """Put a result behind its message, where its call's place in the order wants it."""
    place = order.index(message["toolCallId"])
    at = 1
    while at < len(slot) and order.index(slot[at]["toolCallId"]) <= place:
        at += 1
    slot.insert(at, message)


def _position(position: int | None) -> JSON:
    return {} if position is None else {"position": position}


def _with_metadata(message: JSON, extra: JSON) -> JSON:
    if extra:
        message["metadata"] = {"workbench": extra}
    return message
