from django.db import models

from agents.models.owned import Owned
from agents.models.session import Session
from agents.runtime.session import RunStatus


class Run(Owned):
    """One execution. At most one running run per session: a partial unique index, not a check.

    `epoch` fences: each append names it, and a sweep that closes the run raises it. Times are the database's.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="runs")
    client_id = models.CharField(max_length=128)  # the client's runId; unique per session for ever
    parent_client_id = models.CharField(max_length=128, blank=True)
    fork = models.IntegerField(default=0)
    agent = models.CharField(max_length=64)
    model = models.CharField(max_length=128, blank=True)
    status = models.CharField(
        max_length=12, choices=[(s.value, s.value) for s in RunStatus], default=RunStatus.RUNNING.value
    )
    epoch = models.IntegerField(default=1)
    # Which of the owner's slots for running runs it has, from 0; null: nobody counts them.
    slot = models.IntegerField(null=True, blank=True)
    lease_expires_at = models.DateTimeField()
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    render_html = models.BooleanField(default=False)
    origin = models.CharField(max_length=8, default="api")  # page, api, shell
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    prompt_tokens = models.BigIntegerField(default=0)
    cached_tokens = models.BigIntegerField(default=0)
    completion_tokens = models.BigIntegerField(default=0)
    reasoning_tokens = models.BigIntegerField(default=0)
    model_calls = models.IntegerField(default=0)
    error_code = models.CharField(max_length=64, blank=True)
    error_message = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "client_id"], name="run_client_id"),
            models.UniqueConstraint(
                fields=["session"], condition=models.Q(status=RunStatus.RUNNING.value), name="run_one_running"
            ),
            # two processes that open a run of one owner at once do not both get in
            models.UniqueConstraint(
                fields=["owner", "slot"], condition=models.Q(status=RunStatus.RUNNING.value), name="run_slot"
            ),
        ]
        indexes = [
            # the sweep: running runs whose lease is over
            models.Index(
                fields=["lease_expires_at"], condition=models.Q(status=RunStatus.RUNNING.value), name="run_lease"
            ),
            models.Index(fields=["owner", "-started_at"], name="run_owner"),
        ]

    def __str__(self) -> str:
        return self.client_id


class Inbox(Owned):
    """A message sent into a running run (steer) or kept for after it (queue)."""

    class Kind(models.TextChoices):
        STEER = "steer"
        QUEUE = "queue"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="inbox")
    client_id = models.CharField(max_length=128)  # the client's message id
    kind = models.CharField(max_length=5, choices=Kind.choices)
    payload = models.JSONField()  # a UserMessage, as agents.runtime.codec dumps it
    created_at = models.DateTimeField(auto_now_add=True)
    consumed_at = models.DateTimeField(null=True, blank=True)  # read by a run, or taken back by the person
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        verbose_name_plural = "inbox"
        constraints = [models.UniqueConstraint(fields=["session", "client_id"], name="inbox_client_id")]
        indexes = [
            # what waits for a session, oldest first
            models.Index(fields=["session", "id"], condition=models.Q(consumed_at__isnull=True), name="inbox_waiting")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.client_id}"
