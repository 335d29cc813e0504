"""A run's past over the tables: Recall for one owner, as seen from one run."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import DatabaseError, DataError
from django.db.models import Q, QuerySet

from agents import search as searching
from agents.models.search_entry import Kind
from agents.models.session import Session
from agents.runtime.embedding import Embedder
from agents.runtime.errors import StorageUnavailable
from agents.runtime.events import Stored, UserMessage
from agents.runtime.pieces import SILENT_TOOLS, piece_of
from agents.runtime.recall import TURNS, Anchor, Piece, RecallFailed, RecallScope, Recollection, Window, missing
from agents.runtime.scopes import sees
from agents.stores import chains, events, pool, sql, vectors
from agents.stores.db import in_thread

LEAST_SCORE: Final = 0.0001  # of a hit, however little is left of it
WIDER: Final = 4  # times as much is asked for again, where something was found that other conversations replaced
FAILED: Final = "Earlier messages cannot be read just now."

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Back:
    """Where a run stands when it looks back. line: its chain. hidden: position up to which a summary stands for it."""

    line: tuple[tuple[int, int], ...]
    hidden: int

    def until(self, position: int) -> tuple[tuple[int, int], ...]:
        return tuple(chains.cut(self.line, position))


class PgRecall:
    """The conversations of one owner. session, fork: of the run. filter_key: its scope. before: position of its first
    record; embedder: None = by words alone. Implements agents.runtime.recall.Recall."""

    def __init__(
        self, owner_id: int, session: int, *, fork: int, filter_key: str, before: int, embedder: Embedder | None = None
    ) -> None:
        self._owner_id = owner_id
        self._session = session
        self._fork = fork
        self._filter_key = filter_key
        self._before = before
        self._embedder = embedder

    async def search(
        self, query: str, *, scope: RecallScope, limit: int = 10, dense: bool = False, min_score: float = 0.0
    ) -> tuple[Recollection, ...]:
        if not query.strip():
            return ()
        back = await self._look_back()
        where = self._where(scope, back)
        if where is None:
            return ()
        vector = await vectors.of_question(self._embedder, query)
        dense = dense and vector is not None
        asked = "" if dense else query
        for most in (1, WIDER):
            ranked = await self._ranked(where, asked, vector, most * TURNS, most * limit)
            found, replaced = await self._events(ranked, vector if dense else None)
            if not replaced:
                break
        if quoted := searching.phrases(query):
            found = [one for one in found if searching.holds(one.piece.text, quoted)]
        if dense:
            found.sort(key=lambda one: -one.likeness)
            hits = [one for one in found if one.likeness >= max(min_score, LEAST_SCORE)][:limit]
        else:
            hits = [one for one in found if one.number <= most * limit][:limit]
        around = [one for one in found if one not in hits][: TURNS - len(hits)]
        return (
            *(self._recollection(one, scope, one.likeness if dense else one.score) for one in hits),
            *(self._recollection(one, scope, 0.0) for one in around if hits),
        )

    async def load(self, anchor: Anchor, *, before: int, after: int) -> Window:
        found = await self._find(anchor)
        rows = await self._fetch(
            sql.WINDOW,
            {
                "session": found.session,
                "forks": [fork for fork, _ in found.line],
                "up_to": [last for _, last in found.line],
                "position": found.position,
                "before": before,
                "after": after,
                "agent": found.agent,
                "silent": list(SILENT_TOOLS),
            },
        )
        pieces = [
            piece
            for _, *columns in rows
            if (piece := piece_of(events.load(columns), thread_id=found.thread_id, title=found.title)) is not None
        ]
        at = next((n for n, piece in enumerate(pieces) if piece.position == found.position), None)
        if at is None:  # it holds no text
            raise missing(anchor.named)
        summary_id, summary_text = rows[0][0] or ("", "")
        return Window(
            pieces=tuple(pieces),
            anchor=at,
            summary_id=summary_id,
            summary_text=summary_text,
            replaced=not found.shown,
        )

    async def _look_back(self) -> _Back:
        rows = await self._fetch(
            sql.LOOKING_BACK,
            {
                "session": self._session,
                "owner": self._owner_id,
                "fork": self._fork,
                "filter_key": self._filter_key,
            },
        )
        if not rows:
            return _Back(line=(), hidden=0)
        forks, up_to, hidden = rows[0]
        return _Back(line=tuple(zip(forks, up_to, strict=True)), hidden=hidden)

    def _where(self, scope: RecallScope, back: _Back) -> searching.Scope | None:
        """Return where a search looks, None = nowhere."""
        here = [self._session]
        until = self._before - 1 if scope is RecallScope.CURRENT_SESSION else back.hidden
        line = (self._session, back.until(until)) if until and back.line else None
        match scope:
            case RecallScope.CURRENT_HIDDEN | RecallScope.CURRENT_SESSION:
                return self._scope(groups=here, line=line) if line else None
            case RecallScope.OTHER_SESSIONS:
                return self._scope(without=self._left_out(with_own=True))
            case RecallScope.ALL_SESSIONS:
                return self._scope(without=self._left_out(with_own=line is None), line=line)

    def _scope(self, **more: Any) -> searching.Scope:
        return searching.Scope(owner_id=self._owner_id, kinds=(Kind.EVENT,), **more)

    def _left_out(self, *, with_own: bool) -> QuerySet[Session, int]:
        """Return the conversations that no search of others looks into: those that are deleted, and its own."""
        left_out = Q(deleted_at__isnull=False)
        if with_own:
            left_out |= Q(pk=self._session)
        return Session.objects.of(self._owner_id).filter(left_out).values_list("pk", flat=True)

    async def _ranked(
        self, where: searching.Scope, query: str, vector: searching.Vector | None, most: int, hits: int
    ) -> tuple[searching.Ranked, ...]:
        try:
            return await in_thread(_ranked)(where, query, vector, most, hits)
        except DatabaseError as error:
            raise RecallFailed(FAILED) from error

    async def _events(
        self, ranked: Sequence[searching.Ranked], vector: searching.Vector | None
    ) -> tuple[list["_Found"], bool]:
        """Return what was found with its texts, in the same order, each once, and whether something was replaced.

        What is not this run's to see is left out, and what other conversations do not show any more: it was edited
        away, or answered anew.
        """
        rows = await self._fetch(
            sql.FOUND_EVENTS,
            {
                "owner": self._owner_id,
                "sessions": [one.group_id for one in ranked],
                "positions": [one.ref for one in ranked],
                "entries": [one.position for one in ranked],
                "vector": f"[{','.join(map(str, vector.values))}]" if vector else None,
                "model": vector.model if vector else None,
            },
        )
        found = []
        replaced = False
        for ord_, thread_id, title, likeness, head, forks, *columns in rows:
            one, stored = ranked[ord_ - 1], events.load(columns)
            own = one.group_id == self._session
            if not own and not _shows(head, forks, stored):
                replaced = True
                continue
            piece = piece_of(stored, thread_id=thread_id, title=title, offset=one.offset)
            if piece is not None and (not own or self._may_see(stored)):
                score = max(LEAST_SCORE, one.score)
                found.append(_Found(piece=piece, own=own, number=ord_, score=score, likeness=likeness or 0.0))
        return found, replaced

    def _may_see(self, stored: Stored) -> bool:
        """Return whether an event of the run's own conversation is of its scope, and not what it was asked itself."""
        asked = stored.position >= self._before and isinstance(stored.record, UserMessage)
        return not asked and sees(self._filter_key, stored.origin.filter_key)

    def _recollection(self, found: "_Found", asked: RecallScope, score: float) -> Recollection:
        own = asked if asked is RecallScope.CURRENT_SESSION else RecallScope.CURRENT_HIDDEN
        return Recollection(piece=found.piece, scope=own if found.own else RecallScope.OTHER_SESSIONS, score=score)

    async def _find(self, anchor: Anchor) -> "_Place":
        """Return where the event stands that is meant. Raises EventMissing."""
        rows = await self._fetch(
            sql.ANCHORS,
            {
                "owner": self._owner_id,
                "session": self._session,
                "thread": anchor.thread_id,
                "event": anchor.event_id,
                "call": anchor.call_id,
                "message": anchor.message_id,
            },
        )
        for session, thread_id, title, agent, head, forks, places in rows:
            known = _forks(forks)
            own = session == self._session
            for position, fork in places or ():
                # of its own conversation a run sees the visible line only
                for last in (head,) if own else (head, fork):
                    line = chains.chain(known, last)
                    if any(part == fork and position <= up_to for part, up_to in line):
                        return _Place(
                            session=session,
                            thread_id=thread_id,
                            title=title,
                            agent=agent,
                            position=position,
                            line=tuple(line),
                            shown=last == head,
                        )
        raise missing(anchor.named)

    async def _fetch(self, statement: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return await pool.fetch(statement, params)
        except StorageUnavailable as error:
            raise RecallFailed(FAILED) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A piece that a search gave. own: of the run's own conversation. number: its place in what was found, from 1.
    likeness: of its vector, 0 without."""

    piece: Piece
    own: bool
    number: int
    score: float
    likeness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where an event stands. line: the chain of forks on which its neighbours are looked for. shown: its conversation
    shows that line."""

    session: int
    thread_id: str
    title: str
    agent: str
    position: int
    line: tuple[tuple[int, int], ...]
    shown: bool


def _forks(rows: Sequence[tuple[int, int | None, int]] | None) -> list[chains.Fork]:
    return [chains.Fork(number=n, parent=p, shared_position=s) for n, p, s in rows or ()]


def _shows(head: int, forks: Sequence[tuple[int, int | None, int]] | None, stored: Stored) -> bool:
    """Return whether the line that ends in this fork holds an event. forks: None = it is the first."""
    line = chains.chain(_forks(forks), head) if head else [(0, stored.position)]
    return any(stored.fork == fork and stored.position <= up_to for fork, up_to in line)


def _ranked(
    where: searching.Scope, query: str, vector: searching.Vector | None, most: int, hits: int
) -> tuple[searching.Ranked, ...]:
    """Return what the search gives; where vectors cannot be compared, by words alone."""
    try:
        return searching.search(where, query, limit=most, hits=hits, vector=vector)
    except DataError:  # vectors of another length under the same name: the endpoint changed its model
        logger.exception("searched without vectors")
        return searching.search(where, query, limit=most, hits=hits)
