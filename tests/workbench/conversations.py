"""Stored conversations for the page's tests, written straight into the tables."""

import datetime as dt
import itertools
from typing import Any

from django.utils import timezone

from agents.models.event import Event
from agents.models.run import Run
from agents.models.session import Fork, Session
from agents.runtime import codec
from agents.runtime.events import (
    AssistantMessage,
    Outcome,
    Record,
    RunFailed,
    RunFinished,
    RunStarted,
    UserMessage,
)
from agents.runtime.model import TextPart
from agents.runtime.session import RunStatus

numbers = itertools.count(1)


def conversation(owner: Any, thread_id: str, *, title: str = "", age: dt.timedelta = dt.timedelta()) -> Session:
    """Return an empty conversation, last touched `age` ago."""
    session = Session.objects.of(owner.pk).create(owner=owner, thread_id=thread_id, agent="assistant", title=title)
    Fork.objects.create(session=session, number=0)
    Session.objects.of(owner.pk).filter(pk=session.pk).update(active_at=timezone.now() - age)
    session.refresh_from_db()
    return session


def run(session: Session, run_id: str, *records: Record, status: RunStatus = RunStatus.FINISHED) -> Run:
    """Store a run with its records, RunStarted first."""
    now = timezone.now()
    row = Run.objects.of(session.owner_id).create(
        owner_id=session.owner_id,
        session=session,
        client_id=run_id,
        fork=session.head_fork,
        agent="assistant",
        status=status.value,
        lease_expires_at=now + dt.timedelta(seconds=60),
        started_at=now,
    )
    position = session.last_position
    for record in (RunStarted(agent="assistant", model="test"), *records):
        position += 1
        Event.objects.of(session.owner_id).create(
            owner_id=session.owner_id,
            session=session,
            position=position,
            fork=session.head_fork,
            run=row,
            event_id=f"e{next(numbers)}",
            type=record.type,
            invocation_id="i",
            author="assistant",
            payload=codec.dump(record),
            at=now + dt.timedelta(milliseconds=position),
        )
    Session.objects.of(session.owner_id).filter(pk=session.pk).update(last_position=position)
    session.refresh_from_db()
    return row


def asked(text: str, message_id: str = "") -> UserMessage:
    return UserMessage(id=message_id or f"u{next(numbers)}", parts=(TextPart(text=text),))


def answered(text: str, message_id: str = "") -> AssistantMessage:
    message_id = message_id or f"a{next(numbers)}"
    return AssistantMessage(id=message_id, response_id=message_id, text=text)


def ended(outcome: Outcome = Outcome.SUCCESS) -> RunFinished:
    return RunFinished(outcome=outcome)


def failed(code: str, reference: str = "") -> RunFailed:
    return RunFailed(code=code, message="not for people", reference=reference)
