"""Follows runs of other processes: one task reads all their logs, and what they tell each other, with one XREAD."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import uuid4

from agents import runlog
from agents.live.feed import Feed
from agents.runlog import CONTROL_KEY, Entry, RunLog

logger = logging.getLogger(__name__)

BLOCK_MS = 5_000
ENTRIES = 200
RETRY_S = (0.1, 0.5, 1.0, 2.0)
WAKE_TTL_S = 3_600


class RemoteReader:
    """The reader of one process. It is woken through a stream of its own when a run is added to what it reads.

    on_message: called with what another process told. on_back: awaited once reading begins, also after the server was
    away, since messages may have been missed meanwhile.
    """

    def __init__(
        self, log: RunLog, on_message: Callable[[Mapping[str, str]], None], on_back: Callable[[], Awaitable[None]]
    ) -> None:
        self._log = log
        self._on_message = on_message
        self._on_back = on_back
        self._redis: Any = runlog.connect(log.url, timeout_s=BLOCK_MS / 1000 + 5)
        self._feeds: dict[str, Feed] = {}
        self._wake_key = f"workbench:wake:{uuid4().hex}"
        self._places: dict[str, str] = {}  # where reading goes on in the control and wake streams

    def add(self, feed: Feed) -> None:
        """Publish this run's frames from its log, after feed.seq, until it ends."""
        self._feeds[feed.stream] = feed

    def drop(self, feed: Feed) -> None:
        self._feeds.pop(feed.stream, None)

    def feeds(self) -> tuple[Feed, ...]:
        return tuple(self._feeds.values())

    async def wake(self) -> None:
        """Make the reader look at what was added. If the server is away there is nothing to read anyway."""
        try:
            async with asyncio.timeout(runlog.WRITE_TIMEOUT_S):
                await self._log.poke(self._wake_key, WAKE_TTL_S)
        except runlog.UNAVAILABLE as error:
            logger.info("the reader was not woken: %s", type(error).__name__)

    async def run(self) -> None:
        """Read until cancelled."""
        failures = 0
        while True:
            try:
                if failures or not self._places:
                    await self._begin(again=bool(failures))
                    failures = 0
                await self._read()
            except runlog.UNAVAILABLE as error:
                if failures == 0:
                    logger.warning("logs of other processes cannot be read: %s", type(error).__name__)
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
                failures += 1

    async def close(self) -> None:
        """Close the connection; call it once `run` was cancelled."""
        await self._redis.aclose()

    async def _begin(self, *, again: bool) -> None:
        """Find where the control stream ends, and after an outage let everybody look at what was missed."""
        rows = await self._redis.xrevrange(CONTROL_KEY, count=1)
        self._places = {CONTROL_KEY: rows[0][0].decode() if rows else "0", self._wake_key: "0"}
        if again:
            for feed in self.feeds():
                await self.refresh(feed)
        await self._on_back()

    async def _read(self) -> None:
        places: dict[Any, Any] = dict(self._places)
        places.update((key, f"{feed.seq}-0") for key, feed in self._feeds.items())
        found = await self._redis.xread(places, count=ENTRIES, block=BLOCK_MS)
        for raw_key, rows in found or ():
            key = raw_key.decode()
            if key in self._places:
                self._places[key] = rows[-1][0].decode()
                if key == CONTROL_KEY:
                    self._told(rows)
                continue
            feed = self._feeds.get(key)
            for row in rows:
                if feed is not None and not feed.ended:
                    await self._take(feed, runlog.parse(row))

    def _told(self, rows: Any) -> None:
        for _, fields in rows:
            self._on_message({name.decode(): value.decode() for name, value in fields.items()})

    async def _take(self, feed: Feed, entry: Entry) -> None:
        if entry.first > feed.seq + 1:
            # The owner mended a log that had lost frames, in other portions than it wrote them first.
            await self.refresh(feed)
            return
        self._publish(feed, entry.frames[feed.seq + 1 - entry.first :])
        if entry.ended and feed.seq == entry.last:
            self._end(feed)

    async def refresh(self, feed: Feed) -> None:
        """Read on from feed.seq; a feed whose next frame is gone is broken off."""
        end = await self._log.end(feed.stream)
        while end is not None and feed.seq < end.seq:
            page = await self._log.read(feed.stream, feed.seq)
            if page.gap:
                self.drop(feed)
                feed.break_off()
                return
            self._publish(feed, page.frames)
        if end is not None and end.ended and feed.seq == end.seq:
            self._end(feed)

    def _publish(self, feed: Feed, frames: list[bytes] | tuple[bytes, ...]) -> None:
        if frames:
            feed.logged = feed.seq + len(frames)
            feed.publish(frames)

    def _end(self, feed: Feed) -> None:
        self.drop(feed)
        feed.end()
