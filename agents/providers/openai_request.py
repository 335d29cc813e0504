"""A ModelRequest as the body of a chat completion. The same request gives the same bytes.

https://platform.openai.com/docs/api-reference/chat/create
"""

import base64
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import orjson

from agents.runtime.artifacts import ArtifactMissing
from agents.runtime.model import FilePart, Message, ModelInfo, ModelRequest, Role, TextPart, ToolCall, file_note

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
MAX_IMAGE_BYTES = 20 * 1024 * 1024

Files = Callable[[FilePart], Awaitable[bytes]]


@dataclass(slots=True)
class Dialect:
    """What a server was seen to understand. Starts hopeful; `learn` takes back what it refused."""

    usage: bool = True  # stream_options.include_usage
    max_tokens: str = "max_tokens"
    temperature: bool = True
    reasoning: str = "reasoning_content"  # the key its reasoning came under; "" = it refuses to hear it again

    def learn(self, refused: str) -> bool:
        """Take the option back that the server's message complains of. Return whether one was: then ask again."""
        if self.usage and re.search(r"stream_options|include_usage", refused):
            self.usage = False
        elif self.max_tokens == "max_tokens" and "max_completion_tokens" in refused:
            self.max_tokens = "max_completion_tokens"
        elif self.temperature and re.search(r"\btemperature\b", refused):
            self.temperature = False
        elif self.reasoning and re.search(rf"\b{self.reasoning}\b", refused):
            self.reasoning = ""
        else:
            return False
        return True


async def body_of(request: ModelRequest, *, info: ModelInfo, dialect: Dialect, files: Files) -> dict[str, Any]:
    """Return the JSON body. Images go in as data URLs if the model can look at them; other files are named."""
    body: dict[str, Any] = {
        "model": info.name,
        "messages": [
            await _message(m, info=info, dialect=dialect, files=files)
            for m in request.messages
            if m.role is not Role.ASSISTANT or m.parts or m.tool_calls
        ],
        "stream": True,
    }
    if dialect.usage:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": dict(t.parameters)},
            }
            for t in request.tools
        ]
        if request.tool_choice != "auto":
            body["tool_choice"] = request.tool_choice
    if request.max_tokens is not None:
        body[dialect.max_tokens] = request.max_tokens
    if request.temperature is not None and dialect.temperature:
        body["temperature"] = request.temperature
    return body


async def _message(message: Message, *, info: ModelInfo, dialect: Dialect, files: Files) -> dict[str, Any]:
    match message.role:
        case Role.TOOL:
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
        case Role.ASSISTANT:
            out: dict[str, Any] = {"role": "assistant", "content": message.text or None}
            if message.tool_calls:
                out["tool_calls"] = [_tool_call(c) for c in message.tool_calls]
                # some reasoning models answer 400 if the reasoning that led to a call is not told them again
                if message.reasoning and dialect.reasoning:
                    out[dialect.reasoning] = message.reasoning
            return out
        case Role.SYSTEM | Role.USER:
            return {"role": message.role.value, "content": await _content(message, info=info, files=files)}


async def _content(message: Message, *, info: ModelInfo, files: Files) -> str | list[dict[str, Any]]:
    """Return text if all is text (every server reads that), else a list of content parts in the message's order."""
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            parts.append({"type": "text", "text": part.text})
            continue
        image = await _image(part, files) if info.images else None
        parts.append(image or {"type": "text", "text": file_note(part)})
    if all(p["type"] == "text" for p in parts):
        return "\n\n".join(p["text"] for p in parts)
    return parts


async def _image(part: FilePart, files: Files) -> dict[str, Any] | None:
    if part.mime not in IMAGE_TYPES or part.size_bytes > MAX_IMAGE_BYTES:
        return None
    try:
        data = await files(part)
    except ArtifactMissing:
        return None  # deleted since; the model is told its name
    url = f"data:{part.mime};base64,{base64.b64encode(data).decode('ascii')}"
    return {"type": "image_url", "image_url": {"url": url}}


def _tool_call(call: ToolCall) -> dict[str, Any]:
    # several servers parse arguments of the past and fail on what a model once wrote wrongly
    try:
        sound = isinstance(orjson.loads(call.arguments), dict)
    except orjson.JSONDecodeError:
        sound = False
    arguments = call.arguments if sound else orjson.dumps({"invalid_json": call.arguments}).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
