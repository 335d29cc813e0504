"""The hot path's connections when the database falls silent without closing anything."""

import asyncio

import pytest

from agents.runtime.errors import StorageUnavailable
from agents.stores import pool
from tests.agents.wall import walled

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_S = 5.0  # psycopg's own patience with a silent server is 10 s


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
