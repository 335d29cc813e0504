"""What a person said in a message that they edited away is not remembered: it is withdrawn.

It stays if they said the same in a message that still stands, or changed the memory themselves.
"""

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from agents.models.event import Event
from agents.models.memory import Memory, MemoryChange, MemoryTombstone
from agents.runtime.memory import encoding
from agents.runtime.memory.memories import MemoryDuplicate, Source
from agents.runtime.memory.policies import Reason, Verb
from agents.stores import lines, memorycursors
from agents.stores.chains import chain
from agents.stores.memorycursors import ABANDONED, Part
from agents.stores.memoryrows import MemoryRows, lock


@transaction.atomic
def withdraw(part: Part) -> int:
    """Withdraw what comes from messages of the conversation that its line shows no more; return how many changed.

    Safe to do twice. Raises Moved.
    """
    if not part.forked:
        return 0
    lock(part.owner_id)
    memorycursors.hold(part)
    rows, withdrawn = MemoryRows(part.owner_id), 0
    while (row := _next(part)) is not None:  # what holds again in its place may be edited away too
        if not _said_again(part, row):
            _withdraw(part, rows, row)
            withdrawn += 1
    return withdrawn


def _next(part: Part) -> Memory | None:
    """Return the newest memory that is to be withdrawn."""
    found = Memory.objects.of(part.owner_id).filter(origin_thread=part.thread_id, source=Source.EXTRACTOR.value)
    rows = list(found.order_by("-pk"))
    shown = memorycursors.on_line(part.owner_id, part.session_id, part.line, [row.origin_event for row in rows])
    return next((row for row in rows if shown.get(row.origin_event) is False and not _edited(row)), None)


def _edited(row: Memory) -> bool:
    """Return whether a person changed the memory after the last job that did."""
    changes = MemoryChange.objects.of(row.owner_id).filter(memory_id=row.memory_id)
    return row.version > (changes.aggregate(last=Max("version"))["last"] or 1)


def _said_again(part: Part, row: Memory) -> bool:
    """Let the memory come from another message that says the same and still stands; return whether there is one."""
    if row.superseded_by_id is not None:
        return False
    again = MemoryChange.objects.of(row.owner_id).filter(memory_id=row.memory_id, reason=Reason.DUPLICATE.value)
    for change in again.select_related("session").order_by("-pk"):
        session = change.session
        if session is None or session.deleted_at is not None:
            continue
        event = Event.objects.of(row.owner_id).filter(session=session, position=change.position).first()
        event_id = event.event_id if event else ""
        line = part.line if session.pk == part.session_id else chain(lines.forks_of(session), session.head_fork)
        if memorycursors.on_line(row.owner_id, session.pk, line, [event_id]).get(event_id):
            row.origin_thread, row.origin_event, row.origin_position = session.thread_id, event_id, change.position
            row.save(update_fields=["origin_thread", "origin_event", "origin_position"])
            return True
    return False


def _withdraw(part: Part, rows: MemoryRows, row: Memory) -> None:
    changes = MemoryChange.objects.of(row.owner_id).filter(memory_id=row.memory_id)
    last = changes.filter(undone_at=None).exclude(verb="").exclude(reason=ABANDONED).order_by("-pk").first()
    verb, version, id, position = Verb.DELETE, None, row.memory_id, row.origin_position or 0
    if row.superseded_by_id is not None:
        # history that nobody holds on to: what it superseded goes to what superseded it
        Memory.objects.of(row.owner_id).filter(superseded_by=row).update(superseded_by=row.superseded_by_id)
        changes.exclude(before=None).update(before=None)
        row.delete()
    elif last is not None and last.verb == Verb.UPDATE and last.before is not None and (done := _put_back(rows, last)):
        verb, version = Verb.UPDATE, done
    else:
        rows.withdraw(id, by=Source.EXTRACTOR)
        # the person may say it again, in the very message that replaced this one; the old one is never read again
        MemoryTombstone.objects.of(row.owner_id).filter(memory_id=id).delete()
    MemoryChange(
        owner_id=row.owner_id,
        session_id=part.session_id,
        position=position,
        proposed=verb.value,
        verb=verb.value,
        reason=ABANDONED,
        memory_id=id,
        version=version,
        source=Source.EXTRACTOR.value,
        at=timezone.now(),
    ).save(force_insert=True)


def _put_back(rows: MemoryRows, change: MemoryChange) -> int:
    """Let a memory say what it said before an update; return its version, 0 = another says that by now."""
    assert change.before is not None
    try:
        version = rows.update(change.memory_id, encoding.draft_from(change.before)).version
    except MemoryDuplicate:
        return 0
    change.undone_at, change.before = timezone.now(), None
    change.save(update_fields=["undone_at", "before"])
    return version
