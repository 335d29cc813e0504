"""What is told about one making of a summary: why it began, how the model was asked, how it ended. Never any text."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final


class Told(StrEnum):
    """What a person hears who asked for a summary."""

    DONE = "done"
    NOTHING = "nothing"  # nothing new
    NO_GAIN = "no_gain"  # it would not be shorter
    NO_TEXT = "no_text"
    OFF = "off"  # there are none for this agent
    BUSY = "busy"  # one is being made
    FAILED = "failed"


class Reason(StrEnum):
    """How a making ended. What that means to others stands in MEANINGS."""

    ADVANCED = "advanced"  # a new summary is stored
    NOTHING_NEW = "nothing_new"  # no event behind the boundary that is not to stay raw
    NOT_DUE = "not_due"  # no trigger fired
    WOULD_NOT_PAY = "would_not_pay"  # the text would cost as much as what it hides (admission.py)
    NOTHING_TO_SAY = "nothing_to_say"  # what is new has no text, or nobody said anything
    NOT_ALLOWED = "not_allowed"  # the policy's list leaves this scope out
    EMPTY = "empty"  # the model answered nothing
    MODEL_ERROR = "model_error"
    BUDGET = "budget"  # not even a small part fits the model that summarises
    UNFINISHED = "unfinished"  # a text that takes many requests was read in part; the next making goes on from there
    HOOK_ERROR = "hook_error"  # a hook failed and was to abort
    NO_SUMMARIZER = "no_summarizer"
    INCOMPLETE = "incomplete"  # the history does not reach back to the boundary
    HELD = "held"  # somebody else makes this summary
    LOST_RACE = "lost_race"  # another summary came first
    STORAGE = "storage"  # the database stayed away
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"

    @property
    def told(self) -> Told:
        """Return what a person hears."""
        return MEANINGS[self].told

    @property
    def error(self) -> str:
        """Return the label of summary_error_total, "" if it is no error."""
        return MEANINGS[self].error

    @property
    def failed(self) -> bool:
        """Return whether a summary was wanted, and could not be made."""
        return MEANINGS[self].told is Told.FAILED and bool(MEANINGS[self].error)

    @property
    def again(self) -> bool:
        """Return whether the same, tried again later, may go well."""
        return MEANINGS[self].again

    @property
    def waits(self) -> bool:
        """Return whether the rest is to be done as soon as it can be: that is no failure."""
        return MEANINGS[self].waits


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an end means to a person, to the figures, and to a job."""

    told: Told
    error: str = ""
    again: bool = False
    waits: bool = False


MEANINGS: Final[Mapping[Reason, Meaning]] = {
    Reason.ADVANCED: Meaning(Told.DONE),
    Reason.NOTHING_NEW: Meaning(Told.NOTHING),
    Reason.NOT_DUE: Meaning(Told.NOTHING),
    Reason.WOULD_NOT_PAY: Meaning(Told.NO_GAIN),
    Reason.NOTHING_TO_SAY: Meaning(Told.NO_TEXT),
    Reason.NOT_ALLOWED: Meaning(Told.OFF),
    Reason.EMPTY: Meaning(Told.FAILED, "empty", again=True),
    Reason.MODEL_ERROR: Meaning(Told.FAILED, "model", again=True),
    Reason.BUDGET: Meaning(Told.FAILED, "budget"),
    Reason.UNFINISHED: Meaning(Told.BUSY, waits=True),
    Reason.HOOK_ERROR: Meaning(Told.FAILED, "hook"),
    Reason.NO_SUMMARIZER: Meaning(Told.OFF, "no_summarizer"),
    Reason.INCOMPLETE: Meaning(Told.FAILED),
    Reason.HELD: Meaning(Told.BUSY, waits=True),
    Reason.LOST_RACE: Meaning(Told.BUSY),
    Reason.STORAGE: Meaning(Told.FAILED, "storage"),
    Reason.TIMEOUT: Meaning(Told.FAILED, "model", again=True),
    Reason.CANCELLED: Meaning(Told.FAILED, "cancelled"),
}


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
        """Return the report as it is kept with the summary; how long the making took is not known by then."""
        return {name: value for name, value in asdict(self).items() if name != "latency_ms"}
