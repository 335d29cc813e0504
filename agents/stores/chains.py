"""What there is of a conversation when a run begins: its session, its forks, its visible chain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agents.runtime.events import Stored
from agents.runtime.session import Session
from agents.stores import events, histories, pool, sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A line of the conversation: number, the fork it left, and up to which position both are the same."""

    number: int
    parent: int | None
    shared_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What OPENING answers. id: None = the thread is new."""

    id: int | None
    agent: str
    title: str
    own_state: Mapping[str, Any]
    shared_state: Mapping[str, Any]
    head_fork: int
    last_position: int
    deleted: bool
    forks: tuple[Fork, ...]
    run_key: int | None
    running: str | None
    steered: bool  # a steering message waits that an earlier run did not get to
    last_id: str | None  # of the event at last_position
    running_count: int  # of the owner, in all processes

    def session(self, owner_id: int, thread_id: str) -> Session:
        return Session(
            id="" if self.id is None else str(self.id),
            owner_id=owner_id,
            thread_id=thread_id,
            agent=self.agent,
            title=self.title,
            state={**self.own_state, **self.shared_state},
            fork=self.head_fork,
            last_position=self.last_position,
        )


def chain(forks: Sequence[Fork], head: int) -> list[tuple[int, int]]:
    """Return the visible chain as (fork, up to which position it counts), from the head to the trunk."""
    by_number = {fork.number: fork for fork in forks}
    up_to = 2**62
    out = [(head, up_to)]
    while (fork := by_number.get(head)) is not None and fork.parent is not None:
        up_to = min(up_to, fork.shared_position)
        head = fork.parent
        out.append((head, up_to))
    return out


async def find(owner_id: int, thread_id: str, agent: str, run_id: str = "") -> Found:
    """Return what there is of a thread, and of a run of it, in one statement. Raises StorageUnavailable."""
    rows = await pool.fetch(sql.OPENING, (owner_id, thread_id, agent, run_id))
    return read_found(rows[0])


async def known_chain(found: Found) -> tuple[Stored, ...]:
    """Return the head's chain; of one that this process knows only what is new is read."""
    if found.id is None:
        return ()
    known = histories.current().find((found.id, found.head_fork))
    if known is None or known.position > found.last_position:
        return await visible_chain(found, found.head_fork)
    if (known.position, known.last_id) == (found.last_position, found.last_id):
        return known.events
    more = await visible_chain(found, found.head_fork, since=known.position)
    if not more or (more[0].position, more[0].id) != (known.position, known.last_id):
        return await visible_chain(found, found.head_fork)
    return (*known.events, *more[1:])


async def visible_chain(found: Found, head: int, *, since: int = 0) -> tuple[Stored, ...]:
    """Return the chain that ends in fork `head`, oldest first, from position `since` on; () of a new thread."""
    if found.id is None:
        return ()
    parts = chain(found.forks, head)
    forks, up_to = [fork for fork, _ in parts], [last for _, last in parts]
    return tuple(events.load(row) for row in await pool.fetch(sql.CHAIN, (forks, up_to, found.id, since)))


def read_found(row: Sequence[Any]) -> Found:
    """Return the row of OPENING, from psycopg or from Django's cursor, which leaves JSON as text."""
    values = [
        orjson.loads(value) if n in (3, 7, 10) and isinstance(value, str) else value for n, value in enumerate(row)
    ]
    session_id, agent, title, own, head_fork, last_position, deleted, forks, run_key, running, shared = values[:11]
    return Found(
        id=session_id,
        agent=agent,
        title=title,
        own_state=own or {},
        shared_state=shared or {},
        head_fork=head_fork,
        last_position=last_position,
        deleted=bool(deleted),
        forks=tuple(Fork(number=n, parent=p, shared_position=s) for n, p, s in forks or ()),
        run_key=run_key,
        running=running,
        steered=values[11],
        last_id=values[12],
        running_count=values[13],
    )
