"""What stands between a proposal and the library: spec, safety, effectiveness, a human.

The first two always both look, so that a person reads both reports. A gate that breaks stops the proposal; of the last
one it means that a person has to look. Nothing here publishes.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from agents.runtime.evolution import safety
from agents.runtime.evolution.likeness import canonical, counts, uncounted
from agents.runtime.evolution.outcomes import GOOD_ENOUGH, Outcome, Result
from agents.runtime.evolution.proposals import Action, Known, Proposal, rendered
from agents.runtime.evolution.redacting import Redactor
from agents.runtime.skills.format import parse

logger = logging.getLogger(__name__)

NAME_CHARS: Final = 120
LEAST_STEPS: Final = 2


class Verdict(StrEnum):
    """What the gates come to."""

    REJECTED = "rejected"
    PENDING_EVAL = "pending_eval"  # until an outcome shows that it works
    PENDING_APPROVAL = "pending_approval"  # until a person decides
    PASSED = "passed"  # no gate is in the way


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What is looked at. proposal: as the reviewer wrote it, not redacted. known: the skills of the person.
    outcome: of the runs that it was learned from."""

    proposal: Proposal
    known: Sequence[Known] = ()
    outcome: Outcome | None = None
    redactor: Redactor = field(default_factory=Redactor)

    @property
    def text(self) -> str:
        """Return all that a model would read of it, name included."""
        spec = self.proposal.spec
        return f"{spec.name}\n{rendered(spec, self.proposal.name)}" if spec else self.proposal.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a gate found. findings: (code, words); the words hold nothing that is secret. error: the gate broke."""

    passed: bool
    findings: tuple[tuple[str, str], ...] = ()
    error: str = ""


Gate = Callable[[Candidate], Report]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """reports: by the name of the gate; one that did not look is not there."""

    verdict: Verdict
    reports: Mapping[str, Report]

    def as_json(self) -> dict[str, Any]:
        """Return the reports as they are stored."""
        return {
            name: {"passed": one.passed, "findings": [list(f) for f in one.findings], "error": one.error}
            for name, one in self.reports.items()
        }


def spec_gate(candidate: Candidate) -> Report:
    """Look whether it is a procedure, readable as a SKILL.md, and not one that is there under another name."""
    proposal, spec = candidate.proposal, candidate.proposal.spec
    if spec is None:
        return Report(passed=False, findings=(("no_spec", "it says nothing"),))
    found: list[tuple[str, str]] = []
    for name in ("name", "description", "when_to_use"):
        if not getattr(spec, name).strip():
            found.append(("missing", f"{name} is empty"))
    if len([step for step in spec.steps if step.strip()]) < LEAST_STEPS:
        found.append(("steps", f"it has fewer than {LEAST_STEPS} steps"))
    if len(spec.name) > NAME_CHARS:
        found.append(("name", f"its name has more than {NAME_CHARS} characters"))
    if not found and (problem := parse(rendered(spec, proposal.name))).problem:
        found.append(("format", problem.words))
    if proposal.action is Action.CREATE:
        found += _siblings(proposal.name, spec.name, candidate.known)
    return Report(passed=not found, findings=tuple(found))


def _siblings(slug: str, name: str, known: Sequence[Known]) -> list[tuple[str, str]]:
    if twin := next((k for k in known if canonical(k.name) == canonical(slug)), None):
        return [("duplicate", f"there is {twin.name} already")]
    own = uncounted(name)
    if sibling := next((k for k in known if own and uncounted(k.name) == own), None):
        return [("sibling", f"it differs from {sibling.name} only in how many it is for")]
    if counts(name):
        return [("quantified", "its name says how many it is for")]
    return []


def safety_gate(candidate: Candidate) -> Report:
    """Look for what must not stand in a skill, in all that a model would read of it."""
    found = safety.findings(candidate.text, candidate.redactor)
    return Report(passed=not found, findings=found)


def effectiveness_gate(candidate: Candidate) -> Report:
    """Look how the runs turned out that it was learned from. Nobody said anything: nothing speaks against it."""
    turned_out = candidate.outcome
    if turned_out is None or candidate.proposal.action is Action.DELETE:
        return Report(passed=True)
    if turned_out.result in (Result.FAIL, Result.AGENT_ERROR):
        return Report(passed=False, findings=(("outcome", f"{turned_out.result.value} ({turned_out.score:g})"),))
    if turned_out.score < GOOD_ENOUGH:
        return Report(passed=False, findings=(("outcome", f"score {turned_out.score:g} of {GOOD_ENOUGH:g}"),))
    return Report(passed=True)


def always_hold(candidate: Candidate) -> Report:
    """Leave it to a person, whatever it is."""
    return Report(passed=False, findings=(("human", "a person decides"),))


def create_only_hold(candidate: Candidate) -> Report:
    """Leave new skills and deletions to a person; changes of what a person accepted once pass."""
    return Report(passed=True) if candidate.proposal.action is Action.UPDATE else always_hold(candidate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """The gates of an installation; None = it is not there, and nothing may be said to have passed it."""

    spec: Gate | None = spec_gate
    safety: Gate | None = safety_gate
    effectiveness: Gate | None = effectiveness_gate
    human: Gate | None = always_hold

    def judge(self, candidate: Candidate) -> Judged:
        """Return what the gates come to. A deletion passes no spec and no safety, but always needs a person."""
        reports: dict[str, Report] = {}
        deletes = candidate.proposal.action is Action.DELETE
        for name, gate in () if deletes else (("spec", self.spec), ("safety", self.safety)):
            if gate is not None:
                reports[name] = _ask(gate, candidate, name)
        if not all(report.passed for report in reports.values()):
            return Judged(verdict=Verdict.REJECTED, reports=reports)
        if self.effectiveness is not None:
            report = reports["effectiveness"] = _ask(self.effectiveness, candidate, "effectiveness")
            if not report.passed:
                return Judged(verdict=Verdict.REJECTED if report.error else Verdict.PENDING_EVAL, reports=reports)
        human = self.human or (always_hold if deletes else None)
        if human is not None:
            report = reports["human"] = _ask(human, candidate, "human")
            if not report.passed:
                return Judged(verdict=Verdict.PENDING_APPROVAL, reports=reports)
        return Judged(verdict=Verdict.PASSED, reports=reports)


HOUSE: Final = Gates()
"""The gates of every installation. A person always decides last."""


def _ask(gate: Gate, candidate: Candidate, name: str) -> Report:
    try:
        return gate(candidate)
    except Exception as error:  # whatever a gate breaks on, nothing passes it
        logger.exception("the gate %s broke", name)
        return Report(passed=False, error=type(error).__name__)
