"""What the house does to revisions that wait: it keeps what gates said, moves them on, and lets them expire.

It never publishes what a person has to decide.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from agents.models.skill import Skill, SkillRevision
from agents.runtime.evolution.proposals import Known, Proposal, Spec, body, described
from agents.runtime.skills.format import Broken, slug
from agents.runtime.skills.skill import SKILL_FILE
from agents.stores import bundledskills, skillfiles, skilllibrary
from agents.stores.skillcontent import Content, of_text
from agents.stores.skillfiles import Desk, desk
from agents.stores.skilllibrary import SkillLibraryRows, Source, Status, Verb

# Every state that waits ends by itself.
WAITS: Final[Mapping[str, timedelta]] = {
    Status.PENDING.value: timedelta(days=1),  # gates that never came to their end
    Status.PENDING_EVAL.value: timedelta(days=14),
    Status.PENDING_APPROVAL.value: timedelta(days=30),
}
EXPIRED_AT_ONCE: Final = 100


class JudgedSkills(SkillLibraryRows):
    """The skills of one scope, as reviews change them. The actor is the house."""

    def propose(
        self,
        proposal: Proposal,
        *,
        parent: int | None,
        status: str,
        evidence: Mapping[str, Any],
        reports: Mapping[str, Any],
        source: str = Source.REVIEWER.value,
    ) -> SkillRevision:
        """Keep what a review proposes. parent: number of the revision that it was made from.

        Raises SkillMissing: what is to be changed is gone.
        """
        kept = skilllibrary.Proposal(
            action=proposal.action.value,
            source=source,
            status=status,
            parent=parent,
            evidence=evidence,
            reports=reports,
        )
        if proposal.spec is None:
            return self.submit(proposal.target, None, kept)
        with desk() as on:
            return self.submit(proposal.name, self._content(proposal, proposal.spec, parent, on), kept)

    def publish(self, proposal: Proposal, *, parent: int | None) -> SkillRevision:
        """Let hold what no gate stands in the way of. Nobody approved it, and nothing says so. Raises SkillStale."""
        assert proposal.spec is not None
        with desk() as on:
            content = self._content(proposal, proposal.spec, parent, on)
            revision = self.save(content, source=Source.REVIEWER.value, parent=parent)
        Skill.objects.in_scope(self._owner_id).filter(pk=revision.skill_id).update(managed=True)
        return revision

    def judged(self, pk: int, status: str, reports: Mapping[str, Any]) -> SkillRevision:
        """Move a revision that waits on to what gates say now. Raises SkillMissing, SkillDecided."""
        with self._writing():
            revision = self._waiting(pk)
            revision.reports = {**revision.reports, **reports}
            before, revision.status = revision.status, status
            revision.save(update_fields=["reports", "status"])
            if before != status:
                self._audit(Verb.REJECT if status == Status.REJECTED else Verb.HOLD, revision)
                self._bump()
            return revision

    def expire(self, pk: int) -> bool:
        """End the waiting of a revision; False if somebody decided meanwhile."""
        with self._writing():
            revision = self._revisions().select_related("skill").filter(pk=pk, status__in=WAITS).first()
            if revision is None:
                return False
            revision.status = Status.EXPIRED.value
            revision.save(update_fields=["status"])
            self._audit(Verb.EXPIRE, revision)
            self._bump()
            return True

    def _content(self, proposal: Proposal, spec: Spec, parent: int | None, on: Desk) -> Content:
        before = None
        if proposal.target and parent is not None:
            revision = self.revision(proposal.target, parent)
            main = next((file for file in revision.files if file["path"] == SKILL_FILE), None)
            before = revision, skillfiles.read(revision.skill.key, main) if main else b""
        name = before[0].name if before else slug(spec.name)
        return of_text(name, described(spec), body(spec), on, before)


def known(owner_id: int) -> tuple[Known, ...]:
    """Return every skill that the person's names could clash with, of all scopes, switched off or not; by name.

    Of two with one name the person's own counts. id: number of the revision that holds.
    """
    found = {
        one.name: Known(name=one.name, description=one.description, body="" if isinstance(one, Broken) else one.body)
        for one in bundledskills.bundled()
    }
    rows = Skill.objects.of(owner_id).filter(deleted_at=None, active__isnull=False).select_related("active")
    for row in sorted(rows, key=lambda row: row.owner_id is not None):
        assert row.active is not None
        found[row.slug] = Known(
            name=row.slug,
            description=row.active.description,
            body=row.active.body,
            changeable=row.owner_id == owner_id and row.managed,
            id=row.active.number,
        )
    return tuple(found[name] for name in sorted(found))


def expire(now: datetime) -> int:
    """Let expire what has waited too long, of everybody; return how many. Nothing is published by it."""
    done = 0
    for status, longest in WAITS.items():
        rows = SkillRevision.objects.of_everyone().filter(status=status, created_at__lt=now - longest)
        for pk, owner_id in rows.order_by("created_at", "pk").values_list("pk", "owner_id")[:EXPIRED_AT_ONCE]:
            done += JudgedSkills(owner_id).expire(pk)
    return done
