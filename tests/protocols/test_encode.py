"""What each event becomes on the wire. Golden files: set UPDATE_GOLDEN=1 to write them anew, then read the diff."""

import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from agents.protocols.agui import history, salvage
from agents.protocols.agui.encode import RunEncoder, is_terminal
from agents.runtime.events import (
    ReasoningDelta,
    RunFailed,
    TextDelta,
    ToolCallDelta,
    ToolProgress,
    ToolStarted,
)
from tests.protocols import scenarios
from tests.protocols.checker import apply, check, ours, types
from tests.protocols.conversation import (
    CANCELLED,
    FINISHED,
    STARTED,
    answered,
    asked,
    call,
    emit,
    encode,
    returned,
    stopped,
    stored,
)

GOLDEN = Path(__file__).parent / "golden"
# https://docs.ag-ui.com/sdk/js/core/events: what each kind of event must have, its type aside
REQUIRED: dict[str, tuple[str, ...]] = {
    "RUN_STARTED": ("threadId", "runId"),
    "RUN_FINISHED": ("threadId", "runId"),
    "RUN_ERROR": ("message",),
    "TEXT_MESSAGE_START": ("messageId",),
    "TEXT_MESSAGE_CONTENT": ("messageId", "delta"),
    "TEXT_MESSAGE_END": ("messageId",),
    "REASONING_START": ("messageId",),
    "REASONING_MESSAGE_START": ("messageId", "role"),
    "REASONING_MESSAGE_CONTENT": ("messageId", "delta"),
    "REASONING_MESSAGE_END": ("messageId",),
    "REASONING_END": ("messageId",),
    "TOOL_CALL_START": ("toolCallId", "toolCallName"),
    "TOOL_CALL_ARGS": ("toolCallId", "delta"),
    "TOOL_CALL_END": ("toolCallId",),
    "TOOL_CALL_RESULT": ("messageId", "toolCallId", "content"),
    "STATE_SNAPSHOT": ("snapshot",),
    "STATE_DELTA": ("delta",),
    "MESSAGES_SNAPSHOT": ("messages",),
    "ACTIVITY_SNAPSHOT": ("messageId", "activityType", "content"),
    "ACTIVITY_DELTA": ("messageId", "activityType", "patch"),
    "CUSTOM": ("name", "value"),
}
STREAMS = scenarios.streams()


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_5_1_golden_streams_of_each_outcome_are_valid_and_unchanged(name: str) -> None:
    check(STREAMS[name])
    path = GOLDEN / f"{name}.jsonl"
    written = b"\n".join(STREAMS[name]) + b"\n"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(written)
    assert path.read_bytes() == written


@pytest.mark.parametrize("name", sorted(set(scenarios.RUNS) - {"answered", "failed", "steered-with-file"}))
def test_4_12_a_snapshot_of_the_stored_records_is_what_a_client_holds_that_saw_the_run(name: str) -> None:
    records = [event for event in scenarios.RUNS[name] if not isinstance(event, _DELTAS)]
    snapshot = history.messages(stored(*records))
    live = apply(check(STREAMS[name]))
    assert [_bare(m) for m in live] == [_bare(m) for m in snapshot]
    # and a client that saw the run does not change when it gets the snapshot
    assert [m["id"] for m in apply([{"type": "MESSAGES_SNAPSHOT", "messages": snapshot}], live)] == [
        m["id"] for m in live
    ]


def test_4_5_text_after_a_call_is_a_second_message_and_nothing_is_lost() -> None:
    events = check(STREAMS["text-tool-text"])
    held = apply(events)
    assert [(m["id"], m.get("content")) for m in held if m["role"] == "assistant"] == [
        ("m1", "first"),
        ("m1:2", "second"),
        ("m2", "third"),
    ]
    kinds = types(events)
    assert kinds.index("TEXT_MESSAGE_END") < kinds.index("TOOL_CALL_START")


def test_4_5_a_runtime_that_goes_on_with_a_closed_id_gets_a_second_id() -> None:
    events = check(
        encode(
            STARTED,
            asked("Go"),
            TextDelta("m1", "a"),
            ToolCallDelta("m1", "c1", "read", "{}"),
            TextDelta("m1", "b"),
            FINISHED,
        )
    )
    assert [m["id"] for m in apply(events) if m["role"] == "assistant"] == ["m1", "m1~2"]


def test_4_6_parallel_results_have_ids_of_their_own_even_if_the_records_do_not() -> None:
    events = check(
        encode(
            STARTED,
            asked("Go"),
            answered("m1", tool_calls=(call("c1"), call("c2"))),
            returned("c1", id="same"),
            returned("c2", id="same"),
            FINISHED,
        )
    )
    ids = [event["messageId"] for event in events if event["type"] == "TOOL_CALL_RESULT"]
    assert len(set(ids)) == 2


def test_4_7_a_whole_message_after_its_deltas_adds_nothing() -> None:
    events = check(STREAMS["plain"])
    assert [e["delta"] for e in events if e["type"] == "TEXT_MESSAGE_CONTENT"] == ["Good ", "day."]


def test_of_a_whole_message_only_the_missing_end_is_sent() -> None:
    events = check(encode(STARTED, asked("Go"), TextDelta("m1", "Good "), answered("m1", "Good day."), FINISHED))
    assert [e["delta"] for e in events if e["type"] == "TEXT_MESSAGE_CONTENT"] == ["Good ", "day."]


def test_streamed_text_stands_when_the_stored_text_differs(caplog: pytest.LogCaptureFixture) -> None:
    events = check(encode(STARTED, asked("Go"), TextDelta("m1", "Bad"), answered("m1", "Good"), FINISHED))
    assert [e["delta"] for e in events if e["type"] == "TEXT_MESSAGE_CONTENT"] == ["Bad"]
    assert "differs" in caplog.text


def test_4_8_cancel_in_the_middle_closes_reasoning_and_text_before_the_one_end() -> None:
    encoder = RunEncoder(thread_id="th", run_id="r1")
    frames = encode(
        STARTED, asked("Go"), ReasoningDelta("m1", "hm"), TextDelta("m1", "Once"), CANCELLED, encoder=encoder
    )
    kinds = types(check(frames))
    assert kinds[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert kinds.index("REASONING_END") < kinds.index("TEXT_MESSAGE_START")
    assert check(frames)[-1]["outcome"] == {"type": "cancelled"}
    assert encoder.encode(emit(TextDelta("m1", "more"))) == []


def test_4_9_a_failure_with_open_arguments_closes_them_and_ends_once() -> None:
    kinds = types(check(STREAMS["failed"]))
    assert kinds[-2:] == ["TOOL_CALL_END", "RUN_ERROR"]
    assert "RUN_FINISHED" not in kinds


def test_4_10_a_failed_tool_does_not_end_the_run() -> None:
    events = check(STREAMS["parallel-tools"])
    assert events[-1]["outcome"] == {"type": "success"}
    results = [ours(event)["status"] for event in events if event["type"] == "TOOL_CALL_RESULT"]
    assert results == ["ok", "error"]


def test_5_2_no_event_of_ours_can_be_had_without_a_required_member() -> None:
    """Each kind we send has what AG-UI requires, and the published checks refuse it without any one of these."""
    seen: dict[str, dict[str, Any]] = {}
    for frames in STREAMS.values():
        seen |= {event["type"]: event for event in check(frames)}
    assert len(seen) >= 18 and set(seen) <= set(REQUIRED)
    for kind, event in seen.items():
        for name in REQUIRED[kind]:
            assert event.get(name) is not None or name == "value", f"{kind} without {name}"
            missed = rf"{name}\s+Field required|missing required field '{name}'"
            with pytest.raises((ValidationError, AssertionError), match=missed):
                check([orjson.dumps({k: v for k, v in event.items() if k != name})], first_seq=None)


def test_5_4_an_end_closes_every_open_span_before_it() -> None:
    frames = encode(STARTED, asked("Go"), ReasoningDelta("m1", "hm"), ToolCallDelta("m1", "c1", "read", "{"), FINISHED)
    kinds = types(check(frames))
    assert kinds[-1] == "RUN_FINISHED"
    for span in ("REASONING_MESSAGE", "REASONING", "TOOL_CALL"):
        assert kinds.index(f"{span}_START") < kinds.index(f"{span}_END") < len(kinds) - 1


def test_5_3_a_failed_run_and_the_next_one_fit_into_one_stream() -> None:
    first = STREAMS["failed"]
    second = encode(*scenarios.PLAIN, encoder=RunEncoder(thread_id="th", run_id="r2"))
    kinds = types(check(first + second, first_seq=None))
    assert [kind for kind in kinds if kind in ("RUN_STARTED", "RUN_ERROR", "RUN_FINISHED")] == [
        "RUN_STARTED",
        "RUN_ERROR",
        "RUN_STARTED",
        "RUN_FINISHED",
    ]


def test_5_5_interleaved_arguments_of_parallel_calls_reach_the_right_call() -> None:
    held = apply(check(STREAMS["parallel-tools"]))
    calls = next(m for m in held if m.get("toolCalls"))["toolCalls"]
    assert [c["function"]["arguments"] for c in calls] == ['{"a":1}', '{"b":2}']


def test_5_6_only_the_open_external_calls_are_listed_and_get_no_result() -> None:
    events = check(STREAMS["pending"])
    assert events[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
    assert [e["toolCallId"] for e in events if e["type"] == "TOOL_CALL_RESULT"] == ["c2"]


def test_answers_of_the_client_come_back_in_the_input_and_not_a_second_time_as_results() -> None:
    events = check(STREAMS["answered"])
    assert [m["id"] for m in events[0]["input"]["messages"]] == ["t-c1"]
    assert "TOOL_CALL_RESULT" not in types(events)
    client = [{"id": "m1", "role": "assistant", "toolCalls": [{"id": "c1"}]}, {"id": "t-c1", "role": "tool"}]
    assert [m["id"] for m in apply(events, client)] == ["m1", "t-c1", "m2"]


def test_5_10_state_patches_set_top_level_keys_with_escaped_names_and_keep_ours_inside() -> None:
    delta = next(e for e in check(STREAMS["server-tool"]) if e["type"] == "STATE_DELTA")["delta"]
    assert delta == [
        {"op": "add", "path": "/last", "value": "notes.md"},
        {"op": "add", "path": "/a~1b~0c", "value": None},
    ]


@pytest.mark.parametrize("name", ["server-tool", "busy", "parallel-tools"])
def test_5_10_an_activity_patch_always_follows_a_snapshot_of_its_id(name: str) -> None:
    known: set[str] = set()
    patched = 0
    for event in check(STREAMS[name]):
        if event["type"] == "ACTIVITY_SNAPSHOT":
            assert event["messageId"] not in known
            known.add(event["messageId"])
        elif event["type"] == "ACTIVITY_DELTA":
            assert event["messageId"] in known
            patched += 1
    assert patched


def test_progress_of_a_tool_that_was_not_announced_as_running_begins_with_a_snapshot() -> None:
    events = check(
        encode(
            STARTED,
            asked("Go"),
            answered("m1", tool_calls=(call("c1"),)),
            ToolProgress("c1", "…"),
            returned("c1"),
            FINISHED,
        )
    )
    assert types(events).index("ACTIVITY_SNAPSHOT") < types(events).index("ACTIVITY_DELTA")


def test_a_call_ends_before_its_result_even_if_nobody_said_it_was_complete() -> None:
    events = check(encode(STARTED, asked("Go"), ToolCallDelta("m1", "c1", "read", "{}"), returned("c1"), FINISHED))
    kinds = types(events)
    assert kinds.index("TOOL_CALL_END") < kinds.index("TOOL_CALL_RESULT")


def test_a_result_without_a_call_and_a_second_result_are_left_out() -> None:
    kinds = types(
        check(
            encode(
                STARTED,
                asked("Go"),
                answered("m1", tool_calls=(call("c1"),)),
                returned("c9"),
                returned("c1"),
                returned("c1", id="again"),
                ToolStarted("c1", "read"),
                FINISHED,
            )
        )
    )
    assert kinds.count("TOOL_CALL_RESULT") == 1
    assert "ACTIVITY_SNAPSHOT" not in kinds


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_5_12_a_member_that_is_not_there_is_left_out_and_never_null(name: str) -> None:
    """The 1.0 client refuses null where a member is optional; only the state's own values may be null."""

    def nulls(value: Any, where: str) -> list[str]:
        if isinstance(value, dict):
            return [found for key, inner in value.items() for found in nulls(inner, f"{where}.{key}")]
        if isinstance(value, list):
            return [found for inner in value for found in nulls(inner, f"{where}[]")]
        return [where] if value is None else []

    events = [orjson.loads(frame) for frame in STREAMS[name]]
    assert [n for e in events if not e["type"].startswith("STATE_") for n in nulls(e, e["type"])] == []


def test_an_artifact_that_a_tool_saved_is_announced() -> None:
    events = check(STREAMS["server-tool"])
    custom = next(e for e in events if e["type"] == "CUSTOM")
    assert custom["name"] == "workbench.artifact"
    assert (custom["value"]["name"], custom["value"]["version"]) == ("notes.md", 2)
    result = next(e for e in events if e["type"] == "TOOL_CALL_RESULT")
    assert ours(result)["elapsedMs"] == 40
    assert ours(result)["artifacts"][0]["artifactId"] == "a1"


def test_a_file_is_echoed_as_a_handle_nobody_fetches() -> None:
    content = check(STREAMS["with-file"])[0]["input"]["messages"][0]["content"]
    assert content[1]["source"] == {
        "type": "file",
        "value": "artifact://f1@1",
        "provider": "workbench",
        "mimeType": "application/pdf",
    }


def test_a_file_sent_into_a_run_travels_beside_the_text() -> None:
    start = next(e for e in check(STREAMS["steered-with-file"]) if e.get("messageId") == "u2")
    assert [part["type"] for part in ours(start)["content"]] == ["text", "document"]


def test_run_started_waits_for_the_turn_but_not_for_ever() -> None:
    encoder = RunEncoder(thread_id="th", run_id="r1")
    assert encoder.encode(emit(STARTED)) == []
    assert [data[:21] for _, data in encoder.begin()] == [b'{"type":"RUN_STARTED"']
    assert encoder.begin() == []


def test_a_fork_tells_every_viewer_what_is_left_of_the_conversation() -> None:
    old = [{"id": i, "role": "user", "content": ""} for i in ("u0", "m0", "u1", "m1")]
    assert [m["id"] for m in apply(check(STREAMS["edited"]), old)] == ["u0", "m0", "u2", "m5"]


def test_a_stopped_text_says_that_it_stopped_early() -> None:
    end = next(e for e in check(STREAMS["stopped"]) if e["type"] == "TEXT_MESSAGE_END")
    assert ours(end)["finishReason"] == "cancelled"


def test_a_lost_run_ends_with_what_was_saved_and_one_error() -> None:
    events = check(STREAMS["lost"])
    assert types(events)[-2:] == ["MESSAGES_SNAPSHOT", "RUN_ERROR"]
    assert events[-1]["code"] == "lost"
    assert ours(events[-1])["retryable"] is True
    assert [m["role"] for m in apply(events)] == ["user", "assistant", "tool"]


def test_blocks_of_html_cover_the_text_and_say_where_the_open_block_begins() -> None:
    events = check(STREAMS["html"])
    blocks = [e["value"] for e in events if e["type"] == "CUSTOM"]
    assert [b["index"] for b in blocks] == list(range(len(blocks)))
    assert "".join(b["html"] for b in blocks).startswith("<h3>Title</h3>")
    text = "".join(e["delta"] for e in events if e["type"] == "TEXT_MESSAGE_CONTENT")
    assert blocks[-1]["end"] == len(text)
    assert text[blocks[0]["end"] :].lstrip().startswith("Some")


def test_only_a_run_that_asked_for_html_gets_it() -> None:
    assert not any(
        b"workbench.block" in frame for name, frames in STREAMS.items() if name != "html" for frame in frames
    )


def test_half_a_surrogate_pair_does_not_break_the_stream() -> None:
    events = check(encode(STARTED, asked("Go"), TextDelta("m1", "a\ud83d"), answered("m1", "a\ud83d"), FINISHED))
    assert next(e for e in events if e["type"] == "TEXT_MESSAGE_CONTENT")["delta"] == "a\ufffd"


def test_a_custom_event_has_our_prefix_and_none_comes_after_the_end() -> None:
    encoder = RunEncoder(thread_id="th", run_id="r1")
    frames = encoder.encode(emit(STARTED)) + encoder.custom("title", {"title": "A plan"})
    frames += encoder.encode(emit(FINISHED))
    assert [e["name"] for e in check(frames) if e["type"] == "CUSTOM"] == ["workbench.title"]
    assert encoder.custom("title", {"title": "late"}) == []


def test_a_run_that_fails_before_anything_is_one_error_after_its_start() -> None:
    events = check(encode(STARTED, RunFailed(code="internal", message="No.", reference="x1")))
    assert types(events) == ["RUN_STARTED", "RUN_ERROR"]
    assert ours(events[1])["reference"] == "x1"


def test_only_the_last_frame_is_terminal() -> None:
    for frames in STREAMS.values():
        assert [is_terminal(frame) for frame in frames] == [False] * (len(frames) - 1) + [True]


def test_usage_stands_on_the_end_of_the_run() -> None:
    assert check(STREAMS["plain"])[-1]["usage"] == [
        {
            "inputTokens": 10,
            "outputTokens": 5,
            "totalTokens": 15,
            "reasoningTokens": 2,
            "cachedInputTokens": 4,
            "model": "scripted",
        }
    ]


def test_a_whole_message_that_was_cancelled_before_its_first_delta_is_shown() -> None:
    events = check(encode(STARTED, asked("Go"), stopped("m1", "Once"), CANCELLED))
    assert [m["content"] for m in apply(events)] == ["Go", "Once"]


def test_context_of_a_run_is_told_beside_its_messages_and_leaves_out_what_says_nothing() -> None:
    events = check(STREAMS["long"])
    told = [event["value"] for event in events if event.get("name") == "workbench.context"]
    assert [value["kind"] for value in told] == [
        *["summarising"] * 2,
        "compacted",
        *["window"] * 2,
        *["summarising"] * 2,
    ]
    assert told[0] == {"kind": "summarising", "state": "started", "tokensBefore": 24_000}
    assert told[1] == {**told[0], "state": "done", "tokensAfter": 6_100, "summaryId": "s1", "position": 40}
    assert told[2] == {"kind": "compacted", "upTo": 46, "results": 2, "tokens": 3_200}
    assert (told[3]["tokens"], told[3]["window"], told[3]["source"]) == (6_100, 32_768, "guess")
    assert told[3]["parts"][1] == {"tag": "summary", "tokens": 700}
    assert "parts" not in told[4]
    assert "Likes metres" not in str(events)  # what is put before the model is not shown
    assert [m.get("content") for m in apply(events) if m["role"] == "assistant"] == ["On it goes."]
    assert [m.text for m in salvage.unstored(STREAMS["long"], ())] == ["On it goes."]


_DELTAS = (
    *(TextDelta, ReasoningDelta, ToolCallDelta, ToolStarted, ToolProgress, scenarios.Waiting),
    *(scenarios.Summarising, scenarios.WindowUsed),
)


def _bare(message: dict[str, Any]) -> dict[str, Any]:
    """Return what both sides must agree on: metadata and an empty content say nothing."""
    return {k: v for k, v in message.items() if k not in ("metadata", "error") and not (k == "content" and v == "")}
