"""The conversation list: one query, newest first, with the state that its dot shows."""

from datetime import datetime
from typing import Any

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Subquery, When
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from agents.models.event import Event
from agents.models.run import Run
from agents.models.session import Session
from agents.runtime.session import RunStatus
from workbench.contexts import TITLE_CHARS, Row, Sessions, grouped

PAGE = 50
ID_DIGITS = 18


def visible(owner_id: int) -> QuerySet[Session]:
    """Return the owner's conversations that are not deleted and in which something was said."""
    return Session.objects.of(owner_id).filter(deleted_at=None, last_position__gt=0)


def load(owner_id: int, *, current: str = "", cursor: str = "", archived: bool = False) -> Sessions:
    """Return a page of the list, at most 50 rows. cursor: `more` of the page before; a broken one starts again."""
    at = _cursor(cursor)
    rows = visible(owner_id).filter(archived_at__isnull=not archived)
    if at:
        rows = rows.filter(Q(active_at__lt=at[0]) | Q(active_at=at[0], id__lt=at[1]))
    found = list(_with_state(rows, owner_id).order_by("-active_at", "-id")[: PAGE + 1])
    shown = [(session.active_at, row(session, current=current)) for session in found[:PAGE]]
    last = found[PAGE - 1] if len(found) > PAGE else None
    return Sessions(
        groups=grouped(shown, timezone.localdate()),
        current=current,
        more=f"{last.active_at.isoformat()},{last.pk}" if last else "",
        first=at is None,
        archived=archived,
        some_archived=at is None and visible(owner_id).filter(archived_at__isnull=False).exists(),
    )


def recent(owner_id: int, most: int) -> tuple[tuple[datetime, Row], ...]:
    """Return the conversations used last, without archived ones, and when that was."""
    rows = _with_state(visible(owner_id).filter(archived_at=None), owner_id).order_by("-active_at", "-id")
    return tuple((session.active_at, row(session)) for session in rows[:most])


def one(owner_id: int, thread_id: str, *, current: str = "") -> Row | None:
    """Return one conversation as a row of the list; None if it is not there."""
    session = _with_state(visible(owner_id).filter(thread_id=thread_id), owner_id).first()
    return row(session, current=current) if session else None


def row(session: Any, *, current: str = "") -> Row:
    """Return a session, loaded with its state, as a row."""
    unread = session.last_position > session.seen_position
    state = ""
    if session.running:
        state = "live"
    elif unread and session.thread_id != current:
        state = "failed" if session.last_status in (RunStatus.FAILED, RunStatus.LOST) else "unread"
    return Row(
        thread_id=session.thread_id,
        title=session.title or opening_words(session.opening) or _("New conversation"),
        state=state,
        current=session.thread_id == current,
    )


def opening_words(parts: Any) -> str:
    """Return the first words a person said, as a stand-in for a title. parts: a user message's, as stored."""
    for part in parts or ():
        words = " ".join(str(part.get("text", "")).split())
        if words:
            return words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS - 1].rstrip() + "…"
    return next((str(part["name"]) for part in parts or () if part.get("name")), "")


def _with_state(rows: QuerySet[Session], owner_id: int) -> QuerySet[Any]:
    runs = Run.objects.of(owner_id).filter(session=OuterRef("pk"))
    said = Event.objects.of(owner_id).filter(session=OuterRef("pk"), type="user_message").order_by("position")
    return rows.annotate(
        running=Exists(runs.filter(status=RunStatus.RUNNING.value)),
        last_status=Subquery(runs.order_by("-id").values("status")[:1]),
        opening=Case(When(title="", then=Subquery(said.values("payload__parts")[:1]))),
    )


def _cursor(text: str) -> tuple[datetime, int] | None:
    stamp, _comma, number = text.partition(",")
    try:
        at = parse_datetime(stamp.replace(" ", "+"))  # a plus sign that lost its escape in a link
    except ValueError:
        return None
    if not at or not (number.isascii() and number.isdigit() and len(number) <= ID_DIGITS):
        return None
    return at, int(number)
