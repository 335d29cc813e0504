"""When a summary is due. Every comparison is strict; a check sees the request and never the system's clock.

Their names are those of tRPC-Agent-Go: event_threshold, token_threshold, time_threshold, context_threshold; all and any
join them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from agents.runtime.context.window import Window
from agents.runtime.events import AssistantMessage, Stored, ToolReturned, UserMessage
from agents.runtime.policy import ContextPolicy
from agents.runtime.summaries import Source, Summary
from agents.runtime.summary.report import Trigger

_PREFERRED: Final = ("context_threshold", "token_threshold", "event_threshold", "time_threshold")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a check may depend on.

    events: those behind the boundary in the scope, oldest first. base: the summary before, None = the first.
    request_tokens: of the whole request about to be sent or last sent, base text included, 0 = not known.
    new_tokens: of `events` as they would be sent. run_id, request_started_at: of the run that asks, "" and None outside
    a run. attributes: whatever the caller wants its own checks to know.
    """

    events: Sequence[Stored]
    filter_key: str
    source: Source
    window: Window
    now: datetime
    base: Summary | None = None
    forced: bool = False
    request_tokens: int = 0
    new_tokens: int = 0
    model: str = ""
    run_id: str = ""
    request_started_at: datetime | None = None
    previous_at: tuple[datetime, str] | None = None  # time and run of the newest event before `events`
    attributes: Mapping[str, Any] = field(default_factory=dict)


Check = Callable[[Facts], Trigger]


def evaluate(check: Check | None, facts: Facts) -> Trigger:
    """Return what the check found; without one every new event is enough. Forced ones are not checked."""
    if facts.forced:
        name = "manual" if facts.source is Source.MANUAL else "force"
        return Trigger(fired=True, name=name, filter_key=facts.filter_key)
    if not facts.events:
        return Trigger(fired=False, name="always", metric="events", unit="events", filter_key=facts.filter_key)
    if check is None:
        return Trigger(fired=True, name="always", filter_key=facts.filter_key)
    return replace(check(facts), filter_key=facts.filter_key)


def of_policy(policy: ContextPolicy) -> Check | None:
    """Return the check that the policy's values make, None if it sets none."""
    checks: list[Check] = []
    if policy.summary_ratio is not None:
        checks.append(context_threshold(policy.summary_ratio, policy.summary_floor))
    if policy.summary_tokens is not None:
        checks.append(token_threshold(policy.summary_tokens))
    if policy.summary_events is not None:
        checks.append(event_threshold(policy.summary_events))
    if policy.summary_idle_s is not None:
        checks.append(time_threshold(policy.summary_idle_s))
    if not checks:
        return None
    return all_of(*checks) if policy.summary_join == "all" else any_of(*checks)


def event_threshold(most: int) -> Check:
    """Fire for more than `most` events; the summary before counts as one."""

    def check(facts: Facts) -> Trigger:
        said = sum(isinstance(s.record, UserMessage | AssistantMessage | ToolReturned) for s in facts.events)
        count = said + (facts.base is not None)
        return Trigger(
            fired=count > most, name="event_threshold", metric="events", value=count, threshold=most, unit="events"
        )

    return check


def token_threshold(most: int) -> Check:
    """Fire for a request of more than `most` tokens, the summary before not counted; without one, of new events."""

    def check(facts: Facts) -> Trigger:
        base = facts.base.tokens if facts.base else 0
        tokens = max(0, facts.request_tokens - base) if facts.request_tokens else facts.new_tokens
        return Trigger(
            fired=tokens > most, name="token_threshold", metric="tokens", value=tokens, threshold=most, unit="tokens"
        )

    return check


def context_threshold(ratio: float, floor: int = 2_000) -> Check:
    """Fire for a request of more than this share of the window, and of more than `floor` tokens.

    ratio: over 0, up to 1, else .5; floor below 0 is 2,000, 0 = none.
    """
    share = ratio if 0 < ratio <= 1 else 0.5
    least = floor if floor >= 0 else 2_000

    def check(facts: Facts) -> Trigger:
        threshold = max(int(facts.window.tokens * share), least)
        base = facts.base.tokens if facts.base else 0
        tokens = facts.request_tokens or facts.new_tokens + base
        return Trigger(
            fired=tokens > threshold,
            name="context_threshold",
            metric="tokens",
            value=tokens,
            threshold=threshold,
            unit="tokens",
            context_window=facts.window.tokens,
            threshold_ratio=share,
        )

    return check


def time_threshold(idle_s: float) -> Check:
    """Fire if nothing happened in the scope for longer than this before the request came in.

    What the model takes, and waiting for a worker, never count. A pause is used up by the summary made after it,
    also if the boundary lies before the pause because recent rounds stay.
    """

    def check(facts: Facts) -> Trigger:
        gap = _gap_s(facts)
        return Trigger(
            fired=gap is not None and gap > idle_s,
            name="time_threshold",
            metric="idle",
            value=round((gap or 0.0) * 1000),
            threshold=round(idle_s * 1000),
            unit="milliseconds",
        )

    return check


def custom(fires: Callable[[Facts], bool]) -> Check:
    """Fire when the function says so."""
    return lambda facts: Trigger(fired=fires(facts), name="custom")


def any_of(*checks: Check) -> Check:
    """Fire if one of them does; all are looked at."""

    def check(facts: Facts) -> Trigger:
        found = tuple(one(facts) for one in checks)
        passed = [trigger for trigger in found if trigger.fired]
        return replace(_told(passed or list(found)), fired=bool(passed), checks=found)

    return check


def all_of(*checks: Check) -> Check:
    """Fire if all of them do."""

    def check(facts: Facts) -> Trigger:
        found = tuple(one(facts) for one in checks)
        failed = [trigger for trigger in found if not trigger.fired]
        return replace(_told(failed or list(found)), fired=bool(found) and not failed, checks=found)

    return check


def _told(triggers: list[Trigger]) -> Trigger:
    """Return the one that is named when several hold."""
    if not triggers:
        return Trigger(fired=False, name="custom")
    return min(triggers, key=lambda t: _PREFERRED.index(t.name) if t.name in _PREFERRED else len(_PREFERRED))


def _gap_s(facts: Facts) -> float | None:
    if not facts.run_id and facts.request_started_at is None:
        newest = facts.events[-1].at if facts.events else None
        return (facts.now - newest).total_seconds() if newest else None
    start = facts.request_started_at
    if start is None or not facts.run_id:
        return None
    if facts.base is not None and max(facts.base.boundary.at, facts.base.made_at) >= start:
        return None
    earlier = [(s.at, s.origin.run_id) for s in facts.events if s.at < start]
    at, run_id = max(earlier, key=lambda e: e[0], default=facts.previous_at or (None, ""))
    if at is None or at >= start or run_id == facts.run_id:
        return None
    return (start - at).total_seconds()
