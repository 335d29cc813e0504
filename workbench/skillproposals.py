"""What waits for a decision: a suggested skill, what it changes, and where it was learned."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from agents.models.skill import SkillRevision
from agents.runtime.skills import format as skillformat
from artifacts import diff
from workbench import sessionlist, skillwords
from workbench.localtime import brief


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A revision that waits. compared: with what holds now; None = it cannot be compared. base: number of what holds,
    0 = nothing. stale: it was made from an older one, so it cannot be accepted as it is. thread: address of the
    conversation it was learned in, "" = there is none to go to.
    """

    pk: int
    slug: str
    name: str
    number: int
    base: int
    action: str
    kind: str
    why: str
    source: str
    thread: str
    at: datetime
    at_words: str
    by: str
    compared: diff.Comparison | None
    stale: bool


def text_of(revision: SkillRevision | None) -> str:
    """Return what a revision says as SKILL.md has it, "" for none and for one that deletes."""
    if revision is None or revision.action == SkillRevision.Action.DELETE:
        return ""
    return skillformat.written(revision.name, revision.description, revision.body)


def compared(old: SkillRevision | None, new: SkillRevision) -> diff.Comparison | None:
    """Return how a revision came from another."""
    try:
        return diff.compare(text_of(old), text_of(new))
    except diff.TooLong:
        return None


def proposals(owner_id: int) -> tuple[Proposal, ...]:
    """Return what waits for this person to decide, the oldest first. Nothing of anybody else."""
    found = SkillRevision.objects.in_scope(owner_id).filter(
        status=SkillRevision.Status.PENDING_APPROVAL, skill__deleted_at=None
    )
    rows = list(found.select_related("skill", "skill__active", "proposed_by").order_by("created_at", "pk"))
    wanted = {str(row.evidence.get("thread_id", "")) for row in rows} - {""}
    threads = (
        frozenset(sessionlist.visible(owner_id).filter(thread_id__in=wanted).values_list("thread_id", flat=True))
        if wanted
        else frozenset[str]()
    )
    return tuple(proposal(row, threads) for row in rows)


def proposal(row: SkillRevision, threads: frozenset[str] = frozenset()) -> Proposal:
    """Return one. threads: conversations that can be opened. row: with skill and what is active of it."""
    evidence: Mapping[str, Any] = row.evidence
    thread = str(evidence.get("thread_id", ""))
    base = row.skill.active
    return Proposal(
        pk=row.pk,
        slug=row.skill.slug,
        name=row.name,
        number=row.number,
        base=base.number if base else 0,
        action=row.action,
        kind=_kind(row.action),
        why=" ".join(str(evidence.get(key, "")) for key in ("reason", "note")).strip(),
        source=skillwords.source(row.source),
        thread=reverse("session", args=[thread]) if thread in threads else "",
        at=row.created_at,
        at_words=brief(row.created_at),
        by=row.proposed_by.get_username() if row.proposed_by else "",
        compared=compared(base, row),
        stale=base is not None and row.parent_id != base.pk,
    )


def _kind(action: str) -> str:
    return {
        SkillRevision.Action.CREATE.value: _("New skill"),
        SkillRevision.Action.UPDATE.value: _("Change to a skill"),
        SkillRevision.Action.DELETE.value: _("Delete a skill"),
    }[action]
