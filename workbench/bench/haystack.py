"""Histories in the database as the product keeps them: entries of events or of a document's passages, with vectors.

Everything belongs to owners made for the measuring. The caller opens a transaction and rolls it back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import connection

from agents.models.search_entry import BATCH, Kind, SearchEntry, Text, add
from agents.runtime.embedding import Embedder, Vector, model_id
from agents.runtime.events import AssistantMessage, Record, UserMessage
from agents.runtime.model import TextPart
from agents.search import Ranked, Scope, search
from agents.search import Vector as Asked
from agents.stores import entries
from workbench.bench.readers import History, Turn

UNDATED: Final = datetime(2024, 1, 1, tzinfo=UTC)
PACE: Final = timedelta(seconds=20)  # between two turns of one sitting

_VECTORS = """
insert into agents_embedding (entry_id, owner_id, kind, group_id, model, vector)
select e.id, e.owner_id, e.kind, e.group_id, %s, x.v::halfvec
from unnest(%s::bigint[], %s::text[]) x(id, v) join agents_searchentry e on e.id = x.id
"""


class Vectors:
    """An embedder that is asked once for each text. None = by words alone."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._made: dict[str, Vector | None] = {}

    def of(self, texts: Sequence[str]) -> list[Vector | None]:
        if self.embedder is None:
            return [None] * len(texts)
        missing = list(dict.fromkeys(text for text in texts if text not in self._made))
        self._made |= zip(missing, self.embedder.embed(missing), strict=True) if missing else ()
        return [self._made[text] for text in texts]

    def query(self, text: str) -> Asked | None:
        (values,) = self.of([text])
        return Asked(model=self.model, values=values) if values is not None else None

    @property
    def model(self) -> int:
        return model_id(self.embedder) if self.embedder is not None else 0


@dataclass(slots=True)
class Haystack:
    """What one owner has. turns: by group and what a result names: of events the position, of passages the row."""

    vectors: Vectors
    owner: int = field(default_factory=lambda: int(User.objects.create(username=f"bench-{uuid4()}").pk))
    turns: dict[tuple[int, int], Turn] = field(default_factory=dict)

    def talk(self, history: History, group: int) -> None:
        """Enter a history as one conversation, one event for each turn."""
        times = _times(history.turns)
        texts: list[Text] = []
        for event, (turn, at) in enumerate(zip(history.turns, times, strict=True), 1):
            self.turns[group, event] = turn
            texts += [
                Text(
                    ref=event,
                    position=len(texts) + n,
                    text=piece["body"],
                    created=at,
                    offset=piece["start"],
                    fork=0,
                    marks=tuple(piece["marks"].split()),
                )
                for n, piece in enumerate(entries.pieces(_record(turn)), 1)
            ]
        self._add(Kind.EVENT, group, texts)

    def document(self, history: History, group: int) -> None:
        """Enter a history as one document, a passage for each turn."""
        texts = []
        for n, (turn, at) in enumerate(zip(history.turns, _times(history.turns), strict=True), 1):
            self.turns[group, n] = turn
            texts.append(Text(ref=n, position=n, text=turn.text, created=at))
        self._add(Kind.PASSAGE, group, texts)

    def ask(self, query: str, kind: Kind = Kind.EVENT, **more: Any) -> list[Turn]:
        """Return the turns that a search finds, best first, each once. more: groups of the scope, limits."""
        scope = Scope(owner_id=self.owner, kinds=(kind,), groups=more.pop("groups", None))
        found = search(scope, query, vector=self.vectors.query(query), **more)
        return list({(ranked.group_id, ranked.ref): self._turn(ranked) for ranked in found}.values())

    def _turn(self, ranked: Ranked) -> Turn:
        return self.turns[ranked.group_id, ranked.ref]

    def _add(self, kind: Kind, group: int, texts: Sequence[Text]) -> None:
        add(self.owner, kind, group, texts)
        if self.vectors.embedder is None:
            return
        made = SearchEntry.objects.of(self.owner).filter(kind=kind, group_id=group).order_by("position")
        ids = list(made.values_list("pk", flat=True))
        found = [_as_text(values) for values in self.vectors.of([text.text for text in texts])]
        with connection.cursor() as cursor:
            for start in range(0, len(ids), BATCH):
                some = slice(start, start + BATCH)
                cursor.execute(_VECTORS, [self.vectors.model, ids[some], found[some]])


def _record(turn: Turn) -> Record:
    if turn.user:
        return UserMessage(id=turn.id, parts=(TextPart(text=turn.text),))
    return AssistantMessage(id=turn.id, response_id=turn.id, text=turn.text)


def _times(turns: Sequence[Turn]) -> list[datetime]:
    """Return when each turn was said: its sitting's time, and a little more for each turn of it."""
    found: list[datetime] = []
    begun, nth = UNDATED, 0
    for turn in turns:
        nth = nth + 1 if turn.at in (None, begun) and found else 0
        begun = turn.at or begun
        found.append(begun + nth * PACE)
    return found


def _as_text(values: Vector | None) -> str | None:
    return None if values is None else f"[{','.join(map('{:.5g}'.format, values))}]"
