"""Whoever is asked: a real model heard to its end, or one that only counts (caching.py)."""

from typing import Protocol
from uuid import uuid4

from agents.runtime.model import (
    Message,
    Model,
    ModelRequest,
    Role,
    TextChunk,
    TextPart,
    ToolCallChunk,
    Usage,
    UsageChunk,
)
from agents.runtime.toolcalls import CallAssembler


class Answering(Protocol):
    """Whoever is asked for a text."""

    async def ask(self, request: ModelRequest) -> tuple[str, Usage]:
        """Return the answer's text and what it cost."""
        ...


class Speaking(Protocol):
    """Whoever is asked for a text or for tool calls."""

    async def speak(self, request: ModelRequest) -> tuple[Message, Usage]:
        """Return the assistant's message and what it cost."""
        ...


class Asking:
    """A real model. Raises what the model raises."""

    def __init__(self, model: Model) -> None:
        self.model = model

    async def ask(self, request: ModelRequest) -> tuple[str, Usage]:
        message, usage = await self.speak(request)
        return message.text, usage

    async def speak(self, request: ModelRequest) -> tuple[Message, Usage]:
        text: list[str] = []
        calls = CallAssembler(lambda: uuid4().hex)
        usage = Usage()
        async for chunk in self.model.stream(request):
            if isinstance(chunk, TextChunk):
                text.append(chunk.text)
            elif isinstance(chunk, ToolCallChunk):
                calls.feed(chunk)
            elif isinstance(chunk, UsageChunk):
                usage = chunk.usage
        calls.finish()
        said = "".join(text)
        parts = (TextPart(text=said),) if said else ()
        return Message(role=Role.ASSISTANT, parts=parts, tool_calls=tuple(calls.calls())), usage
