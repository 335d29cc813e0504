from django.db import models

from agents.models.owned import Owned
from agents.models.session import Session


class SummaryDraft(Owned):
    """What was made of the beginning of a text that is too long for one making of a summary, until the rest is read.

    One per scope, replaced with every piece, gone once the summary is stored. Written by stores/summaries.py alone.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+", db_index=False)
    filter_key = models.CharField(max_length=256, blank=True, db_collation="C")
    base = models.CharField(max_length=64, blank=True)  # summary_id of the summary that it goes on from
    read_chars = models.BigIntegerField()
    read_sha256 = models.CharField(max_length=64)
    text = models.TextField()
    updated_at = models.DateTimeField()

    class Meta:
        # also what finds it
        constraints = [models.UniqueConstraint(fields=["session", "filter_key"], name="summary_draft_once")]

    def __str__(self) -> str:
        return f"{self.session_id}:{self.filter_key}"
