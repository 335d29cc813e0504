"""What was learned of runs: how far they were reviewed, what came of it, and what people said of the answers."""

from django.db import models

from agents.models.cursor import Cursor
from agents.models.owned import Owned
from agents.models.session import Session
from agents.models.skill import SkillRevision
from agents.runtime.evolution.outcomes import Thumb


class ReviewCursor(Cursor):
    """How far a conversation was reviewed.

    declined_until: position up to which it was looked at and found too little, so it is looked at again with what
    follows; declined_at: since when. tries: how often a reviewer failed at what is behind the cursor.
    """

    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="review_cursor")
    declined_until = models.BigIntegerField(default=0)
    declined_at = models.DateTimeField(null=True, blank=True)
    tries = models.IntegerField(default=0)
    reviewed_at = models.DateTimeField(null=True, blank=True)


class Review(Owned):
    """What came of a stretch of a conversation, since < position <= up_to.

    run: the client's name of the last run in it, whose answer shows what is suggested. evidence: as
    evolution.evidence.Evidence.as_json. came: [{action, name, result, words}] of each proposal, also of those that
    were refused.
    """

    class Result(models.TextChoices):
        PROPOSED = "proposed"  # something was put before the gates
        NOTHING = "nothing"  # there was nothing to learn
        TOO_LITTLE = "too_little"  # and it stayed so for too long
        DEAD = "dead"  # no reviewer could read it, time after time

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    run = models.CharField(max_length=128, blank=True)
    since = models.BigIntegerField()
    up_to = models.BigIntegerField()
    result = models.CharField(max_length=16, choices=Result.choices)
    reviewer = models.CharField(max_length=128)  # the model, "" = nobody was asked
    evidence = models.JSONField(default=dict, blank=True)
    came = models.JSONField(default=list, blank=True)
    words = models.CharField(max_length=500, blank=True)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "up_to"], name="review_once")]
        # what an answer shows
        indexes = [models.Index(fields=["session", "run"], name="review_run")]

    def __str__(self) -> str:
        return f"{self.session_id}:{self.since}-{self.up_to} {self.result}"


class Suggestion(Owned):
    """A revision that a review put into the library: the way back from it to the runs it was learned from."""

    review = models.ForeignKey(Review, on_delete=models.CASCADE, related_name="suggestions")
    revision = models.OneToOneField(SkillRevision, on_delete=models.CASCADE, related_name="suggestion")

    def __str__(self) -> str:
        return f"{self.review_id}: {self.revision_id}"


class Feedback(Owned):
    """What a person said of a run's answer. Pressing again takes it back: then there is no row."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    run = models.CharField(max_length=128)  # the client's name
    thumb = models.CharField(max_length=4, choices=[(t.value, t.value) for t in Thumb])
    reasons = models.JSONField(default=list, blank=True)  # of outcomes.Why
    note = models.CharField(max_length=500, blank=True)
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "feedback"
        constraints = [models.UniqueConstraint(fields=["session", "run"], name="feedback_once")]

    def __str__(self) -> str:
        return f"{self.run}: {self.thumb}"


class Experiment(Owned):
    """An attempt to make a skill better over a file of cases. record: what was tried, and how it scored."""

    slug = models.CharField(max_length=64)
    revision = models.ForeignKey(SkillRevision, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    record = models.JSONField(default=dict)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.slug} {self.started_at:%Y-%m-%d %H:%M}"
