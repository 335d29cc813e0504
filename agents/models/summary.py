from django.db import models

from agents.models.owned import Owned
from agents.models.session import Session
from agents.runtime.summaries import Source


class Summary(Owned):
    """A rolling summary: a text that stands for the events of a scope up to a boundary, on one chain of forks.

    Rows are kept; on a visible chain the newest of each scope counts: the furthest boundary that lies on it, of equal
    ones the row written last. Written by stores/summaries.py alone, by compare-and-set on `base`.
    """

    summary_id = models.CharField(max_length=64, unique=True)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="summaries", db_index=False)
    filter_key = models.CharField(max_length=256, blank=True, db_collation="C")  # the scope; "" = the whole session
    # the boundary: the last event that is covered
    fork = models.IntegerField()
    position = models.BigIntegerField()
    event_id = models.CharField(max_length=128, blank=True)
    at = models.DateTimeField()
    read_from = models.BigIntegerField()  # position of the first event that a run reads beside the text
    base = models.ForeignKey("self", null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    text = models.TextField()
    citations = models.JSONField(default=list, blank=True)
    tokens = models.IntegerField(default=0)
    covered_tokens = models.BigIntegerField(default=0)
    covered_events = models.IntegerField(default=0)
    summarizer = models.CharField(max_length=64, blank=True)
    model = models.CharField(max_length=128, blank=True)
    source = models.CharField(max_length=12, choices=[(s.value, s.value) for s in Source])
    report = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "summaries"
        indexes = [
            # the newest of a scope: from the furthest boundary back to the first that lies on the chain
            models.Index(fields=["session", "filter_key", "-position", "-id"], name="summary_newest")
        ]

    def __str__(self) -> str:
        return f"{self.session_id}:{self.position}"
