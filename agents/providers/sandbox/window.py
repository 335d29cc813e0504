"""What a command printed, in bounded room: its beginning and its end, and for those who read on, by offset."""

import codecs
from typing import Final

RECENT: Final = 256 * 1024  # characters that can still be read by offset


class Window:
    """The bytes of one stream, of which beginning and end are kept. most: bytes kept."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head, self._tail = bytearray(), bytearray()
        self._total = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, data: bytes) -> str:
        """Keep what fits of the data, and return it as text. A character that is cut between two pieces waits."""
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 4 * self._half:
            del self._tail[: -self._half]
        return self._decoder.decode(data)

    @property
    def cut(self) -> bool:
        return self._total > 2 * self._half

    def text(self) -> str:
        """Return what is kept. Where something is missing a line says how much."""
        if not self.cut:
            return (bytes(self._head) + bytes(self._tail)).decode(errors="replace")
        tail = bytes(self._tail[-self._half :])
        left = self._total - len(self._head) - len(tail)
        head = bytes(self._head).decode(errors="ignore")
        return f"{head}\n[… {left} bytes left out …]\n{tail.decode(errors='ignore')}"


class Recent:
    """Text that grows and is read by offset, so that reading twice gives the same."""

    def __init__(self) -> None:
        self._text = ""
        self._dropped = 0

    def add(self, text: str) -> None:
        self._text += text
        if len(self._text) > 2 * RECENT:
            self._dropped += len(self._text) - RECENT
            self._text = self._text[-RECENT:]

    @property
    def end(self) -> int:
        return self._dropped + len(self._text)

    def since(self, offset: int) -> tuple[str, int]:
        """Return what came since the offset, and how many characters before it are not there any more."""
        start = max(offset, self._dropped)
        return self._text[start - self._dropped :], max(0, self._dropped - offset)
