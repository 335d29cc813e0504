"""Stretches of a long conversation beside its newest messages: around a message, and what lies in a gap.

A stretch begins and ends between two runs, so that no answer is cut; one run of more records than a stretch is cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from agents.models.event import Event
from agents.models.session import Session
from agents.runtime.events import RunStarted, Stored
from agents.stores import chains, events, lines, sessions
from workbench import citations, divider, landing, memoryfoot, skillfoot, transcript
from workbench.contexts import Gap, Transcript

STRETCH: Final = 120  # records read for one step into a gap
EARLIER, LATER = 40, 80  # of them before and after the message that was asked for
END: Final = 2**62
_COLUMNS = (
    "position", "fork", "event_id", "type", "invocation_id", "author", "branch", "filter_key", "origin", "payload",
    "tokens", "at", "run__client_id",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """Records in a row. more: there are others between them and the far end. beside: position of the one before them,
    0 = they are the first."""

    stored: tuple[Stored, ...]
    more: bool
    beside: int


def around(session: Session, newest: Transcript, position: int) -> Transcript:
    """Return the newest messages and, if a position of the visible line lies before them, the stretch around it."""
    shown = newest.entries
    if shown and (position >= shown[0].position or not newest.before):
        return newest
    below = shown[0].position if shown else END
    later = _between(session, position - 1, below, most=LATER, without=newest.run_id)
    earlier = _between(session, 0, position, most=EARLIER, last=True, without=newest.run_id)
    stored = (*earlier.stored, *later.stored)
    if not stored:
        return newest
    above = _transcript(session, _Read(stored=stored, more=earlier.more, beside=earlier.beside), newest)
    if earlier.more and above.entries:
        above = replace(above, before=above.entries[0].position)
    gap = Gap(after=stored[-1].position, before=below) if later.more else None
    return replace(newest, above=above, gap=gap, before=0)


def step(session: Session, gap: Gap, *, last: bool, default_model: str) -> Transcript:
    """Return the first, or the last, messages of a gap, and what is left of it."""
    read = _between(session, gap.after, gap.before, most=STRETCH, last=last)
    found = _transcript(session, read, Transcript(thread_id=session.thread_id, default_model=default_model))
    if not read.more:
        return found
    if last:
        return replace(found, gap=Gap(after=gap.after, before=read.stored[0].position))
    return replace(found, gap=Gap(after=read.stored[-1].position, before=gap.before))


def _transcript(session: Session, read: _Read, like: Transcript) -> Transcript:
    stored = read.stored
    gone = citations.gone(session.owner_id, citations.named(stored))
    known = {one.position for one in stored} | {read.beside}
    entries = transcript.mark_versions(transcript.build(stored, gone), lines.of_session(session), known)
    memoryfoot.mark(entries, stored, session)
    skillfoot.mark(entries, session)
    history = replace(
        sessions.read_history(session.owner_id, session.thread_id, limit=1), stored=stored, truncated=read.beside > 0
    )
    found, at = divider.among(history, entries, entries, run_id="", newest=False)
    return Transcript(
        thread_id=session.thread_id,
        entries=entries,
        default_model=like.default_model,
        divider=found,
        divider_at=at,
    )


def _between(session: Session, after: int, before: int, *, most: int, last: bool = False, without: str = "") -> _Read:
    """Return the first, or the last, records of the visible line between two positions, both left out.

    without: client id of a run whose records are left out.
    """
    parts = chains.chain(landing.forks_of(session), session.head_fork)
    rows = Event.objects.of(session.owner_id).filter(
        landing.visible(parts), session=session, position__gt=after, position__lt=before
    )
    if without:
        rows = rows.exclude(run__client_id=without)
    ordered = rows.order_by("-position" if last else "position").values_list(*_COLUMNS)
    found = [events.load(row) for row in ordered[: most + 1]]
    if last:
        found.reverse()
    if len(found) <= most:
        return _Read(stored=tuple(found), more=False, beside=after)
    if last:
        cut = _begins(found, range(1, most + 1)) or 1
        return _Read(stored=tuple(found[cut:]), more=True, beside=found[cut - 1].position)
    cut = _begins(found, range(most, 0, -1)) or most
    return _Read(stored=tuple(found[:cut]), more=True, beside=after)


def _begins(found: Sequence[Stored], order: range) -> int | None:
    return next((n for n in order if isinstance(found[n].record, RunStarted)), None)
