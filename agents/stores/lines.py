"""The lines of a conversation: where it goes on in several ways, and which one is shown.

Editing and asking again make a fork that shares its parent's line up to a position; nothing is overwritten. All forks
that share the same position are ways to go on from there, beside the way they left. One of them is on the visible
chain; choosing another moves the session's head.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.db import transaction
from django.db.models import Q

from agents.models.event import Event
from agents.models.run import Run
from agents.models.session import Fork as ForkRow
from agents.models.session import Session
from agents.runtime.errors import Rejected
from agents.runtime.session import RunStatus
from agents.stores import state
from agents.stores.chains import Fork, chain


@dataclass(frozen=True, slots=True, kw_only=True)
class Branching:
    """A place in the visible chain where the conversation goes on in several ways.

    after: position of the last event they share, 0 if they share none. heads: for each way, in the order they were
    made, the newest fork that goes through it. shown: which of them is visible, from 0.
    """

    after: int
    heads: tuple[int, ...]
    shown: int


def of_session(session: Session) -> tuple[Branching, ...]:
    """Return where a conversation branches, oldest place first. One query."""
    return branchings(forks_of(session), session.head_fork)


def branchings(forks: Sequence[Fork], head: int) -> tuple[Branching, ...]:
    """Return where the line that ends in fork `head` branches, oldest place first."""
    places: dict[int, list[int]] = {}
    for fork in sorted(forks, key=lambda fork: fork.number):
        if fork.parent is not None:
            places.setdefault(fork.shared_position, [_left(forks, fork)]).append(fork.number)
    chains = {fork.number: chain(forks, fork.number) for fork in forks}
    found = []
    for after, ways in sorted(places.items()):
        through = {way: [n for n in sorted(chains) if _goes_through(chains[n], way, after)] for way in ways}
        shown = next((i for i, way in enumerate(ways) if head in through[way]), None)
        if shown is not None:
            heads = tuple(through[way][-1] for way in ways)
            found.append(Branching(after=after, heads=heads, shown=shown))
    return tuple(found)


@transaction.atomic
def choose(*, owner_id: int, thread_id: str, fork: int) -> None:
    """Make the line that ends in this fork the visible one; runs go on from its end.

    Raises Rejected: thread_not_found (unknown or foreign thread, unknown fork), run_conflict (a run is going on).
    """
    rows = Session.objects.of(owner_id).filter(thread_id=thread_id, deleted_at=None)
    session = rows.select_for_update().first()  # an opening run writes this row, so none can begin meanwhile
    forks = forks_of(session) if session else ()
    if session is None or all(known.number != fork for known in forks):
        raise Rejected("thread_not_found")
    if Run.objects.of(owner_id).filter(session=session, status=RunStatus.RUNNING.value).exists():
        raise Rejected("run_conflict")
    session.head_fork = fork
    session.state = _state(session, chain(forks, fork))
    session.save(update_fields=["head_fork", "state"])


def _left(forks: Sequence[Fork], fork: Fork) -> int:
    """Return the fork whose own line a fork left: the one that the last event they share belongs to."""
    by_number = {known.number: known for known in forks}
    left = by_number[fork.parent or 0]
    while left.parent is not None and left.shared_position >= fork.shared_position:
        left = by_number[left.parent]
    return left.number


def _goes_through(parts: Sequence[tuple[int, int]], way: int, after: int) -> bool:
    return any(fork == way and up_to > after for fork, up_to in parts)


def forks_of(session: Session) -> tuple[Fork, ...]:
    """Return all forks of a conversation, in the order they were made. One query."""
    rows = ForkRow.objects.filter(session=session).order_by("number")
    return tuple(
        Fork(number=number, parent=parent, shared_position=shared)
        for number, parent, shared in rows.values_list("number", "parent", "shared_position")
    )


def _state(session: Session, parts: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return the session's own state at the end of a chain."""
    visible = reduce(or_, (Q(fork=fork, position__lte=up_to) for fork, up_to in parts))
    changes = Event.objects.of(session.owner_id).filter(visible, session=session, type="state_changed")
    own: dict[str, Any] = {}
    for payload in changes.order_by("position").values_list("payload", flat=True):
        own.update(state.changes(payload))
    return own
