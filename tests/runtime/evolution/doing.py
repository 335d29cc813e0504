"""Runs as they lie in the store, for the tests of what is learned of them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count

from agents.runtime.events import (
    AssistantMessage,
    Origin,
    Outcome,
    Record,
    RunFailed,
    RunFinished,
    RunStarted,
    Stored,
    ToolReturned,
    ToolStatus,
    UserMessage,
)
from agents.runtime.model import TextPart, ToolCall

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
_numbers = count(1)

Step = tuple[str, dict[str, object], bool]  # tool, arguments, whether it worked


def done(tool: str, /, **arguments: object) -> Step:
    return tool, arguments, True


def broke(tool: str, /, **arguments: object) -> Step:
    return tool, arguments, False


def run(said: str, *steps: Step, start: int = 1, run_id: str = "r1", end: Record | None = None) -> list[Stored]:
    """Return the events of a run: what was said, a call and its result per step, an answer, and its end."""
    records: list[Record] = [RunStarted(agent="assistant", model="offline")]
    records.append(UserMessage(id=f"m{next(_numbers)}", parts=(TextPart(text=said),)))
    for name, arguments, ok in steps:
        call = ToolCall(id=f"c{next(_numbers)}", name=name, arguments=json.dumps(arguments))
        records.append(AssistantMessage(id=f"a{next(_numbers)}", response_id="x", tool_calls=(call,)))
        status = ToolStatus.OK if ok else ToolStatus.ERROR
        content = f"{name} gave this" if ok else "error: it is not there"
        records.append(ToolReturned(id=f"t{call.id}", call_id=call.id, name=name, content=content, status=status))
    records.append(AssistantMessage(id=f"a{next(_numbers)}", response_id="y", text="Here it is."))
    records.append(end or RunFinished(outcome=Outcome.SUCCESS))
    return [_stored(record, start + n, run_id) for n, record in enumerate(records)]


def chain(*runs: Sequence[Stored]) -> list[Stored]:
    """Return runs one after another, named r1, r2, ..."""
    out: list[Stored] = []
    for number, events in enumerate(runs, 1):
        out += [_stored(stored.record, len(out) + 1, f"r{number}") for stored in events]
    return out


FAILED = RunFailed(code="limit", message="Too long.")
CANCELLED = RunFinished(outcome=Outcome.CANCELLED)


def _stored(record: Record, position: int, run_id: str) -> Stored:
    origin = Origin(run_id=run_id, invocation_id="i", author="assistant")
    return Stored(position=position, fork=0, id=f"e{run_id}-{position}", at=AT, origin=origin, record=record)
