from django.db import models

from agents.models.owned import Owned
from agents.models.session import Session


class Artifact(Owned):
    """A file and its history. `session` null = shared by all sessions of the owner ("user:" names, library)."""

    public_id = models.UUIDField(unique=True)  # what URLs and references carry
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="artifacts")
    name = models.CharField(max_length=255)
    last_version = models.IntegerField(default=0)  # also counts deleted ones: a number is never given again
    deleted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "session", "name"], name="artifact_name", nulls_distinct=False)
        ]

    def __str__(self) -> str:
        return self.name


class Version(Owned):
    """One version, immutable. The blob was written before this row; a blob without a row is swept."""

    class Origin(models.TextChoices):
        UPLOAD = "upload"
        TOOL = "tool"
        EDIT = "edit"
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
    text_status = models.CharField(max_length=10, blank=True)  # "", ready, failed: state of the extracted text
    text_blob = models.CharField(max_length=100, blank=True)
    text_error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["artifact", "number"], name="version_number")]

    def __str__(self) -> str:
        return f"{self.artifact_id}@{self.number}"
