"""Joins what a model streams faster than a screen can show.

The first delta after a pause goes out at once; what follows within 16 ms is joined into one. Order never changes.
"""

import asyncio
from collections.abc import Callable

from agents.runtime.events import Emitted, ReasoningDelta, TextDelta, ToolCallDelta

INTERVAL_S = 0.016
MAX_CHARS = 16 * 1024

Joinable = TextDelta | ReasoningDelta | ToolCallDelta


class Coalescer:
    """One run's coalescing buffer. emit is called with events in the order they came, from the run's event loop."""

    __slots__ = ("_chars", "_emit", "_first", "_key", "_last_at", "_loop", "_texts", "_timer")

    def __init__(self, emit: Callable[[Emitted], None]) -> None:
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._last_at = 0.0
        self._first: Emitted | None = None  # what the buffered texts belong to
        self._key: tuple[type, str, str] | None = None
        self._texts: list[str] = []
        self._chars = 0

    def take(self, emitted: Emitted) -> None:
        """Pass the event on: joinable ones at most every 16 ms, all others at once."""
        event = emitted.event
        if isinstance(event, TextDelta | ReasoningDelta):
            self._join(emitted, (type(event), event.message_id, ""), event.text)
        elif isinstance(event, ToolCallDelta):
            self._join(emitted, (ToolCallDelta, event.message_id, event.call_id), event.arguments)
        else:
            self.flush()
            self._emit(emitted)

    def flush(self) -> None:
        """Pass on what is buffered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        first, texts = self._first, self._texts
        if first is None:
            return
        self._first, self._key, self._texts, self._chars = None, None, [], 0
        self._last_at = self._loop.time()
        self._emit(first if len(texts) == 1 else _joined(first, "".join(texts)))

    def _join(self, emitted: Emitted, key: tuple[type, str, str], text: str) -> None:
        if self._first is not None and key != self._key:
            self.flush()
        if self._first is None:
            now = self._loop.time()
            if now - self._last_at >= INTERVAL_S:
                self._last_at = now
                self._emit(emitted)
                return
            self._first, self._key = emitted, key
            self._timer = self._loop.call_at(self._last_at + INTERVAL_S, self.flush)
        self._texts.append(text)
        self._chars += len(text)
        if self._chars >= MAX_CHARS:
            self.flush()


def _joined(first: Emitted, text: str) -> Emitted:
    event = first.event
    if isinstance(event, ToolCallDelta):
        joined: Joinable = ToolCallDelta(event.message_id, event.call_id, event.name, text)
    elif isinstance(event, ReasoningDelta):
        joined = ReasoningDelta(event.message_id, text)
    else:
        assert isinstance(event, TextDelta)
        joined = TextDelta(event.message_id, text)
    return Emitted(joined, first.position, first.origin, first.at)
