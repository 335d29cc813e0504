"""What stands above a place in the visible conversation, counted for people."""

from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Final

from django.db.models import Q

from agents.models.event import Event
from agents.models.session import Fork as ForkRow
from agents.runtime.session import Session
from agents.stores.chains import Fork, chain, cut

MOST: Final = 5_000
SHOWN: Final = ("user_message", "run_started")  # a message of a person, an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """messages: what people said and how often it was answered, at most MOST. more: there are more than that."""

    messages: int
    more: bool
    first: datetime


def covered(session: Session, position: int) -> Covered | None:
    """Return what the session's visible line has up to a position, that included; None if there is nothing.

    Three queries.
    """
    rows = ForkRow.objects.filter(session_id=session.id, session__owner_id=session.owner_id).values_list(
        "number", "parent", "shared_position"
    )
    forks = tuple(Fork(number=number, parent=parent, shared_position=shared) for number, parent, shared in rows)
    parts = cut(chain(forks, session.fork), position)
    line = reduce(or_, (Q(fork=fork, position__lte=up_to) for fork, up_to in parts))
    events = Event.objects.of(session.owner_id).filter(line, session_id=session.id)
    first = events.order_by("position").values_list("at", flat=True).first()
    if first is None:
        return None
    messages = events.filter(type__in=SHOWN).order_by()[: MOST + 1].count()
    return Covered(messages=min(messages, MOST), more=messages > MOST, first=first)
