"""What a person said of the runs of a transcript, and which skills those led to."""

from django.utils.translation import ngettext

from agents.models.session import Session
from agents.stores import reviews
from workbench.transcript import Answer, Said


def mark(entries: list[Said | Answer], session: Session) -> None:
    """Say of each run that is over what the person thought of it, and of its last article what it led to.

    One statement.
    """
    over = {entry.run_id for entry in entries if isinstance(entry, Answer) and entry.ended}
    if not over:
        return
    feet = reviews.feet(session.owner_id, session.pk, over)
    for entry in entries:
        if isinstance(entry, Answer) and (foot := feet.get(entry.run_id)):
            entry.thumb = foot.thumb
            entry.suggested = words(foot.suggested) if entry.ended and foot.suggested else ""


def words(count: int) -> str:
    """Return how many skills wait for the person."""
    return ngettext("%(count)d skill suggested", "%(count)d skills suggested", count) % {"count": count}
