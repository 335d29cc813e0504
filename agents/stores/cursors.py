"""Conversations that jobs read from a cursor on: claimed, given back, and what is behind.

What kind of cursor it is, its table says (models/cursor.py). Sync: for Celery, on Django's connection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from agents import jobs
from agents.models.cursor import Cursor
from agents.models.session import Session
from agents.runtime.events import Stored
from agents.stores import chains, events, sql
from agents.stores.chains import Found

C = TypeVar("C", bound=Cursor)
Line = Sequence[tuple[int, int]]  # of chains.chain: forks, and up to which position each counts


class Taken(Exception):
    """Another job reads this conversation."""


class Moved(Exception):
    """Things are no longer as they were when this was read: the claim, the line that is shown, a switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """What stands behind a cursor on the line that is shown, in order."""

    found: Found
    line: Line
    events: tuple[Stored, ...]


@transaction.atomic
def claim(table: type[C], owner_id: int, session_id: int, holder: str) -> bool:
    """Have a conversation for jobs.LEASE from now on; False if it is gone. Raises Taken.

    holder: "job:attempt". What an earlier attempt of the same job claimed is taken from it.
    """
    if not Session.objects.of(owner_id).filter(pk=session_id, deleted_at=None).exists():
        return False
    rows = table.objects.of(owner_id)
    rows.get_or_create(session_id=session_id, defaults={"owner_id": owner_id})
    own = f"{holder.partition(':')[0]}:"
    free = Q(claimed_until=None) | Q(claimed_until__lt=Now()) | Q(claimed_by__startswith=own)
    if not rows.filter(free, session_id=session_id).update(claimed_by=holder, claimed_until=Now() + jobs.LEASE):
        raise Taken
    return True


def release(table: type[C], owner_id: int, session_id: int, holder: str) -> None:
    """Give a conversation back, if it is still this holder's."""
    rows = table.objects.of(owner_id).filter(session_id=session_id, claimed_by=holder)
    rows.update(claimed_by="", claimed_until=None)


def claimed(table: type[C], owner_id: int, session_id: int, holder: str) -> tuple[Session, C] | None:
    """Return a conversation and the cursor that this holder claimed; None if the conversation is gone. Raises Moved."""
    session = Session.objects.of(owner_id).filter(pk=session_id, deleted_at=None).first()
    if session is None:
        return None
    cursor = table.objects.of(owner_id).filter(session_id=session_id, claimed_by=holder).first()
    if cursor is None:
        raise Moved
    return session, cursor


def behind(session: Session, position: int) -> Behind:
    """Return what stands behind a position."""
    with connection.cursor() as asking:
        asking.execute(sql.OPENING, (session.owner_id, session.thread_id, "", "", ""))
        found = chains.read_found(asking.fetchone())
        line = chains.cut(chains.chain(found.forks, found.head_fork), found.last_position)
        forks, up_to = [fork for fork, _ in line], [last for _, last in line]
        asking.execute(sql.CHAIN, (forks, up_to, session.pk, position + 1))
        return Behind(found=found, line=line, events=tuple(events.load(row) for row in asking.fetchall()))


def hold(table: type[C], owner_id: int, session_id: int, *, holder: str, since: int, head_fork: int) -> None:
    """Lock what was read from a cursor, in the caller's transaction. Raises Moved if it is not so any more."""
    with connection.cursor() as asking:
        # runs may append meanwhile, but nobody can delete the conversation
        asking.execute(
            "select head_fork from agents_session where id = %s and owner_id = %s and deleted_at is null for key share",
            [session_id, owner_id],
        )
        shown = asking.fetchone()
    own = table.objects.of(owner_id).filter(session_id=session_id, claimed_by=holder)
    if shown != (head_fork,) or not own.select_for_update().filter(position=since).exists():
        raise Moved
