"""The live log of frames: who may write it, what a reader gets, what happens while the server is away."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest_asyncio

from agents import runlog
from agents.runlog import RunLog, Writer, stream
from tests.agents.house import REDIS_URL, until


class Source:
    """Frames of a run, all of them kept from `kept_from` on."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.logged = 0
        self.ended = False
        self.kept_from = 0

    @property
    def seq(self) -> int:
        return len(self.frames)

    @seq.setter
    def seq(self, value: int) -> None:
        raise AttributeError("seq follows from the frames")

    def add(self, count: int = 1) -> None:
        self.frames += [b"frame %d" % (self.seq + n) for n in range(1, count + 1)]

    def since(self, seq: int, limit: int = 256) -> list[bytes] | None:
        return None if seq < self.kept_from else self.frames[seq : seq + limit]

    def forget(self) -> int:
        return self.kept_from


@pytest_asyncio.fixture
async def log() -> AsyncIterator[RunLog]:
    log = RunLog(REDIS_URL)
    yield log
    await log.close()


def new_writer(source: Source, name: str, epoch: int = 1, fenced: list[str] | None = None) -> Writer:
    return Writer(
        stream=name, epoch=epoch, source=source, on_fenced=lambda: (fenced if fenced is not None else []).append(name)
    )


def fresh_name() -> str:
    return stream(1, uuid4().hex)


async def test_frames_are_read_in_pages_from_any_place(log: RunLog) -> None:
    source, name = Source(), fresh_name()
    writer = new_writer(source, name)
    for _ in range(5):
        source.add(300)
        log.dirty(writer)
        assert await log.drained(5)
    source.ended = True
    assert (await log.end(name)) is not None
    for after in (0, 1, 299, 300, 777, 1499):
        got: list[bytes] = []
        while after + len(got) < source.seq:
            page = await log.read(name, after + len(got))
            assert not page.gap
            got += page.frames
        assert got == source.frames[after:]
    assert (await log.read(name, source.seq)).gap


async def test_the_entry_of_a_second_writer_is_refused_as_a_whole(log: RunLog) -> None:
    source, name, fenced = Source(), fresh_name(), list[str]()
    writer = new_writer(source, name, fenced=fenced)
    source.add(10)
    log.dirty(writer)
    assert await log.drained(5)
    source.add(5)
    log.dirty(writer)
    assert await log.drained(5)
    # the sweep had looked before the owner's last entry, and after it
    assert not await log.close_run(name, epoch=2, after=10, frames=[b"snapshot"])
    assert await log.close_run(name, epoch=2, after=15, frames=[b"snapshot", b"error"])
    source.add(50)
    log.dirty(writer)
    await until(lambda: fenced)
    frames, end = await log.frames(name)
    assert frames == [*source.frames[:15], b"snapshot", b"error"]
    assert end is not None and (end.seq, end.epoch, end.ended, end.closed_from) == (17, 2, True, 16)
    assert not writer.behind


async def test_a_server_that_was_away_gets_everything_when_it_is_back(log: RunLog) -> None:
    source, name = Source(), fresh_name()
    writer = new_writer(source, name)
    source.add(5)
    log.dirty(writer)
    assert await log.drained(5)
    working = log._line
    log._line = RunLog("redis://127.0.0.1:1/0")._line
    source.add(5)
    log.dirty(writer)
    await until(lambda: log._failures >= 2)
    log._line = working
    await working.disconnect()
    assert await log.drained(10)
    assert (await log.frames(name))[0] == source.frames


async def test_what_no_tail_could_hold_leaves_a_gap_that_readers_see(log: RunLog) -> None:
    source, name = Source(), fresh_name()
    writer = new_writer(source, name)
    source.add(30)
    source.kept_from = 20
    log.dirty(writer)
    assert await log.drained(5)
    assert (await log.read(name, 0)).gap
    assert (await log.read(name, 20)).frames == source.frames[20:]


async def test_many_runs_share_one_flush(log: RunLog) -> None:
    sources = [Source() for _ in range(50)]
    writers = [new_writer(source, fresh_name()) for source in sources]
    for source, writer in zip(sources, writers, strict=True):
        source.add(3)
        log.dirty(writer)
    assert await log.drained(5)
    for source, writer in zip(sources, writers, strict=True):
        assert (await log.frames(writer.stream))[0] == source.frames


async def test_a_log_lives_on_for_a_while_after_its_end_and_not_for_ever(log: RunLog) -> None:
    source, name = Source(), fresh_name()
    source.add(2)
    source.ended = True
    log.dirty(new_writer(source, name))
    assert await log.drained(5)
    ttl = await log._redis.ttl(name)
    assert 0 < ttl <= runlog.TTL_ENDED_S


async def test_reading_while_the_server_is_away_says_gap_and_takes_no_long_time() -> None:
    log = RunLog("redis://127.0.0.1:1/0")
    async with asyncio.timeout(5):
        assert (await log.read("x", 0)).gap
        assert await log.end("x") is None
        await log.tell({"kind": "start"})
    await log.close()
