"""What is found among one owner's memories, and the entries of the index by which it is.

Sync, on Django's connection. Entries are written in the caller's transaction.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from django.conf import settings
from django.db import DataError, transaction
from django.db.models import Q, QuerySet

from agents import jobs
from agents import search as searching
from agents.models import search_entry
from agents.models.memory import Memory as Row
from agents.runtime.memory.dates import Between
from agents.runtime.memory.memories import FEW_HITS, Found, Query, happened
from agents.stores.memorycolumns import load

RANKED: Final = 150  # all that a search weighs: of equals the contract says which come first
LEAST_SCORE: Final = 0.0001  # of a hit, however little is left of it

logger = logging.getLogger(__name__)


def searched(row: Row) -> str:
    """Return the text by which a memory is found, and of which its vector is made."""
    return "\n".join(filter(None, (row.text, ", ".join(row.topics), ", ".join(row.participants), row.location)))


def enter(row: Row) -> None:
    """Bring the entry of a memory in line with its row: only what holds and is not muted has one."""
    drop(row.owner_id, [row.pk])
    if row.superseded_by_id is not None or row.muted:
        return
    text = search_entry.Text(ref=row.pk, position=1, text=searched(row), created=row.created_at)
    search_entry.add(row.owner_id, search_entry.Kind.MEMORY, row.pk, [text])
    if settings.EMBEDDER != "none":
        jobs.plant(jobs.EMBED, owner_id=row.owner_id, scope=f"memory:{row.owner_id}")


def drop(owner_id: int, keys: Sequence[int]) -> None:
    """Remove the entries of these rows, and with them their vectors."""
    search_entry.drop(owner_id, search_entry.Kind.MEMORY, keys)


def search(owner_id: int, shown: QuerySet[Row], query: Query, vector: searching.Vector | None) -> tuple[Found, ...]:
    """Return what fits, best first; see MemoryStore.search.

    shown: the owner's memories that hold and are not muted. vector: of the question, None = by words alone. Two
    statements; four if another kind is searched too.
    """
    if not query.text.strip():
        return ()
    limit = max(1, query.limit)
    found = _found(owner_id, shown, query, vector, max(limit, FEW_HITS))
    if query.kind is None or not query.fallback or len(found) >= FEW_HITS:
        return found[:limit]
    everything = _found(owner_id, shown, replace(query, kind=None), vector, RANKED)
    ids = {hit.memory.id for hit in found}
    scores = {hit.memory.id: hit.score for hit in everything}
    # in order by kind, but with the scores of one search; what was too far behind there has the least of them
    least = min(scores.values(), default=LEAST_SCORE)
    own = (replace(hit, score=scores.get(hit.memory.id, least)) for hit in found)
    return (*own, *(hit for hit in everything if hit.memory.id not in ids))[:limit]


def _found(
    owner_id: int, shown: QuerySet[Row], query: Query, vector: searching.Vector | None, most: int
) -> tuple[Found, ...]:
    """Return the hits of the query's kind, best first: `most` of them, and more where those behind are as good."""
    fitting = shown.filter(_within(query.between))
    if query.kind is not None:
        fitting = fitting.filter(kind=query.kind.value)
    narrowed = query.kind is not None or query.between != Between()
    groups = fitting.values_list("pk", flat=True) if narrowed else None
    scope = searching.Scope(owner_id=owner_id, kinds=(search_entry.Kind.MEMORY,), groups=groups)
    ranked = _ranked(scope, query.text, vector)
    if not ranked:
        return ()
    quoted = searching.phrases(query.text)
    worst = ranked[-1 if quoted else min(most, len(ranked)) - 1].score
    best = max(LEAST_SCORE, ranked[0].score)
    scores = {one.ref: min(1.0, max(LEAST_SCORE, one.score / best)) for one in ranked if one.score >= worst}
    rows = [row for row in fitting.filter(pk__in=list(scores)) if searching.holds(searched(row), quoted)]
    hits = [Found(memory=load(row), score=scores[row.pk]) for row in rows]
    hits.sort(key=lambda hit: hit.memory.id)
    hits.sort(key=lambda hit: (hit.score, happened(hit.memory), hit.memory.updated_at), reverse=True)
    return tuple(hits)


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
