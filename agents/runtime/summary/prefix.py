"""The largest older part of what is new that fits a budget and ends where nothing is torn apart."""

from collections.abc import Callable

from agents.runtime.summary.asking import Ask
from agents.runtime.summary.recent import safe_cuts


def enough(ask: Ask) -> list[int]:
    """Return the cuts before the end whose part says something: a person's words, or anything beside a summary."""
    said = [line.position for line in ask.lines if line.person or ask.base is not None]
    if not said:
        return []
    cuts = [cut for cut in safe_cuts(ask.events) if cut < len(ask.events)]
    return [cut for cut in cuts if ask.events[cut - 1].position >= said[0]]


def largest(ask: Ask, fits: Callable[[int], bool]) -> int:
    """Return the largest cut that fits, 0 if there is none. The smallest is tried first."""
    cuts = enough(ask)
    if not cuts or not fits(cuts[0]):
        return 0
    low, high = 0, len(cuts) - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(cuts[middle]) else (low, middle - 1)
    return cuts[low]
