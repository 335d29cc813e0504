"""A provider without a network: it says what it is told to, counts what it reads, and caches prefixes.

A provider caches the beginning of a request: it counts as cached up to the first token that differs from an earlier
request, in steps of 128 tokens and from 1,024 on. Nothing is evicted, so every parent is warm.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import orjson

from agents.runtime.model import (
    Chunk,
    FinishChunk,
    FinishReason,
    Message,
    ModelInfo,
    ModelRequest,
    TextChunk,
    TextPart,
    ToolSpec,
    Usage,
    UsageChunk,
    file_note,
)
from agents.runtime.tokens import MESSAGE_TOKENS, estimate

STEP: Final = 128
LEAST: Final = 1_024
Count = Callable[[str], int]
Reply = Callable[[ModelRequest], str]


@lru_cache(maxsize=100_000)
def estimated(text: str) -> int:
    """Return the estimate of runtime/tokens.py, remembered."""
    return estimate(text)


def pieces(request: ModelRequest) -> Iterator[str]:
    """Yield what a provider reads, in its order: tools, then messages. The same request gives the same pieces."""
    for tool in request.tools:
        yield _tool(tool)
    for message in request.messages:
        yield _message(message)


def size(request: ModelRequest, count: Count = estimated) -> int:
    """Return the prompt tokens of a request. The sum of its pieces, so that requests can be compared by difference."""
    return sum(count(piece) + MESSAGE_TOKENS for piece in pieces(request))


@dataclass(slots=True)
class Called:
    """One call: what was asked, what it cost."""

    request: ModelRequest
    usage: Usage


@dataclass(slots=True)
class _Node:
    next: dict[str, "_Node"] = field(default_factory=dict)


class PrefixCache:
    """The prefixes of all requests so far."""

    def __init__(self, count: Count = estimated, *, step: int = STEP, least: int = LEAST) -> None:
        self._count, self._step, self._least = count, step, least
        self._root = _Node()

    def read(self, request: ModelRequest) -> tuple[int, int]:
        """Return (prompt tokens, cached tokens) and remember the request."""
        node, prompt, common, same = self._root, 0, 0, True
        for piece in pieces(request):
            cost = self._count(piece) + MESSAGE_TOKENS
            prompt += cost
            found = node.next.get(piece)
            if same and found is not None:
                common += cost
            elif same:
                same = False
                longest = max((_common(piece, other) for other in node.next), default=0)
                common += min(cost, self._count(piece[:longest]))
            node = found if found is not None else node.next.setdefault(piece, _Node())
        return prompt, common // self._step * self._step if common >= self._least else 0


class CachingModel:
    """A Model over a PrefixCache. reply: the text it answers. calls: what it was asked, in order.

    Models that share a cache stand for one model of one provider.
    """

    def __init__(
        self, reply: Reply, *, name: str = "fake", count: Count = estimated, cache: PrefixCache | None = None
    ) -> None:
        self.reply, self.count = reply, count
        self.cache = cache or PrefixCache(count)
        self.calls: list[Called] = []
        self._info = ModelInfo(name=name, provider="bench")

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def ask(self, request: ModelRequest) -> tuple[str, Usage]:
        prompt, cached = self.cache.read(request)
        text = self.reply(request)
        usage = Usage(prompt=prompt, cached=cached, completion=self.count(text))
        self.calls.append(Called(request, usage))
        return text, usage

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        text, usage = await self.ask(request)
        if text:
            yield TextChunk(text)
        yield UsageChunk(usage)
        yield FinishChunk(FinishReason.STOP)


def _common(a: str, b: str) -> int:
    """Return how many characters two texts begin with together."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _message(message: Message) -> str:
    said = "\n".join(p.text if isinstance(p, TextPart) else file_note(p) for p in message.parts)
    calls = "".join(f"\n{call.id} {call.name} {call.arguments}" for call in message.tool_calls)
    head = " ".join(filter(None, (message.role.value, message.name, message.tool_call_id)))
    thought = f"\n{message.reasoning}" if message.reasoning else ""
    return f"{head}\n{said}{thought}{calls}"


def _tool(tool: ToolSpec) -> str:
    return f"{tool.name}\n{tool.description}\n{orjson.dumps(tool.parameters).decode()}"
