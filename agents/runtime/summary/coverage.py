"""What a making is to cover: what is new, whether that is due and pays, and where the boundary may go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from agents.runtime.context.sizes import Sizes
from agents.runtime.events import AssistantMessage, ContextCompacted, Stored, ToolReturned, UserMessage
from agents.runtime.scopes import sees
from agents.runtime.summaries import Source, Summary, covers
from agents.runtime.summary import triggers
from agents.runtime.summary.admission import Shown, Worth, weigh
from agents.runtime.summary.making import Making
from agents.runtime.summary.recent import Keep, cut, open_runs, snapped
from agents.runtime.summary.report import Reason, Trigger
from agents.runtime.summary.text import Line, lines

IN_RUN: Final = (Source.RUN, Source.CALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is to be covered, and why."""

    base: Summary | None
    trigger: Trigger
    covered: tuple[Stored, ...] = ()
    lines: tuple[Line, ...] = ()
    worth: Worth | None = None
    reason: Reason | None = None  # why there is nothing to do


def plan(making: Making, base: Summary | None, trigger: Trigger | None = None) -> Work:
    """Return what is to be covered, or why nothing is. base: the newest summary. trigger: what fired elsewhere."""
    boundary = base.boundary if base else None
    scoped = [s for s in making.history if sees(making.filter_key, s.origin.filter_key)]
    fresh = [s for s in scoped if not covers(making.filter_key, boundary, s)]
    sizes = Sizes(making.rates, making.sizes)
    found = trigger or triggers.evaluate(
        making.check or triggers.of_policy(making.policy), _facts(making, base, scoped, fresh, sizes)
    )
    work = Work(base=base, trigger=found)
    if not _reaches_back(making, base):
        return replace(work, reason=Reason.INCOMPLETE)
    if not fresh:
        empty = making.forced and base is None
        return replace(work, reason=Reason.NOTHING_TO_SAY if empty else Reason.NOTHING_NEW)
    if not found.fired:
        return replace(work, reason=Reason.NOT_DUE)
    covered = fresh[: _until(making, base, fresh, sizes)]
    if not covered:
        return replace(work, reason=Reason.NOTHING_NEW)
    said = lines(covered, making.formatters)
    work = replace(work, covered=tuple(covered), lines=tuple(said))
    if not said or (base is None and not any(line.person for line in said)):
        return replace(work, reason=Reason.NOTHING_TO_SAY)
    worth = weigh(covered, base, shown(making, covered), sizes)
    pays = worth.pays(making.policy, base, _calls(base, fresh), forced=making.forced)
    return replace(work, worth=worth, reason=None if pays else Reason.WOULD_NOT_PAY)


def _facts(
    making: Making, base: Summary | None, scoped: Sequence[Stored], fresh: Sequence[Stored], sizes: Sizes
) -> triggers.Facts:
    before = next((s for s in reversed(scoped) if base and s.position <= base.boundary.position), None)
    previous = (before.at, before.origin.run_id) if before else (base.boundary.at, "") if base else None
    return triggers.Facts(
        events=fresh,
        filter_key=making.filter_key,
        source=making.source,
        window=making.window,
        now=making.now(),
        base=base,
        forced=making.forced,
        request_tokens=making.sent.tokens,
        new_tokens=0 if making.sent.tokens else sum(sizes.event(stored) for stored in fresh),
        model=making.model,
        run_id=making.run_id,
        request_started_at=making.request_started_at,
        previous_at=previous,
        attributes=making.attributes,
    )


def _reaches_back(making: Making, base: Summary | None) -> bool:
    """Return whether every event behind the boundary is in the history."""
    if base is None:
        return making.complete_from <= 1
    return not making.history or making.history[0].position <= base.boundary.position + 1


def _until(making: Making, base: Summary | None, fresh: Sequence[Stored], sizes: Sizes) -> int:
    """Return how many of the new events may be covered."""
    if making.skip_recent is not None:
        skipped = max(0, making.skip_recent(fresh))
        return snapped(fresh, len(fresh) - skipped)
    policy, still_open = making.policy, open_runs(making.history)
    # A person who asks again is not to lose one recent round after the other; an archived conversation is over.
    give_way = making.forced and (base is None or making.source is Source.ARCHIVE)
    for rounds in range(policy.keep_rounds, -1, -1):
        keep = Keep(rounds=rounds, tokens=policy.keep_tokens, open_runs=still_open, running_run=_running(making))
        until = cut(fresh, keep, sizes.event)
        if not give_way or any(line.text for line in lines(fresh[:until], making.formatters)):
            break
    return until


def _calls(base: Summary | None, fresh: Sequence[Stored]) -> int:
    """Return about how many calls to the model there were: half of the covered events are taken for answers."""
    answers = {s.record.response_id for s in fresh if isinstance(s.record, AssistantMessage)}
    return len(answers) + (base.covered_events // 2 if base else 0)


def shown(making: Making, covered: Sequence[Stored]) -> Shown:
    """Return how the events are shown now. A person's message stays though it is covered if its turn goes on behind."""
    last = covered[-1]
    goes_on = {
        s.origin.run_id
        for s in making.history
        if s.position > last.position and isinstance(s.record, UserMessage | AssistantMessage | ToolReturned)
    } | {_running(making)}
    steps = [s.record.up_to for s in making.history if isinstance(s.record, ContextCompacted)]
    stays = {s.id for s in covered if isinstance(s.record, UserMessage) and s.origin.run_id in goes_on}
    return Shown(policy=making.policy, up_to=max(steps, default=0), stays=stays)


def _running(making: Making) -> str:
    return making.run_id if making.source in IN_RUN else ""
