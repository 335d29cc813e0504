"""Memories of one owner as rows, sync: what stores/memories.py does on its threads, and a job in its own transaction.

Every write is a transaction, or a savepoint of the caller's, and first takes the owner's lock: what it reads is what
holds until it is committed. The searchable entry of a memory is written in the same transaction, and only what holds
and is not muted has one; its vector is deleted by the database together with it.
"""

import logging
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db import DataError, connection, transaction
from django.db.models import Exists, F, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.db.models.lookups import IsNull
from django.utils import timezone

from agents import jobs
from agents import search as searching
from agents.models import search_entry
from agents.models.memory import Memory as Row
from agents.models.memory import MemoryChange, MemorySetting, MemoryTombstone
from agents.runtime.memory.dates import Between, Period, Precision
from agents.runtime.memory.memories import (
    FEW_HITS,
    MOST_MEMORIES,
    Draft,
    Found,
    Kind,
    Memory,
    MemoryDuplicate,
    MemoryMissing,
    MemoryOff,
    Origin,
    Query,
    Source,
    Tombstone,
    VersionConflict,
    Written,
    checked,
    content_hash,
)
from agents.runtime.memory.words import words_hash
from agents.stores import memorytraces

LOCK: Final = 0x6D656D6F  # class of the advisory locks, "memo"
ID_LETTERS: Final = "abcdefghijkmnpqrstuvwxyz23456789"  # none that is taken for another
ID_LENGTH: Final = 8
RANKED: Final = 150  # all that a search weighs: of equals the contract says which come first
LEAST_SCORE: Final = 0.0001  # of a hit, however little is left of it

# the memory and all that it superseded, directly or not
_CHAIN: Final = """
with recursive chain as (
  select m.id from agents_memory m where m.owner_id = %s and m.id = %s
  union
  select m.id from agents_memory m join chain c on m.superseded_by_id = c.id where m.owner_id = %s)
select id from chain
"""

logger = logging.getLogger(__name__)


def lock(owner_id: int) -> None:
    """Let nobody else write this owner's memories until the caller's transaction ends. May be taken again within it."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_xact_lock(%s, %s)", [LOCK, owner_id])


def new_id() -> str:
    return "".join(secrets.choice(ID_LETTERS) for _ in range(ID_LENGTH))


def searched(row: Row) -> str:
    """Return the text by which a memory is found, and of which its vector is made."""
    return "\n".join(filter(None, (row.text, ", ".join(row.topics), ", ".join(row.participants), row.location)))


def load(row: Row) -> Memory:
    """Return a row as what runs and pages see. Of history the row that superseded it is looked at too."""
    time = None
    if row.event_start is not None and row.event_end is not None:
        time = Period(start=row.event_start, end=row.event_end, precision=Precision(row.event_precision))
    origin = None
    if row.origin_position is not None:
        origin = Origin(thread_id=row.origin_thread, event_id=row.origin_event, position=row.origin_position)
    return Memory(
        text=row.text,
        kind=Kind(row.kind),
        topics=tuple(row.topics),
        event_time=time,
        participants=tuple(row.participants),
        location=row.location,
        source=Source(row.source),
        origin=origin,
        id=row.memory_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        version=row.version,
        used_at=row.used_at,
        superseded_by=row.superseded_by.memory_id if row.superseded_by else "",
        muted=row.muted,
    )


class MemoryRows:
    """The methods of MemoryStore over the tables, sync. The promises are those of the protocol.

    heeds_switch: it has nothing, and takes nothing, while the person's memories are switched off. now: the clock of all
    that is written. most: memories of the owner.
    """

    def __init__(
        self,
        owner_id: int,
        *,
        heeds_switch: bool = False,
        now: Callable[[], datetime] = timezone.now,
        most: int = MOST_MEMORIES,
    ) -> None:
        self._owner_id = owner_id
        self._heeds_switch = heeds_switch
        self._now = now
        self._most = most

    # What changes them

    def add(self, draft: Draft) -> Written:
        draft = checked(draft)
        with self._writing():
            if (same := self._saying(draft)) is not None:
                return Written(memory=self._write(same, topics=list(draft.topics)), created=False)
            row = self._insert(draft)
            return Written(memory=load(row), created=True, evicted=self._evict(row))

    def update(self, id: str, draft: Draft, *, version: int | None = None) -> Memory:
        draft = checked(draft)
        with self._writing():
            row, same = self._current(id, version), self._saying(draft)
            if same is not None and same.pk != row.pk:
                raise MemoryDuplicate(same.memory_id)
            return self._write(row, **_columns(draft))

    def supersede(self, id: str, draft: Draft, *, version: int | None = None) -> Written:
        draft = checked(draft)
        with self._writing():
            row, same = self._current(id, version), self._saying(draft)
            if same is not None:
                if same.pk != row.pk:
                    self._let_go(row, same)
                return Written(memory=self._write(same, topics=list(draft.topics)), created=False)
            new = self._insert(draft)
            self._let_go(row, new)
            return Written(memory=load(new), created=True, evicted=self._evict(new))

    def delete(self, id: str, *, by: Source) -> bool:
        with self._writing():
            row = self._all().filter(memory_id=_known(id)).first()
            if row is None:
                return False
            self._bury(self._chain(row), by)
            return True

    def withdraw(self, id: str, *, by: Source) -> Memory | None:
        with self._writing():
            row = self._current(id, None)
            children = self._all().filter(superseded_by=row)
            before = children.order_by("-created_at", "-memory_id").first()
            if before is None:
                self._bury([row], by)
                return None
            # Turned round, so that neither the cascade nor the rule that no two say the same stands in the way.
            children.exclude(pk=before.pk).update(superseded_by=before)
            self._all().filter(pk=row.pk).update(superseded_by=before)
            same = self._holding().filter(content_hash=before.content_hash).first()
            before.superseded_by = same
            before.save(update_fields=["superseded_by"])
            self._bury([row], by)
            if same is not None:
                return None
            self._enter(before)
            return load(before)

    def restore(self, memories: Sequence[Memory]) -> None:
        with self._writing():
            keys = dict(self._all().values_list("memory_id", "pk"))
            back = {memory.id: memory for memory in memories if memory.id not in keys}
            said = dict(self._holding().values_list("content_hash", "memory_id"))
            for id, memory in back.items():
                if not memory.superseded_by and said.setdefault(content_hash(memory), id) != id:
                    raise MemoryDuplicate(said[content_hash(memory)])
            # what superseded another first; where that is gone by now, the other could not be reached
            while ready := [m for m in back.values() if not m.superseded_by or m.superseded_by in keys]:
                for memory in ready:
                    keys[memory.id] = self._create(back.pop(memory.id), keys.get(memory.superseded_by)).pk
            MemoryTombstone.objects.of(self._owner_id).filter(memory_id__in=list(keys)).delete()

    def mute(self, id: str, muted: bool) -> Memory:
        with self._writing():
            row = self._current(id, None)
            row.muted = muted
            row.save(update_fields=["muted"])
            self._enter(row)
            return load(row)

    def clear(self, *, by: Source) -> int:
        with self._writing():
            rows = list(self._all())
            self._bury(rows, by)
            MemoryChange.objects.of(self._owner_id).filter(before__isnull=False).update(before=None)
            return len(rows)

    def used(self, ids: Collection[str]) -> None:
        with self._writing():
            self._all().filter(memory_id__in=[_known(id) for id in ids]).update(used_at=self._now())

    # What asks

    def read(self, limit: int = 0, *, muted: bool = False) -> tuple[Memory, ...]:
        rows = self._holding() if muted else self._holding().filter(muted=False)
        rows = rows.order_by("-updated_at", "-created_at", "memory_id")
        return tuple(load(row) for row in (rows[:limit] if limit > 0 else rows))

    def search(self, query: Query, vector: searching.Vector | None = None) -> tuple[Found, ...]:
        """vector: of the question, None = by words alone. Two statements; four if another kind is searched too."""
        if not query.text.strip():
            return ()
        limit = max(1, query.limit)
        found = self._found(query, query.kind, vector, max(limit, FEW_HITS))
        if query.kind is None or not query.fallback or len(found) >= FEW_HITS:
            return found[:limit]
        everything = self._found(query, None, vector, RANKED)
        ids = {hit.memory.id for hit in found}
        scores = {hit.memory.id: hit.score for hit in everything}
        # in order by kind, but with the scores of one search; what was too far behind there has the least of them
        least = min(scores.values(), default=LEAST_SCORE)
        own = (replace(hit, score=scores.get(hit.memory.id, least)) for hit in found)
        return (*own, *(hit for hit in everything if hit.memory.id not in ids))[:limit]

    def history(self, id: str) -> tuple[Memory, ...]:
        row = self._all().select_related("superseded_by").filter(memory_id=_known(id)).first()
        if row is None:
            raise MemoryMissing
        return tuple(load(row) for row in self._chain(row))

    def export(self) -> tuple[Memory, ...]:
        return tuple(load(row) for row in self._all().select_related("superseded_by").order_by(*_AGE))

    def buried(self, hashes: Collection[str]) -> tuple[Tombstone, ...]:
        rows = MemoryTombstone.objects.of(self._owner_id).filter(self._on(), hash__in=list(hashes))
        return tuple(
            Tombstone(id=row.memory_id, hash=row.hash, at=row.at, by=Source(row.by))
            for row in rows.order_by("-at", "-pk")
        )

    # The rows

    def _on(self) -> Q:
        """Return the condition that the person's memories are not switched off, if this store heeds that."""
        if not self._heeds_switch:
            return Q()
        return Q(~Exists(MemorySetting.objects.of(self._owner_id).filter(enabled=False)))

    def _all(self) -> QuerySet[Row]:
        return Row.objects.of(self._owner_id).filter(self._on())

    def _holding(self) -> QuerySet[Row]:
        return self._all().filter(superseded_by=None)

    def _chain(self, row: Row) -> list[Row]:
        """Return the row and all that it superseded, whether one after the other or side by side, newest first."""
        keys = RawSQL(_CHAIN, (self._owner_id, row.pk, self._owner_id))
        rows = self._all().filter(pk__in=keys).exclude(pk=row.pk).select_related("superseded_by")
        return [row, *rows.order_by(*(f"-{name}" for name in _AGE))]

    def _saying(self, draft: Draft) -> Row | None:
        return self._holding().filter(content_hash=content_hash(draft)).first()

    def _current(self, id: str, version: int | None) -> Row:
        row = self._holding().filter(memory_id=_known(id)).first()
        if row is None:
            raise MemoryMissing
        if version is not None and row.version != version:
            raise VersionConflict
        return row

    # Writing them, under the lock

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with transaction.atomic():
            lock(self._owner_id)
            off = MemorySetting.objects.of(self._owner_id).filter(enabled=False)
            if self._heeds_switch and off.exists():
                raise MemoryOff
            yield

    def _insert(self, draft: Draft) -> Row:
        id, now = new_id(), self._now()
        while self._all().filter(memory_id=id).exists():
            id = new_id()
        row = Row(owner_id=self._owner_id, memory_id=id, created_at=now, updated_at=now, **_columns(draft))
        row.save(force_insert=True)
        self._enter(row)
        return row

    def _create(self, memory: Memory, superseded_by: int | None) -> Row:
        """Put back a memory that was there."""
        kept = {name: getattr(memory, name) for name in ("version", "muted", "created_at", "updated_at", "used_at")}
        row = Row(owner_id=self._owner_id, memory_id=memory.id, superseded_by_id=superseded_by, **kept)
        for name, value in _columns(memory).items():
            setattr(row, name, value)
        row.save(force_insert=True)
        self._enter(row)
        return row

    def _write(self, row: Row, **columns: Any) -> Memory:
        row.version, row.updated_at = row.version + 1, self._now()
        for name, value in columns.items():
            setattr(row, name, value)
        row.save(update_fields=["version", "updated_at", *columns])
        self._enter(row)
        return load(row)

    def _let_go(self, row: Row, heir: Row) -> None:
        """Make a memory history: the heir holds in its place."""
        row.superseded_by = heir
        row.save(update_fields=["superseded_by"])
        self._enter(row)

    def _evict(self, kept: Row) -> tuple[str, ...]:
        """Remove the least valuable as far as there are too many, and return their ids."""
        gone: list[str] = []
        while self._all().count() > self._most:
            others = self._all().exclude(pk=kept.pk).select_related("superseded_by")
            order = (IsNull(F("superseded_by"), True), Coalesce("used_at", "created_at"), "updated_at", "memory_id")
            least = others.order_by(*order)[0]
            chain = self._chain(least)  # what it superseded could not be reached without it
            self._remove(chain)
            gone += [row.memory_id for row in chain]
        return tuple(gone)

    def _bury(self, rows: Sequence[Row], by: Source) -> None:
        now = self._now()
        MemoryTombstone.objects.of(self._owner_id).bulk_create(
            MemoryTombstone(
                owner_id=self._owner_id, memory_id=row.memory_id, hash=words_hash(row.text), at=now, by=by.value
            )
            for row in rows
        )
        self._remove(rows)

    def _remove(self, rows: Sequence[Row]) -> None:
        """Leave nothing of what these memories said: not in the index, not in what an undo would put back, and not in
        what tools had shown of them."""
        keys, ids = [row.pk for row in rows], [row.memory_id for row in rows]
        search_entry.drop(self._owner_id, search_entry.Kind.MEMORY, keys)
        MemoryChange.objects.of(self._owner_id).filter(memory_id__in=ids, before__isnull=False).update(before=None)
        memorytraces.erase(self._owner_id, ids)
        self._all().filter(pk__in=keys).delete()

    def _enter(self, row: Row) -> None:
        """Bring the searchable entry in line with the row."""
        search_entry.drop(self._owner_id, search_entry.Kind.MEMORY, [row.pk])
        if row.superseded_by_id is not None or row.muted:
            return
        text = search_entry.Text(ref=row.pk, position=1, text=searched(row), created=row.created_at)
        search_entry.add(self._owner_id, search_entry.Kind.MEMORY, row.pk, [text])
        if settings.EMBEDDER != "none":
            jobs.plant(jobs.EMBED, owner_id=self._owner_id, scope=f"memory:{self._owner_id}")

    # Searching them

    def _found(self, query: Query, kind: Kind | None, vector: searching.Vector | None, most: int) -> tuple[Found, ...]:
        """Return the hits of one search, best first: `most` of them, and more where those behind are as good."""
        fitting = self._holding().filter(_within(query.between), muted=False)
        if kind is not None:
            fitting = fitting.filter(kind=kind.value)
        narrowed = kind is not None or query.between != Between()
        groups = fitting.values_list("pk", flat=True) if narrowed else None
        scope = searching.Scope(owner_id=self._owner_id, kinds=(search_entry.Kind.MEMORY,), groups=groups)
        ranked = _ranked(scope, query.text, vector)
        if not ranked:
            return ()
        quoted = searching.phrases(query.text)
        worst = ranked[-1 if quoted else min(most, len(ranked)) - 1].score
        best = max(LEAST_SCORE, ranked[0].score)
        scores = {one.ref: min(1.0, max(LEAST_SCORE, one.score / best)) for one in ranked if one.score >= worst}
        rows = [row for row in fitting.filter(pk__in=list(scores)) if searching.holds(searched(row), quoted)]
        rows.sort(key=lambda row: row.memory_id)
        rows.sort(key=lambda row: (scores[row.pk], _happened(row), row.updated_at), reverse=True)
        return tuple(Found(memory=load(row), score=scores[row.pk]) for row in rows)


_AGE: Final = ("created_at", "memory_id")


def _known(id: str) -> str:
    """Return the id, "" for what cannot be one and what the database would not take: a model may name anything."""
    return id if id.isascii() and id.isalnum() else ""


def _ranked(scope: searching.Scope, text: str, vector: searching.Vector | None) -> tuple[searching.Ranked, ...]:
    """Return what the search gives; where vectors cannot be compared, by words alone."""
    if vector is not None:
        try:
            with transaction.atomic():
                return searching.search(scope, text, limit=RANKED, vector=vector)
        except DataError:  # vectors of another length under the same name: the endpoint changed its model
            logger.exception("searched without vectors")
    return searching.search(scope, text, limit=RANKED)


def _within(between: Between) -> Q:
    """Return Between.lets as a condition."""
    lets = Q()
    if between.after is not None:
        lets &= Q(event_end__gt=between.after)
    if between.before is not None:
        lets &= Q(event_start__lt=between.before)
    return Q(event_start=None) | lets if lets else lets


def _happened(row: Row) -> float:
    return row.event_start.timestamp() if row.event_start else float("-inf")


def _columns(draft: Draft) -> dict[str, Any]:
    """Return what a draft says as columns."""
    time, origin = draft.event_time, draft.origin
    return {
        "text": draft.text,
        "kind": draft.kind.value,
        "topics": list(draft.topics),
        "event_start": time.start if time else None,
        "event_end": time.end if time else None,
        "event_precision": time.precision.value if time else "",
        "participants": list(draft.participants),
        "location": draft.location,
        "source": draft.source.value,
        "origin_thread": origin.thread_id if origin else "",
        "origin_event": origin.event_id if origin else "",
        "origin_position": origin.position if origin else None,
        "content_hash": content_hash(draft),
    }
