"""What a search weighs: candidates and their neighbours, as columns."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.models.search_entry import Kind
from agents.search.scope import Ranked


class Rows:
    """What a search weighs, as columns: candidates and their neighbours, each once. words: a bit for each term."""

    def __init__(self, kinds: Sequence[Kind], columns: Sequence[Sequence[Any]]) -> None:
        kind, ref, offset, group, position, length, cosine, words, asks, tells_time, speaks, created = columns
        self.kinds = kinds
        self.of_events = Kind.EVENT in kinds
        self.kind, self.ref, self.group = np.array(kind), np.array(ref), np.array(group)
        self.offset, self.position, self.words = np.array(offset), np.array(position), np.array(words)
        self.length = np.array(length, dtype=np.float64)
        self.cosine = np.array(cosine, dtype=np.float64)  # nan: no vector
        self.asks, self.tells_time = np.array(asks), np.array(tells_time)
        self.speaks = np.array(speaks, dtype=bool)
        self.created: Sequence[date | None] = created

    def __len__(self) -> int:
        return len(self.ref)

    def key(self, row: int) -> tuple[int, ...]:
        """Return what makes a text one of its own: of an event its entry, of others the row that holds them."""
        kind = int(self.kind[row])
        if self.kinds[kind - 1] == Kind.EVENT:
            return kind, int(self.group[row]), int(self.position[row])
        return kind, int(self.ref[row])

    def ranked(self, row: int, score: float) -> Ranked:
        return Ranked(
            ref=int(self.ref[row]),
            kind=self.kinds[int(self.kind[row]) - 1].value,
            group_id=int(self.group[row]),
            position=int(self.position[row]),
            offset=int(self.offset[row]),
            score=round(score, 4),
        )

    def around(self, distances: Iterable[int]) -> dict[int, NDArray[Any]]:
        """Return for each distance, row by row, the index of the row so far on in its group, -1 = it is not here."""
        group = np.unique(self.group * (len(self.kinds) + 1) + self.kind, return_inverse=True)[1].astype(np.int64)
        place = (group << 33) + self.position
        order = np.argsort(place)
        ordered = place[order]
        found = {}
        for distance in distances:
            at = np.searchsorted(ordered, place + distance).clip(max=len(ordered) - 1)
            found[distance] = np.where(ordered[at] == place + distance, order[at], -1)
        return found
