"""Vectors for what is searchable by word already: filled in later, a slice at a time, and again for another embedder.

A job's scope is "artifact:<pk>", "session:<pk>", "memory:<owner>" or "all", and ":<id>" behind it where an earlier
slice ended. While vectors are made or replaced, search goes on with words and with the vectors of the current embedder
that are there.
"""

import logging
from collections.abc import Sequence
from time import monotonic
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from agents import jobs, wiring
from agents.jobs import Claim
from agents.models.job import Job
from agents.models.memory import Memory
from agents.models.search_entry import Embedding, Kind, SearchEntry
from agents.models.session import Session
from agents.runtime.embedding import Embedder, Vector, model_id
from agents.stores import memorysearch
from agents.stores.entries import EntryPlace, event_texts
from artifacts import indexing
from artifacts.models import Passage

SLICE: Final = 500  # entries of one job
SLICE_S: Final = 40.0  # well within a job's lease
AT_A_TIME: Final = 16
LOOK_EVERY_S: Final = 600.0
ALL: Final = "all"

_KEEP: Final = """
insert into agents_embedding (entry_id, owner_id, kind, group_id, model, vector)
select e.id, e.owner_id, e.kind, e.group_id, %(model)s, x.v::halfvec
from unnest(%(ids)s::bigint[], %(vectors)s::text[]) x(id, v)
join agents_searchentry e on e.id = x.id for key share of e
on conflict (entry_id) do update set model = excluded.model, vector = excluded.vector
"""

_looked_at: dict[str, float] = {}
logger = logging.getLogger(__name__)


def run(job: Claim) -> None:
    """Make vectors for a slice of the job's scope, and owe the next one. Safe to run twice. Raises EmbedderFailed."""
    embedder = wiring.embedder()
    if embedder is None:
        return
    what, after = _read_scope(job.scope)
    entries = _without(model_id(embedder), _entries(what, job.owner_id)).filter(pk__gt=after).order_by("pk")
    slice_ = list(entries.only("owner_id", "kind", "group_id", "ref", "offset")[:SLICE])
    until = monotonic() + SLICE_S
    for start in range(0, len(slice_), AT_A_TIME):
        some = slice_[start : start + AT_A_TIME]
        _embed(embedder, some)
        after = some[-1].pk
        if monotonic() >= until:
            break
    if slice_ and (after < slice_[-1].pk or len(slice_) == SLICE):
        with transaction.atomic():
            jobs.plant(jobs.EMBED, owner_id=job.owner_id, scope=f"{what}:{after}", session_id=job.session_id)


def owe_missing() -> bool:
    """Owe vectors for all entries that have none of the current embedder; return whether there were any.

    For the sweep: each process looks every ten minutes, and at once if the embedder is another than before.
    """
    embedder = wiring.embedder()
    if embedder is None:
        return False
    name = f"{embedder.name}:{embedder.model}"
    if monotonic() - _looked_at.get(name, -LOOK_EVERY_S) < LOOK_EVERY_S:
        return False
    _looked_at[name] = monotonic()
    going = Job.objects.filter(kind=jobs.EMBED, status__in=(Job.Status.QUEUED, Job.Status.RUNNING))
    # a conversation's job does that one alone, one of memories those, and where many people talk there is always one
    wide = going.filter(session=None).exclude(scope__startswith="memory:")
    if wide.exists() or not _without(model_id(embedder), _entries(ALL)).exists():
        return False
    logger.info("entries without vectors of %s are embedded in the background", name)
    with transaction.atomic():
        jobs.plant(jobs.EMBED, owner_id=None, scope=ALL)
    return True


def progress(owner_id: int | None = None) -> tuple[int, int]:
    """Return how many passages of documents have what the current embedder can give, and how many there are.

    owner_id: None = of everyone.
    """
    embedder = wiring.embedder()
    total = _of(owner_id).filter(kind=Kind.PASSAGE).count()
    if embedder is None:
        return total, total
    made = Embedding.objects.of_everyone() if owner_id is None else Embedding.objects.of(owner_id)
    return made.filter(kind=Kind.PASSAGE, model=model_id(embedder)).count(), total


def _embed(embedder: Embedder, entries: Sequence[SearchEntry]) -> None:
    texts = _texts(entries)
    vectors = embedder.embed(list(texts.values())) if texts else ()
    given: dict[str, Any] = {
        "model": model_id(embedder),
        "ids": list(texts),
        "vectors": [None if vector is None else _as_text(vector) for vector in vectors],
    }
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, given)


def _texts(entries: Sequence[SearchEntry]) -> dict[int, str]:
    """Return the entries' texts by primary key; what is gone meanwhile is left out."""
    passages = Passage.objects.of_everyone().in_bulk([e.ref for e in entries if e.kind == Kind.PASSAGE])
    found = {e.pk: indexing.searched(passages[e.ref]) for e in entries if e.kind == Kind.PASSAGE and e.ref in passages}
    memories = Memory.objects.of_everyone().in_bulk([e.ref for e in entries if e.kind == Kind.MEMORY])
    found |= {
        e.pk: memorysearch.searched(memories[e.ref]) for e in entries if e.kind == Kind.MEMORY and e.ref in memories
    }
    said = [e for e in entries if e.kind == Kind.EVENT]
    for owner_id in {e.owner_id for e in said}:
        places = {e.pk: EntryPlace(e.group_id, e.ref, e.offset) for e in said if e.owner_id == owner_id}
        texts = event_texts(owner_id, places.values())
        found |= {pk: texts[place] for pk, place in places.items() if place in texts}
    return found


def _entries(what: str, owner_id: int | None = None) -> QuerySet[SearchEntry]:
    """Return the entries of a scope without those of deleted conversations."""
    deleted = Session.objects.of_everyone().filter(pk=OuterRef("group_id"), deleted_at__isnull=False)
    entries = _of(owner_id).filter(~Q(kind=Kind.EVENT) | ~Exists(deleted))
    if what == ALL:
        return entries
    of, _, key = what.partition(":")
    if of == "memory":
        return entries.filter(kind=Kind.MEMORY, owner_id=int(key))
    return entries.filter(kind=Kind.EVENT if of == "session" else Kind.PASSAGE, group_id=int(key))


def _of(owner_id: int | None) -> QuerySet[SearchEntry]:
    return SearchEntry.objects.of_everyone() if owner_id is None else SearchEntry.objects.of(owner_id)


def _without(model: int, entries: QuerySet[SearchEntry]) -> QuerySet[SearchEntry]:
    current = Embedding.objects.of_everyone().filter(entry=OuterRef("pk"), model=model)
    return entries.filter(~Exists(current))


def _read_scope(scope: str) -> tuple[str, int]:
    parts = scope.split(":")
    length = 1 if parts[0] == ALL else 2
    return ":".join(parts[:length]), int(parts[length]) if len(parts) > length else 0


def _as_text(vector: Vector) -> str:
    return "[" + ",".join(f"{x:.6g}" for x in vector) + "]"
