"""Summaries in memory, for tests and for runs without a database. Keeps the promises of SummaryStore."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from agents.runtime.summaries import Draft, Summary


class MemorySummaries:
    """The summaries of one session, on one chain without forks. rows: all that were ever stored, oldest first."""

    def __init__(self) -> None:
        self.rows: list[Summary] = []
        self.drafts: dict[str, Draft] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def newest(self, filter_keys: Sequence[str]) -> Mapping[str, Summary]:
        return {row.filter_key: row for row in self.rows if row.filter_key in filter_keys}

    @asynccontextmanager
    async def hold(self, filter_key: str, *, wait_s: float) -> AsyncIterator[bool]:
        lock = self._locks.setdefault(filter_key, asyncio.Lock())
        try:
            async with asyncio.timeout(wait_s):
                await lock.acquire()
        except TimeoutError:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    async def advance(self, summary: Summary) -> bool:
        base = (await self.newest([summary.filter_key])).get(summary.filter_key)
        if (base.id if base else "") != summary.base:
            return False
        if base is not None and summary.boundary.position <= base.boundary.position:
            return False
        self.rows.append(summary)
        return True

    async def draft(self, filter_key: str) -> Draft | None:
        return self.drafts.get(filter_key)

    async def keep_draft(self, filter_key: str, draft: Draft | None) -> None:
        if draft is None:
            self.drafts.pop(filter_key, None)
        else:
            self.drafts[filter_key] = draft
