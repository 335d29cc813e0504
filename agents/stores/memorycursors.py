"""How far conversations were read for what is to be remembered, and what waits behind that.

A job claims a conversation, reads what came behind its cursor, and has the cursor moved by the transaction that keeps
what came of it (stores/remembering.py). Sync: for Celery, on Django's connection.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Final

from django.db.models import Q, QuerySet, Subquery

from agents.models.event import Event
from agents.models.memory import MemoryCursor, MemorySetting
from agents.models.session import Session
from agents.runtime.events import Preloaded, RunStarted, UserMessageKind
from agents.runtime.memory.sources import Said, sources
from agents.stores import cursors, policies
from agents.stores.cursors import Line, Moved

ABANDONED: Final = "abandoned"  # reason of a change: the line shows its message no more
Switch = tuple[bool, datetime | None]  # whether memories are on, and since when


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What came behind a conversation's cursor, since < position <= up_to.

    line: the chain that is shown; forked: there is more than it. said: what may be read of it, in order. runs: of said,
    the client's name of each message's run, by position. started: how the runs of said began, by name. shown: ids of
    memories that were put before a model. abandoned: (position, run) of what a person typed that is on the line no
    more. last_at: of the last extraction.
    """

    owner_id: int
    session_id: int
    thread_id: str
    agent: str
    holder: str
    switch: Switch
    head_fork: int
    line: Line
    forked: bool
    since: int
    up_to: int
    said: tuple[Said, ...]
    runs: Mapping[int, str]
    started: Mapping[str, RunStarted]
    shown: frozenset[str]
    abandoned: tuple[tuple[int, str], ...]
    last_at: datetime | None


def claim(owner_id: int, session_id: int, holder: str) -> bool:
    """Have a conversation; see cursors.claim."""
    return cursors.claim(MemoryCursor, owner_id, session_id, holder)


def release(owner_id: int, session_id: int, holder: str) -> None:
    """Give a conversation back; see cursors.release."""
    cursors.release(MemoryCursor, owner_id, session_id, holder)


def read(owner_id: int, session_id: int, holder: str) -> Part | None:
    """Return what waits behind the cursor that this holder claimed; None if the conversation is gone. Raises Moved."""
    held = cursors.claimed(MemoryCursor, owner_id, session_id, holder)
    if held is None:
        return None
    session, cursor = held
    behind = cursors.behind(session, cursor.position)
    found, line, delta = behind.found, behind.line, behind.events
    switch = switched(owner_id)
    started = {s.origin.run_id: s.record for s in delta if isinstance(s.record, RunStarted)}
    agent = session.agent or next((one.agent for one in reversed(started.values())), "")
    said = _allowed(sources(delta, session.thread_id), switch) if policies.of(agent).remember else ()
    places = {one.origin.position for one in said}
    runs = {s.position: s.origin.run_id for s in delta if s.position in places}
    return Part(
        owner_id=owner_id,
        session_id=session_id,
        thread_id=session.thread_id,
        agent=agent,
        holder=holder,
        switch=switch,
        head_fork=found.head_fork,
        line=line,
        forked=len(found.forks) > 1,
        since=cursor.position,
        up_to=max(found.last_position, cursor.position),
        said=said,
        runs=runs,
        started={**started, **_started(owner_id, session_id, set(runs.values()) - started.keys())},
        shown=frozenset(id for s in delta if isinstance(s.record, Preloaded) for id, _ in s.record.memories),
        abandoned=_abandoned(session, line, cursor.position, found.last_position),
        last_at=cursor.extracted_at,
    )


def hold(part: Part) -> None:
    """Lock what a part was read under, in the caller's transaction. Raises Moved if it is not so any more."""
    cursors.hold(
        MemoryCursor,
        part.owner_id,
        part.session_id,
        holder=part.holder,
        since=part.since,
        head_fork=part.head_fork,
    )
    if switched(part.owner_id) != part.switch:
        raise Moved


def move(part: Part, up_to: int, *, extracted_at: datetime | None) -> None:
    """Move the cursor of a part that is held. extracted_at: None = nothing was read of a person's words."""
    more = {"extracted_at": extracted_at} if extracted_at else {}
    MemoryCursor.objects.of(part.owner_id).filter(session_id=part.session_id).update(position=up_to, **more)


def replaced(part: Part, position: int) -> tuple[tuple[datetime, str], ...]:
    """Return when a person sent what the line shows no more, and its text, in order, for a message that may stand in
    the place of one of them: the first of its fork. For another, nothing."""
    messages = Event.objects.of(part.owner_id).filter(session_id=part.session_id, type="user_message")
    fork = messages.filter(position=position).values("fork")[:1]
    if messages.filter(fork=Subquery(fork), position__lt=position).exists():
        return ()
    rows = _edited_away(part.owner_id, part.session_id, part.line).filter(position__lt=position)
    texts = rows.values_list("at", "payload__parts")
    return tuple((at, "\n".join(one.get("text", "") for one in parts or ())) for at, parts in texts)


def on_line(owner_id: int, session_id: int, line: Line, event_ids: Iterable[str]) -> dict[str, bool]:
    """Return of each of these events whether the line shows it; those of other conversations are left out."""
    rows = Event.objects.of(owner_id).filter(session_id=session_id, event_id__in=[id for id in event_ids if id])
    last = dict(line)
    return {
        id: position <= last.get(fork, 0) for id, fork, position in rows.values_list("event_id", "fork", "position")
    }


def switched(owner_id: int) -> Switch:
    """Return whether the person's memories are on, and since when; None = always."""
    setting = MemorySetting.objects.of(owner_id).first()
    return (setting.enabled, setting.since) if setting else (True, None)


def _allowed(said: Sequence[Said], switch: Switch) -> tuple[Said, ...]:
    enabled, since = switch
    return tuple(one for one in said if since is None or one.at >= since) if enabled else ()


def _started(owner_id: int, session_id: int, runs: set[str]) -> dict[str, RunStarted]:
    """Return how these runs began: those whose beginning was read before, as a steering message came later."""
    if not runs:
        return {}
    rows = Event.objects.of(owner_id).filter(session_id=session_id, type="run_started", run__client_id__in=runs)
    found = rows.values_list("run__client_id", "payload__agent", "payload__model", "payload__zone")
    return {run: RunStarted(agent=agent or "", model=model or "", zone=zone or "") for run, agent, model, zone in found}


def _abandoned(session: Session, line: Line, since: int, up_to: int) -> tuple[tuple[int, str], ...]:
    rows = _edited_away(session.owner_id, session.pk, line).filter(position__gt=since, position__lte=up_to)
    return tuple(rows.values_list("position", "run__client_id"))


def _edited_away(owner_id: int, session_id: int, line: Line) -> QuerySet[Event]:
    """Return what a person typed that the line shows no more, in order."""
    visible = reduce(or_, (Q(fork=fork, position__lte=last) for fork, last in line))
    typed = Q(payload__kind__isnull=True) | Q(payload__kind=UserMessageKind.STEER.value)  # TURN is left out there
    rows = Event.objects.of(owner_id).filter(typed, session_id=session_id, type="user_message").exclude(visible)
    return rows.order_by("position")
