"""The work order of one agent's execution: ids, session, services, options, counters, cancel token."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, Protocol

from agents.runtime.artifacts import ArtifactStore
from agents.runtime.code import Workspace
from agents.runtime.context.citing import Known, known
from agents.runtime.context.window import GUESS, Tried, Window
from agents.runtime.events import AssistantMessage, Event, Stamped, Stored
from agents.runtime.knowledge import NO_KNOWLEDGE, Knowledge
from agents.runtime.memory.memories import MemoryStore
from agents.runtime.memorysummaries import MemorySummaries
from agents.runtime.metrics import NO_METRICS, Metrics
from agents.runtime.model import NO_USAGE, Model, ModelRequest, ToolCall, ToolSpec, Usage
from agents.runtime.policy import ContextPolicy
from agents.runtime.recall import NO_RECALL, Recall
from agents.runtime.session import Action, CancelToken, RunLedger, Session
from agents.runtime.skills.loaded import RunSkills
from agents.runtime.skills.skill import SkillStore
from agents.runtime.summaries import Summary, SummaryStore
from agents.runtime.summary.asking import DynamicSummarizer, Summarizer
from agents.runtime.tokens import Calibration, Mix, Uncalibrated
from agents.runtime.tools import PermissionPolicy, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may use up. None = unlimited. Calls and rounds are per invocation; *_run for the whole run.

    finish_without_tools: the last allowed call gets no tools and is told to answer with what it has.
    parallel_tools: how many calls of one answer may run at once, if their tools are safe for that (Traits).
    tool_result_bytes: a longer result is kept as an artifact, and its head and tail stay (context/guard.py).
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
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What a run reaches outside. now and new_id are the only clock and the only source of ids.

    summarizer: who writes summaries, None = nobody. policy: an agent's context policy as
    staff have set it, given its name and its own. window, tried, calibration: of the model that answers.
    memories: of the person, None = nothing is remembered. remembers: there may be some, so that it is worth asking when
    the run begins. skills: the person's, as they are when the run begins; None = there are none. workspace: where
    code runs, None = nowhere. zone: the person's.
    metrics: told what happens; never fails a run. sizes: mixes of what was measured before, see context/sizes.py.
    """

    model: Model
    artifacts: ArtifactStore
    ledger: RunLedger
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    monotonic: Callable[[], float]
    knowledge: Knowledge = NO_KNOWLEDGE
    recall: Recall = NO_RECALL
    memories: MemoryStore | None = None
    remembers: bool = True
    skills: SkillStore | None = None
    workspace: Workspace | None = None
    zone: tzinfo = UTC
    summaries: SummaryStore = field(default_factory=MemorySummaries)
    summarizer: Summarizer | DynamicSummarizer | None = None
    policy: Callable[[str, ContextPolicy], ContextPolicy] = lambda agent, own: own
    window: Callable[[], Window] = lambda: GUESS
    tried: Tried = field(default_factory=Tried)
    calibration: Calibration = field(default_factory=Uncalibrated)
    metrics: Metrics = NO_METRICS
    sizes: dict[str, Mix] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Places where others may look and change. The runner's come before the agent's; the first result ends a chain.

    before_agent: a text answers instead of the agent. after_agent: a text is appended as one more answer.
    before_model: another request replaces it, a text answers instead of the model. after_model: replaces the segments.
    before_tool: other arguments, or a result instead of the call. after_tool: replaces the result, failures included.
    on_event: replaces an event, Deltas too; it is called for every one, so keep it cheap.
    Agent hooks run for every agent of a run, tool hooks at once for parallel calls. An exception fails the run; of
    on_event it is only logged, and the event goes on as it was. Chains are run by hooks.py.
    """

    before_agent: tuple[Callable[["Invocation"], Awaitable[str | None]], ...] = ()
    after_agent: tuple[Callable[["Invocation"], Awaitable[str | None]], ...] = ()
    before_model: tuple[Callable[["Invocation", ModelRequest], Awaitable[ModelRequest | str | None]], ...] = ()
    after_model: tuple[
        Callable[["Invocation", tuple[AssistantMessage, ...]], Awaitable[tuple[AssistantMessage, ...] | None]], ...
    ] = ()
    before_tool: tuple[
        Callable[["Invocation", ToolCall, Mapping[str, Any]], Awaitable[Mapping[str, Any] | ToolResult | None]], ...
    ] = ()
    after_tool: tuple[Callable[["Invocation", ToolCall, ToolResult], Awaitable[ToolResult | None]], ...] = ()
    on_event: tuple[Callable[["Invocation", Event], Awaitable[Event | None]], ...] = ()

    def __add__(self, later: "Hooks") -> "Hooks":
        return Hooks(
            before_agent=self.before_agent + later.before_agent,
            after_agent=self.after_agent + later.after_agent,
            before_model=self.before_model + later.before_model,
            after_model=self.after_model + later.after_model,
            before_tool=self.before_tool + later.before_tool,
            after_tool=self.after_tool + later.after_tool,
            on_event=self.on_event + later.on_event,
        )


NO_HOOKS = Hooks()


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
    hooks: Hooks = NO_HOOKS
    history: list[Stored] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    run_counters: Counters = field(default_factory=Counters)
    options: Mapping[str, Any] = field(default_factory=dict)
    summaries: dict[str, Summary] = field(default_factory=dict)  # the newest of each scope, as far as this run knows
    skills: RunSkills | None = None  # set when the agent begins, if it may use any
    summary_owed: bool = False  # the run gave up waiting for a summary: a job is to make it now
    # whether a job should look for something to summarise, once these records are stored
    summary_due: Callable[[Sequence[Stamped]], bool] = lambda records: False
    unfinished: Callable[[], tuple[AssistantMessage, ...]] | None = None  # what an answer holds while it streams

    def citable(self) -> Known:
        """Return what the next text of the run may cite: what tools gave, also before what a summary hides."""
        summarised = (citation for summary in self.summaries.values() for citation in summary.citations)
        return known(self.history, self.run_id, summarised)


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
