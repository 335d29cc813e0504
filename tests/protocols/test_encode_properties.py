"""Random events in random order, always a valid stream (spec 4 test 14, spec 5 tests 1, 2, 4)."""

from datetime import UTC

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.protocols.agui.encode import RunEncoder, is_terminal
from agents.runtime.artifacts import ArtifactRef
from agents.runtime.events import (
    AssistantMessage,
    CitationShown,
    ContextCompacted,
    Origin,
    Outcome,
    Preloaded,
    ReasoningDelta,
    RunFailed,
    RunFinished,
    StateChanged,
    Summarising,
    TextDelta,
    ToolCallDelta,
    ToolProgress,
    ToolReturned,
    ToolStarted,
    ToolStatus,
    UserMessage,
    UserMessageKind,
    Waiting,
    WindowUsed,
)
from agents.runtime.knowledge import Citation, Cited, Place
from agents.runtime.model import FinishReason, TextPart, ToolCall, Usage
from tests.protocols.checker import check, types
from tests.protocols.conversation import STARTED, asked, emit

TEXT = st.text(max_size=12) | st.sampled_from(
    ["", "\n\n", "```\n", "- a\n", "| a |\n|--|\n", "中文。", "\ud83d", "\x00"]
)
MESSAGE = st.sampled_from(["m1", "m1:2", "m2"])
CALL = st.sampled_from(["c1", "c2", "c3"])
REF = st.builds(
    ArtifactRef,
    artifact_id=st.just("a1"),
    name=TEXT,
    version=st.integers(1, 3),
    mime=st.just("text/plain"),
    size_bytes=st.integers(0, 9),
    sha256=st.just("0" * 64),
)
LEAF = st.none() | st.booleans() | st.integers(-9, 9) | TEXT
JSON = st.recursive(LEAF, lambda j: st.lists(j, max_size=2), max_leaves=3)
KEY = TEXT | st.sampled_from(["app:x", "temp:y", "a/b~c"])
CITED = st.builds(
    Cited,
    number=st.integers(1, 3),
    citation=st.builds(
        Citation,
        id=st.sampled_from(["aaaaaa", "bbbbbb"]),
        artifact_id=st.just("a1"),
        version=st.just(1),
        name=TEXT,
        start=st.just(0),
        end=st.just(9),
        place=st.builds(Place, page=st.integers(0, 2), rows=st.just((0, 0)), lines=st.sampled_from([(0, 0), (4, 9)])),
        quote=TEXT,
    )
    | st.builds(
        Citation,
        id=st.just("cccccc"),
        artifact_id=st.just(""),
        version=st.just(0),
        name=TEXT,
        start=st.just(0),
        end=st.just(9),
        place=st.just(Place()),
        quote=TEXT,
        thread_id=st.sampled_from(["th", "t/2"]),
        message_id=MESSAGE,
        at=st.none() | st.datetimes(timezones=st.just(UTC)),
    ),
)
DELTA = st.one_of(
    st.builds(CitationShown, message_id=MESSAGE, cited=CITED),
    st.builds(TextDelta, message_id=MESSAGE, text=TEXT),
    st.builds(ReasoningDelta, message_id=MESSAGE, text=TEXT),
    st.builds(ToolCallDelta, message_id=MESSAGE, call_id=CALL, name=st.just("read"), arguments=TEXT),
    st.builds(ToolStarted, call_id=CALL, name=st.just("read")),
    st.builds(ToolProgress, call_id=CALL, text=TEXT, done=st.none() | st.floats(0, 9), total=st.none() | st.just(9.0)),
    st.builds(Waiting, delay_s=st.floats(0, 60), reason=st.just("busy")),
    st.builds(
        Summarising,
        state=st.sampled_from(["started", "done", "skipped", "failed"]),
        tokens_before=st.integers(0, 9),
        tokens_after=st.integers(0, 9),
        summary_id=TEXT,
        position=st.integers(0, 9),
    ),
    st.builds(
        WindowUsed,
        tokens=st.integers(0, 9),
        window=st.integers(1, 9),
        source=st.sampled_from(["guess", "settings"]),
        parts=st.lists(st.tuples(TEXT, st.integers(0, 9)), max_size=2).map(tuple),
    ),
)
RECORD = st.one_of(
    st.builds(
        AssistantMessage,
        id=MESSAGE,
        response_id=st.just("m"),
        text=TEXT,
        reasoning=TEXT,
        tool_calls=st.lists(st.builds(ToolCall, id=CALL, name=st.just("read"), arguments=TEXT), max_size=2).map(tuple),
        finish_reason=st.sampled_from(FinishReason),
        seeded=st.booleans(),
        citations=st.lists(CITED, max_size=2).map(tuple),
        not_in_documents=st.booleans(),
    ),
    st.builds(
        ToolReturned,
        id=st.sampled_from(["t1", "t2", "m1"]),
        call_id=CALL,
        name=st.just("read"),
        content=TEXT,
        status=st.sampled_from(ToolStatus),
        data=st.dictionaries(TEXT, JSON, max_size=2),
        artifacts=st.lists(REF, max_size=2).map(tuple),
    ),
    st.builds(ContextCompacted, up_to=st.integers(1, 9), results=st.integers(0, 9), tokens=st.integers(0, 9)),
    st.builds(Preloaded, blocks=st.just((("recall", "x"),)), memories=st.sampled_from([(), (("m1", 1),)])),
    st.builds(StateChanged, delta=st.dictionaries(KEY, JSON, max_size=2)),
    st.builds(
        UserMessage,
        id=st.sampled_from(["u2", "u3", "m1"]),
        parts=TEXT.map(lambda text: (TextPart(text=text),)),
        kind=st.sampled_from(UserMessageKind),
    ),
)
END = st.one_of(
    st.builds(
        RunFinished,
        outcome=st.sampled_from(Outcome),
        usage=st.builds(Usage, prompt=st.integers(0, 9), completion=st.integers(0, 9)),
        pending_call_ids=st.lists(CALL, unique=True).map(tuple),
    ),
    st.builds(RunFailed, code=st.just("internal"), message=TEXT, retryable=st.booleans(), reference=st.just("ab12")),
)
ORIGINS = st.sampled_from([Origin(run_id="r1", invocation_id=i, author="a") for i in ("i1", "i2")])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    events=st.lists(st.tuples(DELTA | RECORD, ORIGINS), max_size=25),
    end=END,
    html=st.booleans(),
    turn=st.booleans(),
    after=st.lists(DELTA | RECORD | END, max_size=2),
)
def test_4_14_any_order_of_events_becomes_one_valid_stream(events, end, html, turn, after):  # type: ignore[no-untyped-def]
    encoder = RunEncoder(thread_id="th", run_id="r1", render_html=html, state={})
    opening = [STARTED, asked("hi")] if turn else [STARTED]
    frames = [frame for event in opening for frame in encoder.encode(emit(event))]
    frames += encoder.begin()
    for event, origin in events:
        frames += encoder.encode(emit(event, origin=origin))
    frames += encoder.encode(emit(end))
    for event in after:
        assert encoder.encode(emit(event)) == []
    assert encoder.custom("title", "late") == []

    found = check(frames)

    assert encoder.seq == len(frames)
    assert [is_terminal(data) for _, data in frames] == [False] * (len(frames) - 1) + [True]
    ends = [kind for kind in types(found) if kind in ("RUN_FINISHED", "RUN_ERROR")]
    assert ends == ["RUN_ERROR" if isinstance(end, RunFailed) else "RUN_FINISHED"]
