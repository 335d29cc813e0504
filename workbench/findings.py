"""What a search for people asks and answers, in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from artifacts.library import Shelf
from workbench import localtime, wording
from workbench.contexts import Me, Sessions
from workbench.marking import Marked

MOST: Final = 60  # shown of one kind
SOME: Final = 5  # of each kind where all kinds are shown


class Kind(StrEnum):
    CONVERSATIONS = "conversations"
    MESSAGES = "messages"
    DOCUMENTS = "documents"
    NOTES = "notes"  # Markdown that was written here


class When(StrEnum):
    """How long ago at most; days, today included."""

    TODAY = "today"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


DAYS: Final = {When.TODAY: 1, When.WEEK: 7, When.MONTH: 30, When.YEAR: 365}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is looked for. kind, when: None = any. thread: in one conversation only; collection: public id, of documents
    only; "" = anywhere. here: the conversation that may be chosen for `thread`."""

    owner_id: int
    q: str = ""
    kind: Kind | None = None
    when: When | None = None
    thread: str = ""
    collection: str = ""
    here: str = ""

    @property
    def narrowed(self) -> bool:
        return bool(self.kind or self.when or self.thread or self.collection)

    @property
    def since(self) -> datetime | None:
        if self.when is None:
            return None
        midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=DAYS[self.when] - 1)

    def of_kind(self, kind: Kind) -> bool:
        """Whether there may be something of this kind."""
        if self.thread and kind is Kind.CONVERSATIONS:
            return False
        if self.collection and kind in (Kind.CONVERSATIONS, Kind.MESSAGES):
            return False
        return self.kind in (None, kind)

    def address(self) -> str:
        asked = {"q": self.q, "kind": self.kind, "when": self.when, "in": self.thread}
        asked |= {"collection": self.collection, "here": self.here}
        return f"{reverse('search')}?{urlencode({key: value for key, value in asked.items() if value})}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One thing that was found. address: leads to the very place. message_id: of a message, as its page knows it.

    who: whose words the snippet is. other_version: it stands on a line of the conversation that is not the one shown.
    """

    kind: Kind
    address: str
    title: Marked
    at: datetime
    icon: str
    snippet: Marked = ()
    who: str = ""
    where: str = ""
    message_id: str = ""
    other_version: bool = False

    @property
    def when(self) -> str:
        return localtime.brief(self.at)

    @property
    def lang(self) -> str:
        """The language of the snippet."""
        return wording.language("".join(piece for piece, _hit in self.snippet))

    @property
    def title_lang(self) -> str:
        return wording.language("".join(piece for piece, _hit in self.title))


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What was found of one kind, best first. more: there is more than what is counted. all: address of the whole list,
    "" if it stands here."""

    kind: Kind
    hits: tuple[Hit, ...]
    total: int
    more: bool
    all: str = ""

    @property
    def label(self) -> str:
        return kinds()[self.kind]

    @property
    def count(self) -> str:
        return f"{self.total}+" if self.more else str(self.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A filter. count: of results, "" = not known."""

    value: str
    label: str
    chosen: bool
    count: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search answers: groups with something in them. searched: (conversations, documents) that were looked
    through, told if there is nothing. collections: to choose from."""

    wanted: Wanted
    groups: tuple[Group, ...] = ()
    recent: tuple[Hit, ...] = ()
    searched: tuple[int, int] = (0, 0)
    collections: tuple[Shelf, ...] = ()

    @property
    def count(self) -> str:
        """How much there is, for who cannot see it."""
        total = sum(group.total for group in self.groups)
        if not self.wanted.q:
            return ngettext("{n} recent conversation", "{n} recent conversations", len(self.recent)).format(
                n=len(self.recent)
            )
        if not total:
            return _("Nothing found")
        shown = f"{total}+" if any(group.more for group in self.groups) else str(total)
        return ngettext("{n} result", "{n} results", total).format(n=shown)

    @property
    def nothing(self) -> str:
        """What was looked through, and in what."""
        conversations, documents = self.searched
        return _("Nothing in {conversations} and {documents}: titles, messages, names and text.").format(
            conversations=ngettext("{n} conversation", "{n} conversations", conversations).format(n=conversations),
            documents=ngettext("{n} document", "{n} documents", documents).format(n=documents),
        )

    @property
    def without_filters(self) -> str:
        """The address of the same search everywhere, "" if this is it."""
        return (
            Wanted(owner_id=self.wanted.owner_id, q=self.wanted.q, here=self.wanted.here).address()
            if self.wanted.narrowed
            else ""
        )

    @property
    def ask(self) -> str:
        """The address of a new conversation that begins with these words."""
        return f"{reverse('new')}?{urlencode({'ask': self.wanted.q})}"

    @property
    def kinds(self) -> tuple[Choice, ...]:
        """The kinds to choose from, with how much there is of each as far as that is known."""
        counts = {group.kind: group.count for group in self.groups}
        chosen = [Choice(value="", label=_("All"), chosen=self.wanted.kind is None)]
        for kind, label in kinds().items():
            count = counts.get(kind, "")
            chosen.append(Choice(value=kind, label=label, chosen=kind is self.wanted.kind, count=count))
        return tuple(chosen)

    @property
    def whens(self) -> tuple[Choice, ...]:
        dated = [Choice(value=when, label=label, chosen=when is self.wanted.when) for when, label in whens().items()]
        return (Choice(value="", label=_("Any date"), chosen=self.wanted.when is None), *dated)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindPage:
    """The search on a page of its own."""

    me: Me
    sessions: Sessions
    found: Found


def group(wanted: Wanted, kind: Kind, makes: Sequence[Callable[[], Hit]], *, more: bool) -> Group:
    """Return what was found of one kind; only what is shown of it is made."""
    shown = tuple(make() for make in makes[: MOST if wanted.kind else SOME])
    total = min(len(makes), MOST)
    rest = replace(wanted, kind=kind).address() if len(shown) < total else ""
    return Group(kind=kind, hits=shown, total=total, more=more or len(makes) > MOST, all=rest)


def kinds() -> dict[Kind, str]:
    return {
        Kind.CONVERSATIONS: _("Conversations"),
        Kind.MESSAGES: _("Messages"),
        Kind.DOCUMENTS: _("Documents"),
        Kind.NOTES: _("Notes"),
    }


def whens() -> dict[When, str]:
    return {
        When.TODAY: _("Today"),
        When.WEEK: _("Last 7 days"),
        When.MONTH: _("Last 30 days"),
        When.YEAR: _("Last 12 months"),
    }
