"""A skill made better over cases: answers are scored, what failed is thought about, and only what holds up is kept.

Three sets of cases, apart from each other: on feedback new wordings are found, on validation the best is chosen, and
holdout says in the end whether it is better than what there was. Calls to the model are counted against a budget.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from agents.runtime.evolution.proposals import Spec, rendered
from agents.runtime.skills.format import slug

LEAST_CASES: Final = 10  # in each set
TOLERANCE: Final = 1e-9  # of scores that are the same
ANSWER_CHARS: Final = 2_000  # of one that is thought about
SETS: Final = ("feedback", "validation", "holdout")


class CasesInvalid(ValueError):
    """The cases cannot be used; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question with what its answer must and must not hold. pattern: a regular expression, "" = none."""

    input: str
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    pattern: str = ""

    def score(self, answer: str) -> tuple[float, str]:
        """Return how much of it an answer meets, 0 to 1, and what it does not."""
        text = answer.casefold()
        checks = [(word.casefold() in text, f"lacks “{word}”") for word in self.contains]
        checks += [(word.casefold() not in text, f"says “{word}”") for word in self.lacks]
        if self.pattern:
            checks.append((re.search(self.pattern, answer) is not None, f"does not match {self.pattern}"))
        missed = [words for met, words in checks if not met]
        return round(1 - len(missed) / len(checks), 4), "; ".join(missed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    feedback: tuple[Case, ...]
    validation: tuple[Case, ...]
    holdout: tuple[Case, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """iterations: at most so many new wordings. batch: cases that one is thought out of. calls: to the model, of all
    kinds."""

    iterations: int = 10
    batch: int = 3
    calls: int = 1_000


DEFAULT: Final = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """An answer that was scored. missed: what it does not meet."""

    input: str
    answer: str
    score: float
    missed: str


Answering = Callable[[str, str], Awaitable[str]]
"""From a SKILL.md and a question, what the model answers."""
Reflecting = Callable[[str, Sequence[Tried]], Awaitable[Spec | None]]
"""From a SKILL.md and what it gave, a better skill; None = the model gave none that can be read."""


@dataclass(slots=True, kw_only=True)
class Experiment:
    """What was tried. winner: None = nothing is better than what there was. steps: of each new wording, its scores on
    its batch and on validation, and what became of it."""

    baseline: dict[str, float] = field(default_factory=dict)
    best: dict[str, float] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    ended: str = ""
    winner: Spec | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as it is written down."""
        return asdict(self)


class _Spent(Exception):
    """The budget is used up."""


def load(text: str) -> Cases:
    """Return the cases of a file: {"feedback": [...], "validation": [...], "holdout": [...]}, each case an object with
    input and at least one of contains, lacks (lists of words) and pattern.

    Raises CasesInvalid.
    """
    try:
        values = json.loads(text)
    except ValueError as error:
        raise CasesInvalid(f"The file is no JSON: {error}") from error
    if not isinstance(values, dict):
        raise CasesInvalid("The file holds no object with feedback, validation and holdout.")
    sets = {name: _set(name, values.get(name)) for name in SETS}
    seen: dict[str, str] = {}
    for name, cases in sets.items():
        for case in cases:
            if (before := seen.setdefault(case.input.strip(), name)) != name:
                raise CasesInvalid(f"{before} and {name} share a case: {case.input[:60]}")
    return Cases(**sets)


async def optimise(
    start: str, cases: Cases, answer: Answering, reflect: Reflecting, limits: Limits = DEFAULT
) -> Experiment:
    """Return what came of trying to make a skill better. start: its SKILL.md. Whatever the model raises goes through.

    Raises CasesInvalid if the budget does not reach for one new wording and the comparison in the end.
    """
    run = _Optimising(cases, answer, reflect, limits)
    needed = len(cases.validation) + 2 * len(cases.holdout)
    if limits.calls < needed + 2 * limits.batch + 1:
        raise CasesInvalid(f"The budget is too small: {needed + 2 * limits.batch + 1} calls are the least.")
    return await run.do(start)


class _Optimising:
    def __init__(self, cases: Cases, answer: Answering, reflect: Reflecting, limits: Limits) -> None:
        self._cases = cases
        self._answer = answer
        self._reflect = reflect
        self._limits = limits
        self._kept = 2 * len(cases.holdout)  # calls that are left for the end
        self.found = Experiment()

    async def do(self, start: str) -> Experiment:
        best, spec = start, None
        self.found.baseline["validation"] = score = await self._mean(start, self._cases.validation)
        try:
            for number in range(self._limits.iterations):
                batch = self._batch(number)
                tried = [await self._try(best, case) for case in batch]
                if all(one.score == 1.0 for one in tried):
                    self._step(number, outcome="nothing to mend")
                    continue
                thought = await self._reflected(best, tried)
                if thought is None:
                    self._step(number, outcome="no answer that can be read")
                    continue
                new = rendered(thought, slug(thought.name))
                before = _mean([one.score for one in tried])
                after = await self._mean(new, batch)
                if after <= before + TOLERANCE:
                    self._step(number, before=before, after=after, outcome="no better on its batch")
                    continue
                whole = await self._mean(new, self._cases.validation)
                kept = whole > score + TOLERANCE
                outcome = "kept" if kept else "no better on validation"
                self._step(number, before=before, after=after, validation=whole, outcome=outcome)
                if kept:
                    best, spec, score = new, thought, whole
            self.found.ended = "iterations"
        except _Spent:
            self.found.ended = "budget"
        self.found.best["validation"] = score
        if spec is not None:
            await self._judge(start, best, spec)
        return self.found

    async def _judge(self, start: str, best: str, spec: Spec) -> None:
        self._kept = 0
        before = self.found.baseline["holdout"] = await self._mean(start, self._cases.holdout)
        after = self.found.best["holdout"] = await self._mean(best, self._cases.holdout)
        if after > before + TOLERANCE:
            self.found.winner = spec

    def _batch(self, number: int) -> list[Case]:
        cases, size = self._cases.feedback, self._limits.batch
        return [cases[(number * size + n) % len(cases)] for n in range(size)]

    async def _mean(self, skill: str, cases: Sequence[Case]) -> float:
        return _mean([(await self._try(skill, case)).score for case in cases])

    async def _try(self, skill: str, case: Case) -> Tried:
        self._spend()
        answer = await self._answer(skill, case.input)
        score, missed = case.score(answer)
        return Tried(input=case.input, answer=answer[:ANSWER_CHARS], score=score, missed=missed)

    async def _reflected(self, skill: str, tried: Sequence[Tried]) -> Spec | None:
        self._spend()
        return await self._reflect(skill, tried)

    def _spend(self) -> None:
        if self.found.calls + self._kept >= self._limits.calls:
            raise _Spent
        self.found.calls += 1

    def _step(self, number: int, **values: object) -> None:
        self.found.steps.append({"iteration": number + 1, **values})


def _mean(scores: Sequence[float]) -> float:
    return round(sum(scores) / len(scores), 4)


def _set(name: str, values: object) -> tuple[Case, ...]:
    if not isinstance(values, list) or len(values) < LEAST_CASES:
        raise CasesInvalid(f"{name} needs at least {LEAST_CASES} cases.")
    return tuple(_case(name, number, value) for number, value in enumerate(values, 1))


def _case(name: str, number: int, value: object) -> Case:
    if not isinstance(value, Mapping) or not str(value.get("input", "")).strip():
        raise CasesInvalid(f"{name}, case {number}: it has no input.")
    case = Case(
        input=str(value["input"]),
        contains=tuple(map(str, value.get("contains", ()))),
        lacks=tuple(map(str, value.get("lacks", ()))),
        pattern=str(value.get("pattern", "")),
    )
    if not (case.contains or case.lacks or case.pattern):
        raise CasesInvalid(f"{name}, case {number}: nothing says what its answer must hold.")
    try:
        re.compile(case.pattern)
    except re.error as error:
        raise CasesInvalid(f"{name}, case {number}: {error}") from error
    return case
