import json
from typing import Any

import pytest

from agents.runtime.evolution.optimising import Case, Cases, CasesInvalid, Limits, Tried, load, optimise
from agents.runtime.evolution.proposals import Spec
from agents.runtime.skills.format import written

START = written("memo", "Writes a memo. Use it for boards.", "1. Write.")


def some(name: str, count: int = 10, **more: Any) -> list[dict[str, Any]]:
    return [{"input": f"{name} {n}", "contains": ["decision", "risk"], **more} for n in range(count)]


def cases(**more: Any) -> Cases:
    sets = {name: some(name) for name in ("feedback", "validation", "holdout")}
    return load(json.dumps({**sets, **more}))


def spec(*steps: str) -> Spec:
    return Spec(name="memo", description="Writes a memo", when_to_use="A board decides.", steps=steps)


class Scripted:
    """Answers with the words of the skill itself, and thinks of these wordings in turn."""

    def __init__(self, *wordings: Spec | None) -> None:
        self.wordings = list(wordings)
        self.calls = 0
        self.thought: list[str] = []
        self.asked: list[str] = []

    async def answer(self, skill: str, question: str) -> str:
        self.calls += 1
        self.asked.append(question)
        return skill

    async def reflect(self, skill: str, tried: Any) -> Spec | None:
        self.calls += 1
        self.thought += [one.input for one in tried]
        return self.wordings.pop(0) if self.wordings else None


async def test_a_wording_that_is_better_on_all_three_sets_wins_and_every_call_is_counted() -> None:
    model = Scripted(spec("Name the decision.", "Go on."), spec("Name the decision.", "Name each risk."))
    found = await optimise(START, cases(), model.answer, model.reflect, Limits(iterations=4))
    assert found.winner is not None and found.winner.steps[1] == "Name each risk."
    assert (found.baseline, found.best) == ({"validation": 0.0, "holdout": 0.0}, {"validation": 1.0, "holdout": 1.0})
    assert [step["outcome"] for step in found.steps] == ["kept", "kept", "nothing to mend", "nothing to mend"]
    assert found.calls == model.calls and found.ended == "iterations"
    json.dumps(found.as_json())


async def test_only_feedback_cases_are_thought_about_and_holdout_is_asked_last() -> None:
    model = Scripted(spec("Name the decision.", "Name each risk."))
    await optimise(START, cases(), model.answer, model.reflect, Limits(iterations=1))
    assert model.thought == ["feedback 0", "feedback 1", "feedback 2"]
    assert all(question.startswith("holdout") for question in model.asked[-20:])
    assert not any(question.startswith("holdout") for question in model.asked[:-20])


async def test_what_is_no_better_on_its_batch_or_cannot_be_read_is_dropped_and_nothing_wins() -> None:
    model = Scripted(spec("Do something else.", "Go on."), None)
    found = await optimise(START, cases(), model.answer, model.reflect, Limits(iterations=2))
    assert [step["outcome"] for step in found.steps] == ["no better on its batch", "no answer that can be read"]
    assert found.winner is None and "holdout" not in found.best


async def test_what_only_fits_the_cases_it_was_made_from_does_not_win() -> None:
    model = Scripted(spec("Name the decision.", "Go on."))
    hold = some("holdout", contains=["something else"])
    found = await optimise(START, cases(holdout=hold), model.answer, model.reflect, Limits(iterations=1))
    assert found.steps[0]["outcome"] == "kept" and found.winner is None
    assert found.best["holdout"] == found.baseline["holdout"] == 0.0


async def test_the_budget_is_never_passed_and_leaves_enough_for_the_end() -> None:
    model = Scripted(*[spec("Name the decision.", f"Go on {n}.") for n in range(9)])
    found = await optimise(START, cases(), model.answer, model.reflect, Limits(iterations=9, calls=50))
    assert model.calls == found.calls <= 50 and found.ended == "budget"
    assert found.winner is not None and "holdout" in found.best
    with pytest.raises(CasesInvalid):
        await optimise(START, cases(), model.answer, model.reflect, Limits(calls=36))


def test_an_answer_is_scored_by_what_it_holds_and_lacks() -> None:
    case = Case(input="x", contains=("Decision", "risk"), lacks=("maybe",), pattern=r"^# ")
    assert case.score("# The decision: one risk") == (1.0, "")
    assert case.score("maybe a decision") == (0.25, "lacks “risk”; says “maybe”; does not match ^# ")
    assert Tried(input="x", answer="y", score=1.0, missed="").missed == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no json", "no JSON"),
        ("[]", "no object"),
        (json.dumps({"feedback": some("f")}), "validation needs at least 10"),
        (json.dumps({"feedback": some("f", 9), "validation": [], "holdout": []}), "feedback needs at least 10"),
        (json.dumps({"feedback": some("a"), "validation": some("a"), "holdout": some("h")}), "share a case"),
        (json.dumps({"feedback": some("a", contains=[]), "validation": some("b"), "holdout": some("c")}), "must hold"),
        (json.dumps({"feedback": some("a", pattern="("), "validation": some("b"), "holdout": some("c")}), "case 1"),
        (json.dumps({"feedback": [{"contains": ["x"]}] * 10, "validation": [], "holdout": []}), "has no input"),
    ],
)  # fmt: skip
def test_cases_that_cannot_be_used_are_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(CasesInvalid, match=why):
        load(text)
