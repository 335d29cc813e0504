"""Figures and what they must reach. A ratio of means and a mean of ratios are two figures and are told apart.

The ratio of means weighs every token alike: it says what the bill comes to. The mean of ratios weighs every case alike.
"""

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

RESAMPLES: Final = 1_000
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """A share over cases. of_means: sum over sum. mean_of: mean of the cases' own shares. low, high: the 95 %
    bootstrap interval of of_means, cases drawn with replacement; equal to it with fewer than two cases."""

    n: int
    of_means: float
    mean_of: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the result. value: what is held against the bar. at_least: the bar; met is None without one.

    lower: the bar is the most that is allowed. percent: values are shares from 0 to 1. details: what else is known of
    it, as JSON values.
    """

    name: str
    value: float
    bar: float | None = None
    lower: bool = False
    percent: bool = True
    ratios: Ratios | None = None
    note: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        if self.bar is None:
            return None
        return self.value <= self.bar if self.lower else self.value >= self.bar

    def shown(self) -> tuple[str, str]:
        """Return value and bar as they are printed, "" without a bar."""
        return self._text(self.value), "" if self.bar is None else f"{'<=' if self.lower else '>='} {self._bar()}"

    def _bar(self) -> str:
        assert self.bar is not None
        return f"{self.bar * 100:g} %" if self.percent else f"{self.bar:g}"

    def _text(self, value: float) -> str:
        return f"{value * 100:.2f} %" if self.percent else f"{value:,.2f}".rstrip("0").rstrip(".")


def ratios(parts: Sequence[float], wholes: Sequence[float], *, seed: int = 0) -> Ratios:
    """Return the shares of parts in wholes, case by case. Cases whose whole is 0 are left out of all figures."""
    pairs = [(p, w) for p, w in zip(parts, wholes, strict=True) if w]
    if not pairs:
        return Ratios(n=0, of_means=0.0, mean_of=0.0, low=0.0, high=0.0)
    of_means = _share(pairs)
    low = high = of_means
    if len(pairs) > 1:
        draw = random.Random(seed)
        drawn = sorted(_share(draw.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
        tail = (1 - CONFIDENCE) / 2
        low, high = drawn[int(tail * RESAMPLES)], drawn[int((1 - tail) * RESAMPLES) - 1]
    return Ratios(
        n=len(pairs), of_means=of_means, mean_of=statistics.fmean(p / w for p, w in pairs), low=low, high=high
    )


def saved(ours: Sequence[float], theirs: Sequence[float], *, seed: int = 0) -> Ratios:
    """Return what is saved: 1 - ours / theirs. Negative where ours is dearer."""
    return ratios([t - o for o, t in zip(ours, theirs, strict=True)], theirs, seed=seed)


def mean_interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float, float]:
    """Return the mean and its 95 % bootstrap interval; zeros for nothing."""
    found = ratios(values, [1.0] * len(values), seed=seed)
    return found.of_means, found.low, found.high


def _share(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(p for p, _ in pairs) / sum(w for _, w in pairs)
