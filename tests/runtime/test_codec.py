import json
from typing import get_args

import pytest

from agents.runtime import codec
from agents.runtime.artifacts import ArtifactRef
from agents.runtime.events import (
    AssistantMessage,
    ContextCompacted,
    Outcome,
    Preloaded,
    Record,
    RunFailed,
    RunFinished,
    RunStarted,
    StateChanged,
    ToolReturned,
    ToolStatus,
    UserMessage,
    UserMessageKind,
)
from agents.runtime.model import FilePart, FinishReason, TextPart, ToolCall, Usage

REF = ArtifactRef(artifact_id="a1", name="报告.md", version=2, mime="text/markdown", size_bytes=7, sha256="00")
EXAMPLES: list[Record] = [
    RunStarted(agent="assistant", model="offline"),
    UserMessage(
        id="u1",
        parts=(
            TextPart(text="你好 <&>"),
            FilePart(artifact_id="a1", version=1, name="x.pdf", mime="application/pdf", size_bytes=3),
        ),
        kind=UserMessageKind.STEER,
        context=(("open page", "Budget"),),
    ),
    AssistantMessage(
        id="m1",
        response_id="m1",
        text="Hi",
        reasoning="hm",
        tool_calls=(ToolCall(id="c1", name="read_artifact", arguments='{"name": "x"}'),),
        finish_reason=FinishReason.TOOL_CALLS,
    ),
    ToolReturned(
        id="r1",
        call_id="c1",
        name="read_artifact",
        content="…",
        status=ToolStatus.TIMEOUT,
        artifact=REF,
        artifacts=(REF,),
        data={"rows": [1, None]},
    ),
    ContextCompacted(up_to=12, results=3, tokens=4_000),
    Preloaded(blocks=(("memory", "Anna prefers short answers."), ("recall", "以前说过：三月交付。"))),
    StateChanged(delta={"user:tone": None, "step": 2}),
    RunFinished(outcome=Outcome.SUCCESS, usage=Usage(prompt=3, cached=1), pending_call_ids=("c2",)),
    RunFailed(code="model_busy", message="busy", retryable=True),
]


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda r: r.type)
def test_a_record_survives_the_store(record: Record) -> None:
    assert codec.load(record.type, json.loads(json.dumps(codec.dump(record)))) == record


def test_every_record_has_an_example() -> None:
    assert {type(e) for e in EXAMPLES} == set(get_args(Record)) == set(codec.RECORDS.values())


def test_unknown_keys_of_another_version_are_ignored() -> None:
    assert codec.load("run_started", {"agent": "a", "model": "m", "colour": 1}) == RunStarted(agent="a", model="m")


def test_an_unknown_type_is_refused_by_name() -> None:
    with pytest.raises(codec.UnknownRecord, match="run_teleported"):
        codec.load("run_teleported", {})
