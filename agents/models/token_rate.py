from django.db import models


class TokenRate(models.Model):
    """What a model's tokens cost, as learnt from the usage that its provider reported. Belongs to nobody.

    values: the state of agents.runtime.calibrating.Calibrator; what it cannot read counts as nothing learnt. Written by
    stores/calibrations.py alone.
    """

    provider = models.CharField(max_length=32)
    model = models.CharField(max_length=128)
    values = models.JSONField(default=dict, blank=True)
    calls = models.BigIntegerField(default=0)  # how many calls it was learnt from
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "model"], name="token_rate_once")]

    def __str__(self) -> str:
        return f"{self.provider} {self.model}"
