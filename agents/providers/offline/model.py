"""The offline provider as a Model: it decides by rules and streams what it says word by word."""

import asyncio
import json
import re
import uuid
from collections.abc import AsyncGenerator, Callable

from agents.providers.offline.deciding import decide
from agents.providers.offline.request import situation
from agents.runtime.model import (
    Chunk,
    FinishChunk,
    FinishReason,
    ModelInfo,
    ModelRequest,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    Usage,
    UsageChunk,
)
from agents.runtime.tokens import MESSAGE_TOKENS, estimate, estimate_parts

NAME = "offline"
# Rules have no window. It is given that of an ordinary model, so that without a key too the meter says something,
# summaries come, and what it reads stays bounded.
WINDOW_TOKENS = 131_072
INFO = ModelInfo(name=NAME, provider="offline", window_tokens=WINDOW_TOKENS, price_prompt=0.0, price_completion=0.0)
_PIECE = re.compile(r"\s*[\u2e80-\u9fff\uff00-\uffef]{1,2}|\s*[^\s\u2e80-\u9fff\uff00-\uffef]+|\s+")


class OfflineModel:
    """A `Model` (agents.runtime.model). pace_s: the wait after each piece of text, for demonstrations; 0 = none."""

    def __init__(self, *, pace_s: float = 0.0, new_id: Callable[[], str] = lambda: uuid.uuid4().hex) -> None:
        self._pace_s = pace_s
        self._new_id = new_id

    @property
    def info(self) -> ModelInfo:
        return INFO

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Yield reasoning, text and calls word by word, then an estimated usage. Never fails."""
        move = await asyncio.to_thread(lambda: decide(situation(request)))  # long files take a while
        for piece in _PIECE.findall(move.reasoning):
            yield ReasoningChunk(piece)
            await asyncio.sleep(self._pace_s)
        reasoning = estimate(move.reasoning)
        finish = FinishReason.TOOL_CALLS if move.calls else FinishReason.STOP
        text = ""
        for piece in _PIECE.findall(move.text):
            if request.max_tokens is not None and estimate(text + piece) > request.max_tokens:
                finish = FinishReason.LENGTH
                break
            text += piece
            yield TextChunk(piece)
            await asyncio.sleep(self._pace_s)
        said = estimate(text)
        if finish is not FinishReason.LENGTH:
            for index, (name, arguments) in enumerate(move.calls):
                written = json.dumps(arguments, ensure_ascii=False)
                said += estimate(name) + estimate(written)
                yield ToolCallChunk(index=index, id=f"call_{self._new_id()}", name=name)
                yield ToolCallChunk(index=index, arguments=written)
                await asyncio.sleep(self._pace_s)
        yield UsageChunk(Usage(prompt=_prompt_tokens(request), completion=reasoning + said, reasoning=reasoning))
        yield FinishChunk(finish)


def _prompt_tokens(request: ModelRequest) -> int:
    return sum(
        MESSAGE_TOKENS + estimate_parts(m.parts) + sum(estimate(c.arguments) for c in m.tool_calls)
        for m in request.messages
    )
