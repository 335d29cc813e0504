"""Stored records as messages, and the closed run that shows a conversation."""

import orjson

from agents.protocols.agui import history
from agents.runtime.events import StateChanged, ToolStatus
from agents.runtime.model import FinishReason
from tests.protocols.checker import apply, check, ours, types
from tests.protocols.conversation import FINISHED, STARTED, answered, asked, call, returned, stored

RECORDS = stored(
    STARTED,
    asked("Both"),
    answered("m1", "I read.", reasoning="hm", tool_calls=(call("c1"), call("c2"))),
    answered("m1:2", "Meanwhile"),
    returned("c2", "two"),
    returned("c1", "one", status=ToolStatus.ERROR, summary="Not there"),
    StateChanged(delta={"a": 1}),
    answered("m2", "Half", finish_reason=FinishReason.LENGTH),
    FINISHED,
)


def test_results_stand_behind_their_message_in_the_order_of_the_calls() -> None:
    found = history.messages(RECORDS)
    assert [m["id"] for m in found] == ["u1", "reasoning-m1", "m1", "t-c1", "t-c2", "m1:2", "m2"]


def test_a_failed_result_and_a_text_that_stopped_early_say_so() -> None:
    by_id = {m["id"]: m for m in history.messages(RECORDS)}
    assert by_id["t-c1"]["error"] == "Not there"
    assert "error" not in by_id["t-c2"]
    assert by_id["m2"]["metadata"]["workbench"]["finishReason"] == "length"


def test_a_result_without_its_call_and_an_empty_answer_are_left_out() -> None:
    assert history.messages(stored(returned("c9"), answered("m1"))) == []


def test_a_snapshot_run_is_a_closed_run_without_numbers() -> None:
    frames = history.snapshot_run("th", "history-1", RECORDS, True, {"a": 1, "app:b": 2})
    events = check(frames, first_seq=None)
    assert types(events) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]
    assert all("seq" not in ours(event) for event in events)
    assert ours(events[1])["truncated"] is True
    assert events[2]["snapshot"] == {"a": 1}


def test_an_empty_conversation_is_a_valid_run_too() -> None:
    assert check(history.snapshot_run("th", "h", [], False, {}), first_seq=None)[1]["messages"] == []


def test_the_records_of_a_run_that_is_replayed_are_left_out() -> None:
    both = RECORDS + stored(asked("Next", "u2"), run_id="r2", first=20)
    assert [m["id"] for m in history.messages(history.before_run(both, "r1"))] == ["u2"]


def test_5_11_a_snapshot_brings_the_reasoning_that_belongs_to_it() -> None:
    streamed = [
        {"type": "REASONING_MESSAGE_START", "messageId": "reasoning-m1", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "reasoning-m1", "delta": "hm, ha"},
    ]
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": history.messages(RECORDS)}
    held = apply([*streamed, snapshot])
    assert [m["content"] for m in held if m["role"] == "reasoning"] == ["hm"]


def test_every_message_is_plain_json() -> None:
    assert orjson.loads(orjson.dumps(history.messages(RECORDS))) == history.messages(RECORDS)
