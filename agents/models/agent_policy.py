from django.db import models


class AgentPolicy(models.Model):
    """What staff changed of an agent's context policy. values: fields of agents.runtime.policy.ContextPolicy, and only
    those that differ from the agent's own."""

    agent = models.CharField(max_length=64, unique=True)
    values = models.JSONField(default=dict, blank=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "agent policies"

    def __str__(self) -> str:
        return self.agent
