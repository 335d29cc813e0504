"""Making a summary of what coverage.py finds: who writes it, and how it is stored. making.py is the order for it.

    due    a trigger has fired and it would pay: no lock, no model, nothing read
    update the whole of it: under the scope's lock the summary before is read again, the text is written, and text and
           boundary are stored by one compare-and-set

The boundary is the last event whose text the writer was given. It never moves back, never past that, and never without
new events; whatever fails, nothing changes. What a summary covers is summaries.covers, which is also what it hides.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agents.runtime.context.sizes import Sizes
from agents.runtime.errors import StorageUnavailable
from agents.runtime.events import AssistantMessage, RunStarted, Stored, ToolReturned, UserMessage
from agents.runtime.policy import ContextPolicy
from agents.runtime.scopes import sees
from agents.runtime.summaries import Boundary, Source, Summary
from agents.runtime.summary.admission import Worth, weigh
from agents.runtime.summary.asking import (
    Ask,
    Edited,
    NoSummarizer,
    Parent,
    Summarizer,
    SummaryFailed,
    Written,
    chosen,
)
from agents.runtime.summary.citations import kept
from agents.runtime.summary.coverage import IN_RUN, Work, plan, shown
from agents.runtime.summary.guarding import guarded, told
from agents.runtime.summary.making import NOT_SENT, Made, Making
from agents.runtime.summary.pieces import Reading
from agents.runtime.summary.prompts import missing_headings
from agents.runtime.summary.report import Reason, Report, Trigger
from agents.runtime.summary.text import language, lines

WAIT_SHARE: Final = 0.5  # of the time for a making in a run, for whoever makes this summary already
CASCADING: Final = (Source.BACKGROUND, Source.ARCHIVE)


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
    work = plan(making, making.base)
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
    began, reading = making.monotonic(), Reading(making.store, making.filter_key)
    if not allowed(making.policy, making.filter_key):
        made = _ended(making, Reason.NOT_ALLOWED)
    else:
        try:
            async with asyncio.timeout(making.policy.summary_timeout_s):
                made = await _held(making, trigger, reading)
        except TimeoutError:
            made = _ended(making, Reason.UNFINISHED if reading.kept else Reason.TIMEOUT)
        except StorageUnavailable:
            made = _ended(making, Reason.STORAGE)
    latency_ms = (making.monotonic() - began) * 1000
    return await _told(making, replace(made, report=replace(made.report, latency_ms=latency_ms)))


async def _told(making: Making, made: Made) -> Made:
    await told(made.report, making.report)
    return made


async def _held(making: Making, trigger: Trigger | None, reading: Reading) -> Made:
    try:
        summarizer = chosen(making.summarizer, making.agent, making.run_id)
    except NoSummarizer as missing:
        return _ended(making, Reason.NO_SUMMARIZER, error=str(missing))
    key = making.filter_key
    # A job has time to come again; a run has not.
    wait_s = making.policy.summary_timeout_s * WAIT_SHARE if making.source in IN_RUN else 0.0
    async with making.store.hold(key, wait_s=wait_s) as held:
        if not held:
            return _ended(making, Reason.HELD)
        if making.cancelled():
            return _ended(making, Reason.CANCELLED)
        base = (await making.store.newest([key])).get(key)
        work = plan(making, base, trigger)
        if work.reason is not None:
            error = "There is nothing to summarise." if making.forced and not making.history else ""
            return _ended(making, work.reason, work, error=error)
        try:
            return await _advance(making, work, summarizer, reading)
        except SummaryFailed as failure:
            made = _ended(making, failure.reason, work, error=failure.message)
            return replace(made, report=replace(made.report, summarizer=summarizer.name, call=failure.call))


async def _advance(making: Making, work: Work, summarizer: Summarizer, reading: Reading) -> Made:
    ask = await _ask(making, work, reading)
    written = await summarizer.write(ask)
    covered = work.covered[: written.covered]
    worth = work.worth
    if worth is None or len(covered) < len(work.covered):
        worth = weigh(covered, work.base, shown(making, covered), Sizes(making.rates, making.sizes))
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
        elif "pieces" in written.call.shrunk:
            await reading.end()
    return Made(
        reason=reason,
        report=replace(report, reason=reason),
        advanced=summary if reason is Reason.ADVANCED else None,
    )


async def _ask(making: Making, work: Work, reading: Reading) -> Ask:
    base_text = work.base.text if work.base else ""
    sent = making.sent
    ask = Ask(
        **making.terms(),
        events=work.covered,
        lines=work.lines,
        base=work.base,
        language=language(work.lines, base_text),
        reading=reading,
        parent=None if sent.request is None else Parent(request=sent.request, parts=sent.parts, cached=sent.cached),
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
    making: Making, work: Work, written: Written, covered: Sequence[Stored], worth: Worth, summarizer: str
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


def _worded(making: Making, work: Work, text: str, summary: Summary) -> Summary:
    """Return the summary with this text: markers of unknown citations taken out, the others' citations kept."""
    text, citations = kept(text, making.history, work.base)
    return replace(summary, text=text, citations=citations, tokens=Sizes(making.rates).text(text))


def _read_from(history: Sequence[Stored], last: Stored) -> int:
    """Return where a run must begin to read so that the turn in which the boundary lies can be shown."""
    own = [s for s in history if s.origin.run_id == last.origin.run_id and s.position <= last.position]
    started = [s.position for s in own if isinstance(s.record, RunStarted)]
    return started[-1] if started else min(s.position for s in own)


def _ended(making: Making, reason: Reason, work: Work | None = None, *, error: str = "") -> Made:
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
    if making.sent.request is not None and making.policy.fork != "off":
        return await _scope(making)
    trigger = plan(making, base).trigger
    if not trigger.fired:
        return await _scope(making)
    begins = making.complete_from or (making.history[0].position if base and making.history else 0)
    full = replace(full, sent=NOT_SENT, complete_from=begins)
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
