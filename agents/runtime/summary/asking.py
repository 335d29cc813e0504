"""What a summarizer is given and gives back, and where others may look and change."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from agents.runtime.context.window import GUESS, Window
from agents.runtime.events import Stored
from agents.runtime.model import ModelRequest
from agents.runtime.policy import ContextPolicy
from agents.runtime.session import ModelCall, PartRef
from agents.runtime.summaries import Summary
from agents.runtime.summary.pieces import Reading
from agents.runtime.summary.report import CallReport, Reason
from agents.runtime.summary.text import Formatters, Line
from agents.runtime.tokens import DEFAULT_RATES, Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What the pre hook sees and may replace: a text wins over events, which are told anew."""

    filter_key: str
    events: tuple[Stored, ...]
    source_events: tuple[Stored, ...]
    text: str
    previous: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryHooks:
    """Places where others may look and change. An exception leaves things as they were, unless abort_on_error.

    pre: before the text is summarised; never sees a fork. post: the new summary with a provisional boundary; only the
    text of what it returns is used, and an empty one is not. before_model: another request (counted again), or a text
    that answers instead. after_model: another text for the model's.
    """

    pre: Callable[[Edited], Awaitable[Edited | None]] | None = None
    post: Callable[[Summary], Awaitable[Summary | None]] | None = None
    before_model: Callable[[ModelRequest], Awaitable[ModelRequest | str | None]] | None = None
    after_model: Callable[[str], Awaitable[str | None]] | None = None
    abort_on_error: bool = False


NO_HOOKS = SummaryHooks()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """The request that a fork is put behind. parts: where it came from. cached: how many of its tokens the provider
    said it had cached, None = it said nothing."""

    request: ModelRequest
    parts: tuple[PartRef, ...] = ()
    cached: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for a summary from its order to its text, the same for who asks and who writes.

    filter_key: the scope. window, rates: of the model that answers. run_id: of the run that asks or that planted the
    job, "" outside one. book: stores a model call.
    """

    filter_key: str
    policy: ContextPolicy
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    monotonic: Callable[[], float]
    book: Callable[[ModelCall], Awaitable[None]]
    window: Window = GUESS
    rates: Rates = DEFAULT_RATES
    run_id: str = ""
    hooks: SummaryHooks = NO_HOOKS
    formatters: Formatters = field(default_factory=Formatters)
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def terms(self) -> dict[str, Any]:
        """Return these values by name, for whoever takes them over."""
        return {one.name: getattr(self, one.name) for one in fields(Terms)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Terms):
    """One text that is wanted, on these terms.

    events: to be covered, in order, all kinds of records. lines: what they say. base: the summary before. text: what
    the pre hook made of the lines, None = the lines; then it is all or nothing. language: "en" or "zh". parent: None =
    no fork. reading: of a text that takes many requests.
    """

    events: tuple[Stored, ...]
    lines: tuple[Line, ...]
    base: Summary | None
    language: str
    reading: Reading
    text: str | None = None
    parent: Parent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A text. covered: how many of Ask.events the writer was given. headings: those that it was asked for."""

    text: str
    covered: int
    call: CallReport
    model: str = ""
    headings: tuple[str, ...] = ()


class SummaryFailed(Exception):
    """No text came. reason and message are safe to show and to log. call: what was asked, as far as it came."""

    def __init__(self, reason: Reason, message: str = "", call: CallReport | None = None) -> None:
        super().__init__(message or reason.value)
        self.reason = reason
        self.message = message or reason.value
        self.call = call or CallReport()


class NoSummarizer(LookupError):
    """There is no summarizer for this agent or run."""


@runtime_checkable
class Summarizer(Protocol):
    """Somebody who writes summaries. Serves many at once."""

    @property
    def name(self) -> str:
        """The name in reports, figures and the books."""
        ...

    async def write(self, ask: Ask) -> Written:
        """Return a text that stands for ask.base and the first events of ask.events. Raises SummaryFailed."""
        ...


Resolver = Callable[[str, str], Summarizer | None]
"""Which summarizer to use, given the agent's name and the run's id; None or NoSummarizer = none."""


@dataclass(frozen=True, slots=True)
class DynamicSummarizer:
    """A summarizer chosen anew for every making, by agent and run. resolve: None = there is no summarizer at all."""

    resolve: Resolver | None

    def of(self, agent: str, run_id: str) -> Summarizer:
        """Return the one to use now. Raises NoSummarizer."""
        found = self.resolve(agent, run_id) if self.resolve else None
        if found is None:
            raise NoSummarizer(f"There is no summarizer for {agent}.")
        return found


def chosen(summarizer: Summarizer | DynamicSummarizer | None, agent: str, run_id: str) -> Summarizer:
    """Return the summarizer that writes. Raises NoSummarizer."""
    if summarizer is None:
        raise NoSummarizer("No summarizer is configured.")
    return summarizer.of(agent, run_id) if isinstance(summarizer, DynamicSummarizer) else summarizer
