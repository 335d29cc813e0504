"""Questions about a long conversation, answered in three ways: with all of it, with its summary, with summary and
search. How right the answers are, what they cost and how long they take."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, Final

from agents.runtime.context.window import Window
from agents.runtime.model import ModelRequest, Role, Usage, text_message
from agents.runtime.policy import ASSISTANT
from workbench.bench.asking import Answering, Speaking
from workbench.bench.figures import Figure, mean_interval, saved
from workbench.bench.measuring import PARENT_WINDOW, Bench
from workbench.bench.readers import History, Question
from workbench.bench.recall import HINT, TOOLS, Recall, returned
from workbench.bench.replay import Replay, Setting, without_summaries
from workbench.bench.savings import LOCOMO_EVENTS, PLAIN
from workbench.bench.scoring import Scores, score
from workbench.bench.scripts import exchanges

MODES: Final = ("long", "summary", "on-demand")
ROUNDS: Final = 4  # of tools, per question
SHORT: Final = "Answer the question from the conversation in as few words as possible. "
JUDGE: Final = (
    "Question: {question}\nExpected answer: {expected}\nGiven answer: {answer}\n\nDoes the given answer say what the "
    "expected one says? Reply with one number from 0 (no) to 1 (yes) and nothing else."
)
_NUMBER = re.compile(r"[01](?:\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question in one mode. usage: of all its calls, without its share of the summaries. judged: None = not."""

    history: str
    question: str
    mode: str
    answer: str
    expected: str
    scores: Scores
    usage: Usage
    seconds: float
    searches: int
    loads: int
    judged: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiz:
    """Who is asked. model: answers. judge: None = nobody judges. clock: in seconds.

    questions: of each history at most so many, drawn with the seed.
    """

    model: Speaking
    judge: Answering | None
    clock: Callable[[], float]
    questions: int = 20


async def ask_all(
    bench: Bench, quiz: Quiz, histories: Sequence[tuple[History, Sequence[Question]]]
) -> tuple[list[Case], list[int]]:
    """Return the cases, three per question, and for each history what its summaries cost (prompt and completion)."""
    draw = random.Random(bench.seed)
    cases: list[Case] = []
    costs: list[int] = []
    setting = Setting(
        instruction=PLAIN,
        policy=replace(ASSISTANT, summary_events=LOCOMO_EVENTS),
        window=Window(tokens=PARENT_WINDOW, source="run"),
    )
    for history, questions in histories:
        chosen = draw.sample(list(questions), min(quiz.questions, len(questions)))
        replay, whole = bench.replay(setting, real=True), bench.replay(without_summaries(setting))
        script = list(exchanges(history))
        await replay.record(script)
        await whole.record(script, summarise=False)
        costs.append(sum(u.prompt + u.completion for u in replay.costs.summaries))
        for question in chosen:
            for mode in MODES:
                cases.append(await _case(quiz, history, question, mode, whole if mode == "long" else replay))
    return cases, costs


async def _case(quiz: Quiz, history: History, question: Question, mode: str, replay: Replay) -> Case:
    asked = SHORT + (f"[asked on {question.at}] " if question.at else "") + question.text
    request = await replay.ask(asked)
    recall = Recall(replay.history)
    if mode == "on-demand":
        first, *others = request.messages
        head = text_message(Role.SYSTEM, f"{first.text}\n\n{HINT}")
        request = replace(request, messages=(head, *others), tools=TOOLS)
    began, usage = quiz.clock(), Usage()
    for round_ in range(ROUNDS + 1):
        message, cost = await quiz.model.speak(request)
        usage += cost
        if not message.tool_calls or round_ == ROUNDS:
            break
        results = [returned(call, await recall.answer(call)) for call in message.tool_calls]
        tools = () if round_ == ROUNDS - 1 else request.tools
        request = replace(request, messages=(*request.messages, message, *results), tools=tools)
    seconds = quiz.clock() - began
    judged = None
    if quiz.judge is not None:
        judged = await _judged(quiz.judge, question, message.text)
    return Case(
        history=history.id,
        question=question.text,
        mode=mode,
        answer=message.text,
        expected=question.answer,
        scores=score(message.text, question.answer),
        usage=usage,
        seconds=seconds,
        searches=recall.searches,
        loads=recall.loads,
        judged=judged,
    )


async def _judged(judge: Answering, question: Question, answer: str) -> float | None:
    """Return the judge's number, None if it gave none."""
    words = JUDGE.format(question=question.text, expected=question.answer, answer=answer)
    text, _ = await judge.ask(ModelRequest(messages=(text_message(Role.USER, words),), temperature=0.0))
    found = _NUMBER.search(text)
    return min(1.0, float(found[0])) if found else None


def figures(bench: Bench, cases: Sequence[Case], costs: Sequence[int], name: str) -> list[Figure]:
    """Return per mode the scores with their intervals and the tokens saved, the summaries' cost counted and not."""
    by_mode = {mode: [c for c in cases if c.mode == mode] for mode in MODES}
    long = [c.usage.prompt for c in by_mode["long"]]
    found = []
    for mode, mine in by_mode.items():
        f1, low, high = mean_interval([c.scores.f1 for c in mine], seed=bench.seed)
        details = {**_means(mine), "n": len(mine), "f1_interval": [round(low, 4), round(high, 4)]}
        found.append(Figure(name=f"{name}, {mode}: F1", value=f1, details=details))
        if mode != "long":
            share = saved([c.usage.prompt for c in mine], long, seed=bench.seed)
            found.append(Figure(name=f"{name}, {mode}: prompt tokens saved", value=share.of_means, ratios=share))
            spread = sum(costs) / len(mine) if mine else 0.0
            counted = saved([c.usage.prompt + spread for c in mine], long, seed=bench.seed)
            note = "The summaries' cost is spread evenly over the questions that were asked."
            found.append(
                Figure(name="  the summaries' cost counted", value=counted.of_means, ratios=counted, note=note)
            )
    return found


def _means(cases: Sequence[Case]) -> dict[str, Any]:
    if not cases:
        return {}
    names = list(asdict(cases[0].scores))
    means: dict[str, Any] = {name: round(fmean(getattr(c.scores, name) for c in cases), 4) for name in names}
    judged = [c.judged for c in cases if c.judged is not None]
    return means | {
        "judge": round(fmean(judged), 4) if judged else None,
        "prompt_tokens": round(fmean(c.usage.prompt for c in cases), 1),
        "latency_ms": round(fmean(c.seconds for c in cases) * 1000, 1),
        "searches": round(fmean(c.searches for c in cases), 3),
        "loads": round(fmean(c.loads for c in cases), 3),
        "used_tools": sum(c.searches + c.loads > 0 for c in cases),
    }
