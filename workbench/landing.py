"""Where an id of a message leads in its conversation: to which record, and whether its line is the one shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final

from django.db.models import Q
from django.db.models.fields.json import KT

from agents.models.event import Event
from agents.models.session import Fork as ForkRow
from agents.models.session import Session
from agents.runtime import codec
from agents.runtime.events import AssistantMessage, ToolReturned, UserMessage
from agents.stores import lines
from agents.stores.chains import Fork, chain

ID_CHARS: Final = 128
Parts = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """Where an address leads. position: on the visible line, 0 = the record is not there.

    target: what the page knows the message by, a message's id or a call's, "" = something between messages. Of a
    record on another line, `fork` is the line that shows it, version `version` of `versions`; position is then that of
    the place where the two part.
    """

    position: int = 0
    target: str = ""
    fork: int | None = None
    version: int = 0
    versions: int = 0


def of(session: Session, message_id: str) -> Landing:
    """Return where the id of an event, a message or a tool call leads in the session; of several the newest. At most
    three statements."""
    found = _find(session, message_id[:ID_CHARS].replace("\0", ""))
    if found is None:
        return Landing()
    position, fork, kind, payload = found
    forks = forks_of(session)
    if shows(chain(forks, session.head_fork), fork, position):
        return Landing(position=position, target=_target(codec.load(kind, payload)))
    return _elsewhere(forks, session.head_fork, fork, position)


def forks_of(session: Session) -> tuple[Fork, ...]:
    """Return the session's lines. One statement."""
    rows = ForkRow.objects.filter(session=session).order_by("number")
    return tuple(Fork(number=n, parent=p, shared_position=s) for n, p, s in rows.values_list(*_FORK))


def shows(parts: Parts, fork: int, position: int) -> bool:
    """Return whether a line shows a record. parts: the line, as chains.chain gives it."""
    return any(fork == number and position <= up_to for number, up_to in parts)


def visible(parts: Parts) -> Q:
    """Return the condition that an event is one of the line's."""
    return reduce(or_, (Q(fork=number, position__lte=up_to) for number, up_to in parts))


_FORK = ("number", "parent", "shared_position")


def _find(session: Session, message_id: str) -> tuple[int, int, str, Any] | None:
    """Return (position, fork, type, payload). What an index knows is asked first: the rest reads the conversation."""
    if not message_id:
        return None
    rows = Event.objects.of(session.owner_id).filter(session=session).order_by("-position")
    said = Q(type="user_message", said=message_id)
    for found in (
        rows.annotate(said=KT("payload__id")).filter(Q(event_id=message_id) | said),
        rows.annotate(said=KT("payload__id"), call=KT("payload__call_id")).filter(
            Q(type="assistant_message", said=message_id) | Q(type="tool_returned", call=message_id)
        ),
    ):
        if (row := found.values_list("position", "fork", "type", "payload").first()) is not None:
            return row
    return None


def _target(record: Any) -> str:
    match record:
        case UserMessage():
            return record.id
        case AssistantMessage() if record.text.strip():
            return record.id
        case AssistantMessage(tool_calls=(call, *_)):
            return call.id
        case ToolReturned():
            return record.call_id
    return ""


def _elsewhere(forks: Sequence[Fork], head: int, fork: int, position: int) -> Landing:
    """Return the landing on a line that is not shown: the newest one that holds the record."""
    chains = {known.number: chain(forks, known.number) for known in forks}
    holders = [number for number in sorted(chains) if shows(chains[number], fork, position)]
    if not holders:
        return Landing()
    there = {place.after: place for place in lines.branchings(forks, holders[-1])}
    here = {place.after: place for place in lines.branchings(forks, head)}
    for after in sorted(there.keys() & here.keys()):
        if there[after].shown != here[after].shown:
            version, versions = there[after].shown + 1, len(there[after].heads)
            return Landing(position=after + 1, fork=holders[-1], version=version, versions=versions)
    return Landing()
