"""A person's memories as their page shows them: filters with counts, rows in words, what each of them replaced."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.runtime.memory.memories import MOST_MEMORIES, TEXT_CHARS, Draft, Kind, Memory, Source
from agents.runtime.memory.words import normalised
from workbench import sessionlist
from workbench.contexts import Me, Sessions
from workbench.librarylist import Choice, Column
from workbench.localtime import brief
from workbench.memoryform import Form, time_words

PAGE: Final = 50
Q_CHARS: Final = 200
LABEL_CHARS: Final = 60
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the address asks for; "" = anything. kind: of Kind. sort: of `sorts`, "" = newest first.

    show: how many rows. edit: id of a memory that is being edited. adding: with the form for a new one open.
    """

    q: str = ""
    kind: str = ""
    sort: str = ""
    show: int = PAGE
    edit: str = ""
    adding: bool = False

    @property
    def narrow(self) -> bool:
        return bool(self.q or self.kind)

    def address(self) -> str:
        asked = {"q": self.q, "kind": self.kind, "sort": self.sort, "show": self.show if self.show > PAGE else ""}
        query = {key: value for key, value in asked.items() if value}
        return reverse("memories") + (f"?{urlencode(query)}" if query else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class From:
    """Where a memory comes from, in words. address: of the message, "" = there is none to go to."""

    words: str
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A memory that another one replaced."""

    id: str
    text: str
    source: From
    updated: datetime
    updated_words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A memory that holds. about: its time, people and place, as far as it has them. earlier: newest first.

    form: it is being edited.
    """

    id: str
    version: int
    text: str
    label: str
    kind: str
    about: tuple[str, ...]
    source: From
    used: datetime | None
    used_words: str
    updated: datetime
    updated_words: str
    muted: bool
    earlier: tuple[Earlier, ...]
    earlier_words: str
    form: Form | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    """The memories that are shown, and what else can be asked for.

    total: memories that hold; stored: with the earlier versions. more: address that shows more, "" = all are shown.
    """

    filters: Filters
    rows: tuple[Row, ...] = ()
    total: int = 0
    stored: int = 0
    kinds: tuple[Choice, ...] = ()
    sorts: tuple[Choice, ...] = ()
    by_text: Column | None = None
    by_used: Column | None = None
    by_updated: Column | None = None
    shown_words: str = ""
    more: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What was just deleted. token: what Undo sends back, "" = it is too much to be carried."""

    words: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage:
    """on: memories are used. new: the form for a new one. unavailable: they cannot be read now.

    forget: the word that confirms it; forget_error: it was another one. words: of memories.js.
    """

    me: Me
    sessions: Sessions
    memories: List
    on: bool
    forget: str
    words: Mapping[str, str]
    new: Form = field(default_factory=Form)
    forget_error: str = ""
    unavailable: bool = False
    deleted: Deleted | None = None
    text_chars: int = TEXT_CHARS


def load(everything: Sequence[Memory], filters: Filters, threads: Collection[str], form: Form | None = None) -> List:
    """Return the list. everything: with history. threads: conversations that can be opened. form: of filters.edit, as
    it was typed; None = as the memory is."""
    holding = [memory for memory in everything if not memory.superseded_by]
    asked = [memory for memory in holding if _says(memory, filters.q)]
    fitting = _sorted([memory for memory in asked if filters.kind in ("", memory.kind)], filters.sort)
    shown = fitting[: filters.show]
    zone = timezone.get_current_timezone()
    edited = next((memory for memory in holding if memory.id == filters.edit), None)
    if edited is not None and edited not in shown:
        shown.insert(0, edited)
    replaced = _Replaced(everything)
    rows = tuple(
        row(memory, replaced.by(memory.id), threads, form=(form or Form.of(memory, zone)) if memory is edited else None)
        for memory in shown
    )
    return List(
        filters=filters,
        rows=rows,
        total=len(holding),
        stored=len(everything),
        kinds=_kinds(filters, asked),
        sorts=tuple(Choice(key=key, label=label, shown=key == filters.sort) for key, label in sorts().items()),
        by_text=_column(filters, first="text", then="-text"),
        by_used=_column(filters, first="-used", then="used"),
        by_updated=_column(filters, first="", then="updated"),
        shown_words=_shown_words(len(rows), len(fitting), len(holding)),
        more=replace(filters, show=filters.show + PAGE).address() if len(fitting) > filters.show else "",
    )


def threads_of(owner_id: int, memories: Sequence[Memory]) -> frozenset[str]:
    """Return which of the conversations that these come from can still be opened. One statement at most."""
    wanted = {memory.origin.thread_id for memory in memories if memory.origin}
    return frozenset(sessionlist.visible(owner_id).filter(thread_id__in=wanted).values_list("thread_id", flat=True))


def row(memory: Memory, before: Sequence[Memory], threads: Collection[str], *, form: Form | None = None) -> Row:
    """Return a memory in words. before: what it replaced, newest first."""
    n = len(before)
    return Row(
        id=memory.id,
        version=memory.version,
        text=memory.text,
        label=label(memory.text),
        kind=kind_words()[memory.kind],
        about=about(memory, timezone.get_current_timezone()),
        source=source(memory, threads),
        used=memory.used_at,
        used_words=brief(memory.used_at) if memory.used_at else "",
        updated=memory.updated_at,
        updated_words=brief(memory.updated_at),
        muted=memory.muted,
        earlier=tuple(_earlier(older, threads) for older in before),
        earlier_words=ngettext("Replaced {n} earlier version", "Replaced {n} earlier versions", n).format(n=n),
        form=form,
    )


def label(text: str) -> str:
    """Return the text as a button or a toast names it."""
    return text if len(text) <= LABEL_CHARS else text[: LABEL_CHARS - 1].rstrip() + "…"


def about(memory: Draft, zone: tzinfo) -> tuple[str, ...]:
    """Return the time, the people and the place, as far as there are any."""
    people = _("with {names}").format(names=_(", ").join(memory.participants)) if memory.participants else ""
    time = time_words(memory.event_time, zone) if memory.event_time else ""
    return tuple(part for part in (time, people, memory.location) if part)


def source(memory: Memory, threads: Collection[str]) -> From:
    """Return where a memory comes from. A person who edits one leaves the message that it came from."""
    if memory.origin is None:
        return From(words=_("typed in by you") if memory.source is Source.PERSON else _("by the assistant"))
    if memory.origin.thread_id not in threads:
        return From(words=_("conversation deleted"))
    words = _("from this message, changed by you") if memory.source is Source.PERSON else _("from this message")
    place = urlencode({"at": memory.origin.event_id})
    return From(words=words, address=f"{reverse('session', args=[memory.origin.thread_id])}?{place}")


def sorts() -> dict[str, str]:
    """Return the orders one can choose, in words. Newest first is "", so that each order has one address."""
    return {
        "": _("Newest first"),
        "updated": _("Oldest first"),
        "text": _("Text, A to Z"),
        "-text": _("Text, Z to A"),
        "-used": _("Used last"),
        "used": _("Longest unused"),
    }


def script_words() -> dict[str, str]:
    """Return the strings of memories.js, in the language of the request."""
    return {
        "ticked": _("{n} selected"),
        "memoryFailed": _("That did not work. Nothing was changed; check the connection and try again."),
        "memoryNotDeleted": _("Not deleted. Check the connection."),
        "memoryStill": _("Not deleted, the server still has it."),
        "characters": _("{n} of {most} characters"),
    }


def full_words(evicted: int) -> str:
    """Return that room had to be made, "" for nothing."""
    if not evicted:
        return ""
    return ngettext(
        "There is room for {most} memories: {n} that was not used for long had to go.",
        "There is room for {most} memories: {n} that were not used for long had to go.",
        evicted,
    ).format(most=f"{MOST_MEMORIES:,}", n=evicted)


def deleted_words(n: int, first: str) -> str:
    """Return that memories were deleted. first: the text of one of them."""
    if n == 1:
        return _("Deleted: “{text}”").format(text=label(first))
    return ngettext("{n} memory deleted", "{n} memories deleted", n).format(n=n)


def _says(memory: Memory, q: str) -> bool:
    """Return whether a memory holds every word that is looked for, or a part of a word."""
    text = normalised(" ".join((memory.text, *memory.topics, *memory.participants, memory.location)))
    return all(word in text for word in normalised(q).split())


def _sorted(memories: list[Memory], sort: str) -> list[Memory]:
    memories.sort(key=lambda memory: memory.id)
    memories.sort(key=lambda memory: (memory.updated_at, memory.created_at), reverse=True)
    match sort.removeprefix("-"):
        case "text":
            memories.sort(key=lambda memory: normalised(memory.text), reverse=sort.startswith("-"))
        case "used":  # what was never used counts as used long ago
            memories.sort(key=lambda memory: memory.used_at or _NEVER, reverse=sort.startswith("-"))
        case "updated":
            memories.reverse()
    return memories


class _Replaced:
    """What each memory replaced, one after the other or side by side."""

    def __init__(self, everything: Sequence[Memory]) -> None:
        self._direct: dict[str, list[Memory]] = {}
        for memory in everything:
            if memory.superseded_by:
                self._direct.setdefault(memory.superseded_by, []).append(memory)

    def by(self, id: str) -> list[Memory]:
        """Return what a memory replaced, newest first."""
        found: list[Memory] = []
        ids = [id]
        while ids:
            older = self._direct.get(ids.pop(), [])
            found += older
            ids += [memory.id for memory in older]
        return sorted(found, key=lambda memory: (memory.created_at, memory.id), reverse=True)


def _earlier(memory: Memory, threads: Collection[str]) -> Earlier:
    return Earlier(
        id=memory.id,
        text=memory.text,
        source=source(memory, threads),
        updated=memory.updated_at,
        updated_words=brief(memory.updated_at),
    )


def kind_words() -> dict[Kind, str]:
    return {Kind.FACT: _("Fact"), Kind.EPISODE: _("Episode")}


def _kinds(filters: Filters, asked: Sequence[Memory]) -> tuple[Choice, ...]:
    labels = {"": _("All"), Kind.FACT.value: _("Facts"), Kind.EPISODE.value: _("Episodes")}
    return tuple(
        Choice(
            key=key,
            label=label,
            shown=key == filters.kind,
            address=replace(filters, kind=key, show=PAGE).address(),
            documents=sum(key in ("", memory.kind) for memory in asked),
        )
        for key, label in labels.items()
    )


def _column(filters: Filters, *, first: str, then: str) -> Column:
    other = then if filters.sort == first else first
    order = ""
    if filters.sort in (first, then):
        order = "descending" if filters.sort.startswith("-") or not filters.sort else "ascending"
    return Column(address=replace(filters, sort=other).address(), order=order, turned=filters.sort == then)


def _shown_words(shown: int, fitting: int, total: int) -> str:
    if shown < fitting:
        return ngettext("{shown} of {n} memory", "{shown} of {n} memories", fitting).format(shown=shown, n=fitting)
    if fitting < total:
        return ngettext("{shown} of {n} memory", "{shown} of {n} memories", total).format(shown=shown, n=total)
    return ngettext("{n} memory", "{n} memories", total).format(n=total)
