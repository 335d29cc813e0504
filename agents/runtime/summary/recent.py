"""Where a summary may end: which rounds stay raw, and between which events nothing is torn apart.

A cut is a number of events: those before it are covered, the others stay. A round begins with a person's message.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.runtime.events import (
    AssistantMessage,
    RunFailed,
    RunFinished,
    RunStarted,
    Stored,
    ToolReturned,
    UserMessage,
    UserMessageKind,
)

SkipRecent = Callable[[Sequence[Stored]], int]
"""How many events at the end of these to leave out: 0 or less = none, all of them or more = there is nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What stays raw at the end: at most so many complete rounds, as far as they fit into so many tokens.

    open_runs: those that have begun and not ended. running_run: the one of them whose own tool rounds may be covered,
    except its latest; "" = none may.
    """

    rounds: int
    tokens: int
    open_runs: frozenset[str] = frozenset()
    running_run: str = ""


@dataclass(frozen=True, slots=True)
class Round:
    """events[start:end]. complete: its run is over, or another round follows."""

    start: int
    end: int
    complete: bool


def open_runs(history: Sequence[Stored]) -> frozenset[str]:
    """Return the runs that began in the history and did not end."""
    begun = {s.origin.run_id for s in history if isinstance(s.record, RunStarted)}
    return frozenset(begun - {s.origin.run_id for s in history if isinstance(s.record, RunFinished | RunFailed)})


def rounds(events: Sequence[Stored], still_open: frozenset[str] = frozenset()) -> list[Round]:
    """Return the rounds of the events, in order. What precedes the first message of a person is a round of its own.

    still_open: runs that have not ended.
    """
    starts = [_from_its_run(events, i) for i, stored in enumerate(events) if _begins(stored)]
    if events and (not starts or starts[0] > 0):
        starts.insert(0, 0)
    ends = [*starts[1:], len(events)]
    return [
        Round(start, end, complete=end < len(events) or _over(events[start:end], still_open))
        for start, end in zip(starts, ends, strict=False)
        if start < end
    ]


def cut(events: Sequence[Stored], keep: Keep, tokens: Callable[[Stored], int]) -> int:
    """Return how many of the events may be covered.

    A round that goes on stays; of a running run that is larger than keep.tokens only the latest tool rounds do, as
    far as they fit, at least the last.
    """
    found = rounds(events, keep.open_runs | {keep.running_run})
    until = len(events)
    if found and not found[-1].complete:
        current = found.pop()
        until = current.start
        if keep.running_run and any(s.origin.run_id == keep.running_run for s in events[current.start :]):
            inside = _inside(events, current, keep.tokens, tokens)
            if inside:
                return inside
    left = keep.tokens
    for kept, one in enumerate(reversed(found)):
        left -= sum(tokens(stored) for stored in events[one.start : one.end])
        if kept >= keep.rounds or left < 0:
            break
        until = one.start
    return until


def _inside(events: Sequence[Stored], current: Round, room: int, tokens: Callable[[Stored], int]) -> int:
    """Return a cut between the tool rounds of the current round, 0 if it fits or has no two of them."""
    if sum(tokens(stored) for stored in events[current.start :]) <= room:
        return 0
    cuts = [i for i in safe_cuts(events) if i > current.start and isinstance(events[i - 1].record, ToolReturned)]
    while cuts and not any(isinstance(s.record, ToolReturned) for s in events[cuts[-1] :]):
        cuts.pop()  # the latest complete tool round stays
    if not cuts:
        return 0
    fitting = [i for i in cuts if sum(tokens(stored) for stored in events[i:]) <= room]
    return fitting[0] if fitting else cuts[-1]


def safe_cuts(events: Sequence[Stored]) -> list[int]:
    """Return the cuts that tear nothing apart, ascending: not behind a person's message, not between a call and its
    result, not inside one response.

    A call is closed by its result, by the end of its run unless that left it for the person's client to answer, and by
    a later message of the person: nobody waits for its result then.
    """
    out: list[int] = []
    waiting: dict[str, str] = {}  # call id -> its run
    for i, stored in enumerate(events):
        record = stored.record
        match record:
            case AssistantMessage():
                if not record.seeded:
                    waiting.update({call.id: stored.origin.run_id for call in record.tool_calls})
            case ToolReturned():
                waiting.pop(record.call_id, None)
            case RunFinished() | RunFailed():
                left = record.pending_call_ids if isinstance(record, RunFinished) else ()
                run_id = stored.origin.run_id
                waiting = {call: run for call, run in waiting.items() if run != run_id or call in left}
            case UserMessage(kind=UserMessageKind.TURN):
                waiting.clear()
        if not waiting and _ends_something(events, i):
            out.append(i + 1)
    return out


def snapped(events: Sequence[Stored], until: int) -> int:
    """Return the last safe cut that covers no more than this many events, 0 if there is none."""
    return max((i for i in _all_cuts(events) if i <= until), default=0)


def _all_cuts(events: Sequence[Stored]) -> list[int]:
    return sorted({*safe_cuts(events), *(one.start for one in rounds(events))})


def _ends_something(events: Sequence[Stored], i: int) -> bool:
    record = events[i].record
    if isinstance(record, AssistantMessage):
        following = next((s.record for s in events[i + 1 :]), None)
        same = isinstance(following, AssistantMessage) and following.response_id == record.response_id
        return not record.tool_calls and not same
    return isinstance(record, ToolReturned | RunFinished | RunFailed)


def _begins(stored: Stored) -> bool:
    return isinstance(stored.record, UserMessage) and stored.record.begins_round


def _from_its_run(events: Sequence[Stored], i: int) -> int:
    """Return where the round of this message begins: at the start of its run, if nothing that counts lies between."""
    j = i
    while j > 0 and not isinstance(
        events[j - 1].record, UserMessage | AssistantMessage | ToolReturned | RunFinished | RunFailed
    ):
        j -= 1
        if isinstance(events[j].record, RunStarted):
            return j
    return i


def _over(events: Sequence[Stored], still_open: frozenset[str]) -> bool:
    """Return whether a round at the end of the history is over."""
    run_id = events[-1].origin.run_id
    if run_id and run_id in still_open:
        return False
    ended = any(isinstance(s.record, RunFinished | RunFailed) and s.origin.run_id == run_id for s in events)
    return ended or len(events) in safe_cuts(events)
