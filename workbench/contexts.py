"""One dataclass per page: all that its template may use."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from agents.runtime.model import FilePart
from workbench import wording
from workbench.divider import Divider
from workbench.inspector.page import Inspected
from workbench.transcript import Answer, Said

TITLE_CHARS = 60  # of a first message that stands in for a missing title


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The person who looks at the page."""

    name: str
    initials: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One conversation in the list. state: live, failed, unread or ""."""

    thread_id: str
    title: str
    state: str = ""
    current: bool = False

    @property
    def state_word(self) -> str:
        return {"live": _("Working"), "failed": _("Failed"), "unread": _("Unread")}.get(self.state, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Conversations of one span of days."""

    key: str
    label: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """The list of conversations, newest first. more: cursor of the next page, "" at the end.

    archived: these are the archived ones. some_archived: of a first page, whether there are any.
    """

    groups: tuple[Group, ...]
    current: str = ""
    more: str = ""
    first: bool = True
    archived: bool = False
    some_archived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message that waits for the run to end (queue) or for its next step (steer)."""

    message_id: str
    text: str
    files: tuple[FilePart, ...]
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Messages that are not shown: those between two positions, both left out."""

    after: int
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A stretch of a conversation. before: position to read older ones from, 0 if there are none.

    above: an older stretch over these entries; gap: what is left out between the two.

    run_id: the run going on, "" if none; its own records are not in `entries`: the socket replays them.
    last_run, last_state: the newest run that `entries` knows. default_model: an answer by another one says so; "" if
    there is no choice. divider: where earlier messages are summarised, if that is among these entries; divider_at:
    before which of them it stands, len(entries) = behind the last.
    """

    thread_id: str
    entries: Sequence[Said | Answer] = ()
    before: int = 0
    run_id: str = ""
    last_run: str = ""
    last_state: str = ""
    default_model: str = ""
    divider: Divider | None = None
    divider_at: int = 0
    above: "Transcript | None" = None
    gap: Gap | None = None

    def place(self, position: int) -> str:
        """Return the name of the heading over what shows this position, or comes after it; "" = it is not here yet."""
        shown = [*(self.above.entries if self.above else ()), *self.entries]
        under = next((entry for entry in shown if entry.until >= position), None)
        if under is None and shown and not self.run_id:
            under = shown[-1]
        return f"h{under.position}" if under else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """The message that the address of a conversation asks for. at: as it stands there; found: it is there.

    target, place: the message or call, and the heading over it; "" = something between messages, not shown yet. It
    stands in version `version` of `versions`, which line `fork` shows, if that is not the one shown; place is then
    where the two part.
    """

    at: str
    found: bool
    target: str = ""
    place: str = ""
    fork: int | None = None
    version: int = 0
    versions: int = 0

    @property
    def elsewhere(self) -> bool:
        return self.fork is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """The conversation page. new: nothing was said yet, and the thread exists in this page only.

    models: names to choose from, the default first; none if there is no choice. window: what the last request took of
    its model's window, as CUSTOM `workbench.context` tells it; None before the first. landed: None = the address names
    no message.
    """

    me: Me
    sessions: Sessions
    transcript: Transcript
    title: str
    new: bool
    waiting: tuple[Waiting, ...] = ()
    deleted: str = ""
    max_files: int = 10
    models: tuple[str, ...] = ()
    starters: tuple[wording.Starter, ...] = ()
    archived: bool = False
    window: dict[str, Any] | None = None
    landed: Landed | None = None
    words: dict[str, Any] = field(default_factory=wording.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsPage:
    """The list on a page of its own. sessions: in the sidebar; listed: in the page."""

    me: Me
    sessions: Sessions
    listed: Sessions
    deleted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectorPage:
    """What a run did and what its model saw. own: the conversation is that of the person who looks."""

    me: Me
    sessions: Sessions
    title: str
    own: bool
    inspected: Inspected


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInPage:
    """The sign-in form. link: a one-time token to be used by a press of the button; link_bad: it cannot be."""

    form: Any = None
    next: str = ""
    link: str = ""
    link_bad: bool = False
    paused: bool = False
    version: str = ""


def day_group(at: datetime, today: date) -> tuple[str, str]:
    """Return (key, label) of the group a conversation last touched at `at` stands in."""
    day = timezone.localtime(at).date()
    if day >= today:
        return ("today", _("Today"))
    if day == today - timedelta(days=1):
        return ("yesterday", _("Yesterday"))
    if day > today - timedelta(days=7):
        return ("week", _("Last 7 days"))
    if day > today - timedelta(days=30):
        return ("month", _("Last 30 days"))
    return ("older", _("Older"))


def grouped(rows: Sequence[tuple[datetime, Row]], today: date) -> tuple[Group, ...]:
    """Return rows, newest first, in their groups of days."""
    found: dict[tuple[str, str], list[Row]] = {}
    for at, row in rows:
        found.setdefault(day_group(at, today), []).append(row)
    return tuple(Group(key=key, label=label, rows=tuple(group)) for (key, label), group in found.items())


def initials(name: str) -> str:
    """Return one or two characters that stand for a name; one is enough for Chinese."""
    words = name.replace(".", " ").replace("@", " ").replace("_", " ").split()
    if not words:
        return "?"
    if ord(words[0][0]) > 0x2E80:
        return words[0][0]
    return "".join(word[0] for word in words[:2]).upper()
