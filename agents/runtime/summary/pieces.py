"""A text that does not fit one request, read piece by piece: so nothing that a person pasted can stop summaries.

What came of the pieces so far is kept as a draft, so the next making goes on where one ran out of time.
"""

import hashlib
from collections.abc import Callable
from typing import Final

from agents.runtime.summaries import Draft, SummaryStore

MOST_PIECES: Final = 16  # in one making
LEAST_CHARS: Final = 200
_ENDS: Final = ("\n", "。", ". ", " ")  # where a piece ends best, if that is in its last quarter


class Reading:
    """How far a scope's long text has been read. kept: this making has read a piece."""

    def __init__(self, store: SummaryStore, filter_key: str) -> None:
        self._store, self._filter_key = store, filter_key
        self.kept = False

    async def so_far(self, text: str, base_id: str, base_text: str) -> tuple[int, str]:
        """Return how many characters of the text were read, and what came of them and of the summary before."""
        draft = await self._store.draft(self._filter_key)
        if draft is None or draft.base != base_id or draft.read_sha256 != _sha256(text[: draft.read_chars]):
            return 0, base_text
        return draft.read_chars, draft.text

    async def keep(self, read: str, base_id: str, text: str) -> None:
        """Keep what came of this beginning."""
        draft = Draft(base=base_id, read_chars=len(read), read_sha256=_sha256(read), text=text)
        await self._store.keep_draft(self._filter_key, draft)
        self.kept = True

    async def end(self) -> None:
        """Forget it: it is in a summary now."""
        await self._store.keep_draft(self._filter_key, None)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
