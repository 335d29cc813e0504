"""Hashes that name a request, and the texts and tools in its parts."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from agents.runtime.model import FilePart, Message, ModelRequest, Part, ToolSpec


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest(value: Any) -> str:
    """Return the hash of a JSON value in its canonical form: sorted keys, no blanks."""
    return sha256(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")))


def tool_json(tool: ToolSpec) -> list[Any]:
    return [tool.name, tool.description, tool.parameters]


def tools_sha256(tools: Sequence[ToolSpec]) -> str:
    return digest([tool_json(tool) for tool in tools])


def request_sha256(request: ModelRequest) -> str:
    """Return the hash of the request in its canonical form: JSON, sorted keys, no blanks."""
    return digest(
        {
            "messages": [_message_json(message) for message in request.messages],
            "tools": [tool_json(tool) for tool in request.tools],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "tool_choice": request.tool_choice,
        }
    )


def _message_json(message: Message) -> dict[str, Any]:
    return {
        "role": message.role.value,
        "parts": [_part_json(part) for part in message.parts],
        "tool_calls": [[call.id, call.name, call.arguments] for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "reasoning": message.reasoning,
    }


def _part_json(part: Part) -> list[Any]:
    if isinstance(part, FilePart):
        return ["file", part.artifact_id, part.version, part.name, part.mime, part.size_bytes, part.media]
    return ["text", part.text]
