"""The memories of one owner over the tables: MemoryStore for runs, pages and tools."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError
from django.utils import timezone

from agents.runtime.embedding import Embedder
from agents.runtime.memory.memories import (
    MOST_MEMORIES,
    Draft,
    Found,
    Memory,
    MemoryUnavailable,
    Query,
    Source,
    Tombstone,
    Written,
)
from agents.stores import vectors
from agents.stores.db import in_thread
from agents.stores.memoryrows import MemoryRows

P = ParamSpec("P")
R = TypeVar("R")


class PgMemories:
    """Implements agents.runtime.memory.memories.MemoryStore. Belongs to no event loop.

    embedder: None = a search goes by words alone; so it does when the question's vector is not there in time.
    heeds_switch, now, most: see MemoryRows.
    """

    def __init__(
        self,
        owner_id: int,
        *,
        embedder: Embedder | None = None,
        heeds_switch: bool = False,
        now: Callable[[], datetime] = timezone.now,
        most: int = MOST_MEMORIES,
    ) -> None:
        self._rows = MemoryRows(owner_id, heeds_switch=heeds_switch, now=now, most=most)
        self._embedder = embedder

    async def add(self, draft: Draft) -> Written:
        return await _asked(self._rows.add, draft)

    async def update(self, id: str, draft: Draft, *, version: int | None = None) -> Memory:
        return await _asked(self._rows.update, id, draft, version=version)

    async def supersede(self, id: str, draft: Draft, *, version: int | None = None) -> Written:
        return await _asked(self._rows.supersede, id, draft, version=version)

    async def delete(self, id: str, *, by: Source) -> bool:
        return await _asked(self._rows.delete, id, by=by)

    async def withdraw(self, id: str, *, by: Source) -> Memory | None:
        return await _asked(self._rows.withdraw, id, by=by)

    async def restore(self, memories: Sequence[Memory]) -> None:
        await _asked(self._rows.restore, memories)

    async def mute(self, id: str, muted: bool) -> Memory:
        return await _asked(self._rows.mute, id, muted)

    async def clear(self, *, by: Source) -> int:
        return await _asked(self._rows.clear, by=by)

    async def read(self, limit: int = 0, *, muted: bool = False) -> tuple[Memory, ...]:
        """See the protocol. One statement."""
        return await _asked(self._rows.read, limit, muted=muted)

    async def search(self, query: Query) -> tuple[Found, ...]:
        """See the protocol. Two statements; four if another kind is searched too."""
        vector = await vectors.of_question(self._embedder, query.text)
        return await _asked(self._rows.search, query, vector)

    async def history(self, id: str) -> tuple[Memory, ...]:
        return await _asked(self._rows.history, id)

    async def export(self) -> tuple[Memory, ...]:
        return await _asked(self._rows.export)

    async def buried(self, hashes: Collection[str]) -> tuple[Tombstone, ...]:
        return await _asked(self._rows.buried, hashes)

    async def used(self, ids: Collection[str]) -> None:
        await _asked(self._rows.used, ids)


async def _asked(work: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
    try:
        return await in_thread(work)(*args, **more)
    except (OperationalError, InterfaceError) as error:
        raise MemoryUnavailable from error
