"""Memories, messages and a store that several tests of this room need."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from agents.runtime.memory.dates import Period, Precision
from agents.runtime.memory.memories import Draft, Kind, Memory, Origin, Source
from agents.runtime.memory.memorystore import MemoryShelves, OwnMemories
from agents.runtime.memory.sources import Said

ZONE = ZoneInfo("Asia/Shanghai")
AT = datetime(2026, 3, 11, 2, 0, tzinfo=UTC)  # a Wednesday, ten in the morning in Shanghai


@dataclass(slots=True)
class Clock:
    """A minute passes with each look at it."""

    at: datetime = AT

    def __call__(self) -> datetime:
        self.at += timedelta(minutes=1)
        return self.at


@dataclass(slots=True)
class House:
    """The memories of everybody, with a clock that goes and ids in order."""

    most: int = 1_000
    clock: Clock = field(default_factory=Clock)
    shelves: MemoryShelves = field(init=False)
    made: int = 0

    def __post_init__(self) -> None:
        self.shelves = MemoryShelves(now=self.clock, new_id=self._id, most=self.most)

    @property
    def alice(self) -> OwnMemories:
        return self.shelves.of(1)

    @property
    def bob(self) -> OwnMemories:
        return self.shelves.of(2)

    def limit(self, most: int) -> None:
        self.shelves.most = most

    def _id(self) -> str:
        self.made += 1
        return f"m{self.made}"


def draft(text: str = "Likes tea", **more: Any) -> Draft:
    return Draft(text=text, **{"source": Source.EXTRACTOR, **more})


def memory(id: str, text: str, **more: Any) -> Memory:
    rest = {"source": Source.EXTRACTOR, "created_at": AT, "updated_at": AT, "version": 1, **more}
    return Memory(id=id, text=text, **rest)


def day(year: int, month: int, number: int) -> Period:
    start = datetime(year, month, number, tzinfo=ZONE).astimezone(UTC)
    return Period(start=start, end=start + timedelta(days=1), precision=Precision.DAY)


def episode(text: str, at: Period | None = None, **more: Any) -> Draft:
    return draft(text, kind=Kind.EPISODE, event_time=at, **more)


def said(text: str, *, at: datetime = AT, position: int = 1) -> Said:
    return Said(origin=Origin(thread_id="t", event_id=f"e{position}", position=position), at=at, text=text)
