"""Summaries in PostgreSQL. Implements agents.runtime.summaries.SummaryStore."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db import connection

from agents import jobs
from agents.models.session import Session
from agents.runtime.errors import Rejected, StorageUnavailable
from agents.runtime.summaries import Draft, Source, Summary
from agents.runtime.surrogates import mended
from agents.stores import pool, sql, summaryrows

MOST_HELD = 4  # connections of one process that hold a scope; doctor counts them
MANUAL = Source.MANUAL.value  # scope of a job that a person asked for
ARCHIVE = Source.ARCHIVE.value  # scope of the job of an archived conversation
_DRAFT = """
SELECT d.base, d.read_chars, d.read_sha256, d.text FROM agents_summarydraft d
WHERE d.session_id = %(session)s AND d.owner_id = %(owner)s AND d.filter_key = %(key)s
"""
_KEEP = """
INSERT INTO agents_summarydraft AS d (owner_id, session_id, filter_key, base, read_chars, read_sha256, text, updated_at)
SELECT s.owner_id, s.id, %(key)s, %(base)s, %(read_chars)s, %(read_sha256)s, %(text)s, clock_timestamp()
FROM agents_session s WHERE s.id = %(session)s AND s.owner_id = %(owner)s AND s.deleted_at IS NULL
ON CONFLICT (session_id, filter_key) DO UPDATE
SET base = excluded.base, read_chars = excluded.read_chars, read_sha256 = excluded.read_sha256, text = excluded.text,
    updated_at = excluded.updated_at
"""
_FORGET = """
DELETE FROM agents_summarydraft d
WHERE d.session_id = %(session)s AND d.owner_id = %(owner)s AND d.filter_key = %(key)s
"""
# PostgreSQL shows the two halves of a lock's number.
HELD = """
SELECT EXISTS (
    SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND d.datname = current_database()
      AND (l.classid::bigint << 32 | l.objid::bigint) = ANY(%s::bigint[])
)
"""

_free: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class PgSummaries:
    """The summaries of one session as the chain that ends in `fork` sees them; nothing of a session of somebody else.

    Belongs to no event loop; every call takes the loop's own connections.
    """

    def __init__(self, *, owner_id: int, session_id: int, fork: int) -> None:
        self._owner_id = owner_id
        self._session_id = session_id
        self._fork = fork

    async def newest(self, filter_keys: Sequence[str]) -> Mapping[str, Summary]:
        """Return the newest summary of each scope on the chain; see SummaryStore.newest."""
        params = {
            "session": self._session_id,
            "owner": self._owner_id,
            "keys": list(dict.fromkeys(filter_keys)),
            "fork": self._fork,
        }
        found = [summaryrows.load(row) for (row,) in await pool.fetch(sql.SUMMARIES, params)]
        return {summary.filter_key: summary for summary in found}

    @asynccontextmanager
    async def hold(self, filter_key: str, *, wait_s: float) -> AsyncIterator[bool]:
        """Serialise the making of one scope's summaries over all processes; False if it is held after wait_s.

        The lock belongs to a connection of its own, which has no transaction open: a model may be asked meanwhile, and
        a process that dies gives it back. A process has MOST_HELD such connections; who comes later waits for one, and
        that is part of wait_s. Raises StorageUnavailable.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_s
        free = _free.setdefault(loop, asyncio.Semaphore(MOST_HELD))
        try:
            async with asyncio.timeout_at(until):
                await free.acquire()
        except TimeoutError:
            yield False
            return
        try:
            own = await _connected()
            try:
                yield await _locked(own, _lock("hold", self._session_id, filter_key), until - loop.time())
            finally:
                await own.close()
        finally:
            free.release()

    async def advance(self, summary: Summary) -> bool:
        """Store a summary if its base is still the newest on the chain; see SummaryStore.advance.

        False also for a session that is deleted or another's, and for a boundary at no event of the chain. Raises
        StorageUnavailable.
        """
        text, _ = summaryrows.dump(summary)
        params = {
            "session": self._session_id,
            "owner": self._owner_id,
            "head": self._fork,
            "filter_key": summary.filter_key,
            "summary": text,
            "id": summary.id,
        }
        rows = await pool.fetch(sql.ADVANCE, params, lock=_lock("advance", self._session_id, summary.filter_key))
        return bool(rows[0][0])

    async def draft(self, filter_key: str) -> Draft | None:
        """Return what is kept of a long text that is being read; see SummaryStore.draft."""
        rows = await pool.fetch(_DRAFT, self._scope(filter_key))
        return Draft(base=rows[0][0], read_chars=rows[0][1], read_sha256=rows[0][2], text=rows[0][3]) if rows else None

    async def keep_draft(self, filter_key: str, draft: Draft | None) -> None:
        """Keep a draft; see SummaryStore.keep_draft. Nothing for a session that is deleted or another's."""
        if draft is None:
            await pool.fetch(_FORGET, self._scope(filter_key))
            return
        text = mended(draft.text).replace("\0", "")  # PostgreSQL keeps none
        await pool.fetch(_KEEP, {**self._scope(filter_key), **asdict(draft), "text": text})

    def _scope(self, filter_key: str) -> dict[str, Any]:
        return {"session": self._session_id, "owner": self._owner_id, "key": filter_key}


def _lock(purpose: str, session_id: int, filter_key: str) -> int:
    name = f"summary:{purpose}:{session_id}:{filter_key}".encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8], signed=True)


async def _connected() -> pool.Connection:
    try:
        return await pool.connect()
    except (psycopg.OperationalError, OSError) as e:
        raise StorageUnavailable from e


async def _locked(own: pool.Connection, key: int, wait_s: float) -> bool:
    """Take the lock within this time, in seconds, and say whether it was there to take."""
    try:
        await own.execute("SELECT set_config('lock_timeout', %s, false)", (f"{max(1, int(wait_s * 1000))}ms",))
        await own.execute("SELECT pg_advisory_lock(%s::bigint)", (key,))
    except psycopg.errors.LockNotAvailable:
        return False
    except (psycopg.OperationalError, psycopg.InterfaceError) as e:
        raise StorageUnavailable from e
    return True


def visible(*, owner_id: int, thread_id: str, filter_key: str | None = None) -> Summary | None:
    """Return the newest summary of a conversation as its current line sees it; None if there is none.

    filter_key: the scope, None = that of its agent, else of the whole session. Sync, on Django's connection. Unknown
    and foreign threads have none.
    """
    session = Session.objects.of(owner_id).filter(thread_id=thread_id, deleted_at=None).first()
    if session is None:
        return None
    keys = [session.agent, ""] if filter_key is None else [filter_key]
    params: dict[str, Any] = {"session": session.pk, "owner": owner_id, "keys": keys, "fork": session.head_fork}
    with connection.cursor() as cursor:
        cursor.execute(sql.SUMMARIES, params)
        found = {summary.filter_key: summary for summary in (summaryrows.load(row) for (row,) in cursor.fetchall())}
    return next((found[key] for key in keys if key in found), None)


def being_made(*, owner_id: int, thread_id: str) -> bool:
    """Return whether a job or a run makes a summary of the conversation now, of its agent's scope or of the whole.

    Sync, on Django's connection; nothing is locked. Of unknown and foreign threads nobody makes any.
    """
    session = Session.objects.of(owner_id).filter(thread_id=thread_id, deleted_at=None).first()
    if session is None:
        return False
    with connection.cursor() as cursor:
        cursor.execute(HELD, [[_lock("hold", session.pk, key) for key in (session.agent, "")]])
        return bool(cursor.fetchone()[0])


def summarise_now(*, owner_id: int, thread_id: str, scope: str = MANUAL) -> None:
    """Owe the summary that a person asks for, whatever the triggers say. Sync, in the caller's transaction.

    scope: MANUAL, or ARCHIVE for a conversation that is archived. Asking twice is asking once while it waits. When it
    is done the owner's pages get the hint "summary", or "summary_unchanged" if there was nothing to do.
    Raises Rejected(thread_not_found).
    """
    if scope not in (MANUAL, ARCHIVE):
        raise ValueError(scope)
    session = Session.objects.of(owner_id).filter(thread_id=thread_id, deleted_at=None).first()
    if session is None:
        raise Rejected("thread_not_found")
    jobs.plant(jobs.SUMMARY, owner_id=owner_id, scope=scope, session_id=session.pk)
