"""Joining of deltas: leading edge, order, limits."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agents.live.coalesce import MAX_CHARS, Coalescer
from agents.runtime.events import (
    Emitted,
    Event,
    Origin,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolStarted,
)

ORIGIN = Origin(run_id="r", invocation_id="i", author="a")
AT = datetime(2026, 1, 1, tzinfo=UTC)


def emitted(event: Event) -> Emitted:
    return Emitted(event, None, ORIGIN, AT)


class Out:
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.came = asyncio.Event()  # set with each event after it was cleared
        self.coalescer = Coalescer(self._take)

    def _take(self, one: Emitted) -> None:
        self.events.append(one.event)
        self.came.set()

    def take(self, *events: Event) -> None:
        for event in events:
            self.coalescer.take(emitted(event))


async def test_the_first_delta_goes_out_at_once_and_the_next_are_joined() -> None:
    out = Out()
    out.take(TextDelta("m", "a"))
    assert out.events == [TextDelta("m", "a")]
    out.take(TextDelta("m", "b"), TextDelta("m", "c"))
    assert len(out.events) == 1
    out.came.clear()
    async with asyncio.timeout(15):
        await out.came.wait()
    assert out.events == [TextDelta("m", "a"), TextDelta("m", "bc")]


async def test_another_event_or_another_message_flushes_first() -> None:
    out = Out()
    out.take(TextDelta("m", "a"), TextDelta("m", "b"), TextDelta("n", "c"), ToolStarted("c1", "look"))
    assert out.events == [TextDelta("m", "a"), TextDelta("m", "b"), TextDelta("n", "c"), ToolStarted("c1", "look")]


async def test_a_large_buffer_does_not_wait() -> None:
    out = Out()
    out.take(TextDelta("m", "a"), TextDelta("m", "x" * MAX_CHARS))
    assert len(out.events) == 2


DELTAS = st.one_of(
    st.builds(TextDelta, st.sampled_from("mn"), st.text(max_size=5)),
    st.builds(ReasoningDelta, st.sampled_from("mn"), st.text(max_size=5)),
    st.builds(ToolCallDelta, st.just("m"), st.sampled_from("cd"), st.just("look"), st.text(max_size=5)),
    st.builds(ToolStarted, st.sampled_from("cd"), st.just("look")),
)


@given(st.lists(DELTAS, max_size=40))
def test_joining_loses_and_reorders_nothing(events: list[Any]) -> None:
    async def joined() -> list[Any]:
        out = Out()
        out.take(*events)
        out.coalescer.flush()
        return out.events

    assert flat(asyncio.run(joined())) == flat(events)


def flat(events: list[Any]) -> list[tuple[Any, ...]]:
    """Return the events as a list of characters, each with what it belongs to."""
    out: list[tuple[Any, ...]] = []
    for event in events:
        if isinstance(event, ToolStarted):
            out.append((ToolStarted, event.call_id))
        else:
            text = event.arguments if isinstance(event, ToolCallDelta) else event.text
            name = event.call_id if isinstance(event, ToolCallDelta) else event.message_id
            out += [(type(event), name, char) for char in text]
    return out
