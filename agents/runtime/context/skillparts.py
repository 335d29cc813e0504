"""Loaded skills in a request. Their text stands in the results of the tools that loaded them, where it was added once
and stays; so a provider's cache holds. What of it no request shows any more, after a summary, a step of compaction or
tailoring, stands as a block before the person's first message; what is not loaded any more gives way to a line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from agents.runtime.context.compaction import measured_short
from agents.runtime.context.injection import Block
from agents.runtime.context.placeholders import SKILL
from agents.runtime.context.sizes import Sizes
from agents.runtime.events import Stored, ToolReturned
from agents.runtime.session import PartRef


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSkill:
    """A skill that is loaded for the next call. text: its body and chosen documents, under these paths.

    calls: ids of those whose results together say all of it; empty = none do.
    """

    name: str
    digest: str
    text: str
    docs: tuple[str, ...] = ()
    calls: frozenset[str] = frozenset()

    @property
    def block(self) -> Block:
        # since 1: before the first message that is shown, whatever turn is answered
        params = {"skill": self.name, "digest": self.digest, "docs": list(self.docs)}
        return Block(kind="skill", text=self.text, params=params, since=1)


def holds_skill(stored: Stored) -> bool:
    """Return whether the event is a result with text of a skill in it."""
    return isinstance(stored.record, ToolReturned) and bool(stored.record.data.get("skill_text"))


def settle(
    parts: Sequence[PartRef], events: Mapping[str, Stored], skills: Sequence[ShownSkill] | None, sizes: Sizes
) -> list[PartRef]:
    """Return the parts with a line in place of each result that holds a skill which is not loaded, or not so, any more.

    skills: None = that is not known, and everything stays.
    """
    held = frozenset[str]().union(*(one.calls for one in skills or ()))
    if skills is None:
        return list(parts)
    return [_line(part, events[part.ref], sizes) if _is_past(part, events, held) else part for part in parts]


def unsaid(parts: Sequence[PartRef], events: Mapping[str, Stored], skills: Sequence[ShownSkill] | None) -> list[Block]:
    """Return the skills that these parts, as they will be sent, do not show whole, as blocks."""
    there = {
        stored.record.call_id
        for part in parts
        if part.kind == "event" and isinstance((stored := events[part.ref]).record, ToolReturned)
    }
    return [one.block for one in skills or () if not one.calls or not one.calls <= there]


def _is_past(part: PartRef, events: Mapping[str, Stored], held: frozenset[str]) -> bool:
    if part.kind != "event" or not holds_skill(stored := events[part.ref]):
        return False
    assert isinstance(stored.record, ToolReturned)
    return stored.record.call_id not in held


def _line(part: PartRef, stored: Stored, sizes: Sizes) -> PartRef:
    made = PartRef(
        kind="placeholder",
        ref=part.ref,
        tokens=0,
        tag=part.tag,
        position=part.position,
        params={**part.params, "why": SKILL},
    )
    return sizes.part(
        partial(measured_short, stored, made),
        kind=made.kind,
        ref=made.ref,
        tag=made.tag,
        position=made.position,
        params=made.params,
    )
