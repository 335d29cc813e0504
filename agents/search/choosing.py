"""Which rows are given: the best as hits, then what tells of the parts of the query that are covered least."""

from typing import Final

import numpy as np

from agents.search.rows import Rows
from agents.search.scope import Ranked
from agents.search.weighing import Weighed, to_one

LEFT: Final = 0.85  # of a term's worth, once a row that is given holds it
ACCOMPANIED: Final = 2  # hits that bring the row before and the row behind, whatever those are worth


def choose(rows: Rows, weighed: Weighed, *, limit: int, hits: int | None) -> tuple[Ranked, ...]:
    """Return at most `limit` rows: each entry of an event, each passage once.

    hits: so many are the best, in order; what follows are neighbours of the first ones and then, one by one, what is
    worth most when a term is worth the less, the more of what was taken holds it. None = all by worth.
    """
    chosen = _Chosen(rows, limit if hits is None else min(hits, limit))
    for row in np.lexsort((rows.position, rows.group, -weighed.scores)).tolist():
        chosen.take(row)
    if hits is not None:
        chosen.limit = limit
        _accompany(rows, chosen)
        _fill(weighed, chosen)
    return tuple(rows.ranked(row, float(weighed.scores[row])) for row in chosen.taken)


class _Chosen:
    """Rows in the order in which they were taken. free: those that may still be."""

    def __init__(self, rows: Rows, limit: int) -> None:
        self.limit = limit
        self.taken: list[int] = []
        self.free = np.ones(len(rows), dtype=bool)
        self._rows = rows
        self._keys: set[tuple[int, ...]] = set()

    def take(self, row: int) -> bool:
        """Take the row unless its text or all that may be was taken; return whether it was."""
        if len(self.taken) >= self.limit or not self.free[row]:
            return False
        self.free[row] = False
        if (key := self._rows.key(row)) in self._keys:
            return False
        self._keys.add(key)
        self.taken.append(row)
        return True


def _accompany(rows: Rows, chosen: _Chosen) -> None:
    around = rows.around((-1, 1))
    for hit in chosen.taken[:ACCOMPANIED]:
        for distance in (-1, 1):
            if (row := int(around[distance][hit])) >= 0:
                chosen.take(row)


def _fill(weighed: Weighed, chosen: _Chosen) -> None:
    other = weighed.scores - to_one(weighed.parts @ weighed.idf)
    held = weighed.parts[chosen.taken].sum(axis=0)
    while len(chosen.taken) < chosen.limit and chosen.free.any():
        worth = to_one(weighed.parts @ (weighed.idf * LEFT**held)) + other
        row = int(np.argmax(np.where(chosen.free, worth, -np.inf)))
        if chosen.take(row):
            held += weighed.parts[row]
