"""One run of each kind, as events. The golden streams of them lie in tests/protocols/golden."""

from datetime import UTC, datetime

from agents.protocols.agui import history
from agents.protocols.agui.encode import RunEncoder
from agents.runtime.artifacts import ArtifactRef
from agents.runtime.events import (
    CitationShown,
    ContextCompacted,
    Event,
    Outcome,
    Preloaded,
    ReasoningDelta,
    RunFailed,
    RunFinished,
    RunStarted,
    StateChanged,
    Summarising,
    TextDelta,
    ToolCallDelta,
    ToolProgress,
    ToolStarted,
    ToolStatus,
    UserMessage,
    UserMessageKind,
    Waiting,
    WindowUsed,
)
from agents.runtime.knowledge import Citation, Cited, Place
from agents.runtime.model import FilePart, TextPart, Usage
from tests.protocols.conversation import (
    CANCELLED,
    FINISHED,
    STARTED,
    answered,
    asked,
    call,
    encode,
    lost,
    returned,
    stopped,
    stored,
)

NOTE = ArtifactRef(artifact_id="a1", name="notes.md", version=2, mime="text/markdown", size_bytes=12, sha256="ab" * 32)
FILE = FilePart(artifact_id="f1", version=1, name="plan.pdf", mime="application/pdf", size_bytes=9)

PLAIN: tuple[Event, ...] = (
    STARTED,
    asked("Hello"),
    TextDelta("m1", "Good "),
    TextDelta("m1", "day."),
    answered("m1", "Good day."),
    FINISHED,
)
REASONING: tuple[Event, ...] = (
    STARTED,
    asked("Think"),
    ReasoningDelta("m1", "Let me "),
    ReasoningDelta("m1", "see."),
    TextDelta("m1", "42"),
    answered("m1", "42", reasoning="Let me see.", reasoning_ms=1200),
    FINISHED,
)
SERVER_TOOL: tuple[Event, ...] = (
    STARTED,
    asked("Write a note"),
    TextDelta("m1", "I write it."),
    ToolCallDelta("m1", "c1", "save_artifact", ""),
    ToolCallDelta("m1", "c1", "save_artifact", '{"name":"notes.md"}'),
    answered("m1", "I write it.", tool_calls=(call("c1", "save_artifact", '{"name":"notes.md"}'),)),
    ToolStarted("c1", "save_artifact"),
    ToolProgress("c1", "half way", 1, 2),
    returned("c1", "saved", name="save_artifact", summary="Saved notes.md", elapsed_ms=40, artifacts=(NOTE,)),
    StateChanged(delta={"last": "notes.md", "a/b~c": None, "app:x": 1, "temp:y": 2}),
    TextDelta("m2", "Done."),
    answered("m2", "Done."),
    FINISHED,
)
TEXT_TOOL_TEXT: tuple[Event, ...] = (
    STARTED,
    asked("Go"),
    TextDelta("m1", "first"),
    ToolCallDelta("m1", "c1", "read", "{}"),
    TextDelta("m1:2", "second"),
    answered("m1", "first", tool_calls=(call("c1"),)),
    answered("m1:2", "second"),
    returned("c1"),
    answered("m2", "third"),
    FINISHED,
)
PARALLEL_TOOLS: tuple[Event, ...] = (
    STARTED,
    asked("Both"),
    ToolCallDelta("m1", "c1", "read", '{"a":'),
    ToolCallDelta("m1", "c2", "read", '{"b":'),
    ToolCallDelta("m1", "c1", "read", "1}"),
    ToolCallDelta("m1", "c2", "read", "2"),
    answered("m1", tool_calls=(call("c1", arguments='{"a":1}'), call("c2", arguments='{"b":2}'))),
    ToolStarted("c1", "read"),
    ToolStarted("c2", "read"),
    returned("c1", "one"),
    returned("c2", "no", status=ToolStatus.ERROR),
    answered("m2", "Both read."),
    FINISHED,
)
PENDING: tuple[Event, ...] = (
    STARTED,
    asked("Which colour?"),
    answered("m1", tool_calls=(call("c1", "pick"), call("c2"))),
    returned("c2"),
    RunFinished(outcome=Outcome.SUCCESS, pending_call_ids=("c1",)),
)
ANSWERED: tuple[Event, ...] = (
    STARTED,
    returned("c1", "red", name="pick", external=True),
    TextDelta("m2", "Red it is."),
    answered("m2", "Red it is."),
    FINISHED,
)
STOPPED: tuple[Event, ...] = (
    STARTED,
    asked("Long"),
    ReasoningDelta("m1", "hm"),
    TextDelta("m1", "Once upon"),
    stopped("m1", "Once upon", reasoning="hm"),
    CANCELLED,
)
FAILED: tuple[Event, ...] = (
    STARTED,
    asked("Fail"),
    TextDelta("m1", "I tr"),
    ToolCallDelta("m1", "c1", "read", '{"na'),
    RunFailed(
        code="stream_cut", message="The connection broke.", retryable=True, reference="k3", usage=Usage(prompt=3)
    ),
)
STEERED: tuple[Event, ...] = (
    STARTED,
    asked("Go"),
    answered("m1", "Step one.", tool_calls=(call("c1"),)),
    returned("c1"),
    UserMessage(id="u2", parts=(TextPart(text="Use metres"),), kind=UserMessageKind.STEER),
    answered("m2", "In metres."),
    FINISHED,
)
STEERED_WITH_FILE: tuple[Event, ...] = (
    STARTED,
    asked("Go"),
    UserMessage(id="u2", parts=(TextPart(text="Use this"), FILE), kind=UserMessageKind.STEER),
    answered("m2", "I did."),
    FINISHED,
)
BUSY: tuple[Event, ...] = (
    STARTED,
    asked("Go"),
    Waiting(2.5, "busy"),
    Waiting(5.0, "busy"),
    TextDelta("m1", "Here."),
    answered("m1", "Here."),
    FINISHED,
)
SEEDED: tuple[Event, ...] = (
    STARTED,
    UserMessage(id="u0", parts=(TextPart(text="Earlier"),), kind=UserMessageKind.SEED),
    answered("m0", "Yes", seeded=True),
    asked("And now?"),
    answered("m1", "Now this."),
    FINISHED,
)
WITH_FILE: tuple[Event, ...] = (
    STARTED,
    UserMessage(id="u1", parts=(TextPart(text="Read it"), FILE)),
    answered("m1", "It says nothing."),
    FINISHED,
)
DOCUMENT = "5f0c6b1e-6c5b-4f8e-9f0a-2b6d8f3c1a77"
REPORT = Citation(
    id="k3f9ab",
    artifact_id=DOCUMENT,
    version=2,
    name="报告.pdf",
    start=120,
    end=180,
    place=Place(page=3, heading=("Results", "Costs")),
    quote="Costs fell by 5 %.",
)
TABLE = Citation(
    id="m2x7qp",
    artifact_id="t1",
    version=1,
    name="t.xlsx",
    start=0,
    end=9,
    place=Place(sheet="Costs", rows=(4, 9)),
    quote="4 | 9",
)
SAID = Citation(
    id="p4q2rt",
    artifact_id="",
    version=0,
    name="Costs of the 冷库",
    start=0,
    end=21,
    place=Place(),
    quote="We agreed on 450,000.",
    thread_id="th/前",
    message_id="u7",
    at=datetime(2026, 5, 3, 14, 2, 3, 450_000, UTC),
)
CITED_TEXT = "It fell [1](#c-k3f9ab), see [2](#c-m2x7qp)."
CITED: tuple[Event, ...] = (
    RunStarted(agent="assistant", model="scripted", sources=(DOCUMENT, "t1")),
    UserMessage(id="u1", parts=(TextPart(text="What of costs?"),), sources=(DOCUMENT, "t1")),
    CitationShown("m1", Cited(number=1, citation=REPORT)),
    TextDelta("m1", "It fell [1](#c-k3f9ab)"),
    TextDelta("m1", ", see "),
    CitationShown("m1", Cited(number=2, citation=TABLE)),
    TextDelta("m1", "[2](#c-m2x7qp)."),
    answered("m1", CITED_TEXT, citations=(Cited(number=1, citation=REPORT), Cited(number=2, citation=TABLE))),
    answered("m2", "Again [1](#c-k3f9ab).", citations=(Cited(number=1, citation=REPORT),)),
    FINISHED,
)
CITED_MESSAGE: tuple[Event, ...] = (
    STARTED,
    asked("What did we agree on?"),
    CitationShown("m1", Cited(number=1, citation=SAID)),
    TextDelta("m1", "On 450,000 [1](#c-p4q2rt)"),
    CitationShown("m1", Cited(number=2, citation=REPORT)),
    TextDelta("m1", ", and costs fell [2](#c-k3f9ab)."),
    answered(
        "m1",
        "On 450,000 [1](#c-p4q2rt), and costs fell [2](#c-k3f9ab).",
        citations=(Cited(number=1, citation=SAID), Cited(number=2, citation=REPORT)),
    ),
    FINISHED,
)
NOT_IN_DOCUMENTS: tuple[Event, ...] = (
    STARTED,
    asked("What of rain?"),
    TextDelta("m1", "They do not say."),
    answered("m1", "They do not say.", not_in_documents=True),
    answered("m2", not_in_documents=True),
    FINISHED,
)
LONG: tuple[Event, ...] = (
    STARTED,
    asked("Go on"),
    Preloaded(blocks=(("recall", "They spoke of metres."),), memories=(("k3f9ab2x", 1), ("m7p2qr4t", 3))),
    Summarising(state="started", tokens_before=24_000),
    Summarising(state="done", tokens_before=24_000, tokens_after=6_100, summary_id="s1", position=40),
    ContextCompacted(up_to=46, results=2, tokens=3_200),
    WindowUsed(
        tokens=6_100, window=32_768, source="guess", parts=(("system", 900), ("summary", 700), ("history", 4_500))
    ),
    TextDelta("m1", "On it"),
    WindowUsed(tokens=6_200, window=32_768, source="guess"),
    Summarising(state="started", tokens_before=30_000),
    Summarising(state="failed", tokens_before=30_000),
    TextDelta("m1", " goes."),
    answered("m1", "On it goes."),
    FINISHED,
)

RUNS: dict[str, tuple[Event, ...]] = {
    "plain": PLAIN,
    "reasoning": REASONING,
    "server-tool": SERVER_TOOL,
    "text-tool-text": TEXT_TOOL_TEXT,
    "parallel-tools": PARALLEL_TOOLS,
    "pending": PENDING,
    "answered": ANSWERED,
    "stopped": STOPPED,
    "failed": FAILED,
    "steered": STEERED,
    "steered-with-file": STEERED_WITH_FILE,
    "busy": BUSY,
    "seeded": SEEDED,
    "with-file": WITH_FILE,
    "cited": CITED,
    "cited-message": CITED_MESSAGE,
    "not-in-documents": NOT_IN_DOCUMENTS,
    "long": LONG,
}


def streams() -> dict[str, list[bytes]]:
    """Return the frames of every scenario, by name."""
    found = {name: encode(*events) for name, events in RUNS.items()}
    html = RunEncoder(thread_id="th", run_id="r1", render_html=True)
    text = "# Title\n\nSome **text**.\n\n- one\n- two\n\nrest"
    pieces = [TextDelta("m1", text[i : i + 5]) for i in range(0, len(text), 5)]
    found["html"] = encode(STARTED, asked("Write"), *pieces, answered("m1", text), FINISHED, encoder=html)
    fork = RunEncoder(
        thread_id="th",
        run_id="r2",
        parent_run_id="r1",
        baseline=stored(asked("Old question", "u0"), answered("m0", "Old answer")),
        state={"page": 1, "app:x": 2},
    )
    found["edited"] = encode(STARTED, asked("New question", "u2"), answered("m5", "New"), FINISHED, encoder=fork)
    found["lost"] = lost_run()
    found["lost-before-its-first-frame"] = [
        data
        for _, data in RunEncoder(thread_id="th", run_id="r1").close_lost(
            history.messages(stored(asked("Hello"))), RunFailed(code="lost", message="The server restarted.")
        )
    ]
    return found


def lost_run() -> list[bytes]:
    """Return a run whose process died in the middle of a call, and how another process closed it."""
    dying = RunEncoder(thread_id="th", run_id="r1")
    frames = encode(
        STARTED, asked("Go"), TextDelta("m1", "I beg"), ToolCallDelta("m1", "c1", "read", '{"a'), encoder=dying
    )
    saved = stored(asked("Go"), stopped("m1", "I beg", tool_calls=(call("c1"),)), lost("c1"))
    closing = RunEncoder(thread_id="th", run_id="r1", seq=len(frames))
    failed = RunFailed(code="lost", message="The server restarted.", retryable=True)
    return frames + [data for _, data in closing.close_lost(history.messages(saved), failed)]
