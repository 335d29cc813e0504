"""The last resort before a request is sent: whole rounds are left out until the rest fits.

A round begins with what a person asked and ends before the next question; messages that steer a run do not begin one.
The system message and the last round always stay; if that does not fit, it loses the questions in front of its last one
that nobody answered: a text that was too long for the model must not stand in the way of what is asked next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agents.runtime.events import Stored, UserMessage
from agents.runtime.session import PartRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Tailored:
    """parts: in order, those left out as kind dropped. dropped_rounds: how many. overflow: it does not fit even so."""

    parts: list[PartRef]
    dropped_rounds: int = 0
    overflow: bool = False


def tailor(parts: Sequence[PartRef], events: Mapping[str, Stored], *, budget: int, strategy: str) -> Tailored:
    """Return the parts with whole rounds left out until the messages cost at most budget tokens.

    strategy: which round goes next: "middle" of those that may go, from the "head" (oldest) or the "tail" (newest);
    "" = none, only overflow is told. What stands in front of the first question goes before any round.
    Memory, summary and recall placed in the first message of a person stand in the first round. If that goes, they move
    to the first question that stays, and are left out only if they do not fit there. What was loaded for a turn moves
    to the last question.
    """
    total = sum(part.tokens for part in parts if part.kind not in ("tools", "dropped"))
    if total <= budget or not strategy:
        return Tailored(parts=list(parts), overflow=total > budget)
    head, carried, rounds = _divided(_to_last(parts, events), events)
    if len(rounds) == 1:  # there is no question at all
        return Tailored(parts=list(parts), overflow=True)
    carrier = 0 if any(part.tag == "user" for part in rounds[0]) else 1
    cutting = _Cutting(
        carried=carried,
        carrier=carrier,
        rounds=rounds,
        questions=_questions(rounds[-1], events),
        over=total - budget,
        strategy=strategy,
    )
    cutting.run()
    return Tailored(parts=[*head, *cutting.parts()], dropped_rounds=cutting.dropped, overflow=cutting.over > 0)


def _to_last(parts: Sequence[PartRef], events: Mapping[str, Stored]) -> list[PartRef]:
    """Return the parts with those that stand with a turn in front of the last question."""
    moved = [part for part in parts if part.params.get("placement") == "turn"]
    rest = [part for part in parts if part.params.get("placement") != "turn"]
    at = next((start for start in reversed(_questions(rest, events))), 0)
    return [*rest[:at], *moved, *rest[at:]]


def _divided(
    parts: Sequence[PartRef], events: Mapping[str, Stored]
) -> tuple[list[PartRef], list[PartRef], list[list[PartRef]]]:
    """Return the head, what is injected in front of the first question, and the rounds.

    The first of the rounds is what stands in front of all questions; it may be empty. Questions without an answer
    between them are one round, except where there is no answer at all.
    """
    head: list[PartRef] = []
    carried: list[PartRef] = []
    rounds: list[list[PartRef]] = [[]]
    answered = any(part.tag in ("assistant", "tool") for part in parts)
    open_question, lead = False, 0
    for part in parts:
        if part.kind in ("system", "tools") or part.params.get("placement") == "system":
            head.append(part)
        elif _leads(part):
            rounds[-1].append(part)
            lead += 1
        elif part.kind in ("summary", "block") and not part.params.get("alone"):
            carried.append(part)
        elif _asks(part, events):
            before = rounds[-1][len(rounds[-1]) - lead :]
            if not (open_question and answered):
                del rounds[-1][len(rounds[-1]) - lead :]
                rounds.append(before)
            rounds[-1].append(part)
            open_question, lead = True, 0
        else:
            rounds[-1].append(part)
            open_question, lead = False, 0
    return head, carried, rounds


def _leads(part: PartRef) -> bool:
    """Return whether the part belongs to the question behind it: what the person had open, what was loaded for it."""
    return part.kind == "context" or part.params.get("placement") == "turn"


def _asks(part: PartRef, events: Mapping[str, Stored]) -> bool:
    record = events[part.ref].record if part.kind == "event" else None
    return isinstance(record, UserMessage) and record.begins_round


def _questions(parts: Sequence[PartRef], events: Mapping[str, Stored]) -> list[int]:
    """Return where in a round its questions begin, each with what stands in front of it."""
    starts = []
    for i, part in enumerate(parts):
        if _asks(part, events):
            while i > 0 and _leads(parts[i - 1]):
                i -= 1
            starts.append(i)
    return starts


@dataclass(slots=True, kw_only=True)
class _Cutting:
    """over: tokens too many. rounds[0] stands in front of all questions, the last one always stays.

    carrier: the round in which `carried` stood. questions: where those of the last round begin. leading, trailing: how
    many of its parts are left out in front, and at the very end.
    """

    carried: list[PartRef]
    carrier: int
    rounds: list[list[PartRef]]
    questions: list[int]
    over: int
    strategy: str
    gone: set[int] = field(default_factory=set)
    carried_gone: bool = False
    unanswered_gone: int = 0
    leading: int = 0
    trailing: int = 0

    @property
    def dropped(self) -> int:
        return len(self.gone) + self.unanswered_gone

    def run(self) -> None:
        if self.rounds[0]:
            self._drop(0)
        kept = list(range(1, len(self.rounds) - 1))
        while self.over > 0 and kept:
            self._drop(kept.pop(self._next(len(kept))))
        for start in self.questions[1:] if self.over > 0 else ():
            self.over -= sum(part.tokens for part in self.rounds[-1][self.leading : start])
            self.leading, self.unanswered_gone = start, self.unanswered_gone + 1
            if self.over <= 0:
                break
        if self.over > 0 and self.carrier in self.gone and self.carried:
            self.carried_gone = True
            self.over -= sum(part.tokens for part in self.carried)
        if self.gone:
            self._trim()

    def _drop(self, number: int) -> None:
        self.gone.add(number)
        self.over -= sum(part.tokens for part in self.rounds[number])

    def _next(self, kept: int) -> int:
        match self.strategy:
            case "head":
                return 0
            case "tail":
                return kept - 1
            case _:
                return kept // 2

    def _trim(self) -> None:
        """Leave out answers without a call at the very end: the last message must be a person's or a tool's."""
        for part in reversed(self.rounds[-1]):
            if part.tag != "assistant" or part.params.get("foreign"):
                break
            self.over -= part.tokens
            self.trailing += 1

    def parts(self) -> list[PartRef]:
        """Return the parts behind the head, what is carried in front of the first question that stays."""
        out: list[PartRef] = [_dropped(part) for part in self.carried] if self.carried_gone else []
        waiting = [] if self.carried_gone else self.carried
        for number, parts in enumerate(self.rounds):
            if number in self.gone:
                out += [_dropped(part) for part in parts]
                continue
            if number > 0 and waiting:
                out, waiting = [*out, *waiting], []
            leading = self.leading if number == len(self.rounds) - 1 else 0
            out += [*(_dropped(part) for part in parts[:leading]), *parts[leading:]]
        if self.trailing:
            out[len(out) - self.trailing :] = [_dropped(part) for part in out[len(out) - self.trailing :]]
        return out


def _dropped(part: PartRef) -> PartRef:
    return replace(part, kind="dropped", params={**part.params, "was": part.kind})
