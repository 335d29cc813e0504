"""The work order of one making of a summary, and what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.runtime.context.assemble import Assembled, View
from agents.runtime.events import Stored
from agents.runtime.model import ModelRequest
from agents.runtime.session import PartRef
from agents.runtime.summaries import Source, Summary, SummaryStore
from agents.runtime.summary import triggers
from agents.runtime.summary.asking import DynamicSummarizer, Summarizer, Terms
from agents.runtime.summary.recent import SkipRecent
from agents.runtime.summary.report import Reason, Report
from agents.runtime.tokens import Mix


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The request about to be sent or last sent, whose view is the scope of a summary: for triggers and forks.

    request: None = there is none to put a fork behind. parts: where it came from, as in Assembled. tokens: what it
    would cost if nothing had been left out of it, 0 = not counted, and what is new is measured. cached: tokens of it
    that the provider had cached, None = it did not say.
    """

    request: ModelRequest | None = None
    parts: tuple[PartRef, ...] = ()
    tokens: int = 0
    cached: int | None = None

    @classmethod
    def of(cls, assembled: Assembled | None, *, cached: int | None = None, more: int = 0) -> "Sent":
        """Return it as it was assembled. more: tokens of what has come since."""
        if assembled is None:
            return cls(cached=cached)
        # what tailoring cut is no prefix of anything that the provider has cached
        request = None if assembled.dropped_rounds else assembled.request
        return cls(request=request, parts=assembled.parts, tokens=assembled.untailored_tokens + more, cached=cached)

    def without_fork(self) -> "Sent":
        """Return what counts for the triggers alone."""
        return Sent(tokens=self.tokens, cached=self.cached)


NOT_SENT = Sent()


@dataclass(frozen=True, slots=True, kw_only=True)
class Making(Terms):
    """Everything one making needs, beside its terms.

    history: the visible chain, oldest first, from complete_from on (0 = all of it); it must reach back to the boundary
    of the summary before. agent: whose context it is. source: who asks. forced: no trigger needs to fire; kept rounds
    give way if nothing else could be covered and nothing was before, or the conversation is archived. base: the newest
    summary as the caller knows it, for `due`.
    model: name of the one that answers. request_started_at: of the run that asks or that planted the job, None outside
    one. sizes: mixes by event id, owned by the caller. check: None = the policy's triggers. skip_recent: None = the
    policy's rounds. report: hears of every making; what it raises is logged. cancelled: looked at before and after the
    model's call.
    """

    history: Sequence[Stored]
    agent: str
    store: SummaryStore
    summarizer: Summarizer | DynamicSummarizer | None
    source: Source
    forced: bool = False
    complete_from: int = 0
    base: Summary | None = None
    sent: Sent = NOT_SENT
    model: str = ""
    request_started_at: datetime | None = None
    sizes: dict[str, Mix] | None = None
    check: triggers.Check | None = None
    skip_recent: SkipRecent | None = None
    report: Callable[[Report], None] | None = None
    cancelled: Callable[[], bool] = lambda: False

    @classmethod
    def of(cls, view: View, **more: Any) -> "Making":
        """Return the order for the scope of a view, in which the conversation is shown now. more: the other fields."""
        given: dict[str, Any] = {
            "filter_key": view.filter_key,
            "agent": view.agent,
            "policy": view.policy,
            "base": view.summaries.get(view.filter_key),
            "window": view.window,
            "rates": view.rates,
            "sizes": view.sizes,
            "run_id": view.run_id,
        }
        return cls(**{**given, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What came of it. advanced: the summary that was stored, None = nothing changed. copies: what was made of the
    whole session's scope by cascade, () without one."""

    reason: Reason
    report: Report
    advanced: Summary | None = None
    copies: tuple["Made", ...] = ()
