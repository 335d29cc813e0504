"""Skills that are kept in tables: the skill, its revisions, who did what to it, and what a person has switched off.

Written by stores/skilllibrary.py alone, under the lock of the scope's SkillLibrary row. Without an owner a row is
everyone's. Skills that come with the program lie on disk and have no rows here.
"""

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from agents.models.owned import M, Owned, OwnedManager
from agents.models.session import Session
from agents.runtime.skills.skill import DESCRIPTION_CHARS, NAME_CHARS, SkillScope

DIGEST_CHARS = 64
WORD_CHARS = 16  # of states and verbs


class SharedManager(OwnedManager[M]):
    """Narrows to what one person may see: their own, and of everyone's what `visible` lets through."""

    visible: ClassVar[Q] = Q()

    def of(self, owner_id: int) -> models.QuerySet[M]:
        return self.of_everyone().filter(Q(owner_id=owner_id) | Q(owner=None) & self.visible)

    def in_scope(self, owner_id: int | None) -> models.QuerySet[M]:
        """Return one person's own, None = everyone's, in whatever state: for the store, and for staff."""
        return self.of_everyone().filter(owner_id=owner_id)


class SkillManager(SharedManager[M]):
    visible = Q(active__isnull=False)


class RevisionManager(SharedManager[M]):
    """What was never published for everyone is seen by staff alone, and by whoever proposed it."""

    visible = Q(promoted_at__isnull=False)

    def of(self, owner_id: int) -> models.QuerySet[M]:
        return super().of(owner_id) | self.of_everyone().filter(proposed_by_id=owner_id)


class Shared(models.Model):
    """A row of one person, or of everyone."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )

    all_owners: ClassVar[models.Manager[Any]] = models.Manager()
    objects: ClassVar[Any] = SharedManager()

    class Meta:
        abstract = True
        base_manager_name = "all_owners"
        default_manager_name = "all_owners"


class SkillLibrary(Shared):
    """How often what can be seen of a scope has changed: whoever knows the number need not read the rest.

    Its row is also the lock of everything that is written in the scope.
    """

    version = models.BigIntegerField(default=1)

    class Meta(Shared.Meta):
        verbose_name_plural = "skill libraries"
        constraints = [models.UniqueConstraint(fields=["owner"], name="skill_library", nulls_distinct=False)]

    def __str__(self) -> str:
        return f"{self.owner_id or 'everyone'}: {self.version}"


class Skill(Shared):
    """A name, and which revision holds. slug: what runs and addresses call it by.

    active: None = there is none to use: it waits for approval, cannot be read, or was deleted for everyone. managed:
    made or edited here, not only imported, so that a review of runs may propose changes. deleted_at: of a person's
    own; hidden, and purged by the sweep after the undo time.
    """

    key = models.UUIDField(unique=True)  # where its files lie in storage
    slug = models.CharField(max_length=NAME_CHARS)
    enabled = models.BooleanField(default=True)
    managed = models.BooleanField(default=False)
    active = models.ForeignKey("SkillRevision", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    deleted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    objects: ClassVar[SkillManager[Any]] = SkillManager()

    class Meta(Shared.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "slug"], condition=Q(deleted_at=None), name="skill_slug", nulls_distinct=False
            )
        ]
        indexes = [
            # the sweep: what is to be purged
            models.Index(fields=["deleted_at"], name="skill_purge", condition=Q(deleted_at__isnull=False))
        ]

    def __str__(self) -> str:
        return self.slug


class SkillRevision(Shared):
    """What a skill said at one time. Its content never changes, only what was decided about it.

    name: as people wrote it. docs: [{path, text}], of files whose text is read on demand. files: [{path, size,
    sha256}], all of them, SKILL.md too. digest: format.digest of them. problem: format.Problem, "" = it can be used;
    words say it in English. parent: what was active when it was made. promoted_at: when it last became active.
    """

    class Status(models.TextChoices):
        PENDING = "pending"  # gates have not decided
        PENDING_EVAL = "pending_eval"  # waits for an outcome
        PENDING_APPROVAL = "pending_approval"  # waits for a person
        ACTIVE = "active"
        ARCHIVED = "archived"  # was active
        REJECTED = "rejected"
        EXPIRED = "expired"  # nobody decided in time

    class Action(models.TextChoices):
        CREATE = "create"
        UPDATE = "update"
        DELETE = "delete"

    class Source(models.TextChoices):
        PERSON = "person"
        IMPORT = "import"
        REVIEWER = "reviewer"
        SUBMISSION = "submission"

    skill = models.ForeignKey(Skill, on_delete=models.CASCADE, related_name="revisions")
    number = models.IntegerField()
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    name = models.CharField(max_length=200)
    description = models.CharField(max_length=DESCRIPTION_CHARS)
    body = models.TextField()
    docs = models.JSONField(default=list, blank=True)
    files = models.JSONField(default=list, blank=True)
    digest = models.CharField(max_length=DIGEST_CHARS)
    problem = models.CharField(max_length=WORD_CHARS, blank=True)
    words = models.CharField(max_length=300, blank=True)
    status = models.CharField(max_length=WORD_CHARS, choices=Status.choices)
    action = models.CharField(max_length=WORD_CHARS, choices=Action.choices)
    source = models.CharField(max_length=WORD_CHARS, choices=Source.choices)
    evidence = models.JSONField(default=dict, blank=True)
    reports = models.JSONField(default=dict, blank=True)
    proposed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    comment = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField()
    promoted_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[RevisionManager[Any]] = RevisionManager()

    class Meta(Shared.Meta):
        constraints = [
            models.UniqueConstraint(fields=["skill", "number"], name="skill_revision_number"),
            models.UniqueConstraint(fields=["skill"], condition=Q(status="active"), name="skill_one_active"),
        ]
        indexes = [
            # what waits for somebody, the oldest first
            models.Index(
                fields=["owner", "created_at"],
                condition=Q(status__in=["pending", "pending_eval", "pending_approval"]),
                name="skill_waiting",
            )
        ]

    def __str__(self) -> str:
        return f"{self.skill_id}@{self.number}"


class SkillAudit(Shared):
    """Who did what to a skill, append only. It outlives the skill; of a person's own that is purged its name goes."""

    class Verb(models.TextChoices):
        SUBMIT = "submit"
        APPROVE = "approve"
        REJECT = "reject"
        HOLD = "hold"
        PROMOTE = "promote"
        ARCHIVE = "archive"
        DELETE = "delete"
        EXPIRE = "expire"
        ROLLBACK = "rollback"

    key = models.UUIDField(db_index=True)  # of the skill
    slug = models.CharField(max_length=NAME_CHARS, blank=True)
    number = models.IntegerField(null=True, blank=True)  # of the revision
    verb = models.CharField(max_length=WORD_CHARS, choices=Verb.choices)
    actor = models.ForeignKey(  # null = the house itself
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    at = models.DateTimeField()
    comment = models.CharField(max_length=500, blank=True)

    class Meta(Shared.Meta):
        pass

    def __str__(self) -> str:
        return f"{self.verb} {self.slug}@{self.number or ''}"


class SkillSwitch(Owned):
    """A person does not use a skill that is not theirs. Without a row they do."""

    scope = models.CharField(max_length=8, choices=[(s.value, s.value) for s in SkillScope])
    slug = models.CharField(max_length=NAME_CHARS)

    class Meta:
        verbose_name_plural = "skill switches"
        constraints = [models.UniqueConstraint(fields=["owner", "scope", "slug"], name="skill_switch")]

    def __str__(self) -> str:
        return f"{self.scope}/{self.slug}"


class SkillUse(Owned):
    """A run read a skill. revision: which one, None = a bundled one, or purged since."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    run_id = models.CharField(max_length=128)  # the client's
    scope = models.CharField(max_length=8, choices=[(s.value, s.value) for s in SkillScope])
    slug = models.CharField(max_length=NAME_CHARS)
    revision = models.ForeignKey(SkillRevision, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "run_id", "scope", "slug"], name="skill_use_once"),
        ]
        # where it was used, the latest first
        indexes = [models.Index(fields=["owner", "scope", "slug", "-at"], name="skill_used")]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.scope}/{self.slug}"
