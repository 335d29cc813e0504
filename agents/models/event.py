from django.conf import settings
from django.db import models
from django.db.models.fields.json import KT

from agents.models.owned import Owned
from agents.models.run import Run
from agents.models.session import Session


class Event(Owned):
    """One thing that happened: a Record of agents.runtime.events. Append-only, but for what a person has deleted from
    memory; written by the stores alone.

    `position` runs from 1 without gaps in a session, over all forks. Events go with their session; owner and run are
    taken from rows the writing statement holds, so they need no check and no index of their own (half of its time).
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="events", db_index=False)
    position = models.BigIntegerField()
    fork = models.IntegerField(default=0)
    run = models.ForeignKey(
        Run, on_delete=models.DO_NOTHING, related_name="events", db_constraint=False, db_index=False
    )
    event_id = models.CharField(max_length=128)
    type = models.CharField(max_length=24)
    invocation_id = models.CharField(max_length=64)
    author = models.CharField(max_length=64)
    branch = models.CharField(max_length=256, blank=True)
    filter_key = models.CharField(max_length=256, blank=True)
    origin = models.JSONField(default=dict, blank=True)  # parent invocation and trigger, if any
    payload = models.JSONField()
    tokens = models.IntegerField(default=0)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "position"], name="event_position"),
            models.UniqueConstraint(
                fields=["session", "event_id"], condition=~models.Q(event_id=""), name="event_id_once"
            ),
        ]
        indexes = [
            # the visible history: one range of positions per fork of the chain
            models.Index(fields=["session", "fork", "position"], name="event_chain"),
            # whether a message was stored before, and what changed a state, without reading a long history
            models.Index("session", KT("payload__id"), condition=models.Q(type="user_message"), name="event_message"),
            models.Index(
                fields=["session", "fork", "position"],
                condition=models.Q(type="state_changed"),
                name="event_state_changed",
            ),
            # what tools showed of memory: it goes when the memory is deleted (stores/memorytraces.py)
            models.Index(
                fields=["owner"],
                condition=models.Q(type="tool_returned", payload__name__startswith="memory_"),
                name="event_memory",
            ),
        ]
        permissions = [("read_event_bodies", "Can read what people and agents wrote")]

    def __str__(self) -> str:
        return f"{self.session_id}:{self.position} {self.type}"
