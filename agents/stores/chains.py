"""What there is of a conversation when a run begins: its session, its forks, its visible chain."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from agents.runtime.events import Stored
from agents.runtime.scopes import in_subtree
from agents.runtime.session import Session
from agents.runtime.summaries import Summary
from agents.stores import events, histories, policies, pool, sql, state, summaryrows

_JSON = (3, 7, 10, 14, 16)  # columns of OPENING


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A line of the conversation: number, the fork it left, and up to which position both are the same."""

    number: int
    parent: int | None
    shared_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What OPENING answers. id: None = the thread is new.

    summaries: the newest that the head's chain sees, of the agent's scope, those below it, and the whole session's.
    message_known: a message of the id that was asked for is stored, in whatever fork. remembers: something is
    remembered of the owner, who wants it to be. forgotten: number of their last deletion from memory, 0 = none.
    libraries: how often the skills that everyone sees, and the owner's own, have changed.
    """

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
    slots: tuple[int | None, ...]  # of the owner's running runs, in all processes: one each
    summaries: Mapping[str, Summary] = field(default_factory=dict)
    message_known: bool = False
    remembers: bool = False
    forgotten: int = 0
    libraries: tuple[int, int] = (0, 0)

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


def cut(parts: Sequence[tuple[int, int]], position: int) -> list[tuple[int, int]]:
    """Return a chain that ends at this position."""
    return [(fork, min(up_to, position)) for fork, up_to in parts]


def read_from(summaries: Mapping[str, Summary], filter_key: str) -> int:
    """Return the position from which a run of this scope must read, 0 = from the beginning.

    Summaries of scopes below its own do not cover what lies beside them, so with those alone all is read.
    """
    summary = summaries.get(filter_key)
    if summary is None and not any(below(key, filter_key) for key in summaries):
        summary = summaries.get("")
    return 0 if summary is None or summary.read_from <= 1 else summary.read_from


def below(key: str, scope: str) -> bool:
    """Return whether a scope lies below another, and is not the same."""
    return bool(key) and key != scope and in_subtree(scope, key)


async def find(owner_id: int, thread_id: str, agent: str, run_id: str = "", message_id: str = "") -> Found:
    """Return what there is of a thread, and of a run and a message of it, in one statement.

    Raises StorageUnavailable.
    """
    rows = await pool.fetch(sql.OPENING, (owner_id, thread_id, agent, run_id, message_id))
    return read_found(rows[0])


async def known_chain(found: Found, *, since: int = 0) -> tuple[Stored, ...]:
    """Return the head's chain from a position on; of one that this process knows only what is new is read."""
    if found.id is None:
        return ()
    known = histories.current().find((found.id, found.head_fork, found.forgotten))
    if known is None or known.position > found.last_position or known.since > since:
        return await visible_chain(found, found.head_fork, since=since)
    events = from_position(known.events, since)
    if (known.position, known.last_id) == (found.last_position, found.last_id):
        return events
    more = await visible_chain(found, found.head_fork, since=known.position)
    if not more or (more[0].position, more[0].id) != (known.position, known.last_id):
        return await visible_chain(found, found.head_fork, since=since)
    return (*events, *more[1:]) if events else from_position(more, since)


def from_position(events: tuple[Stored, ...], position: int) -> tuple[Stored, ...]:
    """Return the events from this position on."""
    return events[bisect_left(events, position, key=lambda stored: stored.position) :]


async def visible_chain(found: Found, head: int, *, since: int = 0) -> tuple[Stored, ...]:
    """Return the chain that ends in fork `head`, oldest first, from position `since` on; () of a new thread."""
    if found.id is None:
        return ()
    parts = chain(found.forks, head)
    forks, up_to = [fork for fork, _ in parts], [last for _, last in parts]
    return tuple(events.load(row) for row in await pool.fetch(sql.CHAIN, (forks, up_to, found.id, since)))


async def state_at(found: Found, position: int) -> dict[str, Any]:
    """Return the session's own state on the head's chain after this position, from its changes alone."""
    parts = cut(chain(found.forks, found.head_fork), position)
    forks, up_to = [fork for fork, _ in parts], [last for _, last in parts]
    own: dict[str, Any] = {}
    for (payload,) in await pool.fetch(sql.STATE_CHANGES, (forks, up_to, found.id)):
        own.update(state.changes(payload))
    return own


async def summaries_at(found: Found, owner_id: int, position: int) -> dict[str, Summary]:
    """Return the newest summaries of the scopes in `found` as the head's chain sees them that ends at this position."""
    parts = cut(chain(found.forks, found.head_fork), position)
    rows = await pool.fetch(
        sql.SUMMARIES_OF_PARTS,
        {
            "session": found.id,
            "owner": owner_id,
            "keys": list(found.summaries),
            "forks": [fork for fork, _ in parts],
            "up_to": [last for _, last in parts],
        },
    )
    return {summary.filter_key: summary for summary in (summaryrows.load(row) for (row,) in rows)}


def read_found(row: Sequence[Any]) -> Found:
    """Return the row of OPENING, from psycopg or from Django's cursor, which leaves JSON as text.

    What it says of policies is learnt for the whole process.
    """
    values = [orjson.loads(value) if n in _JSON and isinstance(value, str) else value for n, value in enumerate(row)]
    policies.learn(values[16] or {})
    found = [summaryrows.load(value) for value in values[14] or ()]
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
        slots=tuple(values[13] or ()),
        summaries={summary.filter_key: summary for summary in found},
        message_known=values[15],
        remembers=values[17],
        forgotten=values[18],
        libraries=(values[19][0], values[19][1]),
    )
