"""Writing skills: every change of one scope in one transaction, under the lock of its library row.

A revision is published as a whole: it becomes active, the one before is archived, the pointer is set, the audit says
who did it, and the library's version goes up, so that the next run of every process sees it with no other event.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from agents.models.review import Experiment
from agents.models.skill import Skill, SkillAudit, SkillLibrary, SkillRevision, SkillSwitch
from agents.runtime.errors import AgentError
from agents.runtime.skills.skill import SKILL_FILE, SkillMissing, SkillScope
from agents.stores import skillfiles
from agents.stores.skillcontent import Content, of_revision, of_text
from agents.stores.skillfiles import desk, kept

UNDO_TIME: Final = timedelta(minutes=10)
PURGE_AT_ONCE: Final = 20

Status, Action, Source, Verb = SkillRevision.Status, SkillRevision.Action, SkillRevision.Source, SkillAudit.Verb
WAITING: Final = (Status.PENDING, Status.PENDING_EVAL, Status.PENDING_APPROVAL)
# what the house itself notes of a decision; pages say it in the reader's language
STALE: Final = "it was made from an older revision"
TAKEN: Final = "version {number} was made of it"


class SkillStale(AgentError):
    """The skill was changed since: what was made from an older revision does not replace the newer one."""

    code = "skill_stale"


class SkillDecided(AgentError):
    """Somebody decided about this revision before."""

    code = "skill_decided"


class SkillNameTaken(AgentError):
    """There is another skill with this name."""

    code = "skill_name_taken"


class SkillBroken(AgentError):
    """A skill that cannot be read cannot be published."""

    code = "skill_broken"


class NoArchivedRevision(AgentError):
    """There is no earlier revision to go back to."""

    code = "no_archived_revision"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What comes with a revision that waits. parent: number of the revision it was made from; None = the active one.

    action: delete needs no content. status: one of WAITING or rejected.
    """

    action: str = ""
    source: str = Source.REVIEWER.value
    status: str = Status.PENDING_APPROVAL.value
    parent: int | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    reports: Mapping[str, Any] = field(default_factory=dict)
    proposed_by: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What came of a save. fresh: a revision was made; False = this one says the same already."""

    revision: SkillRevision
    fresh: bool


class SkillLibraryRows:
    """The skills of one scope. owner_id: the person, None = everyone's. actor_id: who does it, None = the house.

    Sync. Everything raises SkillMissing for what is not in the scope: another's, unknown and deleted alike.
    """

    def __init__(
        self, owner_id: int | None, *, actor_id: int | None = None, now: Callable[[], datetime] = timezone.now
    ) -> None:
        self._owner_id = owner_id
        self._actor_id = actor_id
        self._now = now

    # What is asked

    def find(self, slug: str) -> Skill:
        """Return the skill of this name. Raises SkillMissing."""
        found: Skill | None = self._skills().select_related("active").filter(slug=slug).first()
        if found is None:
            raise SkillMissing
        return found

    def revision(self, slug: str, number: int) -> SkillRevision:
        """Return one revision, with its skill. Raises SkillMissing."""
        rows = self._revisions().select_related("skill", "parent")
        found: SkillRevision | None = rows.filter(skill__slug=slug, skill__deleted_at=None, number=number).first()
        if found is None:
            raise SkillMissing
        return found

    def was_deleted(self, slug: str) -> bool:
        """Return whether a person's own skill of this name was deleted a moment ago, and is there no more."""
        named = Skill.objects.in_scope(self._owner_id).filter(slug=slug)
        return bool(named.filter(deleted_at__isnull=False).exists() and not named.filter(deleted_at=None).exists())

    # A person's changes: they hold at once

    def save(self, content: Content, *, source: str, parent: int | None, new: bool = False) -> SkillRevision:
        """Publish what a person typed or brought; what cannot be used is kept beside, with its reason.

        parent: number of the revision that was edited, None = whatever is active. new: there must be no such skill.
        What is active already makes no revision. Raises SkillStale, SkillNameTaken; then nothing is kept.
        """
        with ExitStack() as stored, self._writing():
            return self._saved(content, source, parent, new, stored).revision

    def bring(self, contents: Sequence[Content]) -> tuple[Saved, ...]:
        """Publish several that a person brought, or none of them, each as the next revision of its name."""
        with ExitStack() as stored, self._writing():
            return tuple(self._saved(content, Source.IMPORT.value, None, False, stored) for content in contents)

    def edit(self, slug: str, name: str, description: str, body: str, *, parent: int) -> SkillRevision:
        """Publish what was typed over a skill that was read as revision `parent`; its other files stay.

        Raises SkillStale, SkillBroken (the text cannot be used), BlobMissing.
        """
        before = self.revision(slug, parent)
        main = next((file for file in before.files if file["path"] == SKILL_FILE), None)
        with desk() as on:
            raw = skillfiles.read(before.skill.key, main) if main else b""
            content = of_text(name, description, body, on, (before, raw))
            if content.problem:
                raise SkillBroken(content.problem)
            active = self.find(slug).active
            # one that could never be used is repaired: nothing holds that this could be made from
            return self.save(content, source=Source.PERSON.value, parent=parent if active else None)

    def take(self, pk: int, name: str, description: str, body: str) -> SkillRevision:
        """Publish what somebody made of a revision that waits, which is decided thereby.

        Raises SkillMissing, SkillDecided, SkillStale (the skill was changed since), SkillBroken.
        """
        with self._writing():
            waiting = self._waiting(pk)
            current = self._current(waiting.skill)
            if waiting.parent_id != (current.pk if current else None):
                raise SkillStale
            if current is not None and current.action != Action.DELETE:
                revision = self.edit(waiting.skill.slug, name, description, body, parent=current.number)
            else:
                revision = self._taken(waiting, name, description, body)
            self.reject(pk, TAKEN.format(number=revision.number))
            return revision

    def make(self, name: str, description: str, body: str) -> SkillRevision:
        """Publish a new skill. Raises SkillNameTaken, SkillBroken."""
        with desk() as on:
            content = of_text(name, description, body, on, None)
            if content.problem:
                raise SkillBroken(content.problem)
            return self.save(content, source=Source.PERSON.value, parent=None, new=True)

    def turn(self, slug: str, *, on: bool) -> None:
        """Use a skill of this scope, or keep it without using it: for everybody who sees it."""
        with self._writing():
            self.find(slug)
            self._skills().filter(slug=slug).update(enabled=on)
            self._bump()

    # What waits

    def submit(self, slug: str, content: Content | None, proposal: Proposal) -> SkillRevision:
        """Keep a revision that does not hold yet. content: None = the skill is to be deleted. Raises SkillMissing.

        What somebody proposes once more while it waits is the revision that waits.
        """
        with ExitStack() as stored, self._writing():
            skill = self._skills().filter(slug=slug).first()
            if skill is None:
                if content is None:
                    raise SkillMissing
                skill = self._made(slug)
            if content and proposal.proposed_by and (same := self._proposed(skill, content, proposal.proposed_by)):
                return same
            current = self._current(skill)
            if proposal.parent is not None:
                current = skill.revisions.filter(number=proposal.parent).first()
            stored.enter_context(kept(skill.key, content.entries if content else ()))
            revision = self._added(skill, content, proposal, current)
            self._audit(Verb.SUBMIT, revision)
            if proposal.status in (Status.PENDING_EVAL, Status.PENDING_APPROVAL):
                self._audit(Verb.HOLD, revision)
            elif proposal.status == Status.REJECTED:
                self._audit(Verb.REJECT, revision)
            return revision

    def approve(self, pk: int, comment: str = "") -> SkillRevision:
        """Let a revision that waits hold. One made from an older revision is rejected.

        Raises SkillMissing, SkillDecided, SkillStale, SkillBroken.
        """
        with self._writing():
            revision = self._waiting(pk)
            skill, current = revision.skill, self._current(revision.skill)
            if revision.problem:
                raise SkillBroken(revision.problem)
            revision.decided_by_id, revision.comment = self._actor_id, comment[:500]
            fits = revision.parent_id == (current.pk if current else None)
            if fits:
                skill.managed = True
                self._audit(Verb.APPROVE, revision, comment)
                self._promote(skill, revision)
            else:
                self._refused(revision, STALE)
        if not fits:  # after the transaction: that it was refused is kept
            raise SkillStale
        return revision

    def reject(self, pk: int, comment: str = "") -> SkillRevision:
        """Decide against a revision that waits. Raises SkillMissing, SkillDecided."""
        with self._writing():
            revision = self._waiting(pk)
            revision.decided_by_id = self._actor_id
            self._refused(revision, comment)
            return revision

    # Back

    def rollback(self, slug: str, to: int | None = None) -> SkillRevision:
        """Let an archived revision hold again, None = the one that held last. To one that deletes, the skill goes.

        Raises SkillMissing, NoArchivedRevision.
        """
        with self._writing():
            skill = self.find(slug)
            archived = skill.revisions.filter(status=Status.ARCHIVED)
            wanted = archived.filter(number=to) if to is not None else archived.order_by("-promoted_at", "-number")
            revision = wanted.first()
            if revision is None:
                raise NoArchivedRevision
            self._audit(Verb.ROLLBACK, revision)
            self._promote(skill, revision)
            return revision

    def delete(self, slug: str) -> Skill:
        """Delete a skill. A person's own goes for good after UNDO_TIME; of everyone's a revision says so."""
        with self._writing():
            skill = self.find(slug)
            if self._owner_id is None:
                if self._is_gone(skill):
                    raise SkillMissing
                proposal = Proposal(source=Source.PERSON.value, status=Status.PENDING.value)
                self._promote(skill, self._added(skill, None, proposal, self._current(skill)))
            else:
                self._skills().filter(pk=skill.pk).update(deleted_at=self._now())
                self._bump()
            self._log(Verb.DELETE, skill)
            return skill

    def restore(self, key: uuid.UUID) -> Skill:
        """Undo a deletion; what is there already stays as it is.

        Raises SkillMissing (it is too late), SkillNameTaken.
        """
        with self._writing():
            skill = Skill.objects.in_scope(self._owner_id).filter(key=key).first()
            if skill is None:
                raise SkillMissing
            if self._owner_id is None:
                if self._is_gone(skill):
                    self.rollback(skill.slug)
                return self.find(skill.slug)
            if skill.deleted_at is None:
                return self.find(skill.slug)
            if self._skills().filter(slug=skill.slug).exists():
                raise SkillNameTaken
            Skill.objects.in_scope(self._owner_id).filter(pk=skill.pk).update(deleted_at=None)
            self._log(Verb.ROLLBACK, skill)
            self._bump()
            return self.find(skill.slug)

    # The rows, under the lock

    def _skills(self) -> Any:
        return Skill.objects.in_scope(self._owner_id).filter(deleted_at=None)

    def _revisions(self) -> Any:
        return SkillRevision.objects.in_scope(self._owner_id)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with transaction.atomic():
            lock(self._owner_id)
            yield

    def _current(self, skill: Skill) -> SkillRevision | None:
        found: SkillRevision | None = skill.revisions.filter(status=Status.ACTIVE).first()
        return found

    def _is_gone(self, skill: Skill) -> bool:
        """Return whether a revision of everyone's says that the skill is deleted."""
        current = self._current(skill)
        return current is not None and current.action == Action.DELETE

    def _saved(self, content: Content, source: str, parent: int | None, new: bool, stored: ExitStack) -> Saved:
        """stored: told what to undo in storage if the transaction fails."""
        skill = self._skills().filter(slug=content.slug).first()
        if new and skill is not None and self._current(skill) is not None:
            raise SkillNameTaken
        skill = skill or self._made(content.slug)
        current = self._current(skill)
        if parent is not None and (current is None or current.number != parent):
            raise SkillStale
        if same := self._same(skill, current, content):
            return Saved(revision=same, fresh=False)
        stored.enter_context(kept(skill.key, content.entries))
        status = Status.REJECTED if content.problem else Status.PENDING
        revision = self._added(skill, content, Proposal(source=source, status=status.value), current)
        if content.problem:
            self._audit(Verb.REJECT, revision, content.words)
            self._bump()  # the page shows it
        else:
            skill.managed = skill.managed or source == Source.PERSON
            self._promote(skill, revision)
        return Saved(revision=revision, fresh=True)

    def _taken(self, waiting: SkillRevision, name: str, description: str, body: str) -> SkillRevision:
        """Publish a new skill under the name of one that waits."""
        with desk() as on:
            content = of_text(name, description, body, on, (waiting, b""))
            if content.problem:
                raise SkillBroken(content.problem)
            return self.save(content, source=Source.PERSON.value, parent=None)

    def _same(self, skill: Skill, current: SkillRevision | None, content: Content) -> SkillRevision | None:
        """Return the revision that says this already: the active one, or the last if it could not be used either."""
        last = skill.revisions.order_by("-number").first() if content.problem else current
        if last is None or last.action == Action.DELETE or (last.digest, last.name) != (content.digest, content.name):
            return None
        return last

    def _proposed(self, skill: Skill, content: Content, by: int) -> SkillRevision | None:
        waiting = skill.revisions.filter(status__in=WAITING, proposed_by_id=by)
        found: SkillRevision | None = waiting.filter(digest=content.digest, name=content.name).first()
        return found

    def _made(self, slug: str) -> Skill:
        made: Skill = Skill.objects.of_everyone().create(
            owner_id=self._owner_id, key=uuid.uuid4(), slug=slug, created_at=self._now()
        )
        return made

    def _added(
        self, skill: Skill, content: Content | None, proposal: Proposal, parent: SkillRevision | None
    ) -> SkillRevision:
        last = skill.revisions.aggregate(last=Max("number"))["last"] or 0
        says = content or of_revision(parent or SkillRevision(skill=skill, name=skill.slug, digest=""), ())
        live = parent is not None and parent.action != Action.DELETE
        action = Action.DELETE if content is None else Action.UPDATE if live else Action.CREATE
        added: SkillRevision = SkillRevision.objects.of_everyone().create(
            skill=skill,
            owner_id=self._owner_id,
            number=last + 1,
            parent=parent,
            name=says.name,
            description=says.description,
            body=says.body,
            docs=list(says.docs),
            files=list(says.files),
            digest=says.digest,
            problem=says.problem,
            words=says.words,
            status=proposal.status,
            action=proposal.action or action,
            source=proposal.source,
            evidence=dict(proposal.evidence),
            reports=dict(proposal.reports),
            proposed_by_id=proposal.proposed_by,
            created_at=self._now(),
        )
        return added

    def _promote(self, skill: Skill, revision: SkillRevision) -> None:
        """Make a revision the one that holds."""
        before = self._current(skill)
        if before is not None:
            self._revisions().filter(pk=before.pk).update(status=Status.ARCHIVED)
            self._audit(Verb.ARCHIVE, before)
        revision.status, revision.promoted_at = Status.ACTIVE.value, self._now()
        revision.save(update_fields=["status", "promoted_at", "decided_by", "comment"])
        skill.active = None if revision.action == Action.DELETE else revision
        skill.save(update_fields=["active", "managed"])
        self._audit(Verb.PROMOTE, revision)
        self._bump()

    def _waiting(self, pk: int) -> SkillRevision:
        rows = self._revisions().select_related("skill").filter(skill__deleted_at=None)
        found: SkillRevision | None = rows.filter(pk=pk).first()
        if found is None:
            raise SkillMissing
        if found.status not in WAITING:
            raise SkillDecided
        return found

    def _refused(self, revision: SkillRevision, comment: str) -> None:
        revision.status, revision.comment = Status.REJECTED.value, comment[:500]
        revision.save(update_fields=["status", "comment", "decided_by"])
        self._audit(Verb.REJECT, revision, comment)
        self._bump()

    def _audit(self, verb: str, revision: SkillRevision, comment: str = "") -> None:
        self._log(verb, revision.skill, number=revision.number, comment=comment)

    def _log(self, verb: str, skill: Skill, *, number: int | None = None, comment: str = "") -> None:
        SkillAudit.objects.of_everyone().create(
            owner_id=self._owner_id,
            key=skill.key,
            slug=skill.slug,
            number=number,
            verb=verb,
            actor_id=self._actor_id,
            at=self._now(),
            comment=comment[:500],
        )

    def _bump(self) -> None:
        SkillLibrary.objects.in_scope(self._owner_id).update(version=F("version") + 1)


def lock(owner_id: int | None) -> None:
    """Hold a scope until the transaction ends."""
    rows = SkillLibrary.objects.in_scope(owner_id)
    if not rows.exists():
        SkillLibrary.objects.of_everyone().bulk_create([SkillLibrary(owner_id=owner_id)], ignore_conflicts=True)
    rows.select_for_update().get()


@transaction.atomic
def switch(owner_id: int, scope: SkillScope, slug: str, *, on: bool) -> None:
    """Let a person use a skill that is not their own, or not."""
    lock(owner_id)
    mine = SkillSwitch.objects.of(owner_id).filter(scope=scope.value, slug=slug)
    if on:
        mine.delete()
    else:
        SkillSwitch.objects.of(owner_id).get_or_create(owner_id=owner_id, scope=scope.value, slug=slug)
    SkillLibrary.objects.in_scope(owner_id).update(version=F("version") + 1)


def share(skill: Skill, *, by: int, staff: bool) -> SkillRevision:
    """Offer a person's own skill to everyone: staff publish it, others propose it. Raises SkillMissing, BlobMissing."""
    rows = SkillLibraryRows(None, actor_id=by)
    with _copied(skill) as content:
        if staff:
            return rows.save(content, source=Source.SUBMISSION.value, parent=None)
        return rows.submit(skill.slug, content, Proposal(source=Source.SUBMISSION.value, proposed_by=by))


def copy(skill: Skill, *, to: int) -> SkillRevision:
    """Make a skill of a person's own of one for everyone. Raises SkillMissing, BlobMissing, SkillNameTaken."""
    with _copied(skill) as content:
        rows = SkillLibraryRows(to, actor_id=to)
        return rows.save(content, source=Source.IMPORT.value, parent=None, new=True)


@contextmanager
def _copied(skill: Skill) -> Iterator[Content]:
    """Give what a skill says now, with its files at hand. Raises SkillMissing, BlobMissing."""
    if skill.active is None:
        raise SkillMissing
    with desk() as on:
        yield of_revision(skill.active, skillfiles.copied(skill.key, skill.active.files, on))


def purge(*, now: datetime) -> int:
    """Delete for good what people deleted of their own, once nobody can want it back; return how many."""
    gone = Skill.objects.of_everyone().filter(owner__isnull=False, deleted_at__lt=now - UNDO_TIME)
    purged = 0
    for skill in gone.order_by("deleted_at", "pk")[:PURGE_AT_ONCE]:
        with transaction.atomic():
            lock(skill.owner_id)
            tried = Experiment.objects.of(skill.owner_id).filter(revision__skill=skill.pk)
            tried.filter(revision__skill__deleted_at__lt=now - UNDO_TIME).delete()  # they hold what it was to say
            if not Skill.objects.of_everyone().filter(pk=skill.pk, deleted_at__lt=now - UNDO_TIME).delete()[0]:
                continue  # brought back this very moment
            SkillAudit.objects.in_scope(skill.owner_id).filter(key=skill.key).update(slug="", comment="")
        skillfiles.drop(skill.key)
        purged += 1
    return purged
