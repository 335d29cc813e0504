"""Small plans and records for the tests of the stores."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

from agents.runtime.events import (
    AssistantMessage,
    Origin,
    Outcome,
    Record,
    RunFinished,
    RunStarted,
    Stamped,
    StateChanged,
    Stored,
    UserMessage,
)
from agents.runtime.model import TextPart, Usage
from agents.runtime.session import Opening, Plan, Planner, RunEnd, RunRequest, RunStatus

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
FINISHED = RunEnd(status=RunStatus.FINISHED, usage=Usage(prompt=10, cached=4, completion=3, reasoning=1), model_calls=2)
_numbers = count(1)


def new_id(prefix: str = "e") -> str:
    return f"{prefix}{next(_numbers)}"


def request(owner_id: int, thread_id: str = "t", run_id: str = "r", **more: Any) -> RunRequest:
    more.setdefault("message", user("hello", id=new_id("m")))
    return RunRequest(owner_id=owner_id, thread_id=thread_id, run_id=run_id, agent="assistant", **more)


def user(words: str, *, id: str = "u", **more: Any) -> UserMessage:
    return UserMessage(id=id, parts=(TextPart(text=words),), **more)


def answer(words: str, **more: Any) -> AssistantMessage:
    message_id = new_id("a")
    return AssistantMessage(id=message_id, response_id=message_id, text=words, **more)


def changed(**delta: Any) -> StateChanged:
    return StateChanged(delta={key.replace("__", ":"): value for key, value in delta.items()})


def finished() -> RunFinished:
    return RunFinished(outcome=Outcome.SUCCESS)


def stamp(record: Record, *, id: str | None = None, run_id: str = "r", at: datetime = AT, **origin: Any) -> Stamped:
    return Stamped(
        id=new_id() if id is None else id,
        at=at,
        origin=Origin(run_id=run_id, invocation_id="i1", author="assistant", **origin),
        record=record,
        tokens=7,
    )


def planner(
    *records: Record, run_id: str = "r", fork_after: int | None = None, model: str = "scripted", **origin: Any
) -> Planner:
    """Return a planner that stores RunStarted and these records, and remembers what it was shown in `.seen`."""

    def plan(opening: Opening) -> Plan:
        plan.seen = opening  # type: ignore[attr-defined]  # a test looks at it
        started = RunStarted(agent="assistant", model=model)
        return Plan(
            records=tuple(stamp(record, run_id=run_id, **origin) for record in (started, *records)),
            fork_after=fork_after,
        )

    return plan


def texts(stored: Sequence[Stored]) -> list[str]:
    """Return the words of the messages, in order."""
    out = []
    for one in stored:
        if isinstance(one.record, UserMessage):
            out.append(one.record.parts[0].text)  # type: ignore[union-attr]  # these tests have text parts only
        elif isinstance(one.record, AssistantMessage):
            out.append(one.record.text)
    return out
