"""Server-sent events as model servers write them: bytes in, the data of complete events out.

Only `data` is kept. Comments (keep-alive), `event:`, `id:` and `retry:` lines are skipped. llama.cpp writes a failure
as a line `error: {...}`; that counts as data. https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

MAX_EVENT_BYTES = 16 * 1024 * 1024


class EventTooLarge(ValueError):
    """The server sent an event that is larger than any honest one."""


class EventParser:
    """Splits a byte stream of any chunking into events. One instance per stream."""

    __slots__ = ("_data", "_rest", "_size")

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of each event that is complete now, in order; lines of one event are joined by a newline.

        Lines may end in LF or CRLF. Raises EventTooLarge.
        """
        if chunk[:6] == b"data: " and not self._rest and not self._data and chunk.find(b"\n") == len(chunk) - 2:
            if chunk[-1] == 10 and chunk[-3:-2] != b"\r":
                return [chunk[6:-2]]  # most of the time exactly one event arrives
        lines = (self._rest + chunk).split(b"\n") if self._rest else chunk.split(b"\n")
        self._rest = lines.pop()
        events: list[bytes] = []
        for line in lines:
            if line[-1:] == b"\r":
                line = line[:-1]
            if not line:
                if self._data:
                    events.append(self._take())
            elif line.startswith(b"data:"):
                self._add(line[6:] if line[5:6] == b" " else line[5:])
            elif line.startswith(b"error:"):
                self._add(line[6:].lstrip())
        if self._size + len(self._rest) > MAX_EVENT_BYTES:
            raise EventTooLarge(str(MAX_EVENT_BYTES))
        return events

    def close(self) -> list[bytes]:
        """Return what the stream's end completes: some servers leave the last blank line out."""
        return self.feed(b"\n\n")

    def _add(self, data: bytes) -> None:
        self._data.append(data)
        self._size += len(data)

    def _take(self) -> bytes:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        self._data.clear()
        self._size = 0
        return data
