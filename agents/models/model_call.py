from django.db import models

from agents.models.owned import Owned
from agents.models.run import Run
from agents.models.session import Session


class ModelCall(Owned):
    """One call to a model. `parts` names what was sent (agents.runtime.session.PartRef), so that the request can be
    rebuilt; `request_sha256` says whether the rebuilt one is the same."""

    class Purpose(models.TextChoices):
        CHAT = "chat"
        SUMMARY = "summary"
        MEMORY = "memory"
        REVIEW = "review"
        TITLE = "title"

    call_id = models.CharField(max_length=64, unique=True)
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="model_calls")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="calls")
    invocation_id = models.CharField(max_length=64, blank=True)
    purpose = models.CharField(max_length=8, choices=Purpose.choices, default=Purpose.CHAT)
    provider = models.CharField(max_length=32)
    model = models.CharField(max_length=128)
    prompt_tokens = models.IntegerField(default=0)
    cached_tokens = models.IntegerField(default=0)
    completion_tokens = models.IntegerField(default=0)
    reasoning_tokens = models.IntegerField(default=0)
    ttft_ms = models.FloatField(null=True, blank=True)
    latency_ms = models.FloatField(default=0)
    finish_reason = models.CharField(max_length=16, blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    parts = models.JSONField(default=list, blank=True)
    request_sha256 = models.CharField(max_length=64, blank=True)
    started_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["run", "id"], name="model_call_run")]  # the inspector: calls of a run in order

    def __str__(self) -> str:
        return f"{self.purpose} {self.call_id}"
