"""How a run turned out: what people said of its answer, joined by the run."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

GOOD_ENOUGH: Final = 0.8  # score below which a way of working has not shown that it works
NOTES_CHARS: Final = 500


class Thumb(StrEnum):
    UP = "up"
    DOWN = "down"


class Why(StrEnum):
    """What a person found wrong."""

    WRONG = "wrong"  # it is not true
    INCOMPLETE = "incomplete"
    FORM = "form"  # not in the form that was asked for
    SLOW = "slow"  # it took too long, or too many steps


class Result(StrEnum):
    """How runs turned out, all together."""

    SUCCESS = "success"  # whoever said something was content
    PARTIAL = "partial"  # some were
    FAIL = "fail"  # nobody was
    AGENT_ERROR = "agent_error"  # a run broke off


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one person said of one run. note: in their own words."""

    run_id: str
    thumb: Thumb
    reasons: tuple[Why, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How runs turned out. score: 0 to 1. notes: evidence, no instructions. evaluator: who says so."""

    result: Result
    score: float
    notes: tuple[str, ...] = ()
    evaluator: str = "person"

    @property
    def good(self) -> bool:
        """Return whether it shows that a way of working works."""
        return self.result in (Result.SUCCESS, Result.PARTIAL) and self.score >= GOOD_ENOUGH


def outcome(judgements: Sequence[Judgement], failed_runs: int = 0) -> Outcome | None:
    """Return what came of some runs; None = nobody said anything, and none failed. failed_runs: ended with an error."""
    if failed_runs:
        return Outcome(result=Result.AGENT_ERROR, score=0.0, notes=(f"{failed_runs} failed",), evaluator="run status")
    if not judgements:
        return None
    good = sum(one.thumb is Thumb.UP for one in judgements)
    score = round(good / len(judgements), 2)
    notes = tuple(text for one in judgements if (text := _words(one)))
    if good == len(judgements):
        return Outcome(result=Result.SUCCESS, score=score, notes=notes)
    return Outcome(result=Result.PARTIAL if good else Result.FAIL, score=score, notes=notes)


def _words(one: Judgement) -> str:
    parts = [*(why.value for why in one.reasons), one.note.strip()]
    return f"{one.thumb.value}: {', '.join(filter(None, parts))}"[:NOTES_CHARS] if any(parts) else ""
