"""How much background work waits, asked of the rows themselves: they tell it even when no worker lives."""

from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection
from django.db.models import Count, Min

from agents.models.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The waiting jobs of one kind. oldest_s: since the first of them was asked for."""

    kind: str
    waiting: int
    oldest_s: float


def waiting() -> tuple[Backlog, ...]:
    """Return a row for each kind that waits, by kind. One statement. Sync. Raises DatabaseError."""
    now = datetime.now(UTC)
    rows = (
        Job.objects.filter(status=Job.Status.QUEUED)
        .values_list("kind")
        .annotate(count=Count("id"), since=Min("created_at"))
        .order_by("kind")
    )
    return tuple(
        Backlog(kind=kind, waiting=count, oldest_s=max(0.0, (now - since).total_seconds()))
        for kind, count, since in rows
    )


def on_own_thread() -> tuple[Backlog, ...]:
    """Return the same on a thread that is not Django's, and keep no connection there. Raises DatabaseError."""
    try:
        return waiting()
    finally:
        connection.close()
