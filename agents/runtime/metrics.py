"""What happened in a run, told to whoever counts. Nothing here fails a run, waits, or says what a person wrote.

    metrics = services.metrics                       # NO_METRICS unless somebody counts
    metrics.model_called(call)                       # one method for each thing that happens
    metrics.of_run(session_id, run_id).run_ended(...)

`Metrics` turns what happened into the figures of measures.py, with bounded labels. A `Sink` takes them, and the spans
of a run, its model calls and its tool calls. Sinks are in agents/metrics.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

from agents.runtime.measures import MEASURES, Labels, Measure
from agents.runtime.model import Usage
from agents.runtime.policy import LOAD_TOOL, SEARCH_TOOL
from agents.runtime.session import ModelCall, RunStatus
from agents.runtime.summaries import Source
from agents.runtime.summary.report import Mode, Reason, Report

logger = logging.getLogger(__name__)

_UNCALLED: Final = (Mode.CUSTOM, Mode.EXTRACTIVE)  # without a call to a model
_SYNC: Final = {"started": "start", "done": "done", "skipped": "skip", "failed": "error"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of time in a run. trace: 48 hex digits for all spans of one run, "" = none; they are a hash.

    root: the run itself; the others lie below it. attributes hold bounded values and numbers only.
    """

    trace: str
    root: bool
    name: str
    started_at: datetime
    ended_at: datetime
    failed: bool
    attributes: Mapping[str, str | int | float]


class Sink(Protocol):
    """Somebody who counts. Called on the run's own thread, or another's; must return at once. May raise."""

    def count(self, measure: Measure, amount: float, labels: Mapping[str, str]) -> None:
        """Add amount (0 or more) to a counter. labels: a value for each of measure.labels."""
        ...

    def observe(self, measure: Measure, value: float, labels: Mapping[str, str]) -> None:
        """Note one value of a histogram."""
        ...

    def span(self, span: Span) -> None:
        """Note a stretch of time that is over."""
        ...

    def close(self) -> None:
        """Send off what waits, within a few seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Metrics:
    """Tells every sink. No method raises or waits. trace: see Span."""

    sinks: tuple[Sink, ...] = ()
    labels: Labels = field(default_factory=Labels)
    trace: str = ""

    def of_run(self, session_id: str, run_id: str) -> "Metrics":
        """Return metrics whose spans belong to this run."""
        if not self.sinks:
            return self
        digest = hashlib.sha256(f"{session_id}\0{run_id}".encode()).hexdigest()
        return replace(self, trace=digest[:48])

    def run_ended(self, *, outcome: RunStatus, code: str, began: datetime, ended: datetime, usage: Usage) -> None:
        """Count a run. code: of its failure, "" if it did not fail. usage: the sum over its calls."""
        duration_ms = max(0.0, (ended - began).total_seconds() * 1000)
        self._count("run_total", outcome=outcome.value)
        self._observe("run_duration_ms", duration_ms, outcome=outcome.value)
        if code:
            self._count("run_error_total", code=code)
        attributes = {"outcome": outcome.value, **_tokens(usage)}
        if code:
            attributes["code"] = self.labels.value("code", code)
        self._span("run", began, ended, failed=bool(code), root=True, attributes=attributes)

    def run_lost(self) -> None:
        """Count a run whose process died. It has no span: its own process would have told of its end."""
        self._count("run_total", outcome=RunStatus.LOST.value)
        self._count("run_error_total", code="lost")

    def model_called(self, call: ModelCall) -> None:
        """Count a call to a model, of whatever purpose. Tokens are counted as far as they were reported."""
        by = {"model": call.model, "purpose": call.purpose}
        outcome = "error" if call.error_code else "cancelled" if call.finish_reason == "cancelled" else "ok"
        self._count("model_call_total", outcome=outcome, **by)
        if call.error_code:
            self._count("model_call_error_total", code=call.error_code, **by)
        for kind, tokens in _tokens(call.usage).items():
            if tokens:
                self._count("model_call_tokens_total", tokens, kind=kind, **by)
        if call.ttft_ms is not None:
            self._observe("model_call_ttft_ms", call.ttft_ms, **by)
        self._observe("model_call_latency_ms", call.latency_ms, **by)
        if call.purpose == "summary" and outcome == "ok":
            self._summarised(call)
        attributes: dict[str, str | int | float] = {
            "task.type": self.labels.value("purpose", call.purpose),
            "model": self.labels.value("model", call.model),
            "outcome": outcome,
            **_tokens(call.usage),
        }
        if call.ttft_ms is not None:
            attributes["ttft_ms"] = call.ttft_ms
        if call.error_code:
            attributes["code"] = self.labels.value("code", call.error_code)
        if call.started_at is not None:
            ended = call.started_at + timedelta(milliseconds=call.latency_ms)
            self._span("model call", call.started_at, ended, failed=bool(call.error_code), attributes=attributes)

    def tool_called(self, name: str, *, status: str, elapsed_ms: float, ended: datetime) -> None:
        """Count a tool call that was run. status: a ToolStatus."""
        self._count("tool_call_total", tool=name, status=status)
        self._observe("tool_call_latency_ms", elapsed_ms, tool=name)
        if name == SEARCH_TOOL:
            self._count("session_search_total")
        elif name == LOAD_TOOL:
            self._count("session_load_total")
        value = self.labels.value
        attributes = {"tool": value("tool", name), "status": value("status", status)}
        began = ended - timedelta(milliseconds=elapsed_ms)
        self._span("tool call", began, ended, failed=status != "ok", attributes=attributes)

    def summary_enqueued(self, filter_key: str, *, forced: bool = False) -> None:
        """Count that a background summary was asked for."""
        self._count("summary_enqueue_total", filter_key=filter_key, force=_truth(forced))

    def summary_made(self, report: Report, *, parent: Usage | None = None) -> None:
        """Count one making of a summary, whatever came of it. parent: usage of the call whose prefix a fork reuses.

        The call itself is told apart, by `model_called` with purpose "summary".
        """
        trigger, call = report.trigger, report.call
        forced = trigger.name in ("force", "manual") or report.source in (Source.MANUAL, Source.ARCHIVE)
        scope = {"filter_key": report.filter_key, "force": _truth(forced)}
        if trigger.name:
            self._count("summary_trigger_total", trigger=trigger.name, fired=_truth(trigger.fired))
        if call.calls or call.mode in _UNCALLED:
            self._count("summary_call_total", mode=call.mode, summarizer=report.summarizer)
            self._observe("summary_estimated_prompt_tokens", call.estimated_prompt_tokens, mode=call.mode)
        if failure := report.reason.error:
            self._count("summary_error_total", reason=failure, **scope)
            return
        advanced = report.reason is Reason.ADVANCED
        self._count("summary_create_total", summarizer=report.summarizer, updated=_truth(advanced), **scope)
        self._observe("summary_create_latency_ms", report.latency_ms, **scope)
        if report.format_invalid:
            self._count("summary_format_invalid_total", filter_key=report.filter_key)
        if advanced:
            self._advanced(report, parent)

    def summarising(self, state: Literal["started", "done", "skipped", "failed"], source: Source) -> None:
        """Count a summary that a run makes itself: between its steps (RUN) or before a call (CALL)."""
        if source is Source.CALL:
            self._count("compaction_sync_summary_total", state=_SYNC[state])
        elif state == "started":
            self._count("sync_intra_run_total")

    def compacted(self, results: int, tokens_saved: int) -> None:
        """Count tool results that a request shows in short form for the first time."""
        self._count("compaction_results_total", results)
        self._count("compaction_tokens_saved_total", max(0, tokens_saved))

    def tailored(self, before: int, after: int, rounds: int, *, overflow: bool = False) -> None:
        """Count a request that rounds were left out of, or that did not fit all the same. In tokens."""
        self._observe("tailoring_before_tokens", before)
        self._observe("tailoring_after_tokens", after)
        self._count("tailoring_dropped_rounds_total", rounds)
        if overflow:
            self._count("tailoring_overflow_total")

    def _summarised(self, call: ModelCall) -> None:
        usage, by = call.usage, {"model": call.model}
        self._observe("summary_llm_latency_ms", call.latency_ms, **by)
        self._observe("summary_prompt_tokens", usage.prompt, **by)
        self._observe("summary_completion_tokens", usage.completion, **by)
        self._observe("summary_cache_read_tokens", usage.cached, **by)
        if usage.prompt > 0:
            self._observe("summary_cache_hit_rate", usage.cached / usage.prompt, **by)

    def _advanced(self, report: Report, parent: Usage | None) -> None:
        by, call = {"filter_key": report.filter_key}, report.call
        self._observe("summary_input_tokens", report.input_tokens, **by)
        self._observe("summary_input_events", report.input_events, **by)
        self._observe("summary_output_tokens", report.output_tokens, **by)
        if report.input_tokens > 0:
            self._observe("summary_compression_ratio", report.output_tokens / report.input_tokens, **by)
        if call.mode is Mode.FORK:
            self._observe("summary_fork_prompt_tokens", call.prompt_tokens, model=call.model)
            self._observe("summary_fork_cached_tokens", call.cached_tokens, model=call.model)
            if parent is not None:
                self._observe("summary_fork_parent_prompt_tokens", parent.prompt, model=call.model)
                self._observe("summary_fork_parent_cached_tokens", parent.cached, model=call.model)

    def _count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        if self.sinks:
            measure, values = MEASURES[name], self._values(labels)
            self._each(lambda sink: sink.count(measure, amount, values))

    def _observe(self, name: str, value: float, /, **labels: str) -> None:
        if self.sinks:
            measure, values = MEASURES[name], self._values(labels)
            self._each(lambda sink: sink.observe(measure, value, values))

    def _span(
        self,
        name: str,
        started_at: datetime,
        ended_at: datetime,
        *,
        failed: bool,
        attributes: Mapping[str, str | int | float],
        root: bool = False,
    ) -> None:
        if self.sinks:
            span = Span(
                trace=self.trace,
                root=root,
                name=name,
                started_at=started_at,
                ended_at=ended_at,
                failed=failed,
                attributes=attributes,
            )
            self._each(lambda sink: sink.span(span))

    def _values(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {label: self.labels.value(label, value) for label, value in labels.items()}

    def _each(self, tell: Callable[[Sink], None]) -> None:
        for sink in self.sinks:
            try:
                tell(sink)
            except Exception as error:  # a run must not end because somebody cannot count
                # not its message: a sink may put into it what it was given
                logger.warning("%s lost a figure: %s", type(sink).__name__, type(error).__name__)


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "prompt": usage.prompt,
        "cached": usage.cached,
        "completion": usage.completion,
        "reasoning": usage.reasoning,
    }


def _truth(value: bool) -> str:
    return "true" if value else "false"


NO_METRICS: Final = Metrics()
