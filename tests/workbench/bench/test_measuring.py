"""The bench over replayed conversations: what it counts, and that it counts the same again."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agents.runtime.context.window import Window
from agents.runtime.model import Message, ModelRequest, Role, ToolCall, ToolSpec, Usage, text_message
from agents.runtime.policy import ANALYST, ASSISTANT, ContextPolicy
from agents.runtime.summaries import Source
from tests.modelserver import ModelServer
from workbench.bench import context, madeup, questions, results, savings
from workbench.bench.caching import CachingModel, PrefixCache, size
from workbench.bench.measuring import Bench
from workbench.bench.questions import Case, Quiz
from workbench.bench.readers import History, Question, Turn
from workbench.bench.replay import Replay, Setting, without_summaries
from workbench.bench.scripts import events, exchanges

TOOLS = (ToolSpec(name="search_papers", description="Search the papers."),)
BENCH = Bench(instruction="You help with papers. " * 20, tools=TOOLS)
ENGLISH = (
    "Visit {n}: the pump in hall {n} was repaired by Ada, the bill of {n} euros is paid, the next visit is in May."
)
CHINESE = "第{n}次检查:{n}号车间的水泵由王工修好,账单{n}元已付,下次检查在五月。"


def history(turns: int, *, name: str = "h", asked: int = 2) -> History:
    said = [
        Turn(id=str(n), said_by="AB"[n % 2], text=(CHINESE if n % 3 == 0 else ENGLISH).format(n=n), user=n % 2 == 0)
        for n in range(turns)
    ]
    wanted = [Question(text=f"Who repaired the pump in hall {n}?", answer="Ada", evidence=(str(n),)) for n in (1, 2)]
    return History(id=name, turns=tuple(said), questions=tuple(wanted[:asked]))


def setting(policy: ContextPolicy = ASSISTANT, tokens: int = 32_768) -> Setting:
    window = Window(tokens=tokens, source="run")
    return Setting(instruction=BENCH.instruction, tools=TOOLS, policy=policy, window=window)


class Searcher:
    """Searches once if it can, then answers."""

    async def speak(self, request: ModelRequest) -> tuple[Message, Usage]:
        usage = Usage(prompt=size(request))
        last = request.messages[-1]
        if request.tools and last.role is Role.USER:
            call = ToolCall(id="c1", name="session_search", arguments=json.dumps({"query": last.text}))
            return Message(role=Role.ASSISTANT, tool_calls=(call,)), usage
        return text_message(Role.ASSISTANT, "It was Ada."), usage


async def asked(bench: Bench, judge: CachingModel | None = None) -> tuple[list[Case], list[int]]:
    quiz = Quiz(model=Searcher(), judge=judge, clock=iter(range(1_000)).__next__)
    told = history(160)
    return await questions.ask_all(bench, quiz, [(told, told.questions)])


async def test_context_9_3_the_summary_asks_least_and_the_whole_history_most() -> None:
    cases, costs = await asked(BENCH)
    assert len(cases) == 6
    assert costs[0] > 0
    for question in {case.question for case in cases}:
        prompt = {c.mode: c.usage.prompt for c in cases if c.question == question}
        assert prompt["summary"] < prompt["on-demand"] < prompt["long"]
    assert {c.mode: (c.searches, c.scores.contained) for c in cases} == {
        "long": (0, 1),
        "summary": (0, 1),
        "on-demand": (1, 1),
    }


async def test_context_9_4_the_summaries_own_cost_is_part_of_the_totals() -> None:
    replay = BENCH.replay(setting(replace(ASSISTANT, summary_events=10)))
    await replay.play(exchanges(history(60)))
    assert replay.costs.summaries
    answering = sum(u.prompt for u in replay.costs.answering)
    assert replay.costs.total.prompt == answering + sum(u.prompt for u in replay.costs.summaries)
    cases, costs = await asked(BENCH)
    told = {f.name: f for f in questions.figures(BENCH, cases, costs, "ours")}
    without, counted = told["ours, summary: prompt tokens saved"], told["  the summaries' cost counted"]
    assert counted.value < without.value


async def test_context_9_4_a_saving_counts_what_the_summaries_of_the_history_cost() -> None:
    counted, without, searched = await savings.locomo_saved(BENCH, [history(160)])
    (case,) = counted.details["cases"]
    whole = sum(case["whole"] + size(savings.with_question(q.text)) for q in history(160).questions)
    assert case["own_cost"] > 0
    assert without.value - counted.value == pytest.approx(case["own_cost"] / whole)
    assert searched.value < counted.value


async def test_context_9_6_a_fork_is_read_from_the_cache_and_a_request_of_its_own_is_not() -> None:
    found = {}
    for fork in ("on", "off"):
        policy = replace(ANALYST, fork=fork, summary_ratio=None, compact=False)
        replay = BENCH.replay(setting(policy, tokens=128_000))
        await replay.record(madeup.Talk(1).exchanges(12), summarise=False)
        assembled = await replay.assemble()
        await replay.answering.ask(assembled.request)
        made = await replay.offer(Source.MANUAL, assembled, forced=True)
        assert made.advanced is not None
        (usage,) = replay.costs.summaries
        assert usage.prompt > 1_024
        found[fork] = usage.cached / usage.prompt
    assert found["on"] > 0.9
    assert found["off"] == 0


async def test_context_9_7_the_same_run_gives_the_same_file_with_all_it_needs(tmp_path: Path) -> None:
    sets = {"locomo": [history(120)], "mtbench101": [history(n, name=f"m{n}", asked=0) for n in (4, 8, 12)]}
    texts = []
    for n in (1, 2):
        measured = await context.measure(BENCH, sets, parts=("locomo", "mtbench"))
        setup = results.Setup(
            model="fake",
            summariser="ratio",
            version="1",
            at=datetime(2026, 5, 1, tzinfo=UTC),
            seed=BENCH.seed,
            sets=context.counts(sets),
        )
        results.write(tmp_path / f"{n}.json", setup, measured.figures)
        texts.append((tmp_path / f"{n}.json").read_bytes())
    assert texts[0] == texts[1]
    made = json.loads(texts[0])
    assert (made["model"], made["date"], made["seed"]) == ("fake", "2026-05-01T00:00:00+00:00", 0)
    assert made["sets"]["locomo"] == {"histories": 1, "turns": 120, "questions": 2}
    assert all({"ratio_of_means", "mean_of_ratios", "interval", "n"} <= set(f) for f in made["figures"] if "n" in f)


async def test_a_request_of_a_replay_is_what_it_would_be_without_asking() -> None:
    replay = BENCH.replay(setting())
    await replay.record(exchanges(history(20)))
    kept = list(replay.history)
    request = await replay.ask("当前的账单是多少?")
    assert request.messages[-1].text == "当前的账单是多少?"
    assert replay.history == kept
    assert await replay.ask("当前的账单是多少?") == request


async def test_the_whole_history_is_in_every_request_of_the_other_side() -> None:
    told = history(200)
    whole = BENCH.replay(without_summaries(setting(tokens=2_000)))
    await whole.record(exchanges(told), summarise=False)
    text = "\n".join(m.text for m in (await whole.ask("?")).messages)
    assert all(turn.text in text for turn in told.turns)


async def test_a_long_history_shrinks_to_its_summary() -> None:
    replay = BENCH.replay(setting(replace(ASSISTANT, summary_events=40)))
    await replay.record(exchanges(history(200)))
    newest = await replay.newest()
    assert newest is not None
    assert newest.boundary.position > 100
    assert size(await replay.ask("?")) < size_of_all(replay) / 2


def size_of_all(replay: Replay) -> int:
    return sum(stored.tokens for stored in replay.history)


async def test_a_dialogue_with_a_summary_every_two_events_is_never_dearer() -> None:
    cases = [history(2 * n, name=str(n), asked=0) for n in range(1, 9)]
    figures = await savings.mtbench(BENCH, cases)
    assert (figures[0].value, figures[0].met) == (0, True)
    assert figures[1].ratios is not None
    assert figures[1].ratios.n == 5


def test_a_made_up_conversation_is_the_same_for_the_same_seed() -> None:
    one, two, other = (list(madeup.Talk(seed, memory_every=5).exchanges(20)) for seed in (3, 3, 4))
    assert one == two != other
    assert events(one) > 60
    assert len({exchange.memory for exchange in one}) == 4
    assert any("第" in exchange.said[0] for exchange in one)


async def test_a_judge_gives_a_number() -> None:
    said = {"It was Ada.": "0.5"}
    judge = CachingModel(lambda request: next(v for k, v in said.items() if k in request.messages[-1].text))
    cases, _ = await asked(BENCH, judge)
    assert {case.judged for case in cases} == {0.5}


async def test_the_shortening_writer_is_kept_to_the_words_it_is_asked_for() -> None:
    replay = BENCH.replay(setting(replace(ASSISTANT, summary_words=30)))
    assert replay.summarizer.name == "fixed ratio"
    await replay.record(exchanges(history(200)), summarise=False)
    made = await replay.offer(Source.MANUAL, forced=True)
    assert made.advanced is not None
    assert 20 < made.advanced.tokens < 60


def write_dialogues(folder: Path, turns: Sequence[int]) -> None:
    folder.mkdir()
    rows = [
        {
            "task": "CM",
            "id": n,
            "history": [{"user": ENGLISH.format(n=i), "bot": CHINESE.format(n=i)} for i in range(n)],
        }
        for n in turns
    ]
    (folder / "some.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def test_the_command_prints_every_figure_and_writes_the_file(tmp_path: Path) -> None:
    write_dialogues(tmp_path / "mtbench101", (2, 4, 6))
    out, file = io.StringIO(), tmp_path / "result.json"
    call_command("bench", "context", sets=tmp_path, only=["mtbench", "locomo"], out=file, stdout=out)
    said = out.getvalue()
    made = json.loads(file.read_text(encoding="utf-8"))
    assert made["sets"] == {"mtbench101": {"histories": 3, "turns": 24, "questions": 0}}
    assert [f["name"] for f in made["figures"]] == [
        line[:96].rstrip() for line in said.splitlines() if not line.startswith("    ") and "not measured" not in line
    ]
    assert "locomo: not measured" in said


def test_the_command_refuses_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="not a folder"):
        call_command("bench", "context", sets=tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "a.json").write_text("[1]")
    with pytest.raises(CommandError, match=r"a\.json"):
        call_command("bench", "context", sets=tmp_path)
    with pytest.raises(CommandError, match="There is no model"):
        call_command("bench", "context", sets=tmp_path / "empty", model="nobody")


def test_prefix_caches_are_apart_unless_they_are_shared() -> None:
    asked_of = ModelRequest(messages=(text_message(Role.USER, "A long text. " * 1_000),))
    one, two = PrefixCache(), PrefixCache()
    one.read(asked_of)
    assert two.read(asked_of)[1] == 0


def test_the_command_asks_a_configured_model(tmp_path: Path, settings: Any) -> None:
    said = [{"dia_id": f"D1:{n}", "speaker": "AB"[n % 2], "text": ENGLISH.format(n=n)} for n in range(90)]
    wanted = [
        {"question": f"第{n}次检查是谁?", "answer": "answer", "evidence": ["D1:1"], "category": 4} for n in (1, 2, 3)
    ]
    adversarial = {"question": "Why?", "answer": "No", "evidence": ["D1:1"], "category": 5}
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "a.json").write_text(json.dumps({"turns": said, "qa": [*wanted, adversarial]}))
    out, file = io.StringIO(), tmp_path / "result.json"
    with ModelServer() as server:
        settings.MODELS = [{"name": "m", "base_url": server.base_url, "api_key": "k"}]
        call_command(
            "bench", "context", sets=tmp_path, only=["questions"], questions=2, model="m", judge="m",
            summariser="model", out=file, stdout=out,
        )  # fmt: skip
        asked = [json.dumps(request.body["messages"], ensure_ascii=False) for request in server.chats]
    made = json.loads(file.read_text(encoding="utf-8"))
    assert made["model"] == "m"
    first = made["figures"][0]
    assert (first["name"], first["details"]["n"]) == ("locomo, long: F1", 2)
    assert first["details"]["latency_ms"] > 0
    assert first["details"]["contained"] == 1  # the server's steady answer holds the word
    assert sum("Expected answer" in body for body in asked) == 6  # two questions in three modes are judged
    assert not any("Why?" in body for body in asked)
