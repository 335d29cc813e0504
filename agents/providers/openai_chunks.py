"""The events of a streamed chat completion, read leniently: one JSON value in, our chunks out.

Only the first choice counts. A server that ignores `stream` and answers with one `message` is read the same way.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from agents.providers.openai_request import Dialect
from agents.runtime.errors import ModelRefused, ModelUnavailable
from agents.runtime.model import (
    Chunk,
    FinishChunk,
    FinishReason,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    Usage,
    UsageChunk,
)

REASONING_KEYS = ("reasoning_content", "reasoning")
_FINISH = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
}
_WINDOW_KEYS = ("max_model_len", "context_window", "context_length", "loaded_context_length", "max_context_length")


class AnswerReader:
    """Reads the events of one answer. began: a chunk was given out. finished: the server told how the answer ended."""

    __slots__ = ("_calls", "_dialect", "_finish", "_refused", "_usage", "began", "done")

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._usage: Usage | None = None
        self._finish = ""
        self._calls = False
        self._refused = False
        self.began = False
        self.done = False

    @property
    def finished(self) -> bool:
        return self.done or bool(self._finish)

    def read(self, event: Mapping[str, Any]) -> Sequence[Chunk]:
        """Return the chunks of one event, in order: reasoning, text, tool calls."""
        if usage := event.get("usage"):
            self._usage = usage_of(usage)  # some servers tell it with each event; the last one counts
        choices = event.get("choices")
        choice = choices[0] if choices and not choices[0].get("index") else _first(choices)
        if choice is None:
            return ()
        if finish := choice.get("finish_reason"):
            self._finish = str(finish)
        delta = choice.get("delta") or choice.get("message")
        chunks: list[Chunk] = self._delta(delta) if delta else []
        if chunks:
            self.began = True
        return chunks

    def end(self) -> Sequence[Chunk]:
        """Return the usage, if it was told, and the finish. Raises ModelRefused, ModelUnavailable."""
        if not self.finished or self._finish == "error":
            raise ModelUnavailable("The model server broke the answer off.")
        reason = _FINISH.get(self._finish, FinishReason.STOP)
        if reason is FinishReason.STOP and self._calls:
            reason = FinishReason.TOOL_CALLS
        if self._refused:
            reason = FinishReason.CONTENT_FILTER
        if reason is FinishReason.CONTENT_FILTER and not self.began:
            raise ModelRefused()
        finish = FinishChunk(reason)
        return (UsageChunk(self._usage), finish) if self._usage else (finish,)

    def _delta(self, delta: Mapping[str, Any]) -> list[Chunk]:
        content = delta.get("content")
        if content and type(content) is str and len(delta) <= 2:  # most events: role and content, or content alone
            return [TextChunk(content)]
        chunks: list[Chunk] = []
        for key in REASONING_KEYS:
            if (reasoning := delta.get(key)) and isinstance(reasoning, str):
                if self._dialect.reasoning:
                    self._dialect.reasoning = key
                chunks.append(ReasoningChunk(reasoning))
                break  # some servers send the same text under both keys
        if isinstance(content, list):
            chunks += _content_parts(content)
        elif content:
            chunks.append(TextChunk(str(content)))
        if refusal := delta.get("refusal"):
            self._refused = True
            chunks.append(TextChunk(str(refusal)))
        if calls := delta.get("tool_calls"):
            chunks += [_call(fragment, i) for i, fragment in enumerate(calls)]
            self._calls = True
        return chunks


def usage_of(value: Mapping[str, Any]) -> Usage:
    """Return the usage; servers leave out what they do not count."""
    prompt_details = value.get("prompt_tokens_details") or {}
    completion_details = value.get("completion_tokens_details") or {}
    return Usage(
        prompt=int(value.get("prompt_tokens") or 0),
        cached=int(prompt_details.get("cached_tokens") or value.get("prompt_cache_hit_tokens") or 0),
        completion=int(value.get("completion_tokens") or 0),
        reasoning=int(completion_details.get("reasoning_tokens") or 0),
    )


def window_of(entry: Mapping[str, Any]) -> int | None:
    """Return the context window a server's model list tells (vLLM, Groq, OpenRouter, LM Studio, llama.cpp), or None."""
    for key in _WINDOW_KEYS:
        if isinstance(size := entry.get(key), int) and size > 0:
            return size
    meta = entry.get("meta")
    if isinstance(meta, Mapping):
        for key in ("n_ctx", "n_ctx_train"):
            if isinstance(size := meta.get(key), int) and size > 0:
                return size
    return None


def _first(choices: Any) -> Mapping[str, Any] | None:
    for choice in choices or ():
        if not choice.get("index"):  # 0, missing or null
            found: Mapping[str, Any] = choice
            return found
    return None


def _content_parts(parts: Sequence[Any]) -> list[Chunk]:
    """Return the chunks of content that came as a list of parts, as Mistral's reasoning models send it."""
    chunks: list[Chunk] = []
    for part in parts:
        if not isinstance(part, Mapping):
            continue
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            said = inner if isinstance(inner, str) else "".join(str(p.get("text") or "") for p in inner or ())
            if said:
                chunks.append(ReasoningChunk(said))
        elif text := part.get("text"):
            chunks.append(TextChunk(str(text)))
    return chunks


def _call(fragment: Mapping[str, Any], place: int) -> ToolCallChunk:
    function = fragment.get("function") or {}
    index = fragment.get("index")
    arguments = function.get("arguments") or ""
    if not isinstance(arguments, str):  # an object where JSON text belongs
        arguments = orjson.dumps(arguments).decode()
    return ToolCallChunk(
        index=index if isinstance(index, int) else place,
        id=str(fragment.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=arguments,
    )
