"""Visible chains that this process has read or written, so that the next run of a conversation need not read them all.

A chain is trusted only as far as the database's own word goes: an opening run learns the session's last position and
the id of the event there. Both the same: nothing was appended since, by anybody. Otherwise the events from the chain's
last one on are fetched, and that one must be there still, or everything is read anew; so it is after the owner has
deleted from memory, which also takes what tools had shown of it out of stored events.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import orjson

from agents.runtime.events import AssistantMessage, RunFailed, Stored, ToolReturned, UserMessage
from agents.runtime.model import TextPart

MAX_BYTES = 16 * 1024 * 1024
# Fewer are read as fast as they are found here, and most conversations are short.
MIN_EVENTS = 32
IDLE_S = 900.0  # what was deleted meanwhile stays no longer
EVENT_BYTES = 1_000  # of an event without its text

Key = tuple[int, int, int]  # session, head fork, the owner's last deletion from memory


@dataclass(frozen=True, slots=True)
class Chain:
    """events: the visible chain of a head fork from position `since` on, oldest first, as of `position` of its session,
    which has last_id. since: 0 = all of it."""

    since: int
    events: tuple[Stored, ...]
    position: int
    last_id: str
    size: int
    used_at: float


class Histories:
    """The chains used last, up to max_bytes in all. Belongs to one event loop; `current()` gives the loop's own."""

    def __init__(self, clock: Callable[[], float], *, max_bytes: int = MAX_BYTES, min_events: int = MIN_EVENTS) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._min_events = min_events
        self._chains: OrderedDict[Key, Chain] = OrderedDict()
        self.size = 0

    def find(self, key: Key) -> Chain | None:
        """Return what is known of a chain."""
        self._tidy()
        return self._chains.get(key)

    def keep(self, key: Key, events: Sequence[Stored], *, since: int = 0) -> None:
        """Keep a chain, whole from position `since` on, whose last event is the session's last.

        Call it where no other run can have appended.
        """
        before = self._drop(key)
        if len(events) < self._min_events or not events[-1].id:
            return
        known = before.events if before else ()
        shared = len(known) if len(known) <= len(events) and known and known[-1] is events[len(known) - 1] else 0
        size = sum(map(_size, events[shared:])) + (before.size if before and shared else 0)
        if size > self._max_bytes:
            return
        last = events[-1]
        self._chains[key] = Chain(since, tuple(events), last.position, last.id, size, self._clock())
        self.size += size
        self._tidy()

    def forget(self) -> None:
        """Forget every chain, as a process that knows none."""
        self._chains.clear()
        self.size = 0

    def _tidy(self) -> None:
        oldest = self._clock() - IDLE_S
        while self._chains:
            key, chain = next(iter(self._chains.items()))
            if self.size <= self._max_bytes and chain.used_at > oldest:
                return
            self._drop(key)

    def _drop(self, key: Key) -> Chain | None:
        chain = self._chains.pop(key, None)
        if chain is not None:
            self.size -= chain.size
        return chain


_histories: WeakKeyDictionary[asyncio.AbstractEventLoop, Histories] = WeakKeyDictionary()


def current() -> Histories:
    """Return this loop's histories, made on first use."""
    loop = asyncio.get_running_loop()
    found = _histories.get(loop)
    if found is None:
        found = _histories[loop] = Histories(loop.time)
    return found


def _size(stored: Stored) -> int:
    """Return about how many bytes an event takes."""
    record = stored.record
    if isinstance(record, UserMessage):
        text = sum(len(part.text) for part in record.parts if isinstance(part, TextPart))
        text += sum(len(name) + len(value) for name, value in record.context)
    elif isinstance(record, AssistantMessage):
        text = len(record.text) + len(record.reasoning) + sum(len(call.arguments) for call in record.tool_calls)
    elif isinstance(record, ToolReturned):
        text = len(record.content) + len(orjson.dumps(record.data, default=str))
    elif isinstance(record, RunFailed):
        text = len(record.message)
    else:
        text = 0
    return EVENT_BYTES + 2 * text
