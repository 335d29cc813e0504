"""Files people and agents make: collections, artifacts with their versions, and the passages of their text."""

from django.db import models
from django.utils import timezone

from agents.models.owned import Owned
from agents.models.session import Session


class Collection(Owned):
    """A named set of library documents; a document is in one of them or in none."""

    public_id = models.UUIDField(unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="collection_name")]

    def __str__(self) -> str:
        return self.name


class Artifact(Owned):
    """A file and its history. `session` null = the owner's library ("user:" names), seen from all sessions.

    A deleted one keeps its versions until `purge_at`, so that it can be restored; the row itself stays, because a
    number is never given again.
    """

    public_id = models.UUIDField(unique=True)  # what URLs and references carry
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="artifacts")
    collection = models.ForeignKey(
        Collection, null=True, blank=True, on_delete=models.SET_NULL, related_name="artifacts"
    )
    name = models.CharField(max_length=255)
    last_version = models.IntegerField(default=0)  # also counts deleted ones: a number is never given again
    deleted_at = models.DateTimeField(null=True, blank=True)
    purge_at = models.DateTimeField(null=True, blank=True)  # when a deleted one's versions go; null = nothing to purge
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(default=timezone.now)  # last version, name or place; order of the library

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "session", "name"], name="artifact_name", nulls_distinct=False)
        ]
        indexes = [
            # the library: newest first, of one owner
            models.Index(fields=["owner", "-changed_at", "-id"], name="artifact_list"),
            # the sweep: what is to be purged
            models.Index(fields=["purge_at"], name="artifact_purge", condition=models.Q(purge_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name


class Version(Owned):
    """One version, immutable. The blob was written before this row; a blob without a row is swept."""

    class Origin(models.TextChoices):
        UPLOAD = "upload"  # brought by a person
        TOOL = "tool"  # written in a run
        EDIT = "edit"  # changed or restored by a person, in the page
        GUARD = "guard"  # a tool result that was too long for the conversation

    artifact = models.ForeignKey(Artifact, on_delete=models.CASCADE, related_name="versions")
    number = models.IntegerField()
    blob = models.CharField(max_length=100)  # storage key: opaque, never the person's file name
    mime = models.CharField(max_length=127)
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    original_name = models.CharField(max_length=255, blank=True)
    origin = models.CharField(max_length=6, choices=Origin.choices)
    run_id = models.CharField(max_length=128, blank=True)
    tool_call_id = models.CharField(max_length=128, blank=True)
    base_number = models.IntegerField(null=True, blank=True)
    text_status = models.CharField(max_length=10, blank=True)  # rows.TextStatus: state of the extracted text
    text_blob = models.CharField(max_length=100, blank=True)
    text_error = models.CharField(max_length=300, blank=True)
    text_chars = models.IntegerField(default=0)
    pages_read = models.IntegerField(default=0)  # while reading: page `pages_read` of `pages`
    pages = models.IntegerField(default=0)  # 0 = has none, or not known yet
    note = models.CharField(max_length=300, blank=True)  # why this version was made, for the version list
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["artifact", "number"], name="version_number")]
        indexes = [
            # the sweep: readings that nobody will finish
            models.Index(
                fields=["created_at"],
                name="version_unread",
                condition=models.Q(text_status__in=["waiting", "reading"]),
            )
        ]

    def __str__(self) -> str:
        return f"{self.artifact_id}@{self.number}"


class Passage(Owned):
    """A stretch of a version's extracted text, the unit that is searched and cited. Kept as long as the version.

    start, end: characters of the text. place: agents.runtime.knowledge.Place as JSON, defaults left out. Passages of a
    version do not overlap and follow each other by `number`, from 0.
    """

    # no index of its own: passage_number begins with it
    version = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="passages", db_index=False)
    number = models.IntegerField()
    start = models.IntegerField()
    end = models.IntegerField()
    text = models.TextField()
    place = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "number"], name="passage_number")]

    def __str__(self) -> str:
        return f"{self.version_id}:{self.number}"
