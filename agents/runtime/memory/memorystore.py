"""Memories in memory, for tests and for runs without a database. Keeps the promises of MemoryStore."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from agents.runtime.excerpts import terms
from agents.runtime.memory.memories import (
    FEW_HITS,
    MOST_MEMORIES,
    Draft,
    Found,
    Memory,
    MemoryDuplicate,
    MemoryMissing,
    Query,
    Source,
    Tombstone,
    VersionConflict,
    Written,
    checked,
    content_hash,
    happened,
)
from agents.runtime.memory.words import normalised, words_hash

LEAST_SCORE: Final = 0.30
TOPIC_WEIGHT: Final = 0.65


class MemoryShelves:
    """The memories of everybody. now, new_id: the only clock and the only source of ids. most: of one owner."""

    def __init__(self, *, now: Callable[[], datetime], new_id: Callable[[], str], most: int = MOST_MEMORIES) -> None:
        self.now = now
        self.new_id = new_id
        self.most = most
        self.rows: dict[int, dict[str, Memory]] = {}
        self.graves: dict[int, list[Tombstone]] = {}

    def of(self, owner_id: int) -> "OwnMemories":
        """Return the store of one owner."""
        return OwnMemories(self, self.rows.setdefault(owner_id, {}), self.graves.setdefault(owner_id, []))


class OwnMemories:
    """A MemoryStore. It has no vectors: a search goes by words. Nothing in it waits, so each call is a transaction."""

    def __init__(self, shelves: MemoryShelves, rows: dict[str, Memory], graves: list[Tombstone]) -> None:
        self._shelves = shelves
        self._rows = rows
        self._graves = graves

    async def add(self, draft: Draft) -> Written:
        draft = checked(draft)
        if (same := self._saying(draft)) is not None:
            return Written(memory=self._write(same, topics=draft.topics), created=False)
        memory = self._insert(draft)
        return Written(memory=memory, created=True, evicted=tuple(self._evict(memory.id)))

    async def update(self, id: str, draft: Draft, *, version: int | None = None) -> Memory:
        draft, memory = checked(draft), self._current(id, version)
        same = self._saying(draft)
        if same is not None and same.id != id:
            raise MemoryDuplicate(same.id)
        return self._write(memory, **_values(draft))

    async def supersede(self, id: str, draft: Draft, *, version: int | None = None) -> Written:
        draft, memory = checked(draft), self._current(id, version)
        same = self._saying(draft)
        if same is not None:
            if same.id != id:
                self._rows[id] = replace(memory, superseded_by=same.id)
            return Written(memory=self._write(same, topics=draft.topics), created=False)
        new = self._insert(draft)
        self._rows[id] = replace(memory, superseded_by=new.id)
        return Written(memory=new, created=True, evicted=tuple(self._evict(new.id)))

    async def delete(self, id: str, *, by: Source) -> bool:
        if id not in self._rows:
            return False
        for memory in self._chain(id):
            self._bury(memory, by)
        return True

    async def withdraw(self, id: str, *, by: Source) -> Memory | None:
        memory = self._current(id, None)
        before = max((m for m in self._rows.values() if m.superseded_by == id), key=_order, default=None)
        for older in [m for m in self._rows.values() if m.superseded_by == id and before is not None]:
            heir = "" if before is None or older is before else before.id
            self._rows[older.id] = replace(older, superseded_by=heir)
        self._bury(memory, by)
        if before is None:
            return None
        same = next((m for m in self._holding() if m.id != before.id and content_hash(m) == content_hash(before)), None)
        if same is not None:
            self._rows[before.id] = replace(before, superseded_by=same.id)
            return None
        return self._rows[before.id]

    async def restore(self, memories: Sequence[Memory]) -> None:
        back = [memory for memory in memories if memory.id not in self._rows]
        for memory in back:
            if not memory.superseded_by and (same := self._saying(memory)) is not None:
                raise MemoryDuplicate(same.id)
        ids = {memory.id for memory in back}
        self._rows |= {memory.id: memory for memory in back}
        self._graves[:] = [grave for grave in self._graves if grave.id not in ids]

    async def mute(self, id: str, muted: bool) -> Memory:
        memory = self._rows[id] = replace(self._current(id, None), muted=muted)
        return memory

    async def clear(self, *, by: Source) -> int:
        rows = list(self._rows.values())
        for memory in rows:
            self._bury(memory, by)
        return len(rows)

    async def read(self, limit: int = 0, *, muted: bool = False) -> tuple[Memory, ...]:
        rows = sorted((m for m in self._holding() if muted or not m.muted), key=lambda m: m.id)
        rows.sort(key=lambda m: (m.updated_at, m.created_at), reverse=True)
        return tuple(rows[:limit] if limit > 0 else rows)

    async def search(self, query: Query) -> tuple[Found, ...]:
        scores = self._scores(query)
        hits = [Found(memory=m, score=score) for m in self._shown() if (score := scores[m.id]) >= LEAST_SCORE]
        hits.sort(key=lambda f: f.memory.id)
        hits.sort(key=lambda f: (f.score, happened(f.memory), f.memory.updated_at), reverse=True)
        own = [hit for hit in hits if query.kind in (None, hit.memory.kind)]
        if query.fallback and len(own) < FEW_HITS:
            own += [hit for hit in hits if hit not in own]
        return tuple(own[: max(1, query.limit)])

    async def history(self, id: str) -> tuple[Memory, ...]:
        if id not in self._rows:
            raise MemoryMissing
        return tuple(self._chain(id))

    async def export(self) -> tuple[Memory, ...]:
        return tuple(sorted(self._rows.values(), key=_order))

    async def buried(self, hashes: Collection[str]) -> tuple[Tombstone, ...]:
        return tuple(sorted((t for t in self._graves if t.hash in hashes), key=lambda t: t.at, reverse=True))

    async def used(self, ids: Collection[str]) -> None:
        for id in set(ids) & self._rows.keys():
            self._rows[id] = replace(self._rows[id], used_at=self._shelves.now())

    def _holding(self) -> list[Memory]:
        return [memory for memory in self._rows.values() if not memory.superseded_by]

    def _shown(self) -> list[Memory]:
        return [memory for memory in self._holding() if not memory.muted]

    def _saying(self, draft: Draft) -> Memory | None:
        wanted = content_hash(draft)
        return next((memory for memory in self._holding() if content_hash(memory) == wanted), None)

    def _current(self, id: str, version: int | None) -> Memory:
        memory = self._rows.get(id)
        if memory is None or memory.superseded_by:
            raise MemoryMissing
        if version is not None and memory.version != version:
            raise VersionConflict
        return memory

    def _insert(self, draft: Draft) -> Memory:
        now = self._shelves.now()
        memory = Memory(id=self._shelves.new_id(), created_at=now, updated_at=now, version=1, **_values(draft))
        self._rows[memory.id] = memory
        return memory

    def _write(self, memory: Memory, **values: Any) -> Memory:
        written = replace(memory, updated_at=self._shelves.now(), version=memory.version + 1, **values)
        self._rows[memory.id] = written
        return written

    def _evict(self, kept: str) -> Iterator[str]:
        while len(self._rows) > self._shelves.most:
            others = (memory for memory in self._rows.values() if memory.id != kept)
            least = min(others, key=lambda m: (not m.superseded_by, m.used_at or m.created_at, m.updated_at, m.id))
            for gone in self._chain(least.id):  # what it superseded could not be reached without it
                del self._rows[gone.id]
                yield gone.id

    def _bury(self, memory: Memory, by: Source) -> None:
        del self._rows[memory.id]
        self._graves.append(Tombstone(id=memory.id, hash=words_hash(memory.text), at=self._shelves.now(), by=by))

    def _chain(self, id: str) -> list[Memory]:
        """Return the memory and all that it superseded, whether one after the other or side by side."""
        before = [memory for memory in self._rows.values() if memory.superseded_by == id]
        older = [memory for one in before for memory in self._chain(one.id)]
        return [self._rows[id], *sorted(older, key=_order, reverse=True)]

    def _scores(self, query: Query) -> dict[str, float]:
        """Return how much of the query's words each memory has, rare words counting more."""
        rows = self._shown()
        words = terms(normalised(query.text))
        texts = {m.id: (normalised(m.text), normalised(" ".join(m.topics))) for m in rows}
        counts = {word: sum(word in text or word in topics for text, topics in texts.values()) for word in words}
        rarity = {word: math.log(1 + (len(rows) + 1) / (counts[word] + 1)) for word in words}
        total = sum(rarity.values()) or 1.0
        passing = {m.id for m in rows if query.between.lets(m.event_time)}
        return {
            id: sum(rarity[w] * (1 if w in text else TOPIC_WEIGHT if w in topics else 0) for w in words) / total
            if id in passing
            else 0.0
            for id, (text, topics) in texts.items()
        }


def _order(memory: Memory) -> tuple[datetime, str]:
    return memory.created_at, memory.id


def _values(draft: Draft) -> dict[str, Any]:
    return {name: getattr(draft, name) for name in Draft.__dataclass_fields__}
