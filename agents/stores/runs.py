"""Runs from outside: leases, cancelling, looking one up, closing the lost ones."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.runtime.errors import RunFenced
from agents.runtime.events import Stamped, Stored
from agents.runtime.session import RunEnd, RunStatus
from agents.stores import pool, sessions, sql
from agents.stores.writer import RECORDS_PER_APPEND

LEASE_S = sessions.LEASE_S
EXPIRED_AT_ONCE = 100

_COLUMNS = """r.id, r.epoch, r.owner_id, r.session_id, s.thread_id, r.client_id, r.parent_client_id, r.fork, r.agent,
       r.model, r.status, r.render_html, r.started_at, r.ended_at, r.error_code,
       r.cancel_requested_at IS NOT NULL"""
_FROM = "FROM agents_run r JOIN agents_session s ON s.id = r.session_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as its row says. run_key, session_id: ours; thread_id, run_id: the client's."""

    run_key: int
    epoch: int
    owner_id: int
    session_id: str
    thread_id: str
    run_id: str
    parent_run_id: str
    fork: int
    agent: str
    model: str
    status: RunStatus
    render_html: bool
    started_at: datetime
    ended_at: datetime | None
    error_code: str
    cancel_requested: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How a run stands: the run, how many events it has stored, and when the last one was."""

    run: Run
    event_count: int
    last_event_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What a heartbeat learned of one run. alive False: another process closed it; the owner stops without a word."""

    run_key: int
    alive: bool
    cancel_requested: bool = False
    inbox_waiting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A run taken over from a dead process. history: the visible chain, oldest first; records: the run's own part."""

    run: Run
    history: tuple[Stored, ...]
    records: tuple[Stored, ...]


Closing = Callable[[Lost], Awaitable[tuple[Sequence[Stamped], RunEnd]]]


async def heartbeat(beats: Sequence[tuple[int, int]]) -> tuple[Beat, ...]:
    """Renew the leases of (run_key, epoch) pairs, 15 s by the database's clock, and return one Beat for each, in order.

    One statement. A waiting steering message is announced to its run. Raises StorageUnavailable.
    """
    if not beats:
        return ()
    keys, epochs = [key for key, _ in beats], [epoch for _, epoch in beats]
    rows = {row[0]: row for row in await pool.fetch(sql.HEARTBEAT, (keys, epochs, LEASE_S))}
    out = []
    for key in keys:
        if key not in rows:
            out.append(Beat(run_key=key, alive=False))
            continue
        _, cancel_requested, inbox_waiting = rows[key]
        if inbox_waiting:
            sessions.notice_inbox(key)
        out.append(Beat(run_key=key, alive=True, cancel_requested=cancel_requested, inbox_waiting=inbox_waiting))
    return tuple(out)


async def request_cancel(*, owner_id: int, thread_id: str, run_id: str) -> bool:
    """Ask a running run to stop; its owner reads it with the next heartbeat. False: unknown, foreign or over."""
    rows = await pool.fetch(
        """
        UPDATE agents_run r SET cancel_requested_at = coalesce(r.cancel_requested_at, clock_timestamp())
        FROM agents_session s
        WHERE s.id = r.session_id AND s.owner_id = %s AND s.thread_id = %s AND r.client_id = %s
          AND r.owner_id = s.owner_id AND r.status = 'running'
        RETURNING r.id
        """,
        (owner_id, thread_id, run_id),
    )
    return bool(rows)


async def find_run(*, owner_id: int, thread_id: str, run_id: str) -> Run | None:
    """Return the run of this client id in the owner's thread, whatever its status."""
    rows = await pool.fetch(
        f"SELECT {_COLUMNS} {_FROM} WHERE s.owner_id = %s AND s.thread_id = %s AND r.client_id = %s",
        (owner_id, thread_id, run_id),
    )
    return _run(rows[0]) if rows else None


async def active_run(*, owner_id: int, thread_id: str) -> Run | None:
    """Return the run that is running in the owner's thread."""
    rows = await pool.fetch(
        f"SELECT {_COLUMNS} {_FROM} WHERE s.owner_id = %s AND s.thread_id = %s AND r.status = 'running'",
        (owner_id, thread_id),
    )
    return _run(rows[0]) if rows else None


async def give_up(run_key: int, epoch: int) -> Run | None:
    """Let a run's lease be out, as its owner whose end could not be stored; None: the run is over.

    Raises StorageUnavailable.
    """
    rows = await pool.fetch(
        f"""
        WITH given AS (
            UPDATE agents_run SET lease_expires_at = clock_timestamp() - interval '1 s'
            WHERE id = %s AND epoch = %s AND status = 'running' RETURNING id
        )
        SELECT {_COLUMNS} {_FROM} JOIN given ON given.id = r.id
        """,
        (run_key, epoch),
    )
    return _run(rows[0]) if rows else None


async def lost_run(*, owner_id: int, thread_id: str) -> Run | None:
    """Return the run in the owner's thread that is running by its row, but whose lease is out."""
    rows = await pool.fetch(
        f"""
        SELECT {_COLUMNS} {_FROM} WHERE s.owner_id = %s AND s.thread_id = %s AND r.status = 'running'
          AND r.lease_expires_at < clock_timestamp()
        """,
        (owner_id, thread_id),
    )
    return _run(rows[0]) if rows else None


async def running_count(*, owner_id: int) -> int:
    """Return how many runs of the owner are running, in all processes."""
    rows = await pool.fetch("SELECT count(*) FROM agents_run WHERE owner_id = %s AND status = 'running'", (owner_id,))
    count: int = rows[0][0]
    return count


async def status(*, owner_id: int, thread_id: str, run_id: str) -> Status | None:
    """Return how a run of the owner stands; None if it is unknown or foreign."""
    rows = await pool.fetch(
        f"""
        SELECT {_COLUMNS}, (SELECT count(*) FROM agents_event e WHERE e.session_id = s.id AND e.run_id = r.id),
               (SELECT max(e.at) FROM agents_event e WHERE e.session_id = s.id AND e.run_id = r.id)
        {_FROM} WHERE s.owner_id = %s AND s.thread_id = %s AND r.client_id = %s
        """,
        (owner_id, thread_id, run_id),
    )
    if not rows:
        return None
    *columns, event_count, last_event_at = rows[0]
    return Status(run=_run(columns), event_count=event_count, last_event_at=last_event_at)


async def expired() -> tuple[Run, ...]:
    """Return running runs whose lease is out, of everyone, longest first, at most 100. For the sweep."""
    rows = await pool.fetch(
        f"""
        SELECT {_COLUMNS} {_FROM} WHERE r.status = 'running' AND r.lease_expires_at < clock_timestamp()
        ORDER BY r.lease_expires_at, r.id LIMIT %s
        """,
        (EXPIRED_AT_ONCE,),
    )
    return tuple(_run(row) for row in rows)


async def close_lost(run: Run, closing: Closing) -> tuple[Stored, ...]:
    """Close a run whose process died and return what was stored; () if somebody else closes or closed it.

    The run is taken over first: its epoch is raised, so that its owner, should it wake up, is fenced before `closing`
    looks at anything. `closing` returns at least one record and the end, which is stored with the last one. If this
    process dies in between, the lease it took runs out and the next sweep begins anew, so records met again must have
    the ids they had. Steering messages that the dead run took but never stored wait again.
    Raises StorageUnavailable, and what `closing` raises.
    """
    rows = await pool.fetch(sql.TAKE_OVER, (run.run_key, run.epoch, LEASE_S))
    if not rows:
        return ()
    epoch: int = rows[0][0]
    history = (await sessions.visible(owner_id=run.owner_id, thread_id=run.thread_id)).stored
    own = tuple(stored for stored in history if stored.origin.run_id == run.run_id)
    records, end = await closing(Lost(run=run, history=history, records=own))
    ledger = sessions.PgLedger(run_key=run.run_key, epoch=epoch)
    stored: list[Stored] = []
    try:
        for at in range(0, len(records), RECORDS_PER_APPEND):
            more = records[at : at + RECORDS_PER_APPEND]
            stored += await ledger.append(more, end=end if at + len(more) == len(records) else None)
    except RunFenced:
        return ()
    await pool.fetch(sql.GIVE_STEERING_BACK, (run.run_key,))
    return tuple(stored)


def _run(row: Sequence[Any]) -> Run:
    return Run(
        run_key=row[0],
        epoch=row[1],
        owner_id=row[2],
        session_id=str(row[3]),
        thread_id=row[4],
        run_id=row[5],
        parent_run_id=row[6],
        fork=row[7],
        agent=row[8],
        model=row[9],
        status=RunStatus(row[10]),
        render_html=row[11],
        started_at=row[12],
        ended_at=row[13],
        error_code=row[14],
        cancel_requested=row[15],
    )
