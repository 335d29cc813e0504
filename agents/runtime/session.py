"""A conversation as a run sees it, and what a run needs from the store.

State keys carry their scope: "app:" (all people of an agent), "user:" (all sessions of the owner), "temp:" (this run
only, never stored), none (this session). Session state is the fold of StateChanged along the visible chain of forks.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from agents.runtime.events import AssistantMessage, RunStarted, Stamped, Stored, ToolReturned, UserMessage
from agents.runtime.model import NO_USAGE, ToolSpec, Usage
from agents.runtime.summaries import Summary


class Action(StrEnum):
    """What the person asks of the conversation."""

    SEND = "send"  # a new user message (or results of external tools) at the end
    EDIT = "edit"  # message_id is a user message: a fork that replaces it by the new one
    RETRY = "retry"  # message_id is an answer (or its user message): a fork that answers again
    CONTINUE = "continue"  # go on with an answer that stopped early; no new user message


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that came inside the request. It is stored as an artifact before the run opens."""

    name: str
    mime: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A request to run, decoded and trusted only as far as `owner_id`, which the door has checked.

    thread_id, run_id: the client's names. message: None for CONTINUE, RETRY and for tool results.
    uploads: become FileParts at the end of the message. A FilePart of `message` names artifact and version only, until
    the door has looked it up for this owner.
    seed: history the caller brought, used only if the session is empty. external_tools: declared for this run only.
    tool_results: answers to external calls, in the client's order. model: "" = the agent's default. window_tokens: what
    the model's window is to be taken for in this run, None = as it is known.
    sources: what the run may answer from, as in UserMessage, if sources_given; else the message's own, or those of the
    run it goes back to or on with.
    render_html: the page asks for rendered blocks. origin: page, api, shell; for the log. zone: as in RunStarted.
    """

    owner_id: int
    thread_id: str
    run_id: str
    agent: str = ""
    model: str = ""
    window_tokens: int | None = None
    action: Action = Action.SEND
    message_id: str = ""
    message: UserMessage | None = None
    uploads: tuple[Upload, ...] = ()
    tool_results: tuple[ToolReturned, ...] = ()
    seed: tuple[UserMessage | AssistantMessage, ...] = ()
    external_tools: tuple[ToolSpec, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    parent_run_id: str = ""
    sources: tuple[str, ...] | None = None
    sources_given: bool = False
    render_html: bool = False
    origin: str = "api"
    zone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation. id is ours, thread_id the client's. fork: the head of the visible chain."""

    id: str
    owner_id: int
    thread_id: str
    agent: str
    title: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    fork: int = 0
    last_position: int = 0


class RunStatus(StrEnum):
    RUNNING = "running"
    INTERRUPTED = "interrupted"  # ended with a question to a person
    FINISHED = "finished"
    CANCELLED = "cancelled"  # a person stopped it
    FAILED = "failed"  # ended with an error
    LOST = "lost"  # its process died


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended; stored in the same statement as its last record, together with the jobs that follow."""

    status: RunStatus
    usage: Usage = NO_USAGE
    error_code: str = ""
    error_message: str = ""
    model_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRef:
    """One part of a request by reference, so that it can be rebuilt and shown.

    kind: system, tools, event, context, instruction, summary, block, placeholder, dropped. ref: event id; summary id;
    sha256 of the text for system, tools, instruction and block (memory, recall). placeholder: a tool result or the
    arguments of calls shown shorter, made again from the event and params. dropped: left out, sent nothing. tag: what
    the inspector calls it. position: of the event, 0 otherwise. tokens: calibrated estimate (tokens.py).
    """

    kind: str
    ref: str
    tokens: int
    tag: str = ""
    position: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One call to a model, for the books. Times in milliseconds; ttft_ms None = no token came."""

    id: str
    run_id: str
    invocation_id: str
    purpose: str
    provider: str
    model: str
    usage: Usage
    ttft_ms: float | None
    latency_ms: float
    finish_reason: str
    error_code: str = ""
    parts: tuple[PartRef, ...] = ()
    request_sha256: str = ""
    started_at: datetime | None = None


class RunLedger(Protocol):
    """The books of one run, bound to its session, fork and epoch. One writer: the run's own task.

    Every method raises RunFenced once another process has closed the run, and StorageUnavailable if the database
    stays away for 10 s.
    """

    async def append(
        self, records: Sequence[Stamped], *, end: RunEnd | None = None, summarise: bool = False
    ) -> tuple[Stored, ...]:
        """Store records in order and return them with their positions; durable on return.

        records: 1 to 64. end: closes the run and plants its jobs in the same statement. summarise: also plant the job
        that looks whether to summarise. An id met again is not stored twice; the stored one is returned.
        """
        ...

    async def model_called(self, call: ModelCall) -> None:
        """Store one model call. Returns at once; it is durable no later than the next append."""
        ...

    async def steered(self) -> tuple[UserMessage, ...]:
        """Return the steering messages that wait, oldest first, and mark them read. Costs nothing if none came."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What the planner sees: the session and the history on the chain the request goes on from, oldest first.

    whole: history is all of the chain; else it begins where the newest summary says a run must read from, and what the
    request names is in it. message_known: the request's message id is that of a stored message of the session.
    """

    session: Session
    history: tuple[Stored, ...]
    whole: bool = True
    message_known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the planner decides. records: stored at once, RunStarted first. fork_after: None = go on with the head
    fork; else a new fork that shares everything up to this position (0 = nothing)."""

    records: tuple[Stamped, ...]
    fork_after: int | None = None


Planner = Callable[[Opening], Plan]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run that exists. history: the visible chain before this run's records, from where the summaries say it must be
    read. records: what open_run stored. summaries: the newest of each scope that the chain sees, by filter key.
    remembers: something is remembered of the person, who wants it to be. libraries: how often the skills that everyone
    sees, and the person's own, have changed; None = not known."""

    request: RunRequest
    session: Session
    run_key: int
    epoch: int
    history: tuple[Stored, ...]
    records: tuple[Stored, ...]
    ledger: RunLedger
    new_session: bool = False
    summaries: Mapping[str, Summary] = field(default_factory=dict)
    remembers: bool = True
    libraries: tuple[int, int] | None = None

    @property
    def sources(self) -> tuple[str, ...] | None:
        """Return the documents this run may use. None = all of the person's."""
        started = self.records[0].record
        return started.sources if isinstance(started, RunStarted) else None

    @property
    def zone(self) -> str:
        """Return the name of the person's time zone, "" = not known."""
        started = self.records[0].record
        return started.zone if isinstance(started, RunStarted) else ""


class SessionStore(Protocol):
    """Where runs begin. Everything is filtered by the request's owner."""

    async def open_run(self, request: RunRequest, plan: Planner) -> OpenRun:
        """Create the run and store its first records in one transaction, at most 5 statements.

        The session is created if the thread is new (with the request's agent). Raises Rejected: run_conflict (another
        run is running there), run_id_reused, thread_not_found (parent_run_id or an action on a thread that is not
        there), or what the planner raises; then nothing is stored. Raises StorageUnavailable.
        """
        ...


class CancelReason(StrEnum):
    USER = "user"
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    FENCED = "fenced"


class CancelToken:
    """Tells a run to stop, or one of its tool calls. Set once; the first reason stays. Belongs to one event loop."""

    __slots__ = ("_call_listeners", "_event", "_listeners", "reason")

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        self._call_listeners: list[Callable[[str], bool]] = []
        self.reason: CancelReason | None = None

    @property
    def cancelled(self) -> bool:
        return self.reason is not None

    def cancel(self, reason: CancelReason) -> bool:
        """Set the reason and return whether this call was the first."""
        if self.reason is not None:
            return False
        self.reason = reason
        self._event.set()
        for listener in tuple(self._listeners):
            listener()
        return True

    def cancel_call(self, call_id: str) -> bool:
        """Stop one tool call, and return whether there was one to stop; the run goes on."""
        return any([listener(call_id) for listener in tuple(self._call_listeners)])

    def listen_calls(self, listener: Callable[[str], bool]) -> Callable[[], None]:
        """Call `listener` with each call to stop, and return how to stop listening.

        It returns whether the call was its own. It must not wait or raise.
        """
        self._call_listeners.append(listener)
        return lambda: self._call_listeners.remove(listener)

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` once when the token is set, inside `cancel`, and return how to stop listening.

        A token that is set already calls nobody: look at `cancelled` first. The listener must not wait or raise.
        """
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    async def wait(self) -> CancelReason:
        """Return the reason as soon as there is one."""
        await self._event.wait()
        assert self.reason is not None
        return self.reason
