"""What a model is to a run: a request goes in, chunks come out.

A provider (agents/providers) implements `Model`; nothing here knows an engine.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """A piece of text in a message."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A file in a message, always by reference to an artifact version of the same owner.

    Bytes never travel inside a message. media: image, audio, video or document.
    """

    artifact_id: str
    version: int
    name: str
    mime: str
    size_bytes: int
    media: str = "document"
    type: Literal["file"] = "file"


Part = TextPart | FilePart


def file_note(part: FilePart) -> str:
    """Return how a file is named to a model that cannot look at it: one line with name, type, size and reference."""
    reference = f"artifact://{part.name}@{part.version}"
    return f'[Attached file "{part.name}" ({part.mime}, {part.size_bytes} bytes): {reference}]'


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call the model made. `arguments` is JSON text as the model wrote it, repaired if that was possible."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a ModelRequest, in the provider-neutral form.

    role TOOL needs tool_call_id. Only ASSISTANT has tool_calls and reasoning. failure: why a TOOL message's call
    failed (errors.ToolFailure), for models that go by rules; it is not sent, the text says it too.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    reasoning: str = ""
    failure: str = ""

    @property
    def text(self) -> str:
        return "".join(p.text for p in self.parts if isinstance(p, TextPart))


def text_message(role: Role, text: str) -> Message:
    return Message(role=role, parts=(TextPart(text=text),))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """How a tool is declared to the model. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Everything one call to a model sees, and nothing else.

    messages: system first; every tool call is followed by its results before the next assistant message.
    tools: in stable order. max_tokens, temperature: None = the provider's default.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    tool_choice: Literal["auto", "none"] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call or the sum of several. cached is part of prompt; reasoning is part of completion."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            prompt=self.prompt + other.prompt,
            cached=self.cached + other.cached,
            completion=self.completion + other.completion,
            reasoning=self.reasoning + other.reasoning,
        )


NO_USAGE = Usage()


class FinishReason(StrEnum):
    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"  # the answer hit max_tokens; text is kept and marked
    CONTENT_FILTER = "content_filter"
    CANCELLED = "cancelled"  # ours: the person pressed Stop
    ERROR = "error"  # ours: the stream broke


@dataclass(frozen=True, slots=True)
class TextChunk:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningChunk:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallChunk:
    """A raw fragment of a tool call, exactly as the provider gave it.

    Providers are sloppy: index may always be 0, id and name may come late, repeatedly, or never.
    agents/runtime/toolcalls.py makes sense of the fragments, for every provider.
    """

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class RetryChunk:
    """The provider will ask again in `delay_s` seconds; nothing of the answer has come yet."""

    delay_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class UsageChunk:
    usage: Usage


@dataclass(frozen=True, slots=True)
class FinishChunk:
    reason: FinishReason


Chunk = TextChunk | ReasoningChunk | ToolCallChunk | RetryChunk | UsageChunk | FinishChunk


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What is known of a model. window_tokens: None = unknown. Prices are per million tokens, None = unknown."""

    name: str
    provider: str
    window_tokens: int | None = None
    price_prompt: float | None = None
    price_cached: float | None = None
    price_completion: float | None = None
    images: bool = False


class Model(Protocol):
    """A model that answers by a stream of chunks. Safe for many calls at once."""

    @property
    def info(self) -> ModelInfo: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Yield the answer's chunks in order: any text, reasoning and tool-call chunks, then usage, then finish.

        Retries happen inside, only before the first token, each announced by a RetryChunk.
        Raises ModelBusy, ModelUnavailable, StreamCut, ContextTooLong, ModelRefused, ModelError.
        Closing or cancelling the iterator closes the connection to the provider.
        """
        ...
