"""Faults between us and PostgreSQL, made on the wire and in the server: silence, lost answers, cut connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from django.db import connections

from agents.stores import pool


class Wall:
    """Stands between us and PostgreSQL.

    flows: while it is not set, everything is taken and nothing passed on. swallowed: something was. lose: once a
    statement that holds these bytes has passed, no answer comes back any more; `cut` ends that.
    """

    def __init__(self) -> None:
        self.flows = asyncio.Event()
        self.flows.set()
        self.swallowed = asyncio.Event()
        self.lose = b""
        self.port = 0
        self.real = pool.params()
        self._answers = asyncio.Event()
        self._answers.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: list[asyncio.StreamWriter] = []

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self.real.get("host", "127.0.0.1"), self.real.get("port") or 5432
        if host.startswith("/"):
            behind = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            behind = await asyncio.open_connection(host, port)
        self._ends += (writer, behind[1])
        for source, target, asks in ((reader, behind[1], True), (behind[0], writer, False)):
            self._tasks.add(asyncio.create_task(self._carry(source, target, asks)))

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, asks: bool) -> None:
        while data := await source.read(65536):
            if not self.flows.is_set():
                self.swallowed.set()
            await self.flows.wait()
            if asks and self.lose and self.lose in data:
                self._answers.clear()
            if not asks:
                await self._answers.wait()
            target.write(data)
        target.close()

    async def cut(self) -> None:
        """End every connection that stands; new ones pass."""
        self.lose = b""
        tasks, self._tasks = self._tasks, set()
        ends, self._ends = self._ends, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            end.close()
        await asyncio.gather(*(end.wait_closed() for end in ends), return_exceptions=True)
        self._answers.set()


@asynccontextmanager
async def walled(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wall]:
    """Lead this loop's pool through a wall: its settings name the wall as the database's address."""
    wall = Wall()
    server = await asyncio.start_server(wall.connected, "127.0.0.1", 0)
    wall.port = server.sockets[0].getsockname()[1]
    await pool.close()
    with monkeypatch.context() as patch:
        settings = connections["default"].settings_dict
        patch.setitem(settings, "HOST", "127.0.0.1")
        patch.setitem(settings, "PORT", wall.port)
        patch.setitem(settings, "OPTIONS", {**settings["OPTIONS"], "sslmode": "disable"})
        try:
            yield wall
        finally:
            await pool.close()
            server.close()
            await wall.cut()


@asynccontextmanager
async def cutting_who_reads(table: str) -> AsyncIterator[None]:
    """Lock a table, and end the connection of everybody who waits for it, as a database does that is going away."""

    async def cut() -> None:
        async with await psycopg.AsyncConnection.connect(**pool.params()) as beside:
            while True:
                await beside.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
                )
                await asyncio.sleep(0.01)  # each look is a round trip; a lock wait has no other sign

    holder: psycopg.AsyncConnection[Any]
    async with await psycopg.AsyncConnection.connect(**{**pool.params(), "autocommit": False}) as holder:
        await holder.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        cutting = asyncio.create_task(cut())
        try:
            yield
        finally:
            cutting.cancel()
            await asyncio.gather(cutting, return_exceptions=True)
            await holder.rollback()
