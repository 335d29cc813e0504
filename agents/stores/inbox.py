"""Messages sent into a running run (steer) or kept for after it (queue)."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction

from agents.models.run import Inbox
from agents.runtime import codec
from agents.runtime.errors import Rejected
from agents.runtime.events import UserMessage, UserMessageKind
from agents.stores import events, pool, sessions

Kind = Inbox.Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message that nobody has read yet."""

    id: int
    thread_id: str
    kind: Kind
    message: UserMessage
    created_at: datetime


async def put(*, owner_id: int, thread_id: str, message: UserMessage, kind: Kind, run_id: str = "") -> bool:
    """Put a message into the owner's thread; the same message id again changes nothing. Return whether it is new.

    STEER needs the run, and the run must be running: its row is locked against its end, so a message is either read by
    the run or waits in the queue afterwards. Raises Rejected: thread_not_found (unknown or foreign), invalid_input
    (the run is over, or the conversation has a message of this id). Raises StorageUnavailable.
    """
    stored_kind = UserMessageKind.STEER if kind is Kind.STEER else UserMessageKind.TURN
    payload, _, _ = events.dump_json({**codec.dump(message), "kind": stored_kind.value})
    rows = await pool.fetch(
        """
        WITH thread AS (
            SELECT id FROM agents_session WHERE owner_id = %(owner)s AND thread_id = %(thread)s AND deleted_at IS NULL
        ), run AS MATERIALIZED (
            SELECT r.id FROM agents_run r JOIN thread ON thread.id = r.session_id
            WHERE r.client_id = %(run)s AND r.status = 'running' FOR SHARE OF r
        ), said AS MATERIALIZED (
            SELECT FROM agents_event e JOIN thread ON thread.id = e.session_id
            WHERE e.type = 'user_message' AND e.payload ->> 'id' = %(client)s LIMIT 1
        ), made AS (
            INSERT INTO agents_inbox (owner_id, session_id, client_id, kind, payload, created_at)
            SELECT %(owner)s, thread.id, %(client)s, %(kind)s::text, %(payload)s::jsonb, clock_timestamp()
            FROM thread WHERE (%(kind)s::text = 'queue' OR EXISTS (SELECT FROM run)) AND NOT EXISTS (SELECT FROM said)
            ON CONFLICT (session_id, client_id) DO NOTHING
            RETURNING id
        )
        SELECT thread.id, (SELECT id FROM run), (SELECT id FROM made), EXISTS (SELECT FROM said),
               EXISTS (SELECT FROM agents_inbox i WHERE i.session_id = thread.id AND i.client_id = %(client)s)
        FROM thread
        """,
        {
            "owner": owner_id,
            "thread": thread_id,
            "run": run_id,
            "client": message.id,
            "kind": kind.value,
            "payload": payload.decode(),
        },
    )
    if not rows:
        raise Rejected("thread_not_found")
    _, run_key, made, said, was_there = rows[0]
    if kind is Kind.STEER and run_key is None and not was_there:
        raise Rejected("invalid_input", "This run is over.")
    if said and not was_there:  # it could never be taken, and all that waits behind it would wait for ever
        raise Rejected("invalid_input", "A message with this id is already in the conversation.")
    if kind is Kind.STEER and run_key is not None:
        sessions.notice_inbox(run_key)
    return made is not None


async def waiting(*, owner_id: int, thread_id: str) -> tuple[Waiting, ...]:
    """Return what waits in the owner's thread, oldest first; () for an unknown or foreign one."""
    rows = await pool.fetch(
        """
        SELECT i.id, s.thread_id, i.kind, i.payload, i.created_at
        FROM agents_inbox i JOIN agents_session s ON s.id = i.session_id
        WHERE s.owner_id = %s AND s.thread_id = %s AND i.consumed_at IS NULL AND s.deleted_at IS NULL
        ORDER BY i.id
        """,
        (owner_id, thread_id),
    )
    return tuple(_waiting(*row) for row in rows)


async def next_queued(*, owner_id: int, thread_id: str) -> Waiting | None:
    """Return the message that should start the next run: the oldest that waits, also one a run did not read any more.

    It is not marked: PgSessionStore.open_run marks the message with the id it starts with, in its own transaction. So
    start with `message` as it is, and with a run id made of its id, and two processes cannot both start it.
    """
    found = await waiting(owner_id=owner_id, thread_id=thread_id)
    return replace(found[0], message=replace(found[0].message, kind=UserMessageKind.TURN)) if found else None


async def take_back(*, owner_id: int, thread_id: str, message_id: str) -> UserMessage | None:
    """Take a waiting message out for good and return it; None if it was read, is unknown or foreign."""
    rows = await pool.fetch(
        """
        DELETE FROM agents_inbox i USING agents_session s
        WHERE s.id = i.session_id AND s.owner_id = %s AND s.thread_id = %s AND i.client_id = %s
          AND i.consumed_at IS NULL
        RETURNING i.payload
        """,
        (owner_id, thread_id, message_id),
    )
    return _message(rows[0][0]) if rows else None


def remove_waiting(*, owner_id: int, thread_id: str, message_id: str) -> UserMessage | None:
    """Do what take_back does on Django's connection: for views, which have no event loop of their own."""
    rows = Inbox.objects.of(owner_id).filter(
        session__owner_id=owner_id,
        session__thread_id=thread_id,
        session__deleted_at=None,
        client_id=message_id,
        consumed_at=None,
    )
    with transaction.atomic():
        row = rows.select_for_update(of=("self",)).first()
        if row is None:
            return None
        row.delete()
    return _message(row.payload)


def _waiting(inbox_id: int, thread_id: str, kind: str, payload: dict[str, Any], created_at: datetime) -> Waiting:
    return Waiting(id=inbox_id, thread_id=thread_id, kind=Kind(kind), message=_message(payload), created_at=created_at)


def _message(payload: dict[str, Any]) -> UserMessage:
    record = codec.load("user_message", payload)
    assert isinstance(record, UserMessage)
    return record
