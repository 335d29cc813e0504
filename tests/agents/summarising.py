"""Conversations with summaries, for the tests of the stores and of the job."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agents.runtime.events import Stored
from agents.runtime.session import Action, OpenRun
from agents.runtime.summaries import Boundary, Summary
from agents.stores import pool, sessions, writer
from agents.stores.sessions import PgSessionStore
from agents.stores.summaries import PgSummaries
from tests.agents.records import AT, FINISHED, answer, changed, finished, new_id, planner, request, stamp, user

AGENT = "assistant"


async def say(
    owner_id: int, words: str, *, run_id: str, fork_after: int | None = None, answers: int = 1, **state: Any
) -> OpenRun:
    """Play a whole turn and return how it was opened: RunStarted, a message, a state, answers, RunFinished."""
    message = user(words, id=f"m-{run_id}")
    action = Action.SEND if fork_after is None else Action.EDIT
    named = "" if fork_after is None else f"m-{run_id}"
    asked = request(owner_id, run_id=run_id, message=message, action=action, message_id=named)
    records = (message, changed(**state)) if state else (message,)
    opened = await PgSessionStore().open_run(asked, planner(*records, run_id=run_id, fork_after=fork_after))
    await opened.ledger.append([stamp(answer(f"{words} {n}"), run_id=run_id) for n in range(answers)])
    await opened.ledger.append([stamp(finished(), run_id=run_id)], end=FINISHED)
    return opened


async def chain(owner_id: int) -> tuple[Stored, ...]:
    return (await sessions.visible(owner_id=owner_id, thread_id="t")).stored


def store(opened: OpenRun, *, owner_id: int | None = None) -> PgSummaries:
    session = opened.session
    return PgSummaries(
        owner_id=session.owner_id if owner_id is None else owner_id, session_id=int(session.id), fork=session.fork
    )


def up_to(stored: Stored, text: str = "what was said", *, base: str = "", key: str = AGENT, **more: Any) -> Summary:
    """Return a summary whose boundary is this event; a run reads from the beginning of its turn, of four records."""
    return Summary(
        id=more.pop("id", "") or new_id("s"),
        text=text,
        filter_key=key,
        boundary=Boundary(position=stored.position, fork=stored.fork, event_id=stored.id, at=stored.at),
        read_from=more.pop("read_from", stored.position - 3),
        made_at=AT,
        base=base,
        **more,
    )


async def elsewhere(work: Callable[[], Awaitable[Any]]) -> Any:
    """Do something as another process does it: in a loop with connections, a writer and histories of its own."""

    async def alone() -> Any:
        try:
            return await work()
        finally:
            await writer.close()
            await pool.close()

    return await asyncio.to_thread(lambda: asyncio.run(alone()))
