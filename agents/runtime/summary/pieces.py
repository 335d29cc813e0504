"""A text that does not fit one request, read piece by piece: so nothing that a person pasted can stop summaries."""

from collections.abc import Callable
from typing import Final

MOST_PIECES: Final = 16
LEAST_CHARS: Final = 200
_ENDS: Final = ("\n", "。", ". ", " ")  # where a piece ends best, if that is in its last quarter


def next_piece(text: str, fits: Callable[[str], bool]) -> str:
    """Return the longest beginning of the text that fits, up to where a line, a sentence or a word ends; "" if less
    than LEAST_CHARS would fit."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle - 1)
    if low == len(text):
        return text
    if low < LEAST_CHARS:
        return ""
    for end in _ENDS:
        if (at := text.rfind(end, low * 3 // 4, low)) >= 0:
            return text[: at + len(end)]
    return text[:low]
