"""What happens in a run, as a closed union.

A Record is stored, then yielded. A Delta is only shown live; its text is contained in a later Record.
Adapters `match` on the type and end with `assert_never`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from agents.runtime.artifacts import ArtifactRef
from agents.runtime.errors import ToolFailure
from agents.runtime.knowledge import Citation, Cited
from agents.runtime.model import NO_USAGE, FinishReason, Part, ToolCall, Usage


class UserMessageKind(StrEnum):
    TURN = "turn"  # what started the run
    STEER = "steer"  # sent into a running run, read between two steps
    SEED = "seed"  # history the caller brought for an empty session


class ToolStatus(StrEnum):
    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    APPROVAL_REQUIRED = "approval_required"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    LOST = "lost"  # the process died; the tool is not run again


class Outcome(StrEnum):
    SUCCESS = "success"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run began. `model` is the configured name that answers; parent_run_id as the client gave it.

    action: "" for send, else edit, retry or continue (session.Action). A continue shows the model an instruction here.
    sources: what the run may answer from, as in UserMessage. zone: the time zone the person is in, an IANA name, "" =
    not known: what "tomorrow" in a message means.
    """

    agent: str
    model: str
    parent_run_id: str = ""
    action: str = ""
    sources: tuple[str, ...] | None = None
    zone: str = ""
    type: Literal["run_started"] = "run_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What a person said. `context` is what they had open: (description, value) pairs, data, at most 16 KB.

    sources: artifact ids of the documents to answer from; None = all of the person's, () = none.
    """

    id: str
    parts: tuple[Part, ...]
    kind: UserMessageKind = UserMessageKind.TURN
    context: tuple[tuple[str, str], ...] = ()
    sources: tuple[str, ...] | None = None
    type: Literal["user_message"] = "user_message"

    @property
    def begins_round(self) -> bool:
        """Return whether a round begins with it: what steers a run belongs to that run's round."""
        return self.kind is not UserMessageKind.STEER


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """One segment of a model's answer, complete.

    response_id: one model call. A call whose text goes on after a tool call gives several segments with the ids
    `response_id`, `response_id:2`, ...; assembly joins them again for the provider.
    finish_reason CANCELLED, ERROR or LENGTH marks a text that stopped early. reasoning_ms: for display.
    citations: those the text links to (knowledge.py), in order of first use. citations_dropped: markers of no known
    citation, which were taken out. not_in_documents: the model said that the documents do not answer.
    """

    id: str
    response_id: str
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = FinishReason.STOP
    reasoning_ms: int = 0
    seeded: bool = False
    citations: tuple[Cited, ...] = ()
    citations_dropped: int = 0
    not_in_documents: bool = False
    type: Literal["assistant_message"] = "assistant_message"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned:
    """The one result of one call.

    id: unique per result. content: what the model reads (guarded: at most the entry limit, with head, tail and
    reference if the whole went into `artifact`). data: the structure for the page, never for the model. code: why it
    failed where the status does not say it all; see `failure`. citations: what the content names as `[[c:ID]]`.
    """

    id: str
    call_id: str
    name: str
    content: str
    status: ToolStatus = ToolStatus.OK
    summary: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    artifact: ArtifactRef | None = None
    artifacts: tuple[ArtifactRef, ...] = ()
    size_bytes: int = 0
    sha256: str = ""
    elapsed_ms: int = 0
    external: bool = False
    code: str = ""
    citations: tuple[Citation, ...] = ()
    type: Literal["tool_returned"] = "tool_returned"

    @property
    def failure(self) -> str:
        """Return why the call failed, as an errors.ToolFailure ("" = it did not), also for a client's own results."""
        if self.status is ToolStatus.OK:
            return ""
        return self.code or (ToolFailure.TOOL_FAILED if self.status is ToolStatus.ERROR else self.status.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged:
    """Keys of the state that changed. None is an explicit null. Prefixes: see session.py."""

    delta: Mapping[str, Any]
    type: Literal["state_changed"] = "state_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The run ended as it should, or because a person stopped it. pending_call_ids: external calls left open."""

    outcome: Outcome
    usage: Usage = NO_USAGE
    pending_call_ids: tuple[str, ...] = ()
    type: Literal["run_finished"] = "run_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed:
    """The run ended with an error. `message` is safe to show; `reference` finds the details in the log."""

    code: str
    message: str
    retryable: bool = False
    reference: str = ""
    usage: Usage = NO_USAGE
    type: Literal["run_failed"] = "run_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompacted:
    """From here on, large results of earlier requests are shown to the model as placeholders (context/compaction.py).

    up_to: position of the last event this is decided for; it holds for the rest of the chain, so that a request stays
    the same until the next step. results, tokens: how many were replaced by this step, and what it saves.
    """

    up_to: int
    results: int
    tokens: int
    type: Literal["context_compacted"] = "context_compacted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preloaded:
    """What the run put before the model without being asked: kept, so that a retry shows it the same. Not shown live.

    blocks: (kind, text) pairs; kind is memory or recall. citations: those that they name as `[[c:ID]]`.
    memories: (id, version) of those that the model was shown. Their text is in no block: what is deleted from memory
    must not stay here.
    """

    blocks: tuple[tuple[str, str], ...]
    citations: tuple[Citation, ...] = ()
    memories: tuple[tuple[str, int], ...] = ()
    type: Literal["preloaded"] = "preloaded"


Record = (
    RunStarted
    | UserMessage
    | AssistantMessage
    | ToolReturned
    | StateChanged
    | ContextCompacted
    | Preloaded
    | RunFinished
    | RunFailed
)


@dataclass(frozen=True, slots=True)
class TextDelta:
    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A call is announced once id and name are known (arguments may be ""), then goes on with more arguments."""

    message_id: str
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The arguments are complete and the tool now runs."""

    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """Something to show while a tool works. done/total: None = unknown."""

    call_id: str
    text: str
    done: float | None = None
    total: float | None = None


@dataclass(frozen=True, slots=True)
class CitationShown:
    """The message's text is about to link to this citation for the first time."""

    message_id: str
    cited: Cited


@dataclass(frozen=True, slots=True)
class Waiting:
    """The model is busy; the provider asks again in delay_s seconds."""

    delay_s: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarising:
    """The run makes a summary before it goes on. state: started, done, skipped or failed (the run goes on anyway).

    tokens_before, tokens_after: of the request; after = 0 until it is done. summary_id, position: of the new summary
    and its boundary, "" and 0 without one.
    """

    state: Literal["started", "done", "skipped", "failed"]
    tokens_before: int
    tokens_after: int = 0
    summary_id: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowUsed:
    """What the request about to be sent takes of the model's window, in tokens, estimated.

    parts: (tag, tokens), one entry per tag, in this order: system, tools, summary, memory, recall, history, results,
    placeholder, open (what the person has open), dropped. source: where the window's size is known from
    (context/window.py). dropped is not part of tokens.
    """

    tokens: int
    window: int
    source: str
    parts: tuple[tuple[str, int], ...] = ()


Delta = (
    TextDelta
    | ReasoningDelta
    | ToolCallDelta
    | ToolStarted
    | ToolProgress
    | CitationShown
    | Waiting
    | Summarising
    | WindowUsed
)
Event = Record | Delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who caused an event, stamped by the runner so that an agent cannot write into another scope.

    branch: agent names joined by "/", who was called by whom. filter_key: visibility scope, "/"-separated.
    trigger: "", tool_call, transfer or dynamic_workflow, with the id that caused this invocation.
    """

    run_id: str
    invocation_id: str
    author: str
    branch: str = ""
    filter_key: str = ""
    parent_invocation_id: str = ""
    trigger: str = ""
    trigger_id: str = ""
    trigger_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamped:
    """A Record on its way to the store. id: unique in the session; an id met again is stored once."""

    id: str
    at: datetime
    origin: Origin
    record: Record
    tokens: int = 0  # estimate of what the record costs in a prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A Record as it lies in the store. position: from 1, unique and without gaps in a session. fork: 0 = trunk."""

    position: int
    fork: int
    id: str
    at: datetime
    origin: Origin
    record: Record
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Emitted:
    """An event as the runner yields it. position: None for a Delta."""

    event: Event
    position: int | None
    origin: Origin
    at: datetime
