"""The model that writes summaries when none is configured: always so many tokens for so many it was given.

It takes pieces of what it was given, evenly, so that its text is in the language of the conversation and the same each
time. It stands for the length of a summary, not for its worth.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agents.runtime.model import ModelRequest, Role
from workbench.bench.caching import Count, estimated

RATIO: Final = 0.2
PIECE: Final = re.compile(r"[^\n.!?。！？]{1,120}[.!?。！？]?")
_MARKER = re.compile(r"\[\[c:[^\]]*\]\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortening:
    """ratio: tokens written per token of the conversation that was given (system text and tools not counted).

    most: and never more, as a model keeps to the words it is asked for; 0 = no limit.
    """

    ratio: float = RATIO
    most: int = 0
    count: Count = estimated

    def __call__(self, request: ModelRequest) -> str:
        given = "\n".join(m.text for m in request.messages if m.role is not Role.SYSTEM)
        wanted = max(8, int(self.ratio * self.count(given)))
        return shortened(given, min(wanted, self.most) if self.most else wanted, self.count)


def shortened(text: str, wanted: int, count: Count = estimated) -> str:
    """Return pieces of the text, evenly spread, of together about so many tokens, at most 5 % more."""
    pieces = list(_pieces(text))
    costs = [count(piece) for piece in pieces]
    total = sum(costs)
    if total <= wanted:
        return " ".join(pieces)
    kept: list[str] = []
    due = used = 0.0
    for piece, cost in zip(pieces, costs, strict=True):
        due += cost * wanted / total
        if used + cost <= due + cost / 2 and used + cost <= wanted * 1.05:
            kept.append(piece)
            used += cost
    return " ".join(kept) if kept else pieces[0][: max(1, wanted * 2)]


def _pieces(text: str) -> Iterator[str]:
    for match in PIECE.finditer(_MARKER.sub("", text)):
        if piece := match[0].strip():
            yield piece
