"""What is remembered of a person, that it was forgotten, and how far their conversations were read for it.

Written by agents/stores alone: memoryrows.py, remembering.py, editedaway.py and memoryswitch.py under the owner's lock,
cursors by memorycursors.py.
"""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from agents.models.cursor import Cursor
from agents.models.owned import Owned
from agents.models.session import Session
from agents.runtime.memory.dates import Precision
from agents.runtime.memory.memories import Kind, Source
from agents.runtime.memory.policies import Verb

ID_CHARS = 16


class Memory(Owned):
    """One statement: agents.runtime.memory.memories.Memory as a row, and what makes it findable and unique.

    Its searchable entry (search_entry.py) has kind "memory" and this row's key as ref and group. What it superseded
    points to it and is deleted with it. origin_*: the message it comes from; no foreign key, because a memory outlives
    its conversation.
    """

    memory_id = models.CharField(max_length=ID_CHARS)
    text = models.TextField()
    kind = models.CharField(max_length=8, choices=[(k.value, k.value) for k in Kind])
    topics = ArrayField(models.TextField(), default=list, blank=True)
    # the period it speaks of; all three or none
    event_start = models.DateTimeField(null=True, blank=True)
    event_end = models.DateTimeField(null=True, blank=True)
    event_precision = models.CharField(max_length=8, blank=True, choices=[(p.value, p.value) for p in Precision])
    participants = ArrayField(models.TextField(), default=list, blank=True)
    location = models.TextField(blank=True)
    source = models.CharField(max_length=9, choices=[(s.value, s.value) for s in Source])
    origin_thread = models.CharField(max_length=128, blank=True)
    origin_event = models.CharField(max_length=128, blank=True)
    origin_position = models.BigIntegerField(null=True, blank=True)
    content_hash = models.CharField(max_length=64)  # memories.content_hash
    version = models.IntegerField(default=1)
    muted = models.BooleanField(default=False)  # kept and shown to the person, never put before a model
    superseded_by = models.ForeignKey("self", null=True, blank=True, on_delete=models.CASCADE, related_name="earlier")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "memories"
        constraints = [
            models.UniqueConstraint(fields=["owner", "memory_id"], name="memory_id"),
            # of what holds, no two say the same
            models.UniqueConstraint(
                fields=["owner", "content_hash"],
                condition=models.Q(superseded_by__isnull=True),
                name="memory_once",
            ),
        ]
        indexes = [
            # what holds, the latest first
            models.Index(
                fields=["owner", "-updated_at"],
                condition=models.Q(superseded_by__isnull=True),
                name="memory_latest",
            ),
            # what comes from a conversation
            models.Index(
                fields=["owner", "origin_thread"], condition=~models.Q(origin_thread=""), name="memory_origin"
            ),
        ]

    def __str__(self) -> str:
        return self.memory_id  # not the text: this shows in admin and logs


class MemoryTombstone(Owned):
    """That a memory was deleted, and nothing of what it said, so that it does not come back."""

    memory_id = models.CharField(max_length=ID_CHARS)
    hash = models.CharField(max_length=64)  # words.words_hash
    at = models.DateTimeField()
    by = models.CharField(max_length=9, choices=[(s.value, s.value) for s in Source])

    class Meta:
        indexes = [models.Index(fields=["owner", "hash"], name="memory_buried")]

    def __str__(self) -> str:
        return self.memory_id


class MemoryCursor(Cursor):
    """How far a conversation was read for memories."""

    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="memory_cursor")
    extracted_at = models.DateTimeField(null=True, blank=True)


class MemoryChange(Owned):
    """What came of one operation that was proposed for memory, in a run or after it.

    run: the client's name of the run that the message belongs to, whose answer shows the change. verb: what was done,
    "" = nothing; reason: policies.Reason, or the code of an error. before: what an update overwrote, as
    encoding.as_json of the draft, so that it can be undone; emptied when the memory is deleted. undone_at: a person
    took it back.
    """

    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    run = models.CharField(max_length=128, blank=True)
    position = models.BigIntegerField(default=0)  # of the message
    proposed = models.CharField(max_length=9, choices=[(v.value, v.value) for v in Verb])
    verb = models.CharField(max_length=9, blank=True, choices=[(v.value, v.value) for v in Verb])
    reason = models.CharField(max_length=64)
    memory_id = models.CharField(max_length=ID_CHARS, blank=True)
    replaced = models.CharField(max_length=ID_CHARS, blank=True)  # id of what it superseded
    version = models.IntegerField(null=True, blank=True)  # of the memory, after the change
    before = models.JSONField(null=True, blank=True)
    source = models.CharField(max_length=9, choices=[(s.value, s.value) for s in Source])
    at = models.DateTimeField()
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["session", "run"], name="memory_changes"),
            models.Index(fields=["owner", "memory_id"], name="memory_changed"),
        ]

    def __str__(self) -> str:
        return f"{self.verb or 'nothing'} {self.memory_id}"


class MemorySetting(Owned):
    """Whether a person's memories are read and written. Without a row they are.

    since: when they were last switched on; what was said before, while they were off, is never read for memories.
    """

    owner = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    enabled = models.BooleanField(default=True)
    since = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.owner_id}: {'on' if self.enabled else 'off'}"
