"""In-memory stand-ins for a model and the stores, for tests here and elsewhere. They keep the protocols' promises.

model = ScriptedModel(turn(reasoning("Hm."), call("c1", "lookup", {"q": "x"})), turn(text("It is ", "42.")))
runner = memory_runner(model, tools=(lookup,))
emitted = await collect(runner, RunRequest(owner_id=1, thread_id="t", run_id="r", message=said("What is it?")))
"""

import asyncio
import hashlib
import itertools
import json
import mimetypes
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
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
from agents.runtime.events import Emitted, Stamped, StateChanged, Stored, UserMessage, UserMessageKind
from agents.runtime.invocation import NO_HOOKS, Agent, Hooks, Limits, Services
from agents.runtime.llm import LLMAgent
from agents.runtime.memoryknowledge import MemoryKnowledge
from agents.runtime.model import (
    Chunk,
    FinishChunk,
    FinishReason,
    ModelInfo,
    ModelRequest,
    ReasoningChunk,
    TextChunk,
    TextPart,
    ToolCallChunk,
    Usage,
    UsageChunk,
)
from agents.runtime.runner import Runner
from agents.runtime.session import (
    Action,
    CancelToken,
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
from agents.runtime.tools import PermissionPolicy, Tool

LIMITS = Limits()
WAIT_S = 10.0  # a script that waits longer than this is a broken test


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


@dataclass(frozen=True, slots=True)
class WaitFor:
    """The stream stands still until the event is set; `reached` tells the test that it got here."""

    event: asyncio.Event
    reached: asyncio.Event | None = None


@dataclass(frozen=True, slots=True)
class Do:
    """Something that happens in the middle of the stream."""

    action: Callable[[], object]


Step = Chunk | BaseException | WaitFor | Do
Turn = Sequence[Step] | Callable[[ModelRequest], Sequence[Step]]


def text(*pieces: str) -> list[Step]:
    return [TextChunk(piece) for piece in pieces]


def reasoning(*pieces: str) -> list[Step]:
    return [ReasoningChunk(piece) for piece in pieces]


def call(call_id: str, name: str, arguments: Mapping[str, Any] | str, *, index: int = 0, pieces: int = 1) -> list[Step]:
    """Return the fragments of one tool call; a string is sent as it is, cut into `pieces`."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    size = max(1, -(-len(raw) // pieces))
    parts = [raw[i : i + size] for i in range(0, len(raw), size)] or [""]
    first: Step = ToolCallChunk(index=index, id=call_id, name=name, arguments=parts[0])
    return [first, *(ToolCallChunk(index=index, id=call_id, arguments=part) for part in parts[1:])]


def usage(prompt: int = 0, completion: int = 0, *, cached: int = 0, reasoning: int = 0) -> list[Step]:
    return [UsageChunk(Usage(prompt=prompt, cached=cached, completion=completion, reasoning=reasoning))]


def finish(reason: FinishReason) -> list[Step]:
    return [FinishChunk(reason)]


def turn(*steps: Iterable[Step] | Step) -> list[Step]:
    """Return one answer of the model, flat."""
    out: list[Step] = []
    for step in steps:
        if isinstance(step, Iterable):
            out.extend(step)
        else:
            out.append(step)
    return out


class ScriptedModel:
    """A Model that plays its turns in order, one per call.

    A turn without a finish gets the fitting one; one that ends in an error gets none. `requests`: what was asked.
    `closed`: how many streams were closed before their end. Fails the test when there are more calls than turns.
    """

    def __init__(self, *turns: Turn, info: ModelInfo | None = None, repeat_last: bool = False) -> None:
        self.turns = list(turns)
        self.requests: list[ModelRequest] = []
        self.closed = 0
        self.repeat_last = repeat_last
        self._info = info or ModelInfo(name="scripted", provider="testing", window_tokens=32_768)

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        self.requests.append(request)
        position = len(self.requests) - 1
        if self.repeat_last:
            position = min(position, len(self.turns) - 1)
        if position >= len(self.turns):
            raise AssertionError(f"the script has {len(self.turns)} turns, this is call {position + 1}")
        chosen = self.turns[position]
        steps = chosen(request) if callable(chosen) else chosen
        complete = False
        try:
            async for chunk in _play(steps):
                yield chunk
            complete = True
        finally:
            self.closed += not complete


async def _play(steps: Sequence[Step]) -> AsyncIterator[Chunk]:
    finished = calls = False
    for step in steps:
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, Do):
            step.action()
        elif isinstance(step, WaitFor):
            if step.reached is not None:
                step.reached.set()
            await asyncio.wait_for(step.event.wait(), WAIT_S)
        else:
            finished = finished or isinstance(step, FinishChunk)
            calls = calls or isinstance(step, ToolCallChunk)
            yield step
    if not finished:
        yield FinishChunk(FinishReason.TOOL_CALLS if calls else FinishReason.STOP)


def said(words: str, *, id: str = "u1", **more: Any) -> UserMessage:
    """Return a user message of plain text."""
    return UserMessage(id=id, parts=(TextPart(text=words),), **more)


@dataclass(slots=True)
class _Run:
    key: int
    run_id: str
    epoch: int = 1
    status: RunStatus = RunStatus.RUNNING
    end: RunEnd | None = None
    inbox: list[UserMessage] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)


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
        planned = plan(Opening(session=session, history=tuple(thread.chain(session.fork))))
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
        )

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

    async def append(self, records: Sequence[Stamped], *, end: RunEnd | None = None) -> tuple[Stored, ...]:
        self._check()
        if not 1 <= len(records) <= 64:
            raise ValueError("append takes 1 to 64 records")
        await asyncio.sleep(0)  # a real store gives others the turn here, too
        self._check()
        stored = self._store._store(self._thread, records)
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


def memory_runner(
    model: Any,
    *,
    tools: Sequence[Tool] = (),
    agent: Agent | None = None,
    store: MemorySessionStore | None = None,
    artifacts: MemoryArtifactStore | None = None,
    limits: Limits = LIMITS,
    **more: Any,
) -> Runner:
    """Return a Runner over in-memory stores with one agent, "assistant".

    more: clock, ids, hooks, permission, knowledge (a MemoryKnowledge, narrowed to what each run may use).
    """
    clock: Clock = more.pop("clock", None) or Clock()
    sessions = store or MemorySessionStore()
    ids: Ids = more.pop("ids", None) or sessions.ids
    hooks: Hooks = more.pop("hooks", NO_HOOKS)
    permission: PermissionPolicy | None = more.pop("permission", None)
    knowledge: MemoryKnowledge = more.pop("knowledge", None) or MemoryKnowledge()
    if more:
        raise TypeError(f"unknown: {sorted(more)}")
    files = artifacts or MemoryArtifactStore()
    chosen = agent or LLMAgent(name="assistant", instruction="You are helpful.", tools=tools)

    def services(request: RunRequest, opened: OpenRun) -> Services:
        return Services(
            model=model,
            artifacts=files,
            ledger=opened.ledger,
            now=clock.now,
            new_id=ids,
            monotonic=clock.monotonic,
            knowledge=knowledge.narrowed(opened.sources),
        )

    return Runner(
        agents={chosen.name: chosen},
        default_agent=chosen.name,
        sessions=sessions,
        services=services,
        limits=limits,
        now=clock.now,
        new_id=ids,
        permission=permission,
        hooks=hooks,
    )


async def collect(runner: Runner, request: RunRequest, cancel: CancelToken | None = None) -> list[Emitted]:
    """Open the run and return everything it emits."""
    opened = await runner.open(request)
    return [emitted async for emitted in runner.run(opened, cancel or CancelToken())]
