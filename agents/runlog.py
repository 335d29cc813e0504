"""The live log of each run's wire frames: a Valkey/Redis stream per run, read by every process that did not run it.

One entry holds the frames of one flush. Its id is `<seq of its first frame>-0`, given by the writer: two writers of one
run collide on it, so after a sweep has appended the closing frames (with a raised epoch) the dead owner's next entry is
refused as a whole. Fields: `e` = epoch, `f` = the frames, one a line (JSON as we write it has no line breaks), `z` =
the last frame ends the run.

The log is never on a run's critical path: writes time out, are tried again later, and the run goes on.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

logger = logging.getLogger(__name__)

# Who follows from another process sees text this much later; each flush costs a round trip and a reply per run.
FLUSH_S = 0.05
WRITE_TIMEOUT_S = 1.0
RETRY_S = (0.2, 0.5, 1.0, 2.0)
MAX_ENTRIES = 10_000
ENTRY_FRAMES = 512
TTL_RUNNING_S = 6 * 3600
TTL_ENDED_S = 15 * 60
PAGE_ENTRIES = 64
CONTROL_KEY = "workbench:control"
CONTROL_ENTRIES = 1_000

UNAVAILABLE = (OSError, TimeoutError, RedisError)


def connect(url: str, *, timeout_s: float = WRITE_TIMEOUT_S) -> Redis:
    """Return a client that fails rather than waits or tries again by itself; RESP2, so that replies have one shape."""
    return Redis.from_url(
        url, socket_timeout=timeout_s, socket_connect_timeout=WRITE_TIMEOUT_S, retry=Retry(NoBackoff(), 0), protocol=2
    )


def stream(run_key: int, run_id: str) -> str:
    """Return the name of a run's stream.

    run_key: the row's. run_id: the client's; it is in the name because a server of logs may outlive a database, and a
    new one counts its rows from 1 again.
    """
    return f"workbench:run:{run_key}:{hashlib.sha256(run_id.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One flush. first: seq of frames[0]. ended: the last frame ends the run."""

    first: int
    epoch: int
    frames: tuple[bytes, ...]
    ended: bool

    @property
    def last(self) -> int:
        return self.first + len(self.frames) - 1


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of a run's frames that follows the asked seq. gap: the log does not have the next frame (any more)."""

    frames: list[bytes]
    gap: bool = False


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a run's log ends. closed_from: seq of the first frame a sweep appended, None if none did."""

    seq: int
    epoch: int
    ended: bool
    closed_from: int | None


class LogSource(Protocol):
    """Who has the frames that are to be logged."""

    seq: int
    logged: int
    ended: bool

    def since(self, seq: int, limit: int = ...) -> list[bytes] | None: ...

    def forget(self) -> int: ...


class Writer:
    """One run's place in the flusher. Frames stay with the source until the log has them."""

    __slots__ = ("epoch", "fenced", "on_fenced", "outages", "source", "started", "stream", "uncertain")

    def __init__(self, *, stream: str, epoch: int, source: LogSource, on_fenced: Callable[[], None]) -> None:
        self.stream = stream
        self.epoch = epoch
        self.source = source
        self.on_fenced = on_fenced
        self.uncertain = False  # a write was refused, or may or may not have arrived: ask before the next one
        self.outages = 0  # the outage after which the log was last asked
        self.fenced = False
        self.started = False

    @property
    def behind(self) -> bool:
        return not self.fenced and self.source.logged < self.source.seq


class RunLog:
    """The log as one process sees it. Belongs to one event loop; `close` it there."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._redis: Any = connect(url)  # redis types its replies for every protocol at once
        # Writes have a connection of their own: a pool would mend a broken one without a word, and that it broke is
        # what we must know, for the server may have lost its last second.
        self._line: Any = self._redis.connection_pool.make_connection()  # type: ignore[no-untyped-call]  # redis
        self._closed = False
        self._dirty: dict[str, Writer] = {}
        self._news: list[bytes] = []
        self._flusher: asyncio.Task[None] | None = None
        self._failures = 0
        self._outages = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    # Writing

    def dirty(self, writer: Writer) -> None:
        """Note that a run has frames the log has not; they are written within 50 ms. Costs nothing, never fails."""
        if writer.fenced or self._closed:
            return
        self._dirty[writer.stream] = writer
        if self._flusher is None:
            self._quiet.clear()
            self._flusher = asyncio.get_running_loop().create_task(self._flush_until_clean(), name="runlog flush")

    def announce(self, message: Mapping[str, str]) -> None:
        """Tell all processes something with the next flush. Costs no round trip; lost if Valkey is away."""
        self._news.append(told(message))

    async def drained(self, timeout_s: float) -> bool:
        """Wait until everything is written; False if that did not happen in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Stop writing and close the connections. What is not written by then is not written."""
        self._closed = True
        if self._flusher is not None:
            self._flusher.cancel()
            await asyncio.gather(self._flusher, return_exceptions=True)
        await self._line.disconnect()
        await self._redis.aclose()

    async def _flush_until_clean(self) -> None:
        try:
            while self._dirty:
                pause = FLUSH_S
                if self._failures:
                    pause = RETRY_S[min(self._failures, len(RETRY_S)) - 1]
                await asyncio.sleep(pause)
                batch, self._dirty = self._dirty, {}
                if await self._flush(tuple(batch.values())):
                    self._failures = 0
                else:
                    self._failures += 1
                for writer in batch.values():
                    if writer.behind:
                        self._dirty.setdefault(writer.stream, writer)
        finally:
            self._flusher = None
            if not self._dirty:
                self._quiet.set()

    async def _flush(self, batch: Sequence[Writer]) -> bool:
        """Write what each run has to write, in one round trip; False if the server did not answer in time."""
        commands: list[bytes] = []
        sent: list[tuple[Writer, int, int]] = []  # writer, place of its reply, seq of its last frame
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                if not self._line.is_connected:
                    self._outages += 1
                    await self._line.connect()
                for writer in batch:
                    if writer.uncertain or (writer.started and writer.outages != self._outages):
                        await self._reconcile(writer)
                for writer in batch:
                    if writer.behind:
                        sent.append((writer, len(commands), self._add(commands, writer)))
                news, self._news = self._news, []
                replies = await self._exchange([*commands, *news])
        except UNAVAILABLE as error:
            if self._failures == 0:
                logger.warning("the run log cannot be written: %s", type(error).__name__)
            self._news.clear()
            for writer, _, _ in sent:
                writer.uncertain = True
            return False
        return self._settle(sent, replies)

    async def _exchange(self, commands: Sequence[bytes]) -> list[Any]:
        """Send the commands in one go and return a reply or a ResponseError for each."""
        replies: list[Any] = []
        try:
            if commands:
                await self._line.send_packed_command(b"".join(commands), check_health=False)
            for _ in commands:
                try:
                    replies.append(await self._line.read_response())
                except ResponseError as error:
                    replies.append(error)
        except BaseException:
            # Replies may still be on their way; nothing else can be asked on this connection.
            await self._line.disconnect(nowait=True)
            raise
        return replies

    def _add(self, commands: list[bytes], writer: Writer) -> int:
        """Add the run's next entry to the commands and return the seq of its last frame."""
        source = writer.source
        frames = source.since(source.logged, ENTRY_FRAMES)
        if frames is None:
            # The tail could not hold what the log did not take. The gap makes readers ask for a snapshot.
            source.logged = source.forget()
            frames = source.since(source.logged, ENTRY_FRAMES) or []
        first = source.logged + 1
        last = source.logged + len(frames)
        fields = [b"e", b"%d" % writer.epoch, b"f", b"\n".join(frames)]
        ended = source.ended and last == source.seq
        if ended:
            fields += (b"z", b"1")
        name = writer.stream.encode()
        commands.append(packed(b"XADD", name, b"MAXLEN", b"~", b"%d" % MAX_ENTRIES, b"%d-0" % first, *fields))
        if ended or not writer.started:
            commands.append(packed(b"EXPIRE", name, b"%d" % (TTL_ENDED_S if ended else TTL_RUNNING_S)))
        return last

    def _settle(self, sent: Sequence[tuple[Writer, int, int]], replies: Sequence[Any]) -> bool:
        """Note what was written; an entry that was refused is looked into before the next flush, which may wait."""
        good = True
        for writer, place, last in sent:
            if isinstance(replies[place], ResponseError):
                writer.uncertain = True
                good = False
                continue
            if not writer.started:
                writer.started, writer.outages = True, self._outages
            writer.source.logged = last
        return good

    async def _reconcile(self, writer: Writer) -> None:
        """Ask the log how far it has a run, after a write that may have been lost, doubled or refused."""
        end = await self._end(writer.stream)
        if end is not None and end.epoch > writer.epoch:
            writer.fenced = True
            writer.on_fenced()
            return
        # A server that came back without the last second, or empty, gets from the tail what it lost.
        writer.source.logged = min(end.seq if end is not None else 0, writer.source.seq)
        writer.started = end is not None
        writer.uncertain = False
        writer.outages = self._outages

    # Reading

    async def end(self, name: str) -> LogEnd | None:
        """Return where the run's log ends; None if there is no log (any more) or it cannot be reached."""
        try:
            return await self.end_now(name)
        except UNAVAILABLE as error:
            logger.warning("the run log cannot be read: %s", type(error).__name__)
            return None

    async def end_now(self, name: str) -> LogEnd | None:
        """Return where the run's log ends; None if there is none. Raises as Redis does."""
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            return await self._end(name)

    async def read(self, name: str, after: int) -> Page:
        """Return frames that follow `after`, some 64 entries; gap=True if the log cannot give the next one."""
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                entries = await self._entries(name, after)
        except UNAVAILABLE as error:
            logger.warning("the run log cannot be read: %s", type(error).__name__)
            return Page([], gap=True)
        frames: list[bytes] = []
        for entry in entries:
            wanted = after + len(frames) + 1
            if entry.last < wanted:
                continue
            if entry.first > wanted:
                break
            frames.extend(entry.frames[wanted - entry.first :])
        return Page(frames, gap=not frames)

    async def frames(self, name: str) -> tuple[list[bytes], LogEnd | None]:
        """Return everything the log has of a run, from its first frame, and where it ends. Raises as Redis does."""
        async with asyncio.timeout(10 * WRITE_TIMEOUT_S):
            end = await self._end(name)
            rows = await self._redis.xrange(name)
        return [frame for row in rows for frame in parse(row).frames], end

    async def _end(self, name: str) -> LogEnd | None:
        rows = await self._redis.xrevrange(name, count=1)
        if not rows:
            return None
        entry = parse(rows[0])
        # A run is closed once, in one entry, so the entry at the end tells whether a sweep was here.
        closed_from = entry.first if entry.ended and entry.epoch > 1 else None
        return LogEnd(seq=entry.last, epoch=entry.epoch, ended=entry.ended, closed_from=closed_from)

    async def _entries(self, name: str, after: int) -> list[Entry]:
        at = await self._redis.xrevrange(name, max=f"{after + 1}-0", count=1)
        start = at[0][0] if at else f"{after + 1}-0"
        rows = await self._redis.xrange(name, min=start, count=PAGE_ENTRIES)
        return [parse(row) for row in rows]

    # Closing a lost run

    async def close_run(self, name: str, *, epoch: int, after: int, frames: Sequence[bytes]) -> bool:
        """Append a lost run's last frames in one entry, with the raised epoch; False if `after` is not the end.

        Raises as Redis does.
        """
        fields: dict[str, bytes | int] = {"e": epoch, "f": b"\n".join(frames), "z": 1}
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.xadd(name, fields, id=f"{after + 1}-0")
                pipe.expire(name, TTL_ENDED_S)
                try:
                    await pipe.execute()
                except ResponseError:
                    return False
        return True

    # Messages between processes

    async def poke(self, name: str, ttl_s: int) -> None:
        """Put an entry into a process's own wake stream. Raises as Redis does."""
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.xadd(name, {"w": 1}, maxlen=1)
            pipe.expire(name, ttl_s)
            await pipe.execute()

    async def tell(self, message: Mapping[str, str]) -> None:
        """Tell all processes something short (a run started, a cancel, a steering message). Lost if Valkey is away."""
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                await self._redis.xadd(CONTROL_KEY, dict(message), maxlen=CONTROL_ENTRIES, approximate=True)
        except UNAVAILABLE as error:
            logger.warning("other processes could not be told: %s", type(error).__name__)


def packed(*words: bytes) -> bytes:
    """Return one command as Redis reads it. The client's own packing cost a tenth of a streaming server's CPU.

    https://redis.io/docs/latest/develop/reference/protocol-spec/
    """
    return b"*%d\r\n%b" % (len(words), b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words]))


def told(message: Mapping[str, str]) -> bytes:
    """Return the command that tells all processes something."""
    fields = [word.encode() for field in message.items() for word in field]
    most = b"%d" % CONTROL_ENTRIES
    return packed(b"XADD", CONTROL_KEY.encode(), b"MAXLEN", b"~", most, b"*", *fields)


def parse(row: tuple[bytes, Mapping[bytes, bytes]]) -> Entry:
    """Return the entry that Redis gave as (id, fields)."""
    entry_id, fields = row
    frames = tuple(fields[b"f"].split(b"\n"))
    first = int(entry_id.split(b"-", 1)[0])
    return Entry(first=first, epoch=int(fields.get(b"e", b"1")), frames=frames, ended=b"z" in fields)
