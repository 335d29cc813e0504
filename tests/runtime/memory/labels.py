"""Messages with what is to be remembered of them, and how close what was extracted comes to it.

All are said on Wednesday 2026-03-11 at 10:00 in Shanghai.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from agents.runtime.memory.memories import Kind, Memory, Origin, Source
from agents.runtime.memory.policies import Operation, Verb
from agents.runtime.memory.rules import extract
from agents.runtime.memory.sources import Said

ZONE: Final = ZoneInfo("Asia/Shanghai")
AT: Final = datetime(2026, 3, 11, 10, 0, tzinfo=ZONE)


@dataclass(frozen=True, slots=True)
class Want:
    """An operation that is right if its text holds all of `holds`. known: of the memory it is about. day: local."""

    verb: Verb
    holds: tuple[str, ...] = ()
    kind: Kind = Kind.FACT
    day: str = ""
    known: int = -1

    def matches(self, done: Operation) -> bool:
        if done.verb is not self.verb or (self.known >= 0 and done.memory_id != f"m{self.known}"):
            return False
        if done.draft is None:
            return not self.holds
        time = done.draft.event_time
        day = time.start.astimezone(ZONE).date().isoformat() if time else ""
        text = done.draft.text.casefold()
        return (
            done.draft.kind is self.kind
            and (not self.day or day == self.day)
            and all(word.casefold() in text for word in self.holds)
        )


@dataclass(frozen=True, slots=True)
class Case:
    text: str
    wants: tuple[Want, ...] = ()
    known: tuple[str, ...] = ()

    def knowing(self, *texts: str) -> "Case":
        return replace(self, known=texts)


def case(text: str, *wants: Want) -> Case:
    return Case(text, wants)


def fact(*holds: str) -> Want:
    return Want(Verb.ADD, holds)


def episode(*holds: str, day: str = "") -> Want:
    return Want(Verb.ADD, holds, Kind.EPISODE, day)


def instead(*holds: str, of: int = 0) -> Want:
    return Want(Verb.SUPERSEDE, holds, known=of)


def forget(of: int) -> Want:
    return Want(Verb.DELETE, known=of)


FORGET_ALL: Final = Want(Verb.CLEAR)


def known(number: int, text: str) -> Memory:
    return Memory(
        id=f"m{number}", text=text, source=Source.EXTRACTOR, origin=None, created_at=AT, updated_at=AT, version=1
    )


def extracted(one: Case) -> tuple[Operation, ...]:
    said = Said(origin=Origin(thread_id="t", event_id="e1", position=1), at=AT, text=one.text)
    return extract(said, [known(n, text) for n, text in enumerate(one.known)], ZONE)


@dataclass(frozen=True, slots=True)
class Score:
    precision: float
    recall: float
    wrong: tuple[str, ...]
    missed: tuple[str, ...]


def score(cases: Sequence[Case]) -> Score:
    """Return how much of what was extracted is wanted, and how much of what is wanted was extracted."""
    right, wrong, missed, wanted = 0, [], [], 0
    for one in cases:
        found = extracted(one)
        good = [done for done in found if any(want.matches(done) for want in one.wants)]
        right += len(good)
        wrong += [f"{one.text} -> {done}" for done in found if done not in good]
        wanted += len(one.wants)
        missed += [f"{one.text} -> {w}" for w in one.wants if not any(w.matches(done) for done in found)]
    total = right + len(wrong)
    return Score(right / total if total else 1.0, 1 - len(missed) / wanted, tuple(wrong), tuple(missed))
