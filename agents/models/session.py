from django.conf import settings
from django.db import models

from agents.models.owned import Owned


class Session(Owned):
    """One conversation. `thread_id` is the name clients use; it is unique per owner, and what URLs carry."""

    thread_id = models.CharField(max_length=128)
    agent = models.CharField(max_length=64)
    title = models.CharField(max_length=200, blank=True)
    title_by_person = models.BooleanField(default=False)  # a renamed conversation is never renamed by a job
    pinned_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)  # hidden; purged by the sweep after the undo time
    head_fork = models.IntegerField(default=0)
    last_position = models.BigIntegerField(default=0)
    entries = models.IntegerField(default=0, db_default=0)  # searchable pieces so far: their positions go on from here
    state = models.JSONField(default=dict, blank=True)  # cache: the fold of StateChanged along the head chain
    seen_position = models.BigIntegerField(default=0)  # up to where a person has looked: unread dot
    created_at = models.DateTimeField(auto_now_add=True)
    active_at = models.DateTimeField(auto_now_add=True)  # last thing a person or a run did; order of the list

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "thread_id"], name="session_thread")]
        indexes = [
            # the conversation list: newest first, of one owner
            models.Index(fields=["owner", "-active_at", "-id"], name="session_list"),
            # purge of deleted ones
            models.Index(fields=["deleted_at"], name="session_deleted", condition=models.Q(deleted_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.thread_id  # not the title: it is what people wrote, and this shows in admin and logs


class Fork(models.Model):
    """A line of a conversation. Fork 0 is the trunk; any other shares its parent's line up to `shared_position`.

    The visible history of fork f is: f's own events, its parent's up to shared_position, and so on to the trunk.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="forks")
    number = models.IntegerField()
    parent = models.IntegerField(null=True, blank=True)  # number of the parent fork; null for the trunk
    shared_position = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "number"], name="fork_number")]

    def __str__(self) -> str:
        return f"{self.session_id}/{self.number}"


class State(models.Model):
    """A value that outlives a session. scope "app": of one agent, owner is null; "user": the owner's, agent is ""."""

    class Scope(models.TextChoices):
        APP = "app"
        USER = "user"

    scope = models.CharField(max_length=4, choices=Scope.choices)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    agent = models.CharField(max_length=64, blank=True)
    key = models.CharField(max_length=200)
    value = models.JSONField(null=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["scope", "owner", "agent", "key"], name="state_key", nulls_distinct=False)
        ]

    def __str__(self) -> str:
        return f"{self.scope}:{self.key}"
