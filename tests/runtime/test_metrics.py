"""What is counted of a run and its summaries, and what never is."""

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from agents.runtime.errors import ModelError, StreamCut, ToolFailed
from agents.runtime.events import AssistantMessage, RunFinished
from agents.runtime.measures import MEASURES, Kind
from agents.runtime.metrics import NO_METRICS
from agents.runtime.model import ToolSpec, Usage
from agents.runtime.session import CancelReason, CancelToken, ModelCall, RunStatus
from agents.runtime.summaries import Source
from agents.runtime.summary.report import CallReport, Mode, Reason, Report, Trigger
from agents.runtime.testing import ScriptedModel, call, collect, memory_runner, text, turn, usage
from agents.runtime.tools import ToolContext, ToolResult
from tests.runtime.measuring import Broken, Remembering, measured
from tests.runtime.samples import of, request, tool
from tests.runtime.summary.talks import POLICY, Desk, long_talk

AT = datetime(2026, 1, 1, tzinfo=UTC)
CANARY = "kanarienvogel-7731"
CANARY_ZH = "金丝雀七七三一"


def called(purpose: str = "summary", *, error: str = "", **tokens: int) -> ModelCall:
    return ModelCall(
        id="c1",
        run_id="r1",
        invocation_id="i1",
        purpose=purpose,
        provider="testing",
        model="gpt",
        usage=Usage(**tokens),
        ttft_ms=None if error else 20.0,
        latency_ms=1500.0,
        finish_reason="error" if error else "stop",
        error_code=error,
        parts=(),
        request_sha256="",
        started_at=AT,
    )


def report(reason: Reason = Reason.ADVANCED, **more: Any) -> Report:
    given = {"filter_key": "assistant", "source": "background", "latency_ms": 1600.0, **more}
    return Report(reason=reason, **given)


DUE = Trigger(fired=True, name="token_threshold", metric="tokens", value=9000, threshold=8000, unit="tokens")


class Counted(Desk):
    """A desk whose makings are counted."""

    def __init__(self, *turns: Any, **more: Any) -> None:
        super().__init__(*turns, **more)
        self.sink = Remembering()
        self.metrics = measured(self.sink)
        self.more |= {"report": self.metrics.summary_made}

    async def book(self, call: ModelCall) -> None:
        self.metrics.model_called(call)


@pytest.mark.parametrize("zh", [False, True])
async def test_context_8_1_a_summary_that_was_made_counts_once_with_its_ratio(zh: bool) -> None:
    desk = Counted(turn(text("短" if zh else "Short."), usage(4000, 300, cached=3000)))
    desk.metrics.summary_enqueued("assistant")
    assert (await desk.update(long_talk(8, zh=zh))).reason is Reason.ADVANCED
    sink = desk.sink
    assert sink.counts["summary_enqueue_total", "assistant", "false"] == 1
    assert sink.counts["summary_create_total", "assistant", "false", "tested", "true"] == 1
    assert sink.total("summary_error_total") == 0
    assert sink.all("summary_create_latency_ms")[0] >= sink.all("summary_llm_latency_ms")[0] >= 0
    ratio = sink.all("summary_output_tokens")[0] / sink.all("summary_input_tokens")[0]
    assert sink.all("summary_compression_ratio") == [ratio]
    assert sink.all("summary_input_events")[0] >= 16
    assert sink.all("summary_cache_hit_rate") == [0.75]
    assert sink.counts["summary_trigger_total", "always", "true"] == 1
    assert sink.counts["summary_call_total", "standalone", "tested"] == 1
    assert sink.counts["model_call_tokens_total", "scripted", "summary", "cached"] == 3000


async def test_context_8_2_a_model_that_fails_counts_as_an_error_without_output() -> None:
    desk = Counted(turn(ModelError("no")))
    assert (await desk.update(long_talk(8))).reason is Reason.MODEL_ERROR
    assert desk.sink.counts["summary_error_total", "assistant", "false", "model"] == 1
    assert desk.sink.total("summary_create_total") == 0
    assert not [
        key for key in desk.sink.values if key[0].startswith(("summary_output", "summary_compr", "summary_llm"))
    ]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (Reason.MODEL_ERROR, "model"),
        (Reason.TIMEOUT, "model"),
        (Reason.EMPTY, "empty"),
        (Reason.NO_SUMMARIZER, "no_summarizer"),
        (Reason.BUDGET, "budget"),
        (Reason.STORAGE, "storage"),
        (Reason.CANCELLED, "cancelled"),
        (Reason.HOOK_ERROR, "hook"),
    ],
)
def test_why_there_is_no_summary_is_one_of_a_few_reasons(reason: Reason, told: str) -> None:
    sink = Remembering()
    metrics = measured(sink)
    metrics.model_called(called(error="model_error"))
    metrics.summary_made(report(reason, trigger=DUE, input_tokens=4000, output_tokens=0, call=CallReport(calls=1)))
    assert sink.counts == {
        ("model_call_total", "gpt", "summary", "error"): 1,
        ("model_call_error_total", "gpt", "summary", "model_error"): 1,
        ("summary_trigger_total", "token_threshold", "true"): 1,
        ("summary_call_total", "standalone", "other"): 1,
        ("summary_error_total", "assistant", "false", told): 1,
    }
    assert not [key for key in sink.values if key[0].startswith(("summary_output", "summary_compr", "summary_llm"))]


def test_context_8_3_without_reported_tokens_there_is_no_hit_rate_and_no_division() -> None:
    sink = Remembering()
    measured(sink).model_called(called())
    assert sink.all("summary_cache_hit_rate") == []
    measured(sink).model_called(called(prompt=4000, completion=10))
    assert sink.all("summary_cache_hit_rate") == [0]
    measured(sink).summary_made(report(input_tokens=0, output_tokens=5))
    assert sink.all("summary_compression_ratio") == []


async def test_context_8_4_a_summary_that_was_not_due_counts_as_asked_for_and_not_updated() -> None:
    desk = Counted(policy=replace(POLICY, summary_events=1000))
    desk.metrics.summary_enqueued("assistant/child")
    assert (await desk.update(long_talk(2))).reason is Reason.NOT_DUE
    assert desk.sink.counts == {
        ("summary_enqueue_total", "assistant", "false"): 1,
        ("summary_trigger_total", "event_threshold", "false"): 1,
        ("summary_create_total", "assistant", "false", "other", "false"): 1,
    }
    assert set(desk.sink.values) == {("summary_create_latency_ms", "assistant", "false")}


def test_context_8_5_a_custom_response_is_a_mode_of_its_own_with_an_estimate_of_nothing() -> None:
    sink = Remembering()
    measured(sink).summary_made(report(call=CallReport(mode=Mode.CUSTOM), summarizer="extractive"))
    assert sink.counts["summary_call_total", "custom_response", "extractive"] == 1
    assert sink.values["summary_estimated_prompt_tokens", "custom_response"] == [0]
    assert sink.total("model_call_total") == 0


async def test_context_8_6_a_summary_is_stored_whatever_becomes_of_its_report(caplog: pytest.LogCaptureFixture) -> None:
    desk = Counted("Short.", "Short too.")
    desk.metrics = measured(Broken(), desk.sink)

    def hook(report: Report) -> None:
        desk.metrics.summary_made(report)
        raise RuntimeError

    made = await desk.update(long_talk(8), report=hook)
    assert made.advanced is not None
    assert desk.store.rows == [made.advanced]
    assert desk.sink.counts["summary_create_total", "assistant", "false", "tested", "true"] == 1


async def test_context_8_7_no_figure_span_or_log_line_says_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        if arguments["q"] == "fail":
            raise ToolFailed(f"{CANARY} {CANARY_ZH}")
        return ToolResult(content=f"{CANARY} {CANARY_ZH}", summary=CANARY)

    sink = Remembering()
    model = ScriptedModel(
        turn(text(f"{CANARY_ZH} "), call("c1", "look", {"q": CANARY}), call("c2", CANARY, {"q": "x"})),
        turn(call("c3", "look", {"q": "fail"}), call(CANARY, "look", {"q": CANARY_ZH})),
        turn(text(f"{CANARY} {CANARY_ZH}"), usage(100, 10)),
        turn(text(CANARY), ModelError(f"bad request: {CANARY} {CANARY_ZH}")),
    )
    runner = memory_runner(model, tools=[tool("look", look, parameters=_Q)], metrics=measured(sink, Broken()))
    outside = ToolSpec(name=CANARY + "-tool", description=CANARY)
    with caplog.at_level(logging.DEBUG):
        await collect(runner, request(f"{CANARY} 你好 {CANARY_ZH}", external_tools=(outside,)))
        await collect(runner, request(CANARY, run_id="r2"))
        desk = Counted(turn(text(f"{CANARY} {CANARY_ZH}"), usage(900, 9)))
        desk.sink, desk.metrics = sink, measured(sink, Broken())
        talk = long_talk(8)
        talk.exchange(f"{CANARY} {CANARY_ZH}", f"{CANARY_ZH} {CANARY}")
        assert (await desk.update(talk, report=desk.metrics.summary_made)).reason is Reason.ADVANCED
        measured(sink, Broken()).summary_made(report(filter_key=CANARY, summarizer=CANARY_ZH, error=CANARY))
        measured(sink, Broken()).tool_called(CANARY, status=CANARY, elapsed_ms=1, ended=AT)
        measured(sink, Broken()).model_called(called(CANARY, error=CANARY))
    assert sink.total("run_total") == 2
    assert sink.total("tool_call_total") == 4
    said = sink.everything() + caplog.text + repr([record.__dict__ for record in caplog.records])
    assert "lost a figure" in said
    assert CANARY not in said
    assert CANARY_ZH not in said


_Q = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


def test_context_8_8_filter_keys_with_numbers_of_their_own_make_no_series() -> None:
    sink = Remembering()
    metrics = measured(sink)
    for _ in range(50):
        unique = uuid4()
        keys = (f"researcher-{unique}", f"researcher-{unique.hex}", f"assistant/researcher-{unique}/x", str(unique))
        for key in (*keys, f"agenttool:{unique}:default", f"assistant-{unique}x"):
            metrics.summary_enqueued(key)
            metrics.summary_made(report(filter_key=key, input_tokens=10, output_tokens=1))
    metrics.summary_enqueued("")
    series = {key[1] for key in sink.counts if key[0] == "summary_enqueue_total"}
    assert series == {"researcher", "assistant", "other", "session"}
    assert len(sink.counts) + len(sink.values) < 30


async def test_a_run_counts_its_outcome_its_calls_and_its_tokens() -> None:
    sink = Remembering()
    model = ScriptedModel(
        turn(call("c1", "look", {"q": "x"}), usage(100, 10, cached=64)), turn(text("答案"), usage(150, 20, cached=128))
    )
    runner = memory_runner(model, tools=[tool("look")], metrics=measured(sink))
    emitted = await collect(runner, request("你好"))
    assert of(emitted, RunFinished)
    assert sink.counts["run_total", "finished"] == 1
    assert sink.counts["model_call_total", "scripted", "chat", "ok"] == 2
    tokens = {key[3]: amount for key, amount in sink.counts.items() if key[0] == "model_call_tokens_total"}
    assert tokens == {"prompt": 250, "cached": 192, "completion": 30}
    assert sink.counts["tool_call_total", "look", "ok"] == 1
    assert len(sink.values["run_duration_ms", "finished"]) == 1
    assert len(sink.values["model_call_ttft_ms", "scripted", "chat"]) == 2


async def test_spans_of_one_run_share_a_trace_and_lie_within_it() -> None:
    sink = Remembering()
    model = ScriptedModel(turn(call("c1", "look", {"q": "x"})), turn(text("a")), turn(text("b")))
    runner = memory_runner(model, tools=[tool("look")], metrics=measured(sink))
    await collect(runner, request("one"))
    await collect(runner, request("two", run_id="r2"))
    first, second = sink.spans[:4], sink.spans[4:]
    assert [span.name for span in first] == ["model call", "tool call", "model call", "run"]
    assert [span.root for span in first] == [False, False, False, True]
    assert [span.name for span in second] == ["model call", "run"]
    assert len({span.trace for span in first}) == len({span.trace for span in second}) == 1
    assert first[0].trace != second[0].trace
    assert re.fullmatch(r"[0-9a-f]{48}", first[0].trace)
    assert first[0].attributes["task.type"] == "chat"
    run = first[-1]
    assert all(run.started_at <= span.started_at <= span.ended_at <= run.ended_at for span in first)


def test_spans_say_what_a_call_was_for() -> None:
    sink = Remembering()
    for purpose in ("chat", "summary", "title"):
        measured(sink).of_run("1", "r1").model_called(called(purpose, prompt=10))
    assert [span.attributes["task.type"] for span in sink.spans] == ["chat", "summary", "title"]
    assert sink.spans[0].ended_at - sink.spans[0].started_at == timedelta(milliseconds=1500)


async def test_a_run_that_failed_counts_the_code_that_a_person_sees() -> None:
    sink = Remembering()
    model = ScriptedModel(turn(text("half"), StreamCut("cut")))
    await collect(memory_runner(model, metrics=measured(sink)), request("x"))
    assert sink.counts["run_total", "failed"] == 1
    assert sink.counts["run_error_total", "stream_cut"] == 1
    assert sink.counts["model_call_error_total", "scripted", "chat", "stream_cut"] == 1
    assert [(span.name, span.failed) for span in sink.spans] == [("model call", True), ("run", True)]


async def test_a_run_that_was_stopped_counts_as_cancelled_with_its_tool() -> None:
    sink, cancel = Remembering(), CancelToken()

    async def long(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        cancel.cancel(CancelReason.USER)
        await asyncio.Event().wait()
        raise AssertionError

    runner = memory_runner(
        ScriptedModel(turn(call("c1", "look", {}))), tools=[tool("look", long)], metrics=measured(sink)
    )
    await collect(runner, request("x"), cancel)
    assert sink.counts["run_total", "cancelled"] == 1
    assert sink.counts["tool_call_total", "look", "cancelled"] == 1
    assert sink.total("run_error_total") == 0


async def test_a_sink_that_fails_changes_nothing_for_the_run_and_for_other_sinks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole, beside = Remembering(), Remembering()
    script = (turn(call("c1", "look", {"q": "x"}), usage(10, 1)), turn(text("done"), usage(10, 1)))
    plain = await collect(memory_runner(ScriptedModel(*script), tools=[tool("look")]), request("x"))
    await collect(memory_runner(ScriptedModel(*script), tools=[tool("look")], metrics=measured(whole)), request("x"))
    broken = memory_runner(ScriptedModel(*script), tools=[tool("look")], metrics=measured(Broken(), beside))
    emitted = await collect(broken, request("x"))
    assert of(emitted, AssistantMessage)[-1].text == "done"
    assert [type(e.event) for e in emitted] == [type(e.event) for e in plain]
    assert beside.counts == whole.counts
    assert "Broken lost a figure: RuntimeError" in caplog.text


async def test_a_search_of_the_past_is_counted_by_its_own_name() -> None:
    sink = Remembering()
    model = ScriptedModel(
        turn(call("c1", "session_search", {}), call("c2", "session_load", {}), call("c3", "session_load", {})),
        turn(text("a")),
    )
    tools = [tool("session_search"), tool("session_load")]
    await collect(memory_runner(model, tools=tools, metrics=measured(sink)), request("x"))
    assert sink.counts["session_search_total",] == 1
    assert sink.counts["session_load_total",] == 2


def test_a_fork_is_compared_with_its_parent() -> None:
    sink = Remembering()
    made = CallReport(mode=Mode.FORK, model="gpt", prompt_tokens=5138, cached_tokens=4864, calls=1)
    measured(sink).summary_made(report(call=made), parent=Usage(prompt=5060, cached=4864))
    assert sink.all("summary_fork_prompt_tokens") == [5138]
    assert sink.all("summary_fork_cached_tokens") == [4864]
    assert sink.all("summary_fork_parent_prompt_tokens") == [5060]
    assert sink.all("summary_fork_parent_cached_tokens") == [4864]


def test_what_a_request_lost_is_counted() -> None:
    sink = Remembering()
    metrics = measured(sink)
    metrics.compacted(7, 12_000)
    metrics.tailored(50_000, 30_000, 4, overflow=True)
    for state in ("started", "done"):
        metrics.summarising(state, Source.CALL)  # type: ignore[arg-type]  # a tuple's items are plain str
        metrics.summarising(state, Source.RUN)  # type: ignore[arg-type]  # as above
    assert sink.counts == {
        ("compaction_results_total",): 7,
        ("compaction_tokens_saved_total",): 12_000,
        ("tailoring_dropped_rounds_total",): 4,
        ("tailoring_overflow_total",): 1,
        ("compaction_sync_summary_total", "start"): 1,
        ("compaction_sync_summary_total", "done"): 1,
        ("sync_intra_run_total",): 1,
    }
    assert sink.values == {("tailoring_before_tokens",): [50_000], ("tailoring_after_tokens",): [30_000]}


@pytest.mark.parametrize("source", [Source.MANUAL, Source.ARCHIVE])
def test_what_a_person_asked_for_counts_as_forced(source: Source) -> None:
    sink = Remembering()
    measured(sink).summary_made(report(Reason.NOTHING_NEW, source=source.value))
    assert sink.counts["summary_create_total", "assistant", "true", "other", "false"] == 1


def test_whoever_counts_nothing_pays_nothing() -> None:
    assert NO_METRICS.of_run("1", "r") is NO_METRICS
    NO_METRICS.run_ended(outcome=RunStatus.FINISHED, code="", began=AT, ended=AT, usage=Usage())


def test_every_figure_has_a_name_for_what_it_is_and_stands_in_the_docs() -> None:
    documented = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    for name, measure in MEASURES.items():
        assert re.fullmatch(r"[a-z][a-z_]+", name)
        assert name.endswith("_total") == (measure.kind is Kind.COUNTER)
        assert bool(measure.buckets) == (measure.kind is Kind.HISTOGRAM)
        assert list(measure.buckets) == sorted(set(measure.buckets))
        assert f"`{name}`" in documented, name
