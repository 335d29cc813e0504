"""In-memory stand-ins for the stores, a clock and ids, as testing.py uses them. They keep the protocols' promises."""

import asyncio
import hashlib
import itertools
import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from agents.runtime.artifacts import (
    SHARED,
    ArtifactConflict,
    ArtifactMissing,
    ArtifactRef,
    ArtifactUnreadable,
    TextPage,
    clean_name,
)
from agents.runtime.errors import Rejected, RunFenced, StorageUnavailable, ToolFailure
from agents.runtime.events import Stamped, StateChanged, Stored, UserMessage, UserMessageKind
from agents.runtime.memorysummaries import MemorySummaries
from agents.runtime.session import (
    Action,
    ModelCall,
    Opening,
    OpenRun,
    Planner,
    RunEnd,
    RunRequest,
    RunStatus,
    Session,
)
from agents.runtime.state import APP, TEMP, USER
from agents.runtime.summaries import Summary


class Clock:
    """A clock that moves only when told, by `step_s` at every look."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC), step_s: float = 0.0) -> None:
        self.at = start
        self.seconds = 0.0
        self.step_s = step_s

    def advance(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)
        self.seconds += seconds

    def now(self) -> datetime:
        self.advance(self.step_s)
        return self.at

    def monotonic(self) -> float:
        self.advance(self.step_s)
        return self.seconds


class Ids:
    """Ids that count: id1, id2, ..."""

    def __init__(self, prefix: str = "id") -> None:
        self.prefix = prefix
        self.last = 0

    def __call__(self) -> str:
        self.last += 1
        return f"{self.prefix}{self.last}"


@dataclass(slots=True)
class _Run:
    key: int
    run_id: str
    epoch: int = 1
    status: RunStatus = RunStatus.RUNNING
    end: RunEnd | None = None
    inbox: list[UserMessage] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)
    summary_jobs: int = 0


@dataclass(slots=True)
class _Thread:
    """One session with all its forks. forks: fork -> (parent fork, last shared position)."""

    session: Session
    records: list[Stored] = field(default_factory=list)
    by_id: dict[str, Stored] = field(default_factory=dict)
    forks: dict[int, tuple[int, int]] = field(default_factory=dict)
    runs: dict[str, _Run] = field(default_factory=dict)

    def chain(self, fork: int) -> list[Stored]:
        bound: dict[int, int] = {fork: self.session.last_position}
        reach = self.session.last_position
        while fork in self.forks:
            fork, shared = self.forks[fork]
            reach = min(reach, shared)
            bound[fork] = reach
        return [s for s in self.records if s.position <= bound.get(s.fork, 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation. chain: the visible one. lines: those of all forks. summaries: the newest that the chain sees."""

    session: Session
    chain: tuple[Stored, ...]
    lines: tuple[tuple[Stored, ...], ...]
    summaries: Mapping[str, Summary]


class MemorySessionStore:
    """SessionStore and RunLedger in a dict.

    outage: every write raises StorageUnavailable while it is set. ids: for runners over this store, so that two of them
    do not give the same id twice.
    """

    def __init__(self) -> None:
        self.outage = False
        self.ids = Ids()
        self._threads: dict[tuple[int, str], _Thread] = {}
        self._scoped: dict[tuple[str, int, str], dict[str, Any]] = {}  # (scope, owner, agent) -> values
        self._summaries: dict[str, MemorySummaries] = {}
        self._keys = 0

    async def open_run(self, request: RunRequest, plan: Planner) -> OpenRun:
        if self.outage:
            raise StorageUnavailable
        key = (request.owner_id, request.thread_id)
        thread = self._threads.get(key)
        new = thread is None
        if thread is None:
            if request.parent_run_id or request.action is not Action.SEND:
                raise Rejected("thread_not_found")
            session = Session(
                id=f"session-{len(self._threads) + 1}",
                owner_id=request.owner_id,
                thread_id=request.thread_id,
                agent=request.agent,
            )
            thread = _Thread(session=replace(session, state=self._shared_state(session)))
        if request.run_id in thread.runs:
            raise Rejected("run_id_reused")
        if any(run.status is RunStatus.RUNNING for run in thread.runs.values()):
            raise Rejected("run_conflict")
        session = replace(thread.session, state=self._state(thread, thread.session.fork))
        message_id = request.message.id if request.message is not None else ""
        known = bool(message_id) and any(
            isinstance(stored.record, UserMessage) and stored.record.id == message_id for stored in thread.records
        )
        chain = tuple(thread.chain(session.fork))
        planned = plan(Opening(session=session, history=chain, message_known=known))
        if planned.fork_after is not None:
            fork = max(thread.forks, default=0) + 1
            thread.forks[fork] = (session.fork, planned.fork_after)
            thread.session = replace(thread.session, fork=fork)
        self._threads[key] = thread
        history = tuple(thread.chain(thread.session.fork))
        self._keys += 1
        run = thread.runs[request.run_id] = _Run(key=self._keys, run_id=request.run_id)
        records = self._store(thread, planned.records)
        return OpenRun(
            request=request,
            session=thread.session,
            run_key=run.key,
            epoch=run.epoch,
            history=history,
            records=records,
            ledger=_MemoryLedger(self, thread, run),
            new_session=new,
            summaries=self._seen_summaries(thread.session.id, history),
        )

    def summaries_of(self, session_id: str) -> MemorySummaries:
        """Return the store of a session's summaries."""
        return self._summaries.setdefault(session_id, MemorySummaries())

    def forget(self, *, owner_id: int, thread_id: str) -> None:
        """Delete a conversation."""
        del self._threads[owner_id, thread_id]

    def talks(self, owner_id: int) -> dict[str, "Talk"]:
        """Return the owner's conversations by thread id, as their visible chains show them."""
        return {
            thread_id: Talk(
                session=thread.session,
                chain=tuple(thread.chain(thread.session.fork)),
                lines=tuple(tuple(thread.chain(fork)) for fork in (*thread.forks, 0)),
                summaries=self._seen_summaries(thread.session.id, thread.chain(thread.session.fork)),
            )
            for (owner, thread_id), thread in self._threads.items()
            if owner == owner_id
        }

    def _seen_summaries(self, session_id: str, history: Sequence[Stored]) -> dict[str, Summary]:
        ids = {stored.id for stored in history}
        rows = self.summaries_of(session_id).rows
        return {row.filter_key: row for row in rows if row.boundary.event_id in ids}

    # For tests, and for what another process would do

    def stored(self, *, owner_id: int, thread_id: str) -> tuple[Stored, ...]:
        """Return the visible chain, oldest first."""
        thread = self._threads[owner_id, thread_id]
        return tuple(thread.chain(thread.session.fork))

    def session(self, *, owner_id: int, thread_id: str) -> Session:
        return self._threads[owner_id, thread_id].session

    def run_end(self, *, owner_id: int, thread_id: str, run_id: str) -> RunEnd | None:
        """Return how the run ended, None while it runs."""
        return self._threads[owner_id, thread_id].runs[run_id].end

    def model_calls(self, *, owner_id: int, thread_id: str, run_id: str) -> tuple[ModelCall, ...]:
        return tuple(self._threads[owner_id, thread_id].runs[run_id].calls)

    def summary_jobs(self, *, owner_id: int, thread_id: str, run_id: str) -> int:
        """Return how often an append of the run asked for the job that summarises."""
        return self._threads[owner_id, thread_id].runs[run_id].summary_jobs

    def steer(self, *, owner_id: int, thread_id: str, run_id: str, message: UserMessage) -> bool:
        """Put a message into the run's inbox; an id met again is put once. False: there is no such running run."""
        thread = self._threads.get((owner_id, thread_id))
        run = thread.runs.get(run_id) if thread else None
        if run is None or run.status is not RunStatus.RUNNING:
            return False
        if all(message.id != waiting.id for waiting in run.inbox):
            run.inbox.append(replace(message, kind=UserMessageKind.STEER))
        return True

    def fence(self, *, owner_id: int, thread_id: str, run_id: str) -> None:
        """Close the run as another process would that found its lease run out."""
        run = self._threads[owner_id, thread_id].runs[run_id]
        run.epoch += 1
        run.status = RunStatus.LOST

    def _store(self, thread: _Thread, records: Sequence[Stamped]) -> tuple[Stored, ...]:
        for stamped in records:
            if isinstance(stamped.record, StateChanged) and any(k.startswith(TEMP) for k in stamped.record.delta):
                raise ValueError("temp: keys are never stored")
        out = []
        for stamped in records:
            stored = thread.by_id.get(stamped.id) if stamped.id else None
            if stored is None:
                stored = self._store_one(thread, stamped)
            out.append(stored)
        thread.session = replace(thread.session, state=self._state(thread, thread.session.fork))
        return tuple(out)

    def _store_one(self, thread: _Thread, stamped: Stamped) -> Stored:
        position = thread.session.last_position + 1
        stored = Stored(
            position=position,
            fork=thread.session.fork,
            id=stamped.id,
            at=stamped.at,
            origin=stamped.origin,
            record=stamped.record,
            tokens=stamped.tokens,
        )
        thread.records.append(stored)
        thread.by_id[stamped.id] = stored
        thread.session = replace(thread.session, last_position=position)
        if isinstance(stamped.record, StateChanged):
            for key, value in stamped.record.delta.items():
                scope = next((p for p in (APP, USER) if key.startswith(p)), "")
                if scope:
                    owner = thread.session.owner_id if scope == USER else 0
                    where = (scope, owner, thread.session.agent if scope == APP else "")
                    self._scoped.setdefault(where, {})[key] = value
        return stored

    def _shared_state(self, session: Session) -> dict[str, Any]:
        return {
            **self._scoped.get((APP, 0, session.agent), {}),
            **self._scoped.get((USER, session.owner_id, ""), {}),
        }

    def _state(self, thread: _Thread, fork: int) -> dict[str, Any]:
        state: dict[str, Any] = {}
        for stored in thread.chain(fork):
            if isinstance(stored.record, StateChanged):
                state.update({k: v for k, v in stored.record.delta.items() if not k.startswith((APP, USER))})
        return {**state, **self._shared_state(thread.session)}


class _MemoryLedger:
    def __init__(self, store: MemorySessionStore, thread: _Thread, run: _Run) -> None:
        self._store = store
        self._thread = thread
        self._run = run
        self._epoch = run.epoch

    async def append(
        self, records: Sequence[Stamped], *, end: RunEnd | None = None, summarise: bool = False
    ) -> tuple[Stored, ...]:
        self._check()
        if not 1 <= len(records) <= 64:
            raise ValueError("append takes 1 to 64 records")
        await asyncio.sleep(0)  # a real store gives others the turn here, too
        self._check()
        stored = self._store._store(self._thread, records)
        self._run.summary_jobs += summarise
        if end is not None:
            self._run.end = end
            self._run.status = end.status
        return stored

    async def model_called(self, call: ModelCall) -> None:
        self._check()
        self._run.calls.append(call)

    async def steered(self) -> tuple[UserMessage, ...]:
        self._check()
        waiting, self._run.inbox = tuple(self._run.inbox), []
        return waiting

    def _check(self) -> None:
        if self._run.epoch != self._epoch or self._run.status is not RunStatus.RUNNING:
            raise RunFenced
        if self._store.outage:
            raise StorageUnavailable


@dataclass(slots=True)
class _Shelf:
    """Artifacts by name. numbers: the last version ever given, which outlives a deletion."""

    versions: dict[str, list[ArtifactRef]] = field(default_factory=dict)
    data: dict[tuple[str, int], bytes] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)


class MemoryArtifactStore:
    """ArtifactStore in a dict. beside: the store of another session of the same owner; "user:" names are shared.

    origins: what `save` was told, by (name, version).
    """

    _ids = itertools.count(1)

    def __init__(self, beside: "MemoryArtifactStore | None" = None) -> None:
        self._own = _Shelf()
        self._shared: _Shelf = beside._shared if beside else _Shelf()
        self.origins: dict[tuple[str, int], Mapping[str, Any]] = {}

    def _shelf(self, name: str) -> _Shelf:
        return self._shared if name.startswith(SHARED) else self._own

    async def save(
        self,
        *,
        name: str,
        data: bytes,
        mime: str = "",
        origin: Mapping[str, Any] | None = None,
        base: int | None = None,
    ) -> ArtifactRef:
        name = clean_name(name)
        shelf = self._shelf(name)
        if base is not None and (latest := await self.find(name)).version != base:
            raise ArtifactConflict(base, latest)
        versions = shelf.versions.setdefault(name, [])
        number = shelf.numbers[name] = shelf.numbers.get(name, 0) + 1
        ref = ArtifactRef(
            artifact_id=versions[0].artifact_id if versions else f"artifact-{next(self._ids)}",
            name=name,
            version=number,
            mime=mime or mimetypes.guess_type(name)[0] or "application/octet-stream",
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
        )
        versions.append(ref)
        shelf.data[name, number] = data
        self.origins[name, number] = dict(origin or {})
        return ref

    async def find(self, name_or_id: str, version: int | None = None) -> ArtifactRef:
        for ref in reversed(await self.versions(name_or_id)):
            if version is None or ref.version == version:
                return ref
        raise ArtifactMissing(name_or_id)

    async def load(self, ref: ArtifactRef) -> bytes:
        data = self._shelf(ref.name).data.get((ref.name, ref.version))
        if data is None:
            raise ArtifactMissing(ref.name)
        return data

    async def read_text(self, ref: ArtifactRef, *, cursor: str = "", max_chars: int = 12_000) -> TextPage:
        try:
            whole = (await self.load(ref)).decode()
        except UnicodeDecodeError as error:
            raise ArtifactUnreadable(f"{ref.name} is not text.", ToolFailure.FILE_UNSUPPORTED) from error
        if cursor and not cursor.isdecimal():
            raise ArtifactUnreadable(f"There is no place {cursor!r} in {ref.name}.", ToolFailure.PLACE_INVALID)
        start = int(cursor or 0)
        end = min(len(whole), start + max_chars)
        return TextPage(
            ref=ref,
            text=whole[start:end],
            anchor=f"characters {start + 1}-{end}",
            next_cursor=str(end) if end < len(whole) else "",
            total_chars=len(whole),
        )

    async def list(self) -> tuple[ArtifactRef, ...]:
        everything = {**self._own.versions, **self._shared.versions}
        return tuple(everything[name][-1] for name in sorted(everything))

    async def versions(self, name_or_id: str) -> tuple[ArtifactRef, ...]:
        for versions in (*self._own.versions.values(), *self._shared.versions.values()):
            if name_or_id in (versions[0].name, versions[0].artifact_id):
                return tuple(versions)
        return ()

    async def delete(self, name_or_id: str) -> None:
        for ref in await self.versions(name_or_id):
            shelf = self._shelf(ref.name)
            shelf.data.pop((ref.name, ref.version), None)
            shelf.versions.pop(ref.name, None)
