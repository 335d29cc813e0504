"""The frames of one run as this process knows them, and who follows them.

A follower never has a queue of its own: it is a cursor into the run's tail. While it keeps up it is in the fast lane
and the run writes to its socket directly; once its socket is busy it falls behind and a pump of its own catches up,
first from the log, then from the tail. So a slow client costs nothing but its cursor, and a run never waits.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Literal, Protocol

from agents.runlog import Page, stream

logger = logging.getLogger(__name__)

TAIL_FRAMES = 2_000
TAIL_BYTES = 1024 * 1024
# What a tail may hold at most while the log cannot take it (Valkey away).
UNLOGGED_BYTES = 16 * 1024 * 1024
PAGE_FRAMES = 256

Mode = Literal["replay", "snapshot", "idle"]


class Sink(Protocol):
    """Where an attachment's frames go: one socket, or one SSE response."""

    def try_send(self, *frames: bytes) -> bool:
        """Write the frames now, all or none, or return False if the socket is closed, paused or busy. Never waits."""
        ...

    async def send(self, data: bytes) -> None:
        """Send the frame, waiting while the socket is paused. Returns at once when the socket is closed."""
        ...

    def resync(self, thread_id: str, run_id: str) -> None:
        """Tell the client that the frames it misses are gone: it must attach again without `after`. Never waits."""
        ...

    def run_started(self, thread_id: str, run_id: str) -> None:
        """Tell the client that its attachment now follows this run, from its first frame. Never waits."""
        ...


class Feed:
    """One run's frames: numbered from 1 without gaps, the newest in memory.

    read(stream, after) reads a page of older frames from the log. `logged` is how far the log has them; a remote feed
    comes from the log, so it has them all. local: the run goes on in this process.
    """

    def __init__(
        self,
        *,
        name: tuple[int, str, str],
        run_key: int,
        read: Callable[[str, int], Awaitable[Page]],
        seq: int = 0,
        local: bool = False,
    ) -> None:
        self.owner_id, self.thread_id, self.run_id = name
        self.run_key = run_key
        self.local = local
        self.stream = stream(run_key, self.run_id)
        self._read = read
        self.seq = seq
        self.logged = seq
        self.ended = False
        self.broken = False
        self.closed_from: int | None = None  # first seq a sweep gave, when it closed a lost run
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._fast: set[Attachment] = set()
        self._followers: set[Attachment] = set()

    @property
    def name(self) -> tuple[int, str, str]:
        return self.owner_id, self.thread_id, self.run_id

    @property
    def followed(self) -> bool:
        return bool(self._followers)

    def publish(self, frames: Sequence[bytes]) -> None:
        """Take the next frames, which follow self.seq, and hand them to everyone in the fast lane in one go."""
        self._frames.extend(frames)
        self._bytes += sum(map(len, frames))
        self.seq += len(frames)
        busy: list[Attachment] = []
        for attachment in self._fast:
            if attachment.sink.try_send(*frames):
                attachment.sent = self.seq
            else:
                busy.append(attachment)
        for attachment in busy:
            self._fast.discard(attachment)
            attachment.catch_up()
        if len(self._frames) > TAIL_FRAMES or self._bytes > TAIL_BYTES:
            self._trim()

    def since(self, seq: int, limit: int = PAGE_FRAMES) -> list[bytes] | None:
        """Return up to `limit` frames after seq from the tail; None if the tail no longer has them all."""
        first = self.seq - len(self._frames)  # the last seq that is not in the tail
        if seq < first:
            return None
        wanted = self.seq - seq
        if wanted <= 64:
            return [self._frames[i] for i in range(-wanted, 0)][:limit]
        start = seq - first
        return list(islice(self._frames, start, start + limit))

    async def read_log(self, after: int) -> Page:
        """Return a page of the frames that follow `after` from the log."""
        return await self._read(self.stream, after)

    def forget(self) -> int:
        """Return the seq before the oldest frame in memory."""
        return self.seq - len(self._frames)

    def end(self) -> None:
        """Note that the last frame was published; followers that have it all go on to what comes next."""
        self.ended = True
        for attachment in tuple(self._followers):
            self._fast.discard(attachment)
            attachment.ended(self)
            attachment.catch_up()

    def break_off(self) -> None:
        """Note that this feed cannot go on: another process closed the run, or the log lost frames."""
        self.broken = True
        self.ended = True
        for attachment in tuple(self._followers):
            self._fast.discard(attachment)
            attachment.ended(self)
            attachment.catch_up()

    def join(self, attachment: "Attachment") -> None:
        self._followers.add(attachment)

    def leave(self, attachment: "Attachment") -> None:
        self._followers.discard(attachment)
        self._fast.discard(attachment)

    def go_fast(self, attachment: "Attachment") -> None:
        """Put an attachment that has every frame into the fast lane."""
        assert attachment.sent == self.seq and not self.ended
        self._fast.add(attachment)

    def _trim(self) -> None:
        while len(self._frames) > TAIL_FRAMES or self._bytes > TAIL_BYTES:
            oldest = self.seq - len(self._frames) + 1
            if oldest > self.logged and self._bytes <= UNLOGGED_BYTES:
                return
            self._bytes -= len(self._frames.popleft())


class Attachment:
    """One sink following one thread: the run that goes on, then every next one, until it is detached.

    mode, run_id: what was found when it was made. coming: the client names of the runs whose frames this attachment
    sends from the first; a history shown before them must leave their records out. It grows as runs start.
    """

    def __init__(self, *, owner_id: int, thread_id: str, sink: Sink, on_detach: Callable[["Attachment"], None]) -> None:
        self.owner_id = owner_id
        self.thread_id = thread_id
        self.sink = sink
        self.mode: Mode = "idle"
        self.run_id: str | None = None
        self.coming: set[str] = set()
        self.sent = 0
        self.feed: Feed | None = None
        self.detached = False
        self._on_detach = on_detach
        self._next: deque[tuple[Feed, int, bool]] = deque()
        self._ends: set[Feed] = set()
        self._held = True
        self._pump: asyncio.Task[None] | None = None

    @property
    def going(self) -> bool:
        """Whether there is a run whose frames are sent or will be."""
        return self.feed is not None or bool(self._next)

    def detach(self) -> None:
        """Stop following. Safe to call twice."""
        if self.detached:
            return
        self.detached = True
        self._leave()
        for feed in [*(feed for feed, _, _ in self._next), *self._ends]:
            feed.leave(self)
        self._next.clear()
        if self._pump is not None:
            self._pump.cancel()
        self._on_detach(self)

    def follow(self, feed: Feed, *, after: int = 0, announce: bool = True) -> None:
        """Send the feed's frames after `after` as soon as everything before it has been sent."""
        if self.detached or feed is self.feed or feed in self._ends or any(feed is f for f, _, _ in self._next):
            return
        feed.join(self)
        if after == 0:
            self.coming.add(feed.run_id)
        self._next.append((feed, after, announce))
        self.catch_up()

    def wait_for_end(self, feed: Feed) -> None:
        """Send nothing of this run, whose first frames are gone; its end brings a resync."""
        feed.join(self)
        self.coming.discard(feed.run_id)
        self._ends.add(feed)

    def ended(self, feed: Feed) -> None:
        """Hear that a feed has ended."""
        if feed in self._ends and not self.detached:
            self._ends.discard(feed)
            feed.leave(self)
            self.sink.resync(feed.thread_id, feed.run_id)

    def release(self) -> None:
        """Let frames flow: whatever had to be sent before them has been sent."""
        self._held = False
        self.catch_up()

    def catch_up(self) -> None:
        """See to it that a pump runs until this attachment has everything there is."""
        if self._held or self.detached or self._pump is not None:
            return
        self._pump = asyncio.get_running_loop().create_task(self._run(), name=f"pump {self.thread_id}")
        self._pump.add_done_callback(_report)

    async def _run(self) -> None:
        try:
            while not self.detached and self._advance():
                feed = self.feed
                assert feed is not None
                if await self._send_rest(feed):
                    # Nothing was awaited since the tail was looked at, so no frame can fall between.
                    if not feed.ended:
                        feed.go_fast(self)
                        return
                    self._leave()
        except ConnectionError:
            self.detach()
        finally:
            self._pump = None

    def _advance(self) -> bool:
        """Make sure there is a feed to send from; False if nothing waits."""
        if self.feed is not None:
            return True
        if not self._next:
            return False
        feed, self.sent, announce = self._next.popleft()
        self.feed = feed
        if announce:
            self.sink.run_started(feed.thread_id, feed.run_id)
        return True

    async def _send_rest(self, feed: Feed) -> bool:
        """Send until the cursor is at the feed's end; False if the feed was given up instead."""
        while self.sent < feed.seq or feed.broken:
            if feed.broken:
                return self._give_up(feed)
            frames = feed.since(self.sent)
            if frames is None:
                page = await feed.read_log(self.sent)
                if page.gap:
                    return self._give_up(feed)
                frames = page.frames
            for data in frames:
                await self.sink.send(data)
                if self.detached:
                    return False
                self.sent += 1
        return True

    def _give_up(self, feed: Feed) -> bool:
        logger.info("follower of run %s must resync after frame %d", feed.run_key, self.sent)
        self._leave()
        self.sink.resync(feed.thread_id, feed.run_id)
        return False

    def _leave(self) -> None:
        if self.feed is not None:
            self.feed.leave(self)
            self.feed = None


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("a follower's pump failed", exc_info=error)
