"""Prompt tokens saved on the public data sets, held against the whole history in every request."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from agents.runtime.context.window import Window
from agents.runtime.model import Message, ModelRequest, Role, ToolCall, text_message
from agents.runtime.policy import ASSISTANT, SEARCH_TOOL
from agents.runtime.tokens import MESSAGE_TOKENS
from workbench.bench.caching import estimated, size
from workbench.bench.figures import Figure, saved
from workbench.bench.measuring import PARENT_WINDOW, Bench, spent
from workbench.bench.readers import History, joined
from workbench.bench.recall import Recall, returned
from workbench.bench.replay import Setting, without_summaries
from workbench.bench.scripts import exchanges

LONG: Final = 100_000
LOCOMO_EVENTS: Final = 40
ROTATED: Final = " The cases are the same conversations, joined beginning with each of them."
PLAIN: Final = "You are a helpful assistant."


async def locomo_saved(bench: Bench, histories: Sequence[History]) -> list[Figure]:
    """Prompt tokens saved on the questions of LoCoMo, own cost counted."""
    single = bench.cases(histories)
    total = sum(size_of(history) for history in single)
    found = []
    if total >= LONG:
        long = [joined((*single[n:], *single[:n]), name=f"joined from {single[n].id}") for n in range(len(single))]
        found += await _saved(bench, long, f"LoCoMo joined to {LONG:,} tokens and more", 0.94, ROTATED)
    return found + await _saved(bench, single, "LoCoMo single", 0.85)


def without_question(request: ModelRequest) -> ModelRequest:
    return replace(request, messages=request.messages[:-1])


def with_question(text: str) -> ModelRequest:
    return ModelRequest(messages=(text_message(Role.USER, text),))


def size_of(history: History) -> int:
    """Return about how many tokens the turns of a history cost in a prompt."""
    return sum(estimated(turn.text) + MESSAGE_TOKENS for turn in history.turns)


async def _saved(bench: Bench, histories: Sequence[History], name: str, bar: float, remark: str = "") -> list[Figure]:
    policy = replace(ASSISTANT, summary_events=LOCOMO_EVENTS)
    setting = Setting(
        instruction=bench.instruction,
        tools=bench.tools,
        policy=policy,
        window=Window(tokens=PARENT_WINDOW, source="run"),
    )
    ours, theirs, apart, searched, cases = [], [], [], [], []
    for history in histories:
        replay, whole = bench.replay(setting, real=True), bench.replay(without_summaries(setting))
        script = list(exchanges(history))
        await replay.record(script)
        await whole.record(script, summarise=False)
        head = without_question(await whole.ask("?"))
        requests = [await replay.ask(q.text) for q in history.questions]
        asked = [size(request) for request in requests]
        recall = Recall(replay.history)
        again = [await _searched(recall, r, q.text) for r, q in zip(requests, history.questions, strict=True)]
        full = [size(head) + size(with_question(q.text)) for q in history.questions]
        own = sum(u.prompt + u.completion for u in replay.costs.summaries)
        ours.append(sum(asked) + own)
        apart.append(sum(asked))
        searched.append(sum(asked) + sum(again) + own)
        theirs.append(sum(full))
        cases.append(
            {"history": history.id, "questions": len(asked), "whole": size(head), "own_cost": own, **spent(replay)}
        )
    with_cost, without = saved(ours, theirs, seed=bench.seed), saved(apart, theirs, seed=bench.seed)
    with_search = saved(searched, theirs, seed=bench.seed)
    note = (
        "System text and tools on both sides. Every question of a history is asked against it once; the cost of its "
        "summaries (prompt and completion) is counted once per history, so it is spread over its questions. "
        f"A summary is offered after each run, more than {LOCOMO_EVENTS} new events make it due." + remark
    )
    return [
        Figure(name=f"Prompt tokens saved, {name}", value=with_cost.of_means, bar=bar, ratios=with_cost, note=note,
               details={"cases": cases}),
        Figure(name=f"  own cost not counted, {name}", value=without.of_means, ratios=without),
        Figure(name=f"  and the past searched for every question, {name}", value=with_search.of_means, bar=bar,
               ratios=with_search, note="A second request for each question, with one session_search and its result."),
    ]  # fmt: skip


async def _searched(recall: Recall, request: ModelRequest, question: str) -> int:
    """Return what a question costs more in tokens if the model searches once before it answers."""
    call = ToolCall(id="c1", name=SEARCH_TOOL, arguments=json.dumps({"query": question}, ensure_ascii=False))
    asking = Message(role=Role.ASSISTANT, tool_calls=(call,))
    result = returned(call, await recall.answer(call))
    second = replace(request, messages=(*request.messages, asking, result))
    return size(second) + size(ModelRequest(messages=(asking,)))


async def mtbench(bench: Bench, histories: Sequence[History]) -> list[Figure]:
    """MT-Bench-101 with a summary offered every two events."""
    policy = replace(
        ASSISTANT, summary_events=1, summary_ratio=None, keep_rounds=0, keep_tokens=0, summary_least=1, template="brief"
    )
    setting = Setting(instruction=PLAIN, policy=policy, window=Window(tokens=bench.window, source="run"))
    ours, theirs, own, turns = [], [], [], []
    tasks: dict[str, list[int]] = {}
    for history in bench.cases(histories):
        script = list(exchanges(history))
        replay, whole = bench.replay(setting, real=True), bench.replay(without_summaries(setting))
        await replay.play(script)
        await whole.play(script)
        ours.append(sum(u.prompt for u in replay.costs.answering))
        theirs.append(sum(u.prompt for u in whole.costs.answering))
        own.append(sum(u.prompt + u.completion for u in replay.costs.summaries))
        turns.append(len(script))
        tasks.setdefault(history.id.partition(" ")[0], []).append(len(turns) - 1)
    long = [n for n, count in enumerate(turns) if count >= 4]
    share = saved([ours[n] for n in long], [theirs[n] for n in long], seed=bench.seed)
    dear = sum(o > t for o, t in zip(ours, theirs, strict=True))
    both = [o + c for o, c in zip(ours, own, strict=True)]
    dear_both = sum(o > t for o, t in zip(both, theirs, strict=True))
    share_both = saved([both[n] for n in long], [theirs[n] for n in long], seed=bench.seed)
    every = saved(ours, theirs, seed=bench.seed)
    count = len(ours)
    note = "The system text is one sentence, there are no tools. Prompt tokens of the answers, as it is published."
    return [
        Figure(name=f"MT-Bench-101: dearer cases of {count}", value=dear, bar=0, lower=True, percent=False, note=note),
        Figure(name="MT-Bench-101: prompt tokens saved from 4 turns on", value=share.of_means, bar=0.25, ratios=share),
        Figure(name="MT-Bench-101: prompt tokens saved, all cases", value=every.of_means, ratios=every,
               details={"by_task": _by_task(tasks, ours, theirs)}),
        Figure(
            name=f"  with the summaries' own tokens: dearer cases of {count}", value=dear_both, percent=False,
            details={"summary_calls": sum(c > 0 for c in own)},
        ),
        Figure(name="  with the summaries' own tokens: saved from 4 turns on", value=share_both.of_means,
               ratios=share_both),
    ]  # fmt: skip


def _by_task(tasks: Mapping[str, Sequence[int]], ours: Sequence[int], theirs: Sequence[int]) -> dict[str, Any]:
    """Return per task how many cases there are and the ratio of means saved."""
    shares = {task: saved([ours[n] for n in at], [theirs[n] for n in at]) for task, at in sorted(tasks.items())}
    return {task: {"n": share.n, "saved": round(share.of_means, 4)} for task, share in shares.items()}
