from django.conf import settings
from django.db import models

from agents.models.session import Session


class Job(models.Model):
    """An outbox row: background work that is owed. It is planted in the transaction that made the work, sent to the
    broker afterwards, and found by the sweep if the broker was away. Written by agents/jobs.py and stores/writer.py."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        DEAD = "dead"  # tried as often as allowed; stays for staff to look at

    kind = models.CharField(max_length=32)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="jobs")
    scope = models.CharField(max_length=256, blank=True)
    range = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=8, choices=Status.choices, default=Status.QUEUED)
    attempts = models.IntegerField(default=0)
    next_at = models.DateTimeField()
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    held_by = models.CharField(max_length=160, blank=True, db_default="")  # the process that has it: agents/holders.py
    error_code = models.CharField(max_length=64, blank=True)
    error_message = models.TextField(blank=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            # one waiting job per kind and scope: asking twice is asking once. It may wait beside one that runs already.
            models.UniqueConstraint(
                fields=["kind", "session", "scope"],
                condition=models.Q(status="queued"),
                name="job_once",
                nulls_distinct=False,
            )
        ]
        indexes = [
            # the sweep: what is due
            models.Index(fields=["next_at"], condition=models.Q(status__in=["queued", "running"]), name="job_due")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"
