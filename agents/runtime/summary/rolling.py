"""Making a summary: what is new, whether it is due and pays, who writes it, where the boundary goes.

    due    a trigger has fired and it would pay: no lock, no model, nothing read
    update the whole of it: under the scope's lock the summary before is read again, the text is written, and text and
           boundary are stored by one compare-and-set

The boundary is the last event whose text the writer was given. It never moves back, never past that, and never without
new events; whatever fails, nothing changes. What a summary covers is summaries.covers, which is also what it hides.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from agents.runtime.context.sizes import Sizes
from agents.runtime.context.window import GUESS, Window
from agents.runtime.errors import StorageUnavailable
from agents.runtime.events import AssistantMessage, ContextCompacted, RunStarted, Stored, ToolReturned, UserMessage
from agents.runtime.model import ModelRequest
from agents.runtime.policy import ContextPolicy
from agents.runtime.scopes import sees
from agents.runtime.session import ModelCall, PartRef
from agents.runtime.summaries import Boundary, Source, Summary, SummaryStore, covers
from agents.runtime.summary import triggers
from agents.runtime.summary.admission import Shown, Worth, weigh
from agents.runtime.summary.asking import (
    NO_HOOKS,
    Ask,
    DynamicSummarizer,
    Edited,
    NoSummarizer,
    Parent,
    Summarizer,
    SummaryFailed,
    SummaryHooks,
    Written,
    chosen,
)
from agents.runtime.summary.citations import kept
from agents.runtime.summary.guarding import guarded, told
from agents.runtime.summary.prompts import missing_headings
from agents.runtime.summary.recent import Keep, SkipRecent, cut, open_runs, snapped
from agents.runtime.summary.report import Reason, Report, Trigger
from agents.runtime.summary.text import Formatters, Line, language, lines
from agents.runtime.tokens import DEFAULT_RATES, Mix, Rates

WAIT_SHARE: Final = 0.5  # of the time for a making, for whoever makes this summary already
IN_RUN: Final = (Source.RUN, Source.CALL)
CASCADING: Final = (Source.BACKGROUND, Source.ARCHIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """Everything one making needs.

    history: the visible chain, oldest first, from complete_from on (0 = all of it); it must reach back to the boundary
    of the summary before. filter_key: the scope. source: who asks. forced: no trigger needs to fire; kept rounds give
    way if nothing else could be covered and nothing was before, or the conversation is archived. base: the newest
    summary as the caller knows it, for `due`.
    request: about to be sent or last sent, whose view is this scope: for the triggers, and what a fork is put behind;
    None = what is new is measured, and there is no fork. request_tokens: 0 = not counted. request_parts: as in
    Assembled. request_cached: tokens of it that the provider had cached, None = it did not say.
    window, rates: of the model that answers. model: its name. run_id, request_started_at: of the run that asks or
    that planted the job, "" and None outside one. sizes: mixes by event id, owned by the caller.
    check: None = the policy's triggers. skip_recent: None = the policy's rounds. book: stores a model call.
    report: hears of every making; what it raises is logged. cancelled: looked at before and after the model's call.
    """

    history: Sequence[Stored]
    filter_key: str
    agent: str
    policy: ContextPolicy
    store: SummaryStore
    summarizer: Summarizer | DynamicSummarizer | None
    source: Source
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    monotonic: Callable[[], float]
    book: Callable[[ModelCall], Awaitable[None]]
    forced: bool = False
    complete_from: int = 0
    base: Summary | None = None
    request: ModelRequest | None = None
    request_tokens: int = 0
    request_parts: tuple[PartRef, ...] = ()
    request_cached: int | None = None
    window: Window = GUESS
    rates: Rates = DEFAULT_RATES
    model: str = ""
    run_id: str = ""
    request_started_at: datetime | None = None
    sizes: dict[str, Mix] | None = None
    check: triggers.Check | None = None
    skip_recent: SkipRecent | None = None
    formatters: Formatters = field(default_factory=Formatters)
    report: Callable[[Report], None] | None = None
    hooks: SummaryHooks = NO_HOOKS
    cancelled: Callable[[], bool] = lambda: False
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What came of it. advanced: the summary that was stored, None = nothing changed. copies: what was made of the
    whole session's scope by cascade, () without one."""

    reason: Reason
    report: Report
    advanced: Summary | None = None
    copies: tuple["Made", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What is to be covered, and why."""

    base: Summary | None
    trigger: Trigger
    covered: tuple[Stored, ...] = ()
    lines: tuple[Line, ...] = ()
    worth: Worth | None = None
    reason: Reason | None = None  # why there is nothing to do


def due(making: Making) -> Trigger | None:
    """Return the trigger that fired if a summary would be made now, else None. Reads nothing, waits for nothing.

    Goes by making.base. No summarizer, or a scope that may have none: None.
    """
    try:
        chosen(making.summarizer, making.agent, making.run_id)
    except NoSummarizer:
        return None
    if not allowed(making.policy, making.filter_key):
        return None
    work = _plan(making, making.base)
    return work.trigger if work.reason is None else None


def allowed(policy: ContextPolicy, filter_key: str) -> bool:
    """Return whether the scope may have a summary: the whole session's always, a branch by the policy's list."""
    if not policy.summarise:
        return False
    return not filter_key or policy.allow is None or any(sees(filter_key, scope) for scope in policy.allow)


async def update(making: Making) -> Made:
    """Make the summary of the scope if it is due and pays, and store it. Cascades for background and archive.

    Takes at most policy.summary_timeout_s per scope. Never raises for the model, the hooks, the database or lack of
    time: Made.reason says it. Being cancelled passes through, and nothing is stored then.
    """
    cascade = making.policy.cascade and making.filter_key and making.source in CASCADING
    try:
        return await (_cascaded(making) if cascade else _scope(making))
    except StorageUnavailable:
        return await _told(making, _ended(making, Reason.STORAGE))


async def _scope(making: Making, trigger: Trigger | None = None) -> Made:
    """Make the summary of one scope. trigger: what fired elsewhere and counts here too."""
    began = making.monotonic()
    if not allowed(making.policy, making.filter_key):
        made = _ended(making, Reason.NOT_ALLOWED)
    else:
        try:
            async with asyncio.timeout(making.policy.summary_timeout_s):
                made = await _held(making, trigger)
        except TimeoutError:
            made = _ended(making, Reason.TIMEOUT)
        except StorageUnavailable:
            made = _ended(making, Reason.STORAGE)
    latency_ms = (making.monotonic() - began) * 1000
    return await _told(making, replace(made, report=replace(made.report, latency_ms=latency_ms)))


async def _told(making: Making, made: Made) -> Made:
    await told(made.report, making.report)
    return made


async def _held(making: Making, trigger: Trigger | None) -> Made:
    try:
        summarizer = chosen(making.summarizer, making.agent, making.run_id)
    except NoSummarizer as missing:
        return _ended(making, Reason.NO_SUMMARIZER, error=str(missing))
    key = making.filter_key
    async with making.store.hold(key, wait_s=making.policy.summary_timeout_s * WAIT_SHARE) as held:
        if not held:
            return _ended(making, Reason.HELD)
        if making.cancelled():
            return _ended(making, Reason.CANCELLED)
        base = (await making.store.newest([key])).get(key)
        work = _plan(making, base, trigger)
        if work.reason is not None:
            error = "There is nothing to summarise." if making.forced and not making.history else ""
            return _ended(making, work.reason, work, error=error)
        try:
            return await _advance(making, work, summarizer)
        except SummaryFailed as failure:
            made = _ended(making, failure.reason, work, error=failure.message)
            return replace(made, report=replace(made.report, summarizer=summarizer.name, call=failure.call))


def _plan(making: Making, base: Summary | None, trigger: Trigger | None = None) -> _Work:
    """Return what is to be covered, or why nothing is."""
    boundary = base.boundary if base else None
    scoped = [s for s in making.history if sees(making.filter_key, s.origin.filter_key)]
    fresh = [s for s in scoped if not covers(making.filter_key, boundary, s)]
    sizes = Sizes(making.rates, making.sizes)
    found = trigger or triggers.evaluate(
        making.check or triggers.of_policy(making.policy), _facts(making, base, scoped, fresh, sizes)
    )
    work = _Work(base=base, trigger=found)
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
    worth = weigh(covered, base, _shown(making, covered), sizes)
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
        request_tokens=making.request_tokens,
        new_tokens=0 if making.request_tokens else sum(sizes.event(stored) for stored in fresh),
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


def _shown(making: Making, covered: Sequence[Stored]) -> Shown:
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


async def _advance(making: Making, work: _Work, summarizer: Summarizer) -> Made:
    ask = await _ask(making, work)
    written = await summarizer.write(ask)
    covered = work.covered[: written.covered]
    worth = work.worth
    if worth is None or len(covered) < len(work.covered):
        worth = weigh(covered, work.base, _shown(making, covered), Sizes(making.rates, making.sizes))
    summary = _summary(making, work, written, covered, worth, summarizer.name)
    if making.hooks.post is not None:
        changed = await guarded(making.hooks.post(summary), making.hooks.abort_on_error)
        if changed is not None and changed.text.strip():
            summary = _worded(making, work, changed.text.strip(), summary)
    made = _ended(making, Reason.ADVANCED, replace(work, covered=covered, worth=worth))
    report = replace(
        made.report,
        summarizer=summarizer.name,
        call=written.call,
        output_tokens=summary.tokens,
        format_invalid=bool(missing_headings(summary.text, written.headings)),
    )
    reason = Reason.ADVANCED
    if not summary.text:
        reason = Reason.EMPTY
    elif not worth.holds(summary.tokens):
        reason = Reason.WOULD_NOT_PAY
    elif making.cancelled():
        reason = Reason.CANCELLED
    else:
        summary = replace(summary, report=report.as_json())
        if not await making.store.advance(summary):
            reason = Reason.LOST_RACE
    return Made(
        reason=reason,
        report=replace(report, reason=reason),
        advanced=summary if reason is Reason.ADVANCED else None,
    )


async def _ask(making: Making, work: _Work) -> Ask:
    base_text = work.base.text if work.base else ""
    parent = None
    if making.request is not None:
        parent = Parent(
            request=making.request,
            parts=making.request_parts,
            cached=making.request_cached,
        )
    ask = Ask(
        events=work.covered,
        lines=work.lines,
        base=work.base,
        filter_key=making.filter_key,
        policy=making.policy,
        window=making.window,
        rates=making.rates,
        language=language(work.lines, base_text),
        now=making.now,
        new_id=making.new_id,
        monotonic=making.monotonic,
        book=making.book,
        run_id=making.run_id,
        parent=parent,
        hooks=making.hooks,
        formatters=making.formatters,
        attributes=making.attributes,
    )
    return ask if making.hooks.pre is None else await _edited(making, ask, base_text)


async def _edited(making: Making, ask: Ask, base_text: str) -> Ask:
    """Return the ask with the text that the pre hook leaves. Raises SummaryFailed if it leaves none."""
    assert making.hooks.pre is not None
    text = "\n".join(line.text for line in ask.lines)
    given = Edited(
        filter_key=making.filter_key,
        events=ask.events,
        source_events=tuple(making.history),
        text=text,
        previous=base_text,
    )
    edited = await guarded(making.hooks.pre(given), making.hooks.abort_on_error)
    if edited is None:
        return replace(ask, text=text)
    if edited.text.strip() and edited.text != text:
        return replace(ask, text=edited.text)
    if edited.events is not given.events and edited.events:
        text = "\n".join(line.text for line in lines(edited.events, making.formatters))
    elif not edited.text.strip():
        text = ""
    if not text.strip():
        raise SummaryFailed(Reason.NOTHING_TO_SAY, "A hook left nothing to summarise.")
    return replace(ask, text=text)


def _summary(
    making: Making, work: _Work, written: Written, covered: Sequence[Stored], worth: Worth, summarizer: str
) -> Summary:
    last, base = covered[-1], work.base
    said = sum(isinstance(s.record, UserMessage | AssistantMessage | ToolReturned) for s in covered)
    blank = Summary(
        id=making.new_id(),
        text="",
        filter_key=making.filter_key,
        boundary=Boundary(position=last.position, fork=last.fork, event_id=last.id, at=last.at),
        read_from=_read_from(making.history, last),
        made_at=making.now(),
        base=base.id if base else "",
        summarizer=summarizer,
        model=written.model,
        source=making.source,
        covered_tokens=worth.read + (base.covered_tokens if base else 0),
        covered_events=said + (base.covered_events if base else 0),
    )
    return _worded(making, work, written.text.strip(), blank)


def _worded(making: Making, work: _Work, text: str, summary: Summary) -> Summary:
    """Return the summary with this text: markers of unknown citations taken out, the others' citations kept."""
    text, citations = kept(text, making.history, work.base)
    return replace(summary, text=text, citations=citations, tokens=Sizes(making.rates).text(text))


def _read_from(history: Sequence[Stored], last: Stored) -> int:
    """Return where a run must begin to read so that the turn in which the boundary lies can be shown."""
    own = [s for s in history if s.origin.run_id == last.origin.run_id and s.position <= last.position]
    started = [s.position for s in own if isinstance(s.record, RunStarted)]
    return started[-1] if started else min(s.position for s in own)


def _ended(making: Making, reason: Reason, work: _Work | None = None, *, error: str = "") -> Made:
    report = Report(reason=reason, filter_key=making.filter_key, source=making.source.value, error=error)
    if work is not None:
        report = replace(
            report,
            trigger=work.trigger,
            input_events=len(work.covered),
            input_tokens=work.worth.read if work.worth else 0,
            hidden_tokens=work.worth.hidden if work.worth else 0,
        )
    return Made(reason=reason, report=report)


async def _cascaded(making: Making) -> Made:
    """Refresh the scope, if it may have a summary, and the whole session's.

    If the scope sees everything, and both summaries say the same so far, the text is copied and no second call made.
    Else both are made at once, by the scope's trigger; where a fork may serve the scope, the session's waits for its
    own turn, since another view shares no cache.
    """
    full = replace(making, filter_key="", base=None)
    if not allowed(making.policy, making.filter_key):
        made = await _scope(making)
        return replace(made, copies=(await _scope(full),))
    newest = await making.store.newest([making.filter_key, ""])
    base, whole = newest.get(making.filter_key), newest.get("")
    if _alike(base, whole) and all(sees(making.filter_key, s.origin.filter_key) for s in making.history):
        made = await _scope(making)
        return replace(made, copies=(await _copied(full, made, whole),)) if made.advanced else made
    if making.request is not None and making.policy.fork != "off":
        return await _scope(making)
    trigger = _plan(making, base).trigger
    if not trigger.fired:
        return await _scope(making)
    begins = making.complete_from or (making.history[0].position if base and making.history else 0)
    full = replace(full, request=None, request_tokens=0, complete_from=begins)
    made, copy = await asyncio.gather(_scope(making, trigger), _scope(full, trigger))
    return replace(made, copies=(copy,))


def _alike(one: Summary | None, other: Summary | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.text == other.text and one.boundary == other.boundary


async def _copied(full: Making, made: Made, whole: Summary | None) -> Made:
    """Store the scope's summary for the whole session too."""
    assert made.advanced is not None
    copy = replace(made.advanced, id=full.new_id(), filter_key="", base=whole.id if whole else "")
    stored = await full.store.advance(copy)
    reason = Reason.ADVANCED if stored else Reason.LOST_RACE
    report = replace(made.report, reason=reason, filter_key="")
    return await _told(full, Made(reason=reason, report=report, advanced=copy if stored else None))
