"""What a text that was found is worth: words, lent by neighbours too, vectors, and a little for what else it tells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.search.dates import asks_when, dates_in
from agents.search.rows import Rows

# Measured on public conversations, each left out once. LENT: what a text gets of the words of the one at this distance.
LENT: Final = {-2: 0.5, -1: 0.8, 1: 0.5, 2: 0.3}
VECTOR, SPEAKER, QUESTION, TIME, DATE, LENGTH = 0.5, 0.2, 0.2, 0.1, 0.7, 0.1
WIDE: Final = 15  # of the wide window, to each side, when one long group is searched
WIDE_FROM: Final = 100  # entries
FADING: Final = 0.93  # of the wide window, for each TURN lexemes of distance
TURN: Final = 12.0

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What each row is worth. scores: (rows,). parts: (rows, terms), how much of each term a row has, lent words
    counted, about 0 to 1. idf: (terms,)."""

    scores: Floats
    parts: Floats
    idf: Floats


def weigh(rows: Rows, about: Mapping[str, Any], query: str) -> Weighed:
    """Return what the rows of one search are worth to the query. about: what the statement says of all of them."""
    around = rows.around(LENT)
    terms = about["df"] or ()
    counts = np.array([count for _, count, _ in terms], dtype=np.float64)
    idf = np.log(1 + np.maximum(about["n"] - counts + 0.5, 0.5) / (counts + 0.5))
    found = np.zeros((len(rows) + 1, len(terms)))  # the last row stands for a neighbour that is not here
    found[:-1] = rows.words[:, None] >> np.array([ord_ for ord_, _, _ in terms], dtype=np.int64) & 1
    found[:-1] *= (1.9 / (1.63 + 0.009 * rows.length))[:, None]
    lent = found[:-1]
    for distance, part in LENT.items():
        lent = np.maximum(lent, part * found[around[distance]])
    score = to_one(lent @ idf) + _wide(rows, about)
    score += VECTOR * _likeness(rows, around) / 4 + LENGTH * np.minimum(rows.length, 30) / 30
    if rows.of_events:
        score += SPEAKER * rows.speaks - QUESTION * rows.asks + TIME * (rows.tells_time if asks_when(query) else 0)
        score += DATE * _dated(rows, dates_in(query))
    return Weighed(scores=score, parts=lent, idf=idf)


def _dated(rows: Rows, dates: Sequence[tuple[date, date]]) -> Floats:
    if not dates:
        return np.zeros(len(rows))
    found = [day is not None and any(a <= day < b for a, b in dates) for day in rows.created]
    return np.array(found, dtype=np.float64)


def to_one(values: Floats) -> Floats:
    most = values.max()
    return values / most if most > 0 else values


def _likeness(rows: Rows, around: Mapping[int, NDArray[Any]]) -> Floats:
    """Return how like the question each text is, with half of its neighbours' likeness, in standard deviations."""
    known = np.append(rows.cosine, np.nan)
    if np.isnan(known).all():
        return np.zeros(len(rows))
    known = np.where(np.isnan(known), np.nanmean(known), known)
    near = known[:-1] + 0.5 * (known[around[-1]] + known[around[1]])
    spread = near.std()
    return (near - near.mean()) / spread if spread > 1e-6 else np.zeros(len(rows))


def _wide(rows: Rows, about: Mapping[str, Any]) -> Floats:
    """Return what the wide surroundings in one long group add. It was measured on turns of TURN lexemes; passages are
    longer, each says more by itself, and so it reaches over fewer of them and counts less."""
    if not about["wide"] or not about["wide"][0] or about["n"] < WIDE_FROM:
        return np.zeros(len(rows))
    positions, scores = (np.array(values, dtype=np.float64) for values in about["wide"])
    order = np.argsort(positions)
    positions, scores = positions[order], scores[order]
    mine, turns = rows.position.astype(np.float64), max(1.0, float(rows.length.mean()) / TURN)
    first, last = np.searchsorted(positions, mine - WIDE), np.searchsorted(positions, mine + WIDE, side="right")
    sums = [
        float((scores[a:b] * FADING ** (np.abs(positions[a:b] - p) * turns)).sum())
        for p, a, b in zip(mine, first, last, strict=True)
    ]
    return to_one(np.array(sums)) * (1 + 1 / turns)
