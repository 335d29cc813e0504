"""Memories as JSON, there and back."""

import json

import pytest

from agents.runtime.memory.encoding import as_json, draft_from, memory_from
from agents.runtime.memory.memories import Memory, Origin, draft_of
from tests.runtime.memory.samples import AT, day, memory

FULL = memory(
    "m1",
    "签了租约",
    topics=("home",),
    event_time=day(2026, 3, 3),
    participants=("Ana",),
    location="Oslo",
    origin=Origin(thread_id="t", event_id="e", position=3),
    used_at=AT,
    superseded_by="m2",
    muted=True,
)


@pytest.mark.parametrize("one", [FULL, memory("m1", "Likes tea")])
def test_a_memory_comes_back_as_it_was(one: Memory) -> None:
    written = json.loads(json.dumps(as_json(one)))
    assert memory_from(written) == one
    assert draft_from(written) == draft_from(json.loads(json.dumps(as_json(draft_of(one))))) == draft_of(one)


@pytest.mark.parametrize("wrong", [{"kind": "opinion"}, {"text": None, "topics": 3}, {"event_time": ["x", "y", "day"]}])
def test_what_was_not_written_so_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        memory_from({**as_json(FULL), **wrong})
