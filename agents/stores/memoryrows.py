"""Memories of one owner as rows, sync: what stores/memories.py does on its threads, and a job in its own transaction.

Every write is a transaction, or a savepoint of the caller's, and first takes the owner's lock: what it reads is what
holds until it is committed. The searchable entry of a memory is written in the same transaction.
"""

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Exists, F, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.db.models.lookups import IsNull
from django.utils import timezone

from agents.models.memory import Memory as Row
from agents.models.memory import MemoryChange, MemorySetting, MemoryTombstone
from agents.runtime.memory.memories import (
    MOST_MEMORIES,
    Draft,
    Found,
    Memory,
    MemoryDuplicate,
    MemoryMissing,
    MemoryOff,
    Query,
    Source,
    Tombstone,
    VersionConflict,
    Written,
    checked,
    content_hash,
)
from agents.runtime.memory.words import words_hash
from agents.search import Vector
from agents.stores import memorysearch, memorytraces
from agents.stores.memorycolumns import columns_of, load
from agents.stores.memorysearch import enter

LOCK: Final = 0x6D656D6F  # class of the advisory locks, "memo"
ID_LETTERS: Final = "abcdefghijkmnpqrstuvwxyz23456789"  # none that is taken for another
ID_LENGTH: Final = 8

# the memory and all that it superseded, directly or not
_CHAIN: Final = """
with recursive chain as (
  select m.id from agents_memory m where m.owner_id = %s and m.id = %s
  union
  select m.id from agents_memory m join chain c on m.superseded_by_id = c.id where m.owner_id = %s)
select id from chain
"""


def lock(owner_id: int) -> None:
    """Let nobody else write this owner's memories until the caller's transaction ends. May be taken again within it."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_xact_lock(%s, %s)", [LOCK, owner_id])


def new_id() -> str:
    return "".join(secrets.choice(ID_LETTERS) for _ in range(ID_LENGTH))


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
            return self._write(row, **columns_of(draft))

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
            enter(before)
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
            enter(row)
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

    def search(self, query: Query, vector: Vector | None = None) -> tuple[Found, ...]:
        """vector: of the question; see memorysearch.search."""
        return memorysearch.search(self._owner_id, self._holding().filter(muted=False), query, vector)

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
        row = Row(owner_id=self._owner_id, memory_id=id, created_at=now, updated_at=now, **columns_of(draft))
        row.save(force_insert=True)
        enter(row)
        return row

    def _create(self, memory: Memory, superseded_by: int | None) -> Row:
        """Put back a memory that was there."""
        kept = {name: getattr(memory, name) for name in ("version", "muted", "created_at", "updated_at", "used_at")}
        keys = {"owner_id": self._owner_id, "memory_id": memory.id, "superseded_by_id": superseded_by}
        row = Row(**keys, **kept, **columns_of(memory))
        row.save(force_insert=True)
        enter(row)
        return row

    def _write(self, row: Row, **columns: Any) -> Memory:
        row.version, row.updated_at = row.version + 1, self._now()
        for name, value in columns.items():
            setattr(row, name, value)
        row.save(update_fields=["version", "updated_at", *columns])
        enter(row)
        return load(row)

    def _let_go(self, row: Row, heir: Row) -> None:
        """Make a memory history: the heir holds in its place."""
        row.superseded_by = heir
        row.save(update_fields=["superseded_by"])
        enter(row)

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
        memorysearch.drop(self._owner_id, keys)
        MemoryChange.objects.of(self._owner_id).filter(memory_id__in=ids, before__isnull=False).update(before=None)
        memorytraces.erase(self._owner_id, ids)
        self._all().filter(pk__in=keys).delete()


_AGE: Final = ("created_at", "memory_id")


def _known(id: str) -> str:
    """Return the id, "" for what cannot be one and what the database would not take: a model may name anything."""
    return id if id.isascii() and id.isalnum() else ""
