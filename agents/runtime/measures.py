"""Every figure that is counted: its name, what it is, and which values its labels may take.

No other name and no other value ever reaches a sink, so there is a fixed number of series and none of them says what a
person wrote. Where a label's values depend on the installation (models, agents, tools, summarizers) they come from
`Known`; whatever is not listed counts as "other".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from agents.runtime import errors
from agents.runtime.events import ToolStatus
from agents.runtime.scopes import SEPARATOR
from agents.runtime.session import RunStatus
from agents.runtime.summaries import Source
from agents.runtime.summary.report import Mode

OTHER: Final = "other"
WHOLE_SESSION: Final = "session"  # how the filter key of a whole session is shown
_UUID_TAIL = re.compile(r"-[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$", re.IGNORECASE)


class Kind(StrEnum):
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure. A counter's name ends in _total. buckets: upper bounds of a histogram, ascending."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The names that an installation's labels may show. agents: those that may stand first in a filter key."""

    models: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    summarizers: frozenset[str] = frozenset()


def error_codes() -> frozenset[str]:
    """Return the code of every way a run can fail, "internal" included."""
    found, waiting = {"internal", "timeout", "lost"}, [errors.RunError]
    while waiting:
        error = waiting.pop()
        found.add(error.code)
        waiting += error.__subclasses__()
    return frozenset(found)


FIXED: Final[Mapping[str, frozenset[str]]] = {
    "purpose": frozenset({"chat", "summary", "memory", "review", "title"}),
    "kind": frozenset({"prompt", "cached", "completion", "reasoning"}),
    "outcome": frozenset(status.value for status in RunStatus) | {"ok", "error", "cancelled"},
    "code": error_codes(),
    "status": frozenset(status.value for status in ToolStatus),
    "force": frozenset({"true", "false"}),
    "updated": frozenset({"true", "false"}),
    "fired": frozenset({"true", "false"}),
    "source": frozenset(source.value for source in Source),
    "reason": frozenset({"model", "empty", "no_summarizer", "budget", "storage", "cancelled", "hook"}),
    "mode": frozenset(mode.value for mode in Mode),
    "trigger": frozenset(
        {
            *("always", "custom", "event_threshold", "time_threshold", "token_threshold", "context_threshold"),
            *("force", "manual"),
        }
    ),
    "state": frozenset({"start", "done", "skip", "error"}),
}


@dataclass(frozen=True, slots=True)
class Labels:
    """Gives the value under which something is counted."""

    known: Known = field(default_factory=Known)

    def value(self, label: str, value: str) -> str:
        """Return the value if the label may take it, else "other"."""
        if label == "filter_key":
            return self._root(value)
        allowed = FIXED.get(label)
        if allowed is None:
            allowed = {
                "model": self.known.models,
                "tool": self.known.tools,
                "summarizer": self.known.summarizers,
            }.get(label, frozenset())
        return value if value in allowed else OTHER

    def _root(self, filter_key: str) -> str:
        """Return the root segment, without the number that an isolated agent's scope ends in."""
        if not filter_key:
            return WHOLE_SESSION
        root = _UUID_TAIL.sub("", filter_key.partition(SEPARATOR)[0])
        return root if root in self.known.agents else OTHER


_MS = (5, 25, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 1_200_000)
_TOKENS = (64, 256, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144, 1_048_576)
_EVENTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000)
_SHARE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


def _count(name: str, help: str, *labels: str) -> Measure:
    return Measure(name=name, kind=Kind.COUNTER, help=help, labels=labels)


def _spread(name: str, help: str, *labels: str, buckets: tuple[float, ...]) -> Measure:
    return Measure(name=name, kind=Kind.HISTOGRAM, help=help, labels=labels, buckets=buckets)


_SUMMARY = ("filter_key", "force")

MEASURES: Final[Mapping[str, Measure]] = {
    measure.name: measure
    for measure in (
        _count("run_total", "Runs that ended.", "outcome"),
        _count("run_error_total", "Runs that failed, by the code a person sees.", "code"),
        _spread("run_duration_ms", "From a run's beginning to its end.", "outcome", buckets=_MS),
        _count("model_call_total", "Calls to models.", "model", "purpose", "outcome"),
        _count("model_call_error_total", "Calls that failed, by code.", "model", "purpose", "code"),
        _count("model_call_tokens_total", "Tokens the provider reported.", "model", "purpose", "kind"),
        _spread("model_call_ttft_ms", "Until the first token.", "model", "purpose", buckets=_MS),
        _spread("model_call_latency_ms", "Whole answers.", "model", "purpose", buckets=_MS),
        _count("tool_call_total", "Tool calls that were run.", "tool", "status"),
        _spread("tool_call_latency_ms", "Tool calls that were run.", "tool", buckets=_MS),
        _count("session_search_total", "Searches in a conversation's own past by its agent."),
        _count("session_load_total", "Events of the past loaded again by an agent."),
        _count("summary_enqueue_total", "Times a summary was asked for in the background.", *_SUMMARY),
        _count("summary_create_total", "Makings that ended without an error.", *_SUMMARY, "summarizer", "updated"),
        _spread("summary_create_latency_ms", "The same, locks and storage included.", *_SUMMARY, buckets=_MS),
        _count("summary_error_total", "Makings that failed.", *_SUMMARY, "reason"),
        _count("summary_trigger_total", "Checks whether to summarise.", "trigger", "fired"),
        _count("summary_call_total", "How summaries were asked for.", "mode", "summarizer"),
        _spread("summary_estimated_prompt_tokens", "Estimate before the call.", "mode", buckets=_TOKENS),
        _spread("summary_llm_latency_ms", "The model's part of a making.", "model", buckets=_MS),
        _spread("summary_prompt_tokens", "As reported.", "model", buckets=_TOKENS),
        _spread("summary_completion_tokens", "As reported.", "model", buckets=_TOKENS),
        _spread("summary_cache_read_tokens", "Prompt tokens from the provider's cache.", "model", buckets=_TOKENS),
        _spread("summary_cache_hit_rate", "Cached by prompt tokens, from 0 to 1.", "model", buckets=_SHARE),
        _spread("summary_input_tokens", "Estimate of what was summarised.", "filter_key", buckets=_TOKENS),
        _spread("summary_input_events", "Events that were summarised.", "filter_key", buckets=_EVENTS),
        _spread("summary_output_tokens", "Estimate of the summary.", "filter_key", buckets=_TOKENS),
        _spread("summary_compression_ratio", "Output by input tokens.", "filter_key", buckets=_SHARE),
        _count("summary_format_invalid_total", "Summaries without a heading they were asked for.", "filter_key"),
        _spread("summary_fork_prompt_tokens", "Prompt of cache-safe forks.", "model", buckets=_TOKENS),
        _spread("summary_fork_cached_tokens", "Of these, cached.", "model", buckets=_TOKENS),
        _spread("summary_fork_parent_prompt_tokens", "Prompt of the forked calls.", "model", buckets=_TOKENS),
        _spread("summary_fork_parent_cached_tokens", "Of these, cached.", "model", buckets=_TOKENS),
        _count("sync_intra_run_total", "Summaries tried between the steps of a run."),
        _count("compaction_sync_summary_total", "Summaries tried before a call that had grown too large.", "state"),
        _count("compaction_results_total", "Tool results shown to a model in short form."),
        _count("compaction_tokens_saved_total", "Estimate of what that saved."),
        _spread("tailoring_before_tokens", "Requests before rounds were left out.", buckets=_TOKENS),
        _spread("tailoring_after_tokens", "The same, after.", buckets=_TOKENS),
        _count("tailoring_dropped_rounds_total", "Rounds left out."),
        _count("tailoring_overflow_total", "Requests that did not fit all the same."),
    )
}
