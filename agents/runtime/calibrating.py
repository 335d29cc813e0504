"""Rates that calibrate: what a model's tokens cost, from the usage that its provider reports.

Recursive least squares that start from the defaults (a Kalman filter of constant rates): what a call leaves open stays
as it was, so ten calls are enough. Every call also forgets a little, so that a model that changes is followed. A report
that cannot be believed moves little or nothing.
"""

import math
from collections.abc import Mapping
from operator import mul
from typing import Any, Final

from agents.runtime.tokens import DEFAULT_RATES, ELEMENTS, SANE, Mix, Rates

FORGET: Final = 0.004  # of what is known, with each call
FORGET_DOUBTED: Final = 0.15  # with one that surprises: several in a row, and the model has changed
WILD: Final = 5.0  # a report this many times off, or more, is not believed if it is also out of all expectation
_NOISE: Final = 0.02  # of the estimate: what the elements cannot tell of a text
_NOISE_TOKENS: Final = 6.0
_DOUBT: Final = 3.0  # in standard deviations: a surprise beyond counts as no more than this
_TOGETHER: Final = 0.8  # how far the rates of Chinese characters go up and down as one
_HAN: Final = frozenset({"han_frequent", "han_common", "han", "han_rare"})
_N: Final = len(ELEMENTS)
_PLACES: Final = range(_N)
_FORM: Final = ",".join(ELEMENTS)

Matrix = list[list[float]]


def _prior() -> Matrix:
    """Return the covariance of the rates over models."""
    names, deviations = list(ELEMENTS), [deviation for _, deviation in ELEMENTS.values()]
    out = [[0.0] * _N for _ in _PLACES]
    for i in _PLACES:
        for j in _PLACES:
            share = 1.0 if i == j else _TOGETHER if names[i] in _HAN and names[j] in _HAN else 0.0
            out[i][j] = share * deviations[i] * deviations[j]
    return out


_PRIOR: Final = _prior()
_CAPS: Final = tuple(default + 8 * deviation for default, deviation in ELEMENTS.values())


class Calibrator:
    """A Calibration (tokens.py). calls: how many it learnt from. Learns in about 0.2 ms; one thread at a time.

    Its rates are never negative and never far beyond any tokenizer's. A report of nothing, or of no number, teaches
    nothing, nor does one that no model would give (SANE), or that is WILD times off against all expectation. One that
    is merely surprising is cut to what could have been expected, so it takes several to move what is well known.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._rates = DEFAULT_RATES
        self._spread = [row[:] for row in _PRIOR]  # the covariance of what is still open

    @property
    def rates(self) -> Rates:
        return self._rates

    def learn(self, mix: Mix, prompt_tokens: float) -> None:
        """Take in what a request of this mix cost, as its provider counted. Never raises for any number."""
        counts, values = mix.counts, self._rates.values
        estimate: float = sum(map(mul, values, counts))
        if not (math.isfinite(prompt_tokens) and prompt_tokens > 0 and any(counts) and _sane(counts, prompt_tokens)):
            return
        along: list[float] = [sum(map(mul, row, counts)) for row in self._spread]
        open_variance: float = max(0.0, sum(map(mul, along, counts)))
        variance = open_variance + (_NOISE * estimate) ** 2 + _NOISE_TOKENS**2
        surprise = prompt_tokens - estimate
        bound = _DOUBT * math.sqrt(variance)
        forget = FORGET
        if abs(surprise) > bound:
            if not 1 / WILD < prompt_tokens / self._rates.tokens(mix) < WILD:
                return
            surprise, forget = math.copysign(bound, surprise), FORGET_DOUBTED
        moved = (value + step * surprise / variance for value, step in zip(values, along, strict=True))
        self._rates = Rates(tuple(min(max(value, 0.0), cap) for value, cap in zip(moved, _CAPS, strict=True)))
        self.calls += 1
        for i in _PLACES:
            row, prior, step = self._spread[i], _PRIOR[i], along[i] / variance
            self._spread[i] = [(1 - forget) * (row[j] - step * along[j]) + forget * prior[j] for j in _PLACES]

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON values, some 4 KB."""
        return {
            "form": _FORM,
            "calls": self.calls,
            "rates": [_short(value) for value in self._rates.values],
            "spread": [[_short(row[j]) for j in range(i + 1)] for i, row in enumerate(self._spread)],
        }

    @classmethod
    def load(cls, values: Mapping[str, Any]) -> "Calibrator":
        """Return the calibrator of a dump; a new one if the dump is of other elements, or broken."""
        made = cls()
        try:
            rates, spread, calls = values["rates"], values["spread"], values["calls"]
            if values["form"] != _FORM or [len(row) for row in spread] != [i + 1 for i in _PLACES] or len(rates) != _N:
                return made
            flat = [float(x) for row in (rates, *spread) for x in row]
            if not all(map(math.isfinite, flat)) or any(spread[i][i] <= 0 for i in _PLACES):
                return made
            made.calls = max(0, int(calls))
        except (KeyError, TypeError, ValueError, OverflowError):
            return cls()
        made._rates = Rates(tuple(min(max(x, 0.0), cap) for x, cap in zip(flat, _CAPS, strict=False)))
        made._spread = [[float(spread[max(i, j)][min(i, j)]) for j in _PLACES] for i in _PLACES]
        return made


def _sane(counts: tuple[int, ...], prompt_tokens: float) -> bool:
    """Return whether there may be a model that reports so much for this: SANE times the default, or as models differ in
    what they count (frames and images most)."""
    default: float = sum(map(mul, DEFAULT_RATES.values, counts))
    if SANE[0] * default <= prompt_tokens <= SANE[1] * default:
        return True
    differ: float = sum(count * sum(map(mul, row, counts)) for count, row in zip(counts, _PRIOR, strict=True))
    return abs(prompt_tokens - default) <= _DOUBT * math.sqrt(differ + (_NOISE * default) ** 2)


def _short(value: float) -> float:
    return float(f"{value:.6g}")
