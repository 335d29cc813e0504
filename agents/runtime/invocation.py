"""The work order of one agent's execution: ids, session, services, options, counters, cancel token."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from agents.runtime.artifacts import ArtifactStore
from agents.runtime.events import Event, Stored
from agents.runtime.model import Model, ToolSpec
from agents.runtime.session import Action, CancelToken, RunLedger, Session
from agents.runtime.tools import PermissionPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may use up. None = unlimited. Calls and rounds are per invocation; *_run for the whole run.

    finish_without_tools: the last allowed call gets no tools and is told to answer with what it has.
    """

    duration_s: float | None = 3600.0
    model_calls: int | None = 60
    tool_rounds: int | None = 50
    model_calls_run: int | None = 120
    tool_result_bytes: int = 16 * 1024
    parallel_tools: int = 1
    finish_without_tools: bool = False


@dataclass(slots=True)
class Counters:
    """What was used up, of one invocation or of a whole run. Only the run's own task writes here."""

    model_calls: int = 0
    tool_rounds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What a run reaches outside. now and new_id are the only clock and the only source of ids."""

    model: Model
    artifacts: ArtifactStore
    ledger: RunLedger
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    monotonic: Callable[[], float]


@dataclass(slots=True, kw_only=True)
class Invocation:
    """One execution of one agent. history: the visible chain, this run's records included, grown by the runner.

    A child gets its own Invocation (new id, fresh counters, branch and filter_key below the parent's) and shares
    session, services, limits, run_counters and cancel.
    """

    id: str
    run_id: str
    session: Session
    services: Services
    limits: Limits
    cancel: CancelToken
    agent_name: str
    action: Action = Action.SEND
    branch: str = ""
    filter_key: str = ""
    parent_id: str = ""
    external_tools: tuple[ToolSpec, ...] = ()
    permission: PermissionPolicy | None = None
    history: list[Stored] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    run_counters: Counters = field(default_factory=Counters)
    options: Mapping[str, Any] = field(default_factory=dict)


class Agent(Protocol):
    """Somebody who can do a run's work."""

    @property
    def name(self) -> str: ...

    def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        """Yield what happens. A yielded Record is durable, and in invocation.history, when the generator resumes.

        Never yields RunStarted, RunFinished or RunFailed: those are the runner's. Ends early and quietly when
        invocation.cancel is set, after closing what it opened. Raises RunError to fail the run.
        """
        ...
