"""Conversations in PostgreSQL: how a run begins, and how its history is read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import orjson
import psycopg
from django.db import connection

from agents.runtime import codec
from agents.runtime.errors import Rejected, RunFenced
from agents.runtime.events import RunStarted, Stamped, Stored, UserMessage
from agents.runtime.planning import enough
from agents.runtime.session import (
    Action,
    ModelCall,
    Opening,
    OpenRun,
    Plan,
    Planner,
    RunEnd,
    RunRequest,
    Session,
)
from agents.runtime.summaries import Summary
from agents.stores import chains, events, histories, pool, sql, state
from agents.stores.writer import Writer, current

LEASE_S = 15.0
_TRIES = 20

# Ledgers of runs going on in this process, so that a steering message can be announced to its run.
_ledgers: WeakValueDictionary[int, "PgLedger"] = WeakValueDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A stretch of the visible chain, oldest first. truncated: older events exist. running: client id of the run going
    on, "" if there is none; its own events are part of `stored`. summary: what the agent reads in place of the oldest
    events of the chain, None without one; its boundary may lie outside the stretch."""

    session: Session
    stored: tuple[Stored, ...]
    truncated: bool
    running: str = ""
    summary: Summary | None = None


class PgLedger:
    """The books of one run. Implements agents.runtime.session.RunLedger; the writer does the work.

    chain: session, fork and visible chain with which the run began, and from which position on that is whole; with the
    run's end all of it is kept for the next.
    """

    def __init__(
        self,
        *,
        run_key: int,
        epoch: int,
        opening_message_id: str = "",
        steered: bool = True,
        writer: Writer | None = None,
        chain: tuple[histories.Key, int, Sequence[Stored]] | None = None,
    ) -> None:
        self.run_key = run_key
        self.epoch = epoch
        self._writer = writer or current()
        self._opening_message_id = opening_message_id
        self._seen: set[int] = set()
        self._inbox_waiting = steered
        self._key = chain[0] if chain else None
        self._since = chain[1] if chain else 0
        self._chain = list(chain[2]) if chain else []
        _ledgers[run_key] = self

    async def append(
        self, records: Sequence[Stamped], *, end: RunEnd | None = None, summarise: bool = False
    ) -> tuple[Stored, ...]:
        """Store records in order; see RunLedger.append. Also raises RecordInvalid and, for a temp: key, ValueError."""
        stored = await self._writer.append(
            run_key=self.run_key, epoch=self.epoch, records=records, end=end, summarise=summarise
        )
        if self._key is not None:
            # an id met again brings the event that is there already
            self._chain += [event for event in stored if event.position > self._chain[-1].position]
            if end is not None:
                histories.current().keep(self._key, self._chain, since=self._since)
        return stored

    async def model_called(self, call: ModelCall) -> None:
        """Store one model call, no later than the next append."""
        self._writer.model_called(run_key=self.run_key, epoch=self.epoch, call=call)

    async def steered(self) -> tuple[UserMessage, ...]:
        """Return the steering messages that wait and mark them read. No statement if none was announced."""
        if not self._inbox_waiting:
            return ()
        self._inbox_waiting = False
        rows = await pool.fetch(sql.TAKE_STEERING, (self.run_key, self.epoch))
        if not rows:
            raise RunFenced
        out: list[UserMessage] = []
        for _, inbox_id, payload in rows:
            if inbox_id is None or inbox_id in self._seen:
                continue
            self._seen.add(inbox_id)
            message = codec.load("user_message", payload)
            assert isinstance(message, UserMessage)
            if message.id != self._opening_message_id:
                out.append(message)
        return tuple(out)

    def notice_inbox(self) -> None:
        """Say that a steering message waits, so that the next `steered` asks the database."""
        self._inbox_waiting = True


def notice_inbox(run_key: int) -> bool:
    """Tell a run that a steering message waits for it; False if the run is not in this process."""
    ledger = _ledgers.get(run_key)
    if ledger is None:
        return False
    ledger.notice_inbox()
    return True


class PgSessionStore:
    """Where runs begin. Implements agents.runtime.session.SessionStore.

    Three statements: what is there, its history, and all of the new run in one. The last one takes only a session that
    is as it was read; if it moved on meanwhile, everything is read and planned again. The history begins where the
    newest summary says; going back behind that reads it all, which takes two statements more.

    runs_per_owner: at most so many may be running, in all processes; past it a run is Rejected as rate_limited. Each
    has a slot of its own, so of runs that race for the last one the database lets one in. summarised: whether an
    agent's requests are made with summaries; of others a run reads everything.
    """

    def __init__(
        self, *, runs_per_owner: int | None = None, summarised: Callable[[str], bool] = lambda agent: True
    ) -> None:
        self._runs_per_owner = runs_per_owner
        self._summarised = summarised

    async def open_run(self, request: RunRequest, plan: Planner) -> OpenRun:
        """Create the run and store its first records in one transaction; see SessionStore.open_run."""
        mine: set[str] = set()
        message_id = request.message.id if request.message is not None else ""
        for _ in range(_TRIES):
            found = await chains.find(request.owner_id, request.thread_id, request.agent, request.run_id, message_id)
            if found.run_key is not None and mine:
                if opened := await self._recover(request, found, mine):
                    return opened
            _admit(request, found)
            if self._runs_per_owner is not None and len(found.slots) >= self._runs_per_owner:
                raise too_many_runs()
            opening = await self._planned(request, found, plan)
            opening.slot = self._slot(found)
            mine.add(opening.rows[0].stamped.id)
            try:
                rows = await pool.fetch(sql.OPEN_NEW if found.id is None else sql.OPEN_KNOWN, opening.params())
            except psycopg.errors.UniqueViolation as e:
                if e.diag.constraint_name == "event_id_once":
                    raise Rejected(
                        "invalid_input", "A message with this id is already part of the conversation."
                    ) from e
                continue  # another run of this session, id or slot was first; the next look says which
            except psycopg.DataError as e:
                raise Rejected("invalid_input") from e
            if rows:
                return opening.result(*rows[0])
        raise Rejected("run_conflict")

    def _slot(self, found: chains.Found) -> int | None:
        """Return the lowest free of the owner's slots; None if nobody counts: then openings need not meet."""
        if self._runs_per_owner is None:
            return None
        taken = frozenset(found.slots)
        return next(n for n in range(len(found.slots) + 1) if n not in taken)

    async def _planned(self, request: RunRequest, found: chains.Found, plan: Planner) -> "_Opening":
        """Return what to store, planned on as much of the history as the plan needs. Raises what the planner raises."""
        since = self._read_from(found.summaries, found.agent)
        if since:
            history = await chains.known_chain(found, since=since)
            opening = _seen(request, found, history, since)
            if enough(opening, request) and self._fits(made := plan(opening), found):
                return await self._opening(request, found, made, _Read(since=since, history=history))
        history = await chains.known_chain(found)
        made = plan(_seen(request, found, history, 0))
        return await self._opening(request, found, made, _Read(since=0, history=history))

    def _read_from(self, summaries: Mapping[str, Summary], agent: str) -> int:
        return chains.read_from(summaries, agent) if self._summarised(agent) else 0

    def _fits(self, made: Plan, found: chains.Found) -> bool:
        """Return whether a plan made on a part of the history needs no more: the same agent and the same summary."""
        agent = _started(made).agent
        if agent != found.agent:
            return False
        summary = found.summaries.get(agent) or found.summaries[""]
        return made.fork_after is None or summary.boundary.position <= made.fork_after

    async def _opening(self, request: RunRequest, found: chains.Found, made: Plan, read: "_Read") -> "_Opening":
        """Return the try to open the run, with the history, summaries and state that its fork sees."""
        history, summaries, own_state = read.history, found.summaries, found.own_state
        after = made.fork_after
        if after is not None and found.id is not None:
            history = tuple(stored for stored in history if stored.position <= after)
            own_state = await chains.state_at(found, after) if read.since else state.fold(history)
            if any(summary.boundary.position > after for summary in summaries.values()):
                summaries = await chains.summaries_at(found, request.owner_id, after)
        since = self._read_from(summaries, _started(made).agent)
        read = _Read(since=since, history=chains.from_position(history, since), summaries=summaries)
        return _Opening(request, found, read, made, own_state=own_state)

    async def _recover(self, request: RunRequest, found: chains.Found, mine: set[str]) -> OpenRun | None:
        """Return the run if an earlier try of ours made it and only the answer was lost."""
        assert found.run_key is not None
        records = tuple(events.load(row) for row in await pool.fetch(sql.EVENTS_OF_RUN, (found.run_key,)))
        if not records or records[0].id not in mine:
            return None
        agent = records[0].record.agent if isinstance(records[0].record, RunStarted) else found.agent
        history = await chains.visible_chain(found, found.head_fork, since=self._read_from(found.summaries, agent))
        return OpenRun(
            request=request,
            session=found.session(request.owner_id, request.thread_id),
            run_key=found.run_key,
            epoch=1,
            history=tuple(stored for stored in history if stored.position < records[0].position),
            records=records,
            ledger=_ledger(found.run_key, request, found),
            new_session=records[0].position == 1,
            summaries=found.summaries,
            remembers=found.remembers,
            libraries=found.libraries,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What was read of a chain: whole from position `since` on, and the newest summaries it sees."""

    since: int
    history: tuple[Stored, ...]
    summaries: Mapping[str, Summary] = field(default_factory=dict)


def _seen(request: RunRequest, found: chains.Found, history: tuple[Stored, ...], since: int) -> Opening:
    return Opening(
        session=found.session(request.owner_id, request.thread_id),
        history=history,
        whole=not since,
        message_known=found.message_known,
    )


def _started(plan: Plan) -> RunStarted:
    if not plan.records or not isinstance(started := plan.records[0].record, RunStarted):
        raise ValueError("A plan begins with RunStarted.")
    return started


class _Opening:
    """One try to open a run: what was read and planned, as the parameters of the statement and as its result."""

    def __init__(
        self, request: RunRequest, found: chains.Found, read: _Read, plan: Plan, *, own_state: Mapping[str, Any]
    ) -> None:
        self.started = _started(plan)
        self.request = request
        self.found = found
        self.rows = [events.row(stamped) for stamped in plan.records]
        self.fork = found.head_fork
        self.own_state = dict(own_state)
        self.new_forks = [{"number": 0, "parent": None, "shared_position": 0}] if found.id is None else []
        if plan.fork_after is not None and found.id is not None:
            self.fork = max((fork.number for fork in found.forks), default=0) + 1
            parent = found.head_fork
            self.new_forks.append({"number": self.fork, "parent": parent, "shared_position": plan.fork_after})
        self.read = read
        self.slot: int | None = None
        self.scoped: dict[str, Any] = {}
        for row in self.rows:
            self.own_state.update(row.plain)
            self.scoped.update(row.shared)

    def params(self) -> dict[str, Any]:
        request, found = self.request, self.found
        return {
            "owner_id": request.owner_id,
            "thread_id": request.thread_id,
            "session_id": found.id,
            "session_agent": found.agent,
            "head_fork": found.head_fork,
            "last_position": found.last_position,
            "count": len(self.rows),
            "entries": sum(row.pieces for row in self.rows),
            "fork": self.fork,
            "forks": orjson.dumps(self.new_forks).decode(),
            "state": events.dump_json(self.own_state)[0].decode(),
            "scoped": events.dump_json(self.scoped)[0].decode(),
            "run_id": request.run_id,
            "parent_run_id": request.parent_run_id,
            "agent": self.started.agent,
            "model": self.started.model,
            "slot": self.slot,
            "lease_s": LEASE_S,
            "render_html": request.render_html,
            "origin": request.origin,
            "records": "[" + ",".join(row.json.decode() for row in self.rows) + "]",
            "message_id": request.message.id if request.message else "",
        }

    def result(self, session_id: int, run_key: int) -> OpenRun:
        request, found, read = self.request, self.found, self.read
        records = tuple(
            events.stored(row, position=found.last_position + n, fork=self.fork) for n, row in enumerate(self.rows, 1)
        )
        session = Session(
            id=str(session_id),
            owner_id=request.owner_id,
            thread_id=request.thread_id,
            agent=found.agent,
            title=found.title,
            state={**self.own_state, **found.shared_state, **self.scoped},
            fork=self.fork,
            last_position=records[-1].position,
        )
        return OpenRun(
            request=request,
            session=session,
            run_key=run_key,
            epoch=1,
            history=read.history,
            records=records,
            ledger=_ledger(
                run_key,
                request,
                found,
                ((session_id, self.fork, found.forgotten), read.since, (*read.history, *records)),
            ),
            new_session=found.id is None,
            summaries=read.summaries,
            remembers=found.remembers,
            libraries=found.libraries,
        )


def _ledger(
    run_key: int,
    request: RunRequest,
    found: chains.Found,
    chain: tuple[histories.Key, int, Sequence[Stored]] | None = None,
) -> PgLedger:
    message_id = request.message.id if request.message is not None else ""
    return PgLedger(run_key=run_key, epoch=1, opening_message_id=message_id, steered=found.steered, chain=chain)


def too_many_runs() -> Rejected:
    return Rejected("rate_limited", "Too many runs at once. Wait until one has ended, or stop one.")


def _admit(request: RunRequest, found: chains.Found) -> None:
    if found.run_key is not None:
        raise Rejected("run_id_reused")
    if found.deleted or (found.id is None and (request.parent_run_id or request.action is not Action.SEND)):
        raise Rejected("thread_not_found")
    if found.running is not None:
        raise Rejected("run_conflict")


async def history(owner_id: int, thread_id: str, *, limit: int = 500, before: int | None = None) -> History:
    """Return the newest `limit` events of the visible chain, below position `before` if it is given.

    limit: at least 1. Two statements. Raises Rejected(thread_not_found), StorageUnavailable.
    """
    found = await chains.find(owner_id, thread_id, "")
    rows = await pool.fetch(sql.CHAIN_PAGE, _page(found, limit, before))
    return _history(owner_id, thread_id, found, rows, limit)


def read_history(owner_id: int, thread_id: str, *, limit: int = 500, before: int | None = None) -> History:
    """Do the same on Django's connection: for views and Celery, and inside their transaction."""
    with connection.cursor() as cursor:
        cursor.execute(sql.OPENING, (owner_id, thread_id, "", "", ""))
        found = chains.read_found(cursor.fetchone())
        cursor.execute(sql.CHAIN_PAGE, _page(found, limit, before))
        return _history(owner_id, thread_id, found, cursor.fetchall(), limit)


async def visible(*, owner_id: int, thread_id: str) -> History:
    """Return the whole visible chain. Raises Rejected(thread_not_found), StorageUnavailable."""
    found = await chains.find(owner_id, thread_id, "")
    if found.id is None:
        raise Rejected("thread_not_found")
    return History(
        session=found.session(owner_id, thread_id),
        stored=await chains.visible_chain(found, found.head_fork),
        truncated=False,
        running=found.running or "",
    )


async def warm_up() -> None:
    """Open the pool and prepare the reads of a beginning run, so that the first one need not.

    Raises StorageUnavailable.
    """
    await pool.fetch(sql.OPENING, (0, "", "", "", ""))
    await pool.fetch(sql.CHAIN, ([0], [0], 0, 0))


def _page(found: chains.Found, limit: int, before: int | None) -> tuple[Any, ...]:
    if found.id is None or found.deleted:
        raise Rejected("thread_not_found")
    parts = chains.chain(found.forks, found.head_fork)
    below = 2**62 if before is None else before - 1
    up_to = [min(last, below) for _, last in parts]
    return [fork for fork, _ in parts], up_to, found.id, limit + 1, limit + 1


def _history(owner_id: int, thread_id: str, found: chains.Found, rows: Sequence[Sequence[Any]], limit: int) -> History:
    stored = [events.load(row) for row in rows[:limit]]
    stored.reverse()
    return History(
        session=found.session(owner_id, thread_id),
        stored=tuple(stored),
        truncated=len(rows) > limit,
        running=found.running or "",
        summary=found.summaries.get(found.agent) or found.summaries.get(""),
    )
