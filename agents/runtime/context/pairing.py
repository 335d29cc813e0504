"""Calls and results brought together: what a provider accepts, out of what was stored.

A provider refuses a call without a result and a result without a call. Segments of one response become one answer; a
result goes directly behind its call, to the nearest earlier call of its id that has none (providers reuse ids); a call
that never got a result is dropped and its text stays; a result without a call is dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from agents.runtime.events import AssistantMessage, RunStarted, Stored, ToolReturned, UserMessage


@dataclass(slots=True)
class Answer:
    """One response of a model: its segments in order, and the result of each answered call by call id."""

    response_id: str
    segments: list[Stored] = field(default_factory=list)
    results: dict[str, Stored] = field(default_factory=dict)

    @property
    def call_ids(self) -> list[str]:
        """Return the ids of the calls in order, each once."""
        ids = [call.id for s in self.segments if isinstance(s.record, AssistantMessage) for call in s.record.tool_calls]
        return list(dict.fromkeys(ids))

    @property
    def text(self) -> str:
        return "".join(s.record.text for s in self.segments if isinstance(s.record, AssistantMessage))

    @property
    def end(self) -> int:
        """Return the position of the last event that belongs to it."""
        return max(s.position for s in (*self.segments, *self.results.values()))

    def complete_round(self) -> bool:
        """Return whether it has calls and every one of them a result."""
        calls = self.call_ids
        return bool(calls) and len(calls) == len(self.results)

    def ordered_results(self) -> list[tuple[str, Stored]]:
        """Return (call id, result) of the answered calls in call order."""
        return [(call_id, self.results[call_id]) for call_id in self.call_ids if call_id in self.results]


def pair(history: Iterable[Stored]) -> list[Stored | Answer]:
    """Return user messages and run starts as they are, and answers with their results, in order of beginning."""
    out: list[Stored | Answer] = []
    waiting: dict[str, list[Answer]] = {}  # answers with an open call of this id, the nearest last
    for stored in history:
        match stored.record:
            case AssistantMessage(response_id=response_id):
                last = out[-1] if out else None
                if not (isinstance(last, Answer) and last.response_id == response_id and not last.results):
                    last = Answer(response_id)
                    out.append(last)
                last.segments.append(stored)
                for call in stored.record.tool_calls:
                    answers = waiting.setdefault(call.id, [])
                    if not answers or answers[-1] is not last:
                        answers.append(last)
            case ToolReturned(call_id=call_id):
                if answers := waiting.get(call_id, []):
                    answers.pop().results[call_id] = stored
            case UserMessage() | RunStarted():
                out.append(stored)
            case _:
                pass
    return out
