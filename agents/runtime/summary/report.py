"""What is told about one making of a summary: why it began, how the model was asked, how it ended. Never any text."""

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Reason(StrEnum):
    """How a making ended."""

    ADVANCED = "advanced"  # a new summary is stored
    NOTHING_NEW = "nothing_new"  # no event behind the boundary that is not to stay raw
    NOT_DUE = "not_due"  # no trigger fired
    WOULD_NOT_PAY = "would_not_pay"  # the text would cost as much as what it hides (admission.py)
    NOTHING_TO_SAY = "nothing_to_say"  # what is new has no text, or nobody said anything
    NOT_ALLOWED = "not_allowed"  # the policy's list leaves this scope out
    EMPTY = "empty"  # the model answered nothing
    MODEL_ERROR = "model_error"
    BUDGET = "budget"  # not even a small part fits the model that summarises
    HOOK_ERROR = "hook_error"  # a hook failed and was to abort
    NO_SUMMARIZER = "no_summarizer"
    INCOMPLETE = "incomplete"  # the history does not reach back to the boundary
    HELD = "held"  # somebody else makes this summary
    LOST_RACE = "lost_race"  # another summary came first
    STORAGE = "storage"  # the database stayed away
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class Mode(StrEnum):
    """How the model was asked."""

    STANDALONE = "standalone"
    FORK = "cache_safe_fork"
    CUSTOM = "custom_response"  # a hook answered
    EXTRACTIVE = "extractive"  # no model


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One check and what it found, or what several found together.

    name: always, custom, event_threshold, time_threshold, token_threshold, context_threshold, force or manual. unit:
    events, milliseconds or tokens. context_window, threshold_ratio: of context_threshold, else 0. checks: the single
    ones of which this is made.
    """

    fired: bool
    name: str
    metric: str = ""
    value: float = 0
    threshold: float = 0
    unit: str = ""
    context_window: int = 0
    threshold_ratio: float = 0.0
    filter_key: str = ""
    checks: tuple["Trigger", ...] = ()


NOT_CHECKED = Trigger(fired=False, name="")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReport:
    """How the model was asked. Tokens: estimated_prompt before the call (0 for a custom response), the others as the
    provider reported them. calls: how many were made. shrunk: what was taken out to make it fit; pieces = read in
    several calls."""

    mode: Mode = Mode.STANDALONE
    model: str = ""
    estimated_prompt_tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    latency_ms: float = 0.0
    calls: int = 0
    shrunk: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One making of one scope's summary. input_*: what was new and given to the summarizer. hidden_tokens: what the
    boundary takes out of the next request, output_tokens: what the text puts in. format_invalid: headings that the
    template asks for are missing. error: code and short message, never text of the conversation."""

    reason: Reason
    filter_key: str
    source: str
    summarizer: str = ""
    trigger: Trigger = NOT_CHECKED
    call: CallReport = field(default_factory=CallReport)
    input_events: int = 0
    input_tokens: int = 0
    hidden_tokens: int = 0
    output_tokens: int = 0
    format_invalid: bool = False
    latency_ms: float = 0.0
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the report as it is kept with the summary."""
        return asdict(self)
