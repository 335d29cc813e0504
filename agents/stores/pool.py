"""The process's own connections for the hot path: psycopg, autocommit, prepared statements.

One pool per event loop (a process has one loop; tests have many). It opens in the running loop on first use and is
closed at drain. The ORM keeps its own pool.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString
from weakref import WeakKeyDictionary
from zlib import crc32

import orjson
import psycopg
from django.db import connections
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from agents.runtime.errors import StorageUnavailable

AWAY_S = 10.0  # how long the database may be away before a caller hears of it
DJANGO_ONLY = frozenset({"pool", "isolation_level", "assume_role", "server_side_binding"})  # options not for psycopg
_PAUSE_S = 0.1  # between two tries
_LET_GO_S = 0.2  # a server that lives lets a cancelled statement go within this time
_TRY_S = 1.0  # one wait for a connection

Connection = psycopg.AsyncConnection[tuple[Any, ...]]
Params = Sequence[Any] | Mapping[str, Any]

_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncConnectionPool[Connection]] = WeakKeyDictionary()


def params() -> dict[str, Any]:
    """Return what psycopg needs to connect, from Django's settings (in tests: to the test database)."""
    found = connections["default"].settings_dict
    options = {k: v for k, v in found["OPTIONS"].items() if k not in DJANGO_ONLY}
    given = {
        "dbname": found["NAME"],
        "user": found["USER"],
        "password": found["PASSWORD"],
        "host": found["HOST"],
        "port": found["PORT"],
    }
    # A plan made while the tables were nearly empty would scan them for ever; every statement here is a point read
    # or a range of an index.
    flags = f"{options.pop('options', '')} -c jit=off -c enable_seqscan=off -c lock_timeout=1s -c TimeZone=UTC"
    return {
        "application_name": f"workbench {socket.gethostname()} {os.getpid()}"[:63],
        "connect_timeout": 5,
        # a machine that is gone without a word is noticed within the lease of a run; libpq ignores these for sockets
        "tcp_user_timeout": 10_000,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        **options,
        **{k: v for k, v in given.items() if v},
        "options": flags.strip(),
        "autocommit": True,
        "prepare_threshold": 2,
    }


async def configure(connection: Connection) -> None:
    set_json_loads(orjson.loads, connection)


async def connect() -> Connection:
    """Return a connection of the caller's own. Raises psycopg.OperationalError."""
    connection: Connection = await psycopg.AsyncConnection.connect(**params())
    await configure(connection)
    return connection


async def current() -> AsyncConnectionPool[Connection]:
    """Return this loop's pool, opened."""
    loop = asyncio.get_running_loop()
    pool = _pools.get(loop)
    if pool is None or pool.closed:
        sizes = connections["default"].settings_dict["OPTIONS"].get("pool") or {}
        pool = _pools[loop] = AsyncConnectionPool(
            kwargs=params(),
            connection_class=psycopg.AsyncConnection,
            configure=configure,
            min_size=min(2, sizes.get("max_size", 4)),
            max_size=sizes.get("max_size", 4),
            # a failed try to connect is over at once; the next caller tries again, rather than a backoff of seconds
            reconnect_timeout=0,
            timeout=_TRY_S,
            open=False,
            name="hot",
        )
        await pool.open()
    return pool


async def close() -> None:
    """Close this loop's pool, if there is one."""
    pool = _pools.pop(asyncio.get_running_loop(), None)
    if pool is not None:
        await pool.close()


async def fetch(statement: LiteralString | str, params: Params, *, lock: int | None = None) -> list[tuple[Any, ...]]:
    """Run one statement, its own transaction, and return its rows.

    lock: an advisory lock (64 bits) that the transaction takes first, so that the statement sees what others wrote
    under it. A broken connection is replaced and the statement sent again for up to 10 s, so it must be safe to send
    twice. Raises StorageUnavailable, and psycopg.Error for a statement that cannot work.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + AWAY_S
    while True:
        try:
            pool = await current()
            connection = await pool.getconn()
            try:
                return await _within(until - loop.time(), connection, statement, params, lock)
            finally:
                await pool.putconn(connection)
        except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, OSError, TimeoutError) as e:
            if loop.time() + _PAUSE_S >= until:
                raise StorageUnavailable from e
            await asyncio.sleep(_PAUSE_S)


async def _within(
    seconds: float, connection: Connection, statement: LiteralString | str, params: Params, lock: int | None
) -> list[tuple[Any, ...]]:
    """Ask and return the rows. Raises TimeoutError; a connection that still waits is closed then.

    psycopg waits up to 10 s more when its task is cancelled, so a server that hangs is left behind instead.
    """
    asking = asyncio.ensure_future(_rows(connection, statement, params, lock))
    try:
        done, _ = await asyncio.wait((asking,), timeout=max(0.0, seconds))
    finally:
        if not asking.done():
            await _let_go(asking, connection)
    if not done:
        raise TimeoutError
    return asking.result()


async def _let_go(asking: "asyncio.Future[Any]", connection: Connection) -> None:
    asking.add_done_callback(_looked_at)
    asking.cancel()
    await asyncio.wait((asking,), timeout=_LET_GO_S)
    if not asking.done():
        await connection.close()


async def _rows(
    connection: Connection, statement: LiteralString | str, params: Params, lock: int | None
) -> list[tuple[Any, ...]]:
    if lock is not None:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s::bigint)", (lock,))
            return await _rows(connection, statement, params, None)
    cursor = await connection.execute(statement, params, prepare=True)
    return await cursor.fetchall() if cursor.description else []


def _looked_at(asking: "asyncio.Future[Any]") -> None:
    """Look at the exception, so that asyncio does not complain: nobody waits for this answer any more."""
    if not asking.cancelled():
        asking.exception()


@asynccontextmanager
async def try_lock(name: str) -> AsyncIterator[bool]:
    """Hold an advisory lock of this name for the whole database while the block runs; False: somebody else has it.

    It belongs to the connection, so a process that dies gives it back.
    """
    pool = await current()
    key = crc32(name.encode())
    async with pool.connection(timeout=AWAY_S) as connection:
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s::bigint)", (key,))
        found = await cursor.fetchone()
        held = bool(found and found[0])
        try:
            yield held
        finally:
            if held and not connection.closed:
                await connection.execute("SELECT pg_advisory_unlock(%s::bigint)", (key,))
