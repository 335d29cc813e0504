"""What a person said of the runs of a transcript, and which skills those led to."""

from django.utils.translation import ngettext

from agents.models.session import Session
from agents.stores import reviews
from workbench.transcript import Answer, Said


def mark(entries: list[Said | Answer], session: Session) -> None:
    """Say of each run that is over what the person thought of it, and of its last article what it led to.

    Two statements.
    """
    over = {entry.run_id for entry in entries if isinstance(entry, Answer) and entry.ended}
    if not over:
        return
    said = reviews.said_of(session.owner_id, session.pk, over)
    suggested = reviews.suggested(session.owner_id, session.pk, over)
    for entry in entries:
        if not isinstance(entry, Answer):
            continue
        if entry.run_id in said:
            entry.thumb = said[entry.run_id].thumb
        if entry.ended and (count := suggested.get(entry.run_id)):
            entry.suggested = words(count)


def words(count: int) -> str:
    """Return how many skills wait for the person."""
    return ngettext("%(count)d skill suggested", "%(count)d skills suggested", count) % {"count": count}
