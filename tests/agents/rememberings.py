"""Conversations that a job reads for what is to be remembered, for its tests."""

import asyncio
import json
from datetime import datetime
from typing import Any

from django.db import connections

from agents import jobs, tasks
from agents.models.agent_policy import AgentPolicy
from agents.models.job import Job
from agents.models.memory import Memory as Row
from agents.models.memory import MemoryChange, MemoryCursor
from agents.runtime.events import Record, RunStarted
from agents.runtime.memory.memories import Memory
from agents.runtime.session import Action, Opening, OpenRun, Plan
from agents.stores import db
from agents.stores.memories import PgMemories
from agents.stores.sessions import PgSessionStore
from tests.agents.records import AT, FINISHED, answer, finished, new_id, request, stamp, user
from tests.modelserver import Data, Reply, call, finish


async def say(
    owner_id: int,
    words: str | Record,
    *more: Record,
    thread: str = "t",
    model: str = "offline",
    zone: str = "",
    at: datetime = AT,
    fork_after: int | None = None,
) -> OpenRun:
    """Play a whole turn: RunStarted, a message, more records, an answer, RunFinished. fork_after: an edit."""
    run_id = new_id("r")
    message = user(words, id=f"m-{run_id}") if isinstance(words, str) else words
    action = Action.SEND if fork_after is None else Action.EDIT
    named = "" if fork_after is None else f"m-{run_id}"

    def plan(opening: Opening) -> Plan:
        records = (RunStarted(agent="assistant", model=model, zone=zone), message)
        return Plan(records=tuple(stamp(r, run_id=run_id, at=at) for r in records), fork_after=fork_after)

    asked = request(owner_id, thread, run_id, message=message, action=action, message_id=named)
    opened = await PgSessionStore().open_run(asked, plan)
    rest = [*more, answer("Understood."), finished()]
    await opened.ledger.append([stamp(record, run_id=run_id, at=at) for record in rest], end=FINISHED)
    return opened


def waiting(kind: str = jobs.MEMORY) -> list[int]:
    return list(Job.objects.filter(kind=kind, status=Job.Status.QUEUED).order_by("pk").values_list("pk", flat=True))


async def work(kind: str = jobs.MEMORY) -> None:
    """Do what jobs wait, each as a worker does it: in a thread of its own, and put back or buried if it fails."""
    for job_id in await db.in_thread(waiting)(kind):
        await asyncio.to_thread(_as_a_worker, job_id)


def _as_a_worker(job_id: int) -> None:
    try:
        tasks.run_job(job_id=job_id)
    finally:
        connections.close_all()  # of this thread


async def told(owner_id: int, words: str, **more: Any) -> OpenRun:
    """Play a turn and do the job behind it."""
    opened = await say(owner_id, words, **more)
    await work()
    return opened


async def texts(owner_id: int) -> list[str]:
    """Return what holds, the oldest first."""
    rows = await PgMemories(owner_id).read(muted=True)
    return [memory.text for memory in sorted(rows, key=lambda memory: (memory.created_at, memory.id))]


async def only(owner_id: int) -> Memory:
    """Return the one memory that holds."""
    (memory,) = await PgMemories(owner_id).read(muted=True)
    return memory


async def changes(owner_id: int) -> list[tuple[str, str, str]]:
    """Return (proposed, verb, reason) of what came of the operations, in order."""
    rows = MemoryChange.objects.of(owner_id).order_by("pk").values_list("proposed", "verb", "reason")
    return await db.in_thread(lambda: list(rows))()


async def cursor(owner_id: int) -> int:
    """Return how far the one conversation was read, 0 = it was not; a claim is not left behind."""
    row = await db.in_thread(lambda: MemoryCursor.objects.of(owner_id).first())()
    assert row is None or (row.claimed_by, row.claimed_until) == ("", None)
    return row.position if row else 0


async def statuses(kind: str = jobs.MEMORY) -> list[str]:
    """Return how the jobs stand, in order."""
    rows = Job.objects.filter(kind=kind).order_by("pk").values_list("status", flat=True)
    return await db.in_thread(lambda: list(rows))()


async def due_again(kind: str = jobs.MEMORY) -> None:
    """Let a job that failed be due at once."""
    await db.in_thread(Job.objects.filter(kind=kind, status=Job.Status.QUEUED).update)(next_at=AT)


async def taken(owner_id: int, session_id: int) -> jobs.Claim:
    """Take the job of a conversation, as a worker does."""
    rows = Job.objects.filter(kind=jobs.MEMORY, owner_id=owner_id, session_id=session_id)
    claim = await db.in_thread(lambda: jobs.claim(rows.get().pk))()
    assert claim is not None
    return claim


async def policy(**values: Any) -> None:
    await db.in_thread(AgentPolicy.objects.create)(agent="assistant", values=values)


async def edit(owner_id: int, **columns: Any) -> None:
    await db.in_thread(Row.objects.of(owner_id).update)(**columns)


def add(words: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "add", {"memory": words, **more}


def calls(*made: tuple[str, dict[str, Any] | str], reason: str = "tool_calls") -> Reply:
    """Return a model's answer of these calls: (name without "memory_", arguments)."""
    steps: list[Data] = []
    for number, (name, values) in enumerate(made):
        text = values if isinstance(values, str) else json.dumps(values)
        steps.append(call(text, index=number, id=f"c{number}", name=f"memory_{name}"))
    return Reply(steps=(*steps, *finish(reason if made else "stop")))


def sent(body: Any) -> str:
    """Return what a model was asked."""
    return "\n".join(str(message["content"]) for message in body["messages"])
