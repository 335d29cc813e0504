"""What changed between two requests, part by part. Pure.

Two parts are the same one if they refer to the same thing; of things that are met more than once the first goes with
the first. The instructions of the agent and the declarations of its tools are always the same two.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from agents.runtime.session import PartRef
from artifacts.diff import Part as Stretch
from artifacts.diff import Piece, Sign, compare

MOST_COMPARED: Final = 6  # texts word by word; the page must come at once
COMPARE_CHARS: Final = 2_000  # of either
SHOWN_LINES: Final = 4
LINE_CHARS: Final = 400
ONE_OF_A_KIND: Final = frozenset({"system", "tools"})

Say = Callable[[PartRef], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDiff:
    """Two forms of a part's text. stretches: word by word, () = only lines are told: the first of each side, and how
    many more there are. added, removed: words in the one case, lines in the other."""

    stretches: tuple[Stretch, ...] = ()
    removed_lines: tuple[str, ...] = ()
    more_removed: int = 0
    added_lines: tuple[str, ...] = ()
    more_added: int = 0
    added: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """op: add, del or change. part: as it is now, or was if it is gone. old: before a change. tokens: more or less."""

    op: str
    part: PartRef
    tokens: int
    old: PartRef | None = None
    text: TextDiff | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """same: how many parts did not change. shared: how many of both requests' first parts are the same, and what these
    cost. before, after: tokens that were sent."""

    changes: tuple[Change, ...]
    same: int
    shared: int
    shared_tokens: int
    before: int
    after: int


@dataclass(slots=True)
class _Matching:
    """Gives parts names that are unique in their request."""

    seen: Counter[str] = field(default_factory=Counter)

    def key(self, part: PartRef) -> str:
        name = part.kind if part.kind in ONE_OF_A_KIND else f"{_family(part)}:{part.ref}"
        self.seen[name] += 1
        return f"{name}#{self.seen[name]}"


def difference(old: Sequence[PartRef], new: Sequence[PartRef], before: Say, after: Say) -> Difference:
    """Return how `new` came from `old`, changes in the order of the new request, what is gone last.

    before, after: the text of a part of the old and of the new request, "" if it is not there any more.
    """
    matching = _Matching()
    was = {matching.key(part): part for part in old}
    matching = _Matching()
    now = {matching.key(part): part for part in new}
    changes: list[Change] = []
    compared = 0
    for key, part in now.items():
        known = was.get(key)
        if known is None:
            changes.append(Change(op="add", part=part, tokens=sent(part)))
        elif not same(known, part):
            first, second = before(known), after(part)
            text = None
            if first != second and first and second and part.kind != "dropped":
                text = texts(first, second, closely=compared < MOST_COMPARED)
                compared += 1
            changes.append(Change(op="change", part=part, old=known, tokens=sent(part) - sent(known), text=text))
    gone = [part for key, part in was.items() if key not in now]
    changes += [Change(op="del", part=part, tokens=-sent(part)) for part in gone]
    shared = next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if not same(a, b)), min(len(old), len(new))
    )
    return Difference(
        changes=tuple(changes),
        same=len(now) - sum(change.op != "del" for change in changes),
        shared=shared,
        shared_tokens=sum(sent(part) for part in new[:shared]),
        before=sum(sent(part) for part in old),
        after=sum(sent(part) for part in new),
    )


def same(a: PartRef, b: PartRef) -> bool:
    """Return whether both say the same in the same form; what they were estimated to cost does not count."""
    return (a.kind, a.ref, dict(a.params)) == (b.kind, b.ref, dict(b.params))


def sent(part: PartRef) -> int:
    """Return the part's tokens in the request: what was left out takes none."""
    return 0 if part.kind == "dropped" else part.tokens


def texts(old: str, new: str, *, closely: bool) -> TextDiff:
    """Return how a text changed: word by word if that is wanted and both are short, else by its first lines."""
    if closely and max(len(old), len(new)) <= COMPARE_CHARS:
        found = compare(old, new)
        return TextDiff(stretches=_folded(found.parts), added=found.added, removed=found.removed)
    gone, come = old.splitlines(), new.splitlines()
    return TextDiff(
        removed_lines=_shown(gone),
        more_removed=max(0, len(gone) - SHOWN_LINES),
        added_lines=_shown(come),
        more_added=max(0, len(come) - SHOWN_LINES),
        added=len(come),
        removed=len(gone),
    )


def _shown(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1] + "…" for line in lines[:SHOWN_LINES])


def _folded(stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """Leave out what did not change and stands away from a change: the part's whole text is further up."""
    return tuple(
        Stretch(pieces=(Piece(sign=Sign.SAME, text=""),), folded=part.folded) if part.folded else part
        for part in stretches
    )


def _family(part: PartRef) -> str:
    # a message, its short form and one that was left out are one thing
    kind = str(part.params.get("was", "event")) if part.kind == "dropped" else part.kind
    return "event" if kind == "placeholder" else kind
