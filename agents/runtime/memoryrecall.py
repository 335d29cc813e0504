"""Recall over the stores in memory, for tests: what shares most of the query's words is found, rare words first."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from agents.runtime.events import Stored, UserMessage
from agents.runtime.excerpts import terms
from agents.runtime.memorystores import MemorySessionStore, Talk
from agents.runtime.pieces import content_of, piece_of, pieces_of
from agents.runtime.recall import TURNS, Anchor, Piece, RecallScope, Recollection, Window, missing
from agents.runtime.session import OpenRun
from agents.runtime.summaries import Summary, covers

Place = tuple[str, int]  # thread and index of a piece in its conversation


class MemoryRecall:
    """The conversations of one owner, as seen from a run of `thread_id`. before: position of the run's first record.

    It has no vectors: a dense search goes by words too.
    """

    def __init__(self, store: MemorySessionStore, *, owner_id: int, thread_id: str, before: int) -> None:
        self._store = store
        self._owner_id = owner_id
        self._thread_id = thread_id
        self._before = before

    @classmethod
    def of_run(cls, store: MemorySessionStore, opened: OpenRun) -> "MemoryRecall":
        asked, before = opened.request, opened.records[0].position
        return cls(store, owner_id=asked.owner_id, thread_id=asked.thread_id, before=before)

    async def search(
        self, query: str, *, scope: RecallScope, limit: int = 10, dense: bool = False, min_score: float = 0.0
    ) -> tuple[Recollection, ...]:
        found = by_words(dict(self._pieces(scope)), query, limit)
        return tuple(
            Recollection(piece=piece, scope=self._scope_of(piece.thread_id, scope), score=score)
            for piece, score in found
        )

    async def load(self, anchor: Anchor, *, before: int, after: int) -> Window:
        talks = self._store.talks(self._owner_id)
        thread_id = anchor.thread_id or self._thread_id
        talk = talks.get(thread_id)
        lines = () if talk is None else (talk.chain,) if thread_id == self._thread_id else (talk.chain, *talk.lines)
        for number, line in enumerate(lines):
            assert talk is not None
            if (asked := _find(line, anchor)) is not None:
                texts = [s for s in line if s is asked or content_of(s.record).strip()]
                whole = [piece_of(s, thread_id=thread_id, title=talk.session.title) for s in texts]
                pieces = [piece for piece in whole if piece is not None]
                at = next(n for n, piece in enumerate(pieces) if piece.position == asked.position)
                first = max(0, at - before)
                summary = _covering(talk, asked)
                return Window(
                    pieces=tuple(pieces[first : at + after + 1]),
                    anchor=at - first,
                    summary_id=summary.id if summary else "",
                    summary_text=summary.text if summary else "",
                    replaced=number > 0,
                )
        raise missing(anchor.named)

    def _pieces(self, scope: RecallScope) -> Iterator[tuple[Place, Piece]]:
        for thread_id, talk in self._store.talks(self._owner_id).items():
            here = thread_id == self._thread_id
            if here and scope is RecallScope.OTHER_SESSIONS:
                continue
            if not here and scope in (RecallScope.CURRENT_HIDDEN, RecallScope.CURRENT_SESSION):
                continue
            events = [s for s in talk.chain if not here or self._may_see(s, talk, scope)]
            number = 0
            for stored in events:
                for offset, _ in pieces_of(content_of(stored.record)):
                    piece = piece_of(stored, thread_id=thread_id, title=talk.session.title, offset=offset)
                    assert piece is not None
                    yield (thread_id, number), piece
                    number += 1

    def _may_see(self, stored: Stored, talk: Talk, scope: RecallScope) -> bool:
        if scope is RecallScope.CURRENT_SESSION:
            return stored.position < self._before
        asked = stored.position >= self._before and isinstance(stored.record, UserMessage)
        return not asked and _covering(talk, stored) is not None

    def _scope_of(self, thread_id: str, asked: RecallScope) -> RecallScope:
        if thread_id != self._thread_id:
            return RecallScope.OTHER_SESSIONS
        return asked if asked is RecallScope.CURRENT_SESSION else RecallScope.CURRENT_HIDDEN


def by_words(found: Mapping[Place, Piece], query: str, limit: int) -> list[tuple[Piece, float]]:
    """Return the pieces that share most of the query's words, rare words first, then their neighbours with score 0."""
    wanted = terms(query)
    texts = {place: piece.text.casefold() for place, piece in found.items()}
    counts = Counter(word for text in texts.values() for word in wanted if word in text)
    scores = {
        place: sum(math.log(1 + len(texts) / counts[word]) for word in wanted if word in text)
        for place, text in texts.items()
    }
    hits = sorted((place for place in scores if scores[place]), key=lambda p: (-scores[p], p))[:limit]
    around = ((thread, n + step) for thread, n in hits for step in (-1, 1, -2, 2))
    shown = dict.fromkeys((*hits, *(place for place in around if place in found)))
    return [(found[place], scores[place] if place in hits else 0.0) for place in list(shown)[:TURNS]]


def _find(line: tuple[Stored, ...], anchor: Anchor) -> Stored | None:
    """Return the event that is meant, if it has a text."""
    texts = [(s, piece) for s in reversed(line) if (piece := piece_of(s, thread_id="", title="")) is not None]
    named = (
        *(s for s, piece in texts if piece.event_id == anchor.event_id),
        *(s for s, piece in texts if anchor.call_id and piece.tool_call_id == anchor.call_id),
        *(s for s, piece in texts if piece.message_id == anchor.message_id),
    )
    return named[0] if named else None


def _covering(talk: Talk, stored: Stored) -> Summary | None:
    keys = (talk.session.agent, "")
    summary = next((talk.summaries[key] for key in keys if key in talk.summaries), None)
    return summary if summary and covers(summary.filter_key, summary.boundary, stored) else None
