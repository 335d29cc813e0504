"""What comes of what a person said: carried out in one transaction, shown with the run, and undone.

Each operation that was proposed leaves a MemoryChange, also where nothing was done. All of it happens under the
owner's lock. Sync, on Django's connection.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from agents.models.memory import Memory as Row
from agents.models.memory import MemoryChange
from agents.runtime.memory import encoding
from agents.runtime.memory.forgetting import forgetting
from agents.runtime.memory.memories import (
    Memory,
    MemoryConflict,
    MemoryFailed,
    MemoryMissing,
    MemoryUnavailable,
    Source,
    VersionConflict,
    content_hash,
    draft_of,
)
from agents.runtime.memory.policies import Decision, Operation, Reason, Verb, decide, hashes_of
from agents.runtime.memory.sources import Said
from agents.runtime.memory.words import normalised
from agents.stores import memorycursors
from agents.stores.memorycursors import ABANDONED, Part
from agents.stores.memoryrows import MemoryRows, lock


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What some messages of a part come to.

    propose: from the memories that may be meant, what is to be done. known: their ids, None = all that hold.
    unread: (verb or "", reason) of what was proposed and could not be read.
    """

    said: tuple[Said, ...]
    propose: Callable[[Sequence[Memory]], Sequence[Operation]]
    known: frozenset[str] | None = None
    unread: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change as its run shows it. text: what the memory says now, "" = it is there no more. before: what was
    completed or replaced, "" = nothing, or it is there no more. undone: a person took it back."""

    id: int
    verb: Verb
    memory_id: str
    text: str
    before: str
    undone: bool
    can_be_undone: bool


@transaction.atomic
def carry_out(part: Part, up_to: int, readings: Sequence[Reading]) -> int:
    """Do what was proposed of a part up to a position, note what came of it, and move the cursor there.

    Return how many changes that made. Raises Moved. Nothing is kept then, nor if the database fails.
    """
    lock(part.owner_id)
    memorycursors.hold(part)
    keeping = _Keeping(part)
    for reading in readings:
        keeping.keep(reading)
    for position, run in part.abandoned:
        if position <= up_to:
            keeping.note(position, run=run, proposed="", reason=ABANDONED)
    if part.shown:
        keeping.rows.used(part.shown)
    memorycursors.move(part, up_to, extracted_at=keeping.began if readings else None)
    return keeping.changed


def changes_of_runs(owner_id: int, session_id: int, runs: Collection[str]) -> dict[str, tuple[Change, ...]]:
    """Return what was changed in memory for these runs of a conversation, by the client's name of the run, in order.

    Two queries; a foreign conversation has none.
    """
    changes = MemoryChange.objects.of(owner_id).filter(session_id=session_id, run__in=list(runs)).exclude(verb="")
    rows = list(changes.exclude(reason=ABANDONED).order_by("position", "pk"))
    ids = {id for row in rows for id in (row.memory_id, row.replaced)}
    there = {memory.memory_id: memory for memory in Row.objects.of(owner_id).filter(memory_id__in=ids)}
    out: dict[str, tuple[Change, ...]] = {}
    for row in rows:
        memory, replaced = there.get(row.memory_id), there.get(row.replaced)
        before = str(row.before["text"]) if row.before else replaced.text if replaced else ""
        change = Change(
            id=row.pk,
            verb=Verb(row.verb),
            memory_id=row.memory_id,
            text=memory.text if memory else "",
            before=before,
            undone=row.undone_at is not None,
            can_be_undone=memory is not None and row.undone_at is None and _is_last(row, memory),
        )
        out[row.run] = (*out.get(row.run, ()), change)
    return out


def undo(owner_id: int, change_id: int) -> None:
    """Take a change back for a person: what was added goes, what was replaced holds again, what was completed says
    what it said. Done already, or gone anyway, is done.

    Raises MemoryMissing: no such change, or nothing was done; MemoryConflict: what was forgotten cannot come back, or
    VersionConflict: the memory was changed since, or MemoryDuplicate: another says by now what it said;
    MemoryUnavailable.
    """
    try:
        with transaction.atomic():
            lock(owner_id)
            _undo(owner_id, change_id)
    except (OperationalError, InterfaceError) as error:
        raise MemoryUnavailable from error


def _undo(owner_id: int, change_id: int) -> None:
    change = MemoryChange.objects.of(owner_id).filter(pk=change_id).exclude(verb="").first()
    if change is None or change.reason == ABANDONED:
        raise MemoryMissing
    if change.undone_at is not None:
        return
    rows = MemoryRows(owner_id)
    row = Row.objects.of(owner_id).filter(memory_id=change.memory_id).first() if change.memory_id else None
    version = change.version
    match Verb(change.verb):
        case Verb.DELETE | Verb.CLEAR:
            raise MemoryConflict("What was forgotten is not kept, so it cannot come back.")
        case _ if row is None:
            pass
        case Verb.ADD:
            rows.delete(change.memory_id, by=Source.PERSON)
        case _ if not _is_last(change, row):
            raise VersionConflict
        case Verb.SUPERSEDE:
            rows.withdraw(change.memory_id, by=Source.PERSON)
        case Verb.UPDATE:
            # ours still, with this version: nobody has put other words there
            version = rows.update(change.memory_id, encoding.draft_from(change.before or {}), version=version).version
    undone = MemoryChange.objects.of(owner_id).filter(pk=change_id)
    undone.update(undone_at=timezone.now(), version=version, before=None)


def _is_last(change: MemoryChange, row: Row) -> bool:
    """Return whether the memory is as the change left it, so that it can be undone; an addition always can."""
    if change.verb == Verb.ADD:
        return True
    holds = row.superseded_by_id is None and row.version == change.version
    return holds and (change.verb == Verb.SUPERSEDE or change.before is not None)


class _Keeping:
    """One transaction's work on the memories of a part's owner. began: under the lock, so nobody else writes since."""

    def __init__(self, part: Part) -> None:
        self.rows = MemoryRows(part.owner_id)
        self.began: datetime = timezone.now()
        self.changed = 0
        self._part = part
        self._held: tuple[Memory, ...] | None = None

    def keep(self, reading: Reading) -> None:
        """Do what a reading proposes as far as the rules of the house allow it."""
        if self._held is None:
            self._held = self.rows.read(muted=True)
        held = self._held
        operations = reading.propose([m for m in held if reading.known is None or m.id in reading.known])
        saying = {content_hash(operation.draft): "" for operation in operations if operation.draft}
        same = {hash: memory.id for memory in held if (hash := content_hash(memory)) in saying}
        meant = [m for m in held if reading.known is None or m.id in reading.known or m.id in same.values()]
        # what these messages had deleted does not bury what they say after it
        graves = [grave for grave in self.rows.buried(hashes_of(operations)) if grave.at < self.began]
        if graves and self._part.forked:
            operations = [self._first_said(operation) for operation in operations]
        for decision in decide(operations, meant, graves, asked=forgetting(reading.said)):
            operation = decision.operation
            about = same.get(content_hash(operation.draft), "") if operation.draft else ""
            self._decided(decision, _position(operation, reading.said), about)
        for verb, reason in reading.unread:
            self.note(reading.said[-1].origin.position, proposed=verb, reason=reason)

    def _first_said(self, operation: Operation) -> Operation:
        """Date what an edited message repeats by when it was said first: to change another word of a message is not to
        say all of it again, and what was deleted since stays deleted."""
        draft = operation.draft
        if draft is None or draft.origin is None or operation.said_at is None:
            return operation
        words, earlier = normalised(draft.text), memorycursors.replaced(self._part, draft.origin.position)
        before = [at for at, text in earlier if words in normalised(text)]
        return replace(operation, said_at=min((operation.said_at, *before)))

    def note(self, position: int, *, run: str | None = None, **fields: Any) -> None:
        """Keep what came of one operation. position: of the message it comes from."""
        MemoryChange(
            owner_id=self._part.owner_id,
            session_id=self._part.session_id,
            run=self._part.runs.get(position, "") if run is None else run,
            position=position,
            source=Source.EXTRACTOR.value,
            at=timezone.now(),
            **fields,
        ).save(force_insert=True)

    def _decided(self, decision: Decision, position: int, about: str) -> None:
        proposed, reason = decision.operation.verb.value, decision.reason.value
        if decision.verb is None:
            known = about if decision.reason is Reason.DUPLICATE else ""
            self.note(position, proposed=proposed, reason=reason, memory_id=known)
            return
        try:
            done = _done(self.rows, decision)
        except MemoryFailed as error:  # its savepoint is rolled back, the others stand
            self.note(position, proposed=proposed, reason=error.code)
            return
        self._held = None
        self.changed += 1
        self.note(position, proposed=proposed, reason=reason, **done)


def _done(rows: MemoryRows, decision: Decision) -> dict[str, Any]:
    """Do what was decided and return what it was, as columns of its change. Raises MemoryFailed."""
    id, draft, version = decision.memory_id, decision.draft, decision.version
    if decision.verb is Verb.CLEAR:
        rows.clear(by=Source.EXTRACTOR)
        return {"verb": Verb.CLEAR.value}
    if decision.verb is Verb.DELETE:
        rows.delete(id, by=Source.EXTRACTOR)
        return {"verb": Verb.DELETE.value, "memory_id": id}
    assert draft is not None
    if decision.verb is Verb.ADD:
        new = rows.add(draft).memory
        return {"verb": Verb.ADD.value, "memory_id": new.id, "version": new.version}
    old = draft_of(rows.history(id)[0])
    # to say the same again in place of itself replaces nothing
    if decision.verb is Verb.SUPERSEDE and content_hash(old) != content_hash(draft):
        new = rows.supersede(id, draft, version=version).memory
        return {"verb": Verb.SUPERSEDE.value, "memory_id": new.id, "version": new.version, "replaced": id}
    new = rows.update(id, draft, version=version)
    return {"verb": Verb.UPDATE.value, "memory_id": id, "version": new.version, "before": encoding.as_json(old)}


def _position(operation: Operation, said: Sequence[Said]) -> int:
    """Return the position of the message that an operation comes from."""
    if operation.draft is not None and operation.draft.origin is not None:
        return operation.draft.origin.position
    return next((one.origin.position for one in said if one.at == operation.said_at), said[-1].origin.position)
