"""Context assembly by itself: how long it takes to make a request of a history that is already in memory."""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from agents.runtime.context.assemble import Frame, View, assemble
from agents.runtime.context.digests import request_sha256
from agents.runtime.events import (
    AssistantMessage,
    Origin,
    Outcome,
    Record,
    RunFinished,
    RunStarted,
    Stored,
    ToolReturned,
    UserMessage,
)
from agents.runtime.model import TextPart, ToolCall
from agents.runtime.tokens import estimate

AT = datetime(2026, 1, 1, tzinfo=UTC)
QUESTION = "What did the survey say about the second chamber, and does 第二冷库 appear in the bills? " * 3
ANSWER = "The second chamber loses nine percent a year, as the log says on page four. " * 12


def records(run: int) -> Iterator[Record]:
    """One run of six events: a question, a call, its result, an answer."""
    call = ToolCall(id=f"c{run}", name="read_artifact", arguments='{"name": "survey.pdf"}')
    yield RunStarted(agent="assistant", model="m")
    yield UserMessage(id=f"u{run}", parts=(TextPart(text=QUESTION),))
    yield AssistantMessage(id=f"a{run}", response_id=f"a{run}", tool_calls=(call,))
    yield ToolReturned(id=f"r{run}", call_id=call.id, name=call.name, content=ANSWER * 2)
    yield AssistantMessage(id=f"b{run}", response_id=f"b{run}", text=ANSWER)
    yield RunFinished(outcome=Outcome.SUCCESS)


def history(events: int) -> tuple[Stored, ...]:
    made: list[Stored] = []
    while len(made) < events:
        run = len(made) // 6
        origin = Origin(run_id=f"run{run}", invocation_id=f"i{run}", author="assistant", branch="assistant")
        for record in records(run):
            position = len(made) + 1
            made.append(Stored(position=position, fork=0, id=f"e{position}", at=AT, origin=origin, record=record))
    return tuple(made[:events])


def measure(lengths: Sequence[int]) -> Iterator[tuple[int, float, int]]:
    """Yield (events, milliseconds of assembly with its hash, tokens estimated), the best of twenty."""
    frame, view = Frame(instruction="You help."), View(agent="assistant", run_id="none")
    for events in lengths:
        stored = history(events)
        best = float("inf")
        for _ in range(20):
            begun = time.perf_counter()
            made = assemble(stored, frame, view)
            request_sha256(made.request)
            best = min(best, time.perf_counter() - begun)
        yield events, best * 1000, sum(estimate(m.text) for m in made.request.messages)
