"""What a person types about a memory, and the draft it makes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from typing import Final

from django.http import QueryDict
from django.utils.translation import gettext as _

from agents.runtime.memory import dates
from agents.runtime.memory.dates import Period, Precision
from agents.runtime.memory.memories import (
    ITEM_CHARS,
    LIST_ITEMS,
    LOCATION_CHARS,
    TEXT_CHARS,
    Draft,
    Kind,
    Memory,
    MemoryInvalid,
    Source,
    checked,
)
from agents.runtime.memory.words import cleaned

WHEN_CHARS: Final = 100
VERSION_DIGITS: Final = 9
_BETWEEN = re.compile(r"[,，、;；\n]")


class Unfit(ValueError):
    """A form that makes no memory; `form` says why, field by field."""

    def __init__(self, form: "Form") -> None:
        self.form = form
        super().__init__()


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The fields as they were typed. errors: a sentence for each field that cannot be taken.

    version: of the memory as it was read, 0 = a new one. theirs: what somebody else made of it meanwhile. gone: the
    memory that was being edited is not there any more.
    """

    text: str = ""
    kind: str = Kind.FACT.value
    when: str = ""
    people: str = ""
    place: str = ""
    version: int = 0
    errors: Mapping[str, str] = field(default_factory=dict)
    theirs: str = ""
    gone: bool = False

    @classmethod
    def of(cls, memory: Memory, zone: tzinfo) -> "Form":
        """Return the form that says what the memory says."""
        return cls(
            text=memory.text,
            kind=memory.kind.value,
            when=time_words(memory.event_time, zone) if memory.event_time else "",
            people=_(", ").join(memory.participants),
            place=memory.location,
            version=memory.version,
        )

    @classmethod
    def typed(cls, post: QueryDict) -> "Form":
        """Return what was sent."""
        version = post.get("version", "")
        whole = version.isascii() and version.isdigit() and len(version) <= VERSION_DIGITS
        return cls(
            text=post.get("text", ""),
            kind=post.get("kind", Kind.FACT.value),
            when=post.get("when", ""),
            people=post.get("people", ""),
            place=post.get("place", ""),
            version=int(version) if whole else 0,
        )

    def draft(self, now: datetime, zone: tzinfo, before: Memory | None = None) -> Draft:
        """Return what is to be stored. before: the memory that is edited; what was not touched of it stays as it is.

        Raises Unfit.
        """
        errors: dict[str, str] = {}
        time, people = (before.event_time, before.participants) if before else (None, ())
        shown = Form.of(before, zone) if before else Form()
        if self.when != shown.when:
            time = self._time(errors, now, zone)
        if self.people != shown.people:
            people = tuple(_BETWEEN.split(self.people))
        try:
            draft = checked(
                Draft(
                    text=self.text,
                    kind=self._kind(errors),
                    topics=before.topics if before else (),
                    event_time=time,
                    participants=people,
                    location=self.place,
                    source=Source.PERSON,
                    origin=before.origin if before else None,
                )
            )
        except MemoryInvalid as e:
            errors[e.field] = self._sentence(e.field)
        if errors:
            raise Unfit(replace(self, errors=errors))
        return draft

    def _kind(self, errors: dict[str, str]) -> Kind:
        try:
            return Kind(self.kind)
        except ValueError:
            errors["kind"] = _("Choose a kind.")
            return Kind.FACT

    def _time(self, errors: dict[str, str], now: datetime, zone: tzinfo) -> Period | None:
        typed = cleaned(self.when)
        if not typed:
            return None
        found = _week(typed, zone) or dates.resolve(typed, now, zone) if len(typed) <= WHEN_CHARS else None
        if found is None:
            errors["when"] = _("This time cannot be read. Write it like 2026-05-03, 3 May 2026, May 2026 or tomorrow.")
        return found

    def _sentence(self, name: str) -> str:
        if name == "text" and not cleaned(self.text):
            return _("A memory needs a text.")
        if name == "text":
            n, most = len(cleaned(self.text)), f"{TEXT_CHARS:,}"
            return _("A memory has at most {most} characters, this one has {n}.").format(most=most, n=f"{n:,}")
        if name == "location":
            return _("A place has at most {most} characters.").format(most=LOCATION_CHARS)
        return _("At most {n} people, each with at most {most} characters.").format(n=LIST_ITEMS, most=ITEM_CHARS)


def time_words(period: Period, zone: tzinfo) -> str:
    """Return the time as exactly as it is known, as a form takes it back."""
    if period.precision is Precision.WEEK:
        return _("week of {day}").format(day=period.start.astimezone(zone).date().isoformat())
    return period.words(zone)


def _week(typed: str, zone: tzinfo) -> Period | None:
    """Return the week that `time_words` says, None if it says none."""
    before, after = map(re.escape, _("week of {day}").split("{day}"))
    said = re.fullmatch(rf"{before}(\d{{4}}-\d\d-\d\d){after}", typed)
    first = dates.read(said[1], zone) if said else None
    if first is None:
        return None
    try:
        last = dates.read((first.start.astimezone(zone).date() + timedelta(days=6)).isoformat(), zone)
    except OverflowError:  # the last week that there is
        return None
    return Period(start=first.start, end=last.end, precision=Precision.WEEK) if last else None
