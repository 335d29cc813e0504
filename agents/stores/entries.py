"""Events as searchable entries: what a record gives to the index, and which text an entry stands for.

The statements that store an event enter its pieces (sql.py); nothing else does.
"""

import re
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from django.db.models import Q

from agents.models.event import Event
from agents.runtime import codec
from agents.runtime.events import AssistantMessage, Record, UserMessage
from agents.runtime.pieces import content_of, piece_at, pieces_of
from agents.stores import labels

# What search.py calls a speaker is the assistant, as people name it; the index has stems and pairs of characters.
_SPEAKER: Final = ("@assist", "@助手")
_ASKS: Final = ("?", "？")
_MARKER = re.compile(r"\[\[c:[A-Za-z0-9_-]{1,8}\]\]")  # a citation: an id is no word

# "may" and "march" are mostly other words
_TIMES: Final = frozenset(
    """today tonight yesterday tomorrow ago recently lately nowadays soon morning noon afternoon evening night midnight
    pm clock minute minutes hour hours day days weekday weekend weekends week weeks fortnight month months quarter year
    years decade decades century spring summer autumn winter january february april june july august september october
    november december monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays
    fridays saturdays sundays""".split()
) | {str(year) for year in range(1900, 2100)}
_WORD = re.compile(r"[a-z]+|\d+")
_CHINESE_TIME = re.compile(
    r"[昨今明前后当每][天日晚早年]|去年|[上本下这]个?(?:周|月|季|星期|礼拜)|周[一二三四五六日天末]|星期|礼拜|季度|年[初中底末]|月[初中底末]"
    r"|[\d一二两三四五六七八九十]\s*(?:年|个?月|号|日|天|点|小时|分钟|周)|早上|上午|中午|下午|晚上|夜里|凌晨|傍晚"
    r"|最近|近来|刚才|刚刚|[以之]前|[以之]后|春天|夏天|秋天|冬天"
)


class EntryPlace(NamedTuple):
    """Where an entry's text begins. session_id: primary key. position: of the event. offset: byte of its content."""

    session_id: int
    position: int
    offset: int


def pieces(record: Record) -> list[dict[str, Any]]:
    """Return the record's pieces as the statements in sql.py read them; [] if nothing of it is searched."""
    text = content_of(record)
    if not text:
        return []
    answer = isinstance(record, AssistantMessage)
    label = labels.marks(text) if isinstance(record, AssistantMessage | UserMessage) else ()
    speaker = (*_SPEAKER, *label) if answer else label
    found: list[dict[str, Any]] = []
    for start, piece in pieces_of(text):
        marks = (*speaker, "#t") if tells_time(piece) else speaker
        body = _MARKER.sub(" ", piece) if "[[c:" in piece else piece
        found.append({"start": start, "marks": " ".join(marks), "body": body})
    if (answer or label) and found and text.rstrip().endswith(_ASKS):
        found[-1]["marks"] += " #q"
    return found


def tells_time(text: str) -> bool:
    """Return whether the text names a time: a day, a month, a year, "ago", "上周"."""
    if not _TIMES.isdisjoint(_WORD.findall(text.lower())):
        return True
    return not text.isascii() and _CHINESE_TIME.search(text) is not None


def event_texts(owner_id: int, places: Collection[EntryPlace]) -> dict[EntryPlace, str]:
    """Return the text of each entry of the owner's events; those whose event is gone are left out. One statement."""
    wanted: dict[tuple[int, int], list[EntryPlace]] = {}
    for place in places:
        wanted.setdefault((place.session_id, place.position), []).append(place)
    if not wanted:
        return {}
    which = Q()
    for session_id, position in wanted:
        which |= Q(session_id=session_id, position=position)
    rows = Event.objects.of(owner_id).filter(which).values_list("session_id", "position", "type", "payload")
    found: dict[EntryPlace, str] = {}
    for session_id, position, kind, payload in rows:
        content = content_of(codec.load(kind, payload))
        found |= {place: piece_at(content, place.offset)[0] for place in wanted[session_id, position]}
    return found
