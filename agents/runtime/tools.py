"""Tools: what a model may call.

Four gates, in this order: visibility (may the model see it), ownership (does the server run it), permission (may this
call happen now), implementation. agents/runtime/toolround.py walks a turn's calls through them.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Any, Protocol

from agents.runtime.artifacts import ArtifactRef, ArtifactStore
from agents.runtime.code import Workspace
from agents.runtime.context.guard import Family
from agents.runtime.events import ToolStatus
from agents.runtime.knowledge import NO_KNOWLEDGE, Citation, Knowledge
from agents.runtime.memory.memories import MemoryStore
from agents.runtime.memory.sources import Said
from agents.runtime.model import ToolSpec
from agents.runtime.recall import NO_RECALL, Recall
from agents.runtime.session import CancelToken
from agents.runtime.skills.loaded import RunSkills


class Verdict(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"  # needs a person


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is known of a tool.

    timeout_s bounds one call. retries counts tries after the first, for read-only tools, after network errors only.
    concurrency_safe: may run beside other calls of one answer that are safe too; others run alone, in call order.
    """

    read_only: bool = False
    destructive: bool = True
    concurrency_safe: bool = False
    family: Family = Family.GENERAL
    timeout_s: float = 60.0
    retries: int = 0
    group: str = ""  # calls of one group never run at once
    result_bytes: int | None = None  # of a tool that pages by itself: what its results may have uncut at entry


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a call may know and do. Bound to one owner, session and call; a tool cannot reach past it.

    progress: shows a line while the tool works, never blocks. state: a read-only view; write through ToolResult.state.
    citations: what earlier results gave to cite, by id. memories: of the person, None = nothing is remembered.
    zone: the person's. said: what they typed since this turn began, in order. skills: of the run, None = there are
    none. workspace: of the conversation, None = no code can be run.
    """

    owner_id: int
    session_id: str
    run_id: str
    invocation_id: str
    call_id: str
    cancel: CancelToken
    artifacts: ArtifactStore
    state: Mapping[str, Any]
    now: Callable[[], datetime]
    progress: Callable[[str, float | None, float | None], None] = lambda text, done, total: None
    knowledge: Knowledge = NO_KNOWLEDGE
    recall: Recall = NO_RECALL
    memories: MemoryStore | None = None
    zone: tzinfo = UTC
    said: Callable[[], tuple[Said, ...]] = lambda: ()
    skills: RunSkills | None = None
    workspace: Workspace | None = None
    citations: Mapping[str, Citation] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool returns. content: for the model. summary: one line for a person. data: structure for the page.

    artifacts: versions this call made. state: keys to change. end_run: no further model call after this round.
    citations: what the content names as `[[c:ID]]` and the model may cite.
    code: why it failed, where the status does not say it.
    """

    content: str
    summary: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    status: ToolStatus = ToolStatus.OK
    artifacts: tuple[ArtifactRef, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    end_run: bool = False
    citations: tuple[Citation, ...] = ()
    code: str = ""


class Tool(Protocol):
    """Something the server runs for the model. One instance serves many calls at once."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def traits(self) -> Traits: ...

    def permission(self, arguments: Mapping[str, Any], context: ToolContext) -> Permission:
        """Return whether this call may happen now. Must not wait."""
        ...

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Do it. arguments: a JSON object that fits spec.parameters (types and required were checked).

        Raises ToolFailed with a message for the model; any other exception becomes a general error result. Cancelling
        the task must stop the work.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool:
    """A tool made of one async function."""

    spec: ToolSpec
    function: Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolResult]]
    traits: Traits = Traits()

    def permission(self, arguments: Mapping[str, Any], context: ToolContext) -> Permission:
        return Permission(verdict=Verdict.ALLOW)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return await self.function(arguments, context)


PermissionPolicy = Callable[[Tool, Mapping[str, Any], ToolContext], Permission]
