"""How far something read a conversation, for every job that reads what is behind that."""

from django.db import models

from agents.models.owned import Owned


class Cursor(Owned):
    """position: of the last event that was looked at, over all forks. claimed_by, claimed_until: the job that reads
    what comes behind it; a claim that ran out counts for nothing. Subclasses name the session.
    """

    position = models.BigIntegerField(default=0)
    claimed_by = models.CharField(max_length=64, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)

    class Meta(Owned.Meta):
        abstract = True

    def __str__(self) -> str:
        return f"{self.pk}:{self.position}"
