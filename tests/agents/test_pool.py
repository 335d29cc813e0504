"""The hot path's connections when the database falls silent without closing anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agents.runtime.errors import StorageUnavailable
from agents.stores import pool

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_S = 5.0  # psycopg's own patience with a silent server is 10 s


class Wall:
    """Stands between us and PostgreSQL; while `silent`, it takes everything and answers nothing."""

    def __init__(self) -> None:
        self.flows = asyncio.Event()
        self.flows.set()
        self.swallowed = asyncio.Event()
        self.port = 0
        self._real = pool.params()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: list[asyncio.StreamWriter] = []

    def params(self) -> dict[str, Any]:
        return {**self._real, "host": "127.0.0.1", "port": self.port, "sslmode": "disable"}

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self._real.get("host", "127.0.0.1"), self._real.get("port") or 5432
        if host.startswith("/"):
            behind = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            behind = await asyncio.open_connection(host, port)
        self._ends += (writer, behind[1])
        for source, target in ((reader, behind[1]), (behind[0], writer)):
            self._tasks.add(asyncio.create_task(self._carry(source, target)))

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            if not self.flows.is_set():
                self.swallowed.set()
            await self.flows.wait()
            target.write(data)
        target.close()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for end in self._ends:
            end.close()
        await asyncio.gather(*(end.wait_closed() for end in self._ends), return_exceptions=True)


@asynccontextmanager
async def walled(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wall]:
    wall = Wall()
    server = await asyncio.start_server(wall.connected, "127.0.0.1", 0)
    wall.port = server.sockets[0].getsockname()[1]
    monkeypatch.setattr(pool, "params", wall.params)
    try:
        yield wall
    finally:
        await pool.close()
        server.close()
        await wall.close()


async def test_a_silent_database_is_given_up_in_time_and_used_again_when_it_speaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """psycopg alone would wait twice as long: for the answer, then for the end of what was cancelled."""
    async with walled(monkeypatch) as wall:
        assert await pool.fetch("SELECT 1", ()) == [(1,)]
        monkeypatch.setattr(pool, "AWAY_S", 0.5)
        wall.flows.clear()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(StorageUnavailable):
                await pool.fetch("SELECT 2", ())
        wall.flows.set()
        monkeypatch.setattr(pool, "AWAY_S", 10.0)
        assert await pool.fetch("SELECT 3", ()) == [(3,)]


async def test_a_caller_who_gives_up_is_not_held_by_a_silent_database(monkeypatch: pytest.MonkeyPatch) -> None:
    async with walled(monkeypatch) as wall:
        assert await pool.fetch("SELECT 1", ()) == [(1,)]
        wall.flows.clear()
        caller = asyncio.create_task(pool.fetch("SELECT 2", ()))
        async with asyncio.timeout(PATIENCE_S):
            await wall.swallowed.wait()
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller
        wall.flows.set()
        assert await pool.fetch("SELECT 3", ()) == [(3,)]
