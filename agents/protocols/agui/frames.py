"""Numbered frames of one run: one JSON AG-UI event each, with `metadata.workbench`.

A frame is put together from bytes: of a text delta only the string itself is encoded anew, the rest is a template.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from agents.runtime.surrogates import mended

Frames = list[tuple[int, bytes]]
JSON = dict[str, Any]


class FrameWriter:
    """Collects the frames of one run and numbers them. seq: the last number given."""

    __slots__ = ("_out", "_tail", "seq", "timestamp_ms")

    def __init__(self, thread_id: str, run_id: str, seq: int) -> None:
        self.seq = seq
        self.timestamp_ms: int | None = None  # goes into the events put from now on
        self._out: Frames = []
        ids = string(thread_id), string(run_id)
        self._tail = b',"metadata":{"workbench":{"threadId":%b,"runId":%b,"seq":' % ids

    def put(self, event: JSON, extra: JSON | None = None) -> None:
        """Add an event. extra: more members for metadata.workbench."""
        if self.timestamp_ms is not None:
            event["timestamp"] = self.timestamp_ms
        self.raw(dump(event)[:-1], b"," + dump(extra)[1:-1] if extra else b"")

    def raw(self, body: bytes, extra: bytes = b"") -> None:
        """Add an event that is JSON already. body: without its last brace. extra: as in `put`, JSON members."""
        self.seq += 1
        self._out.append((self.seq, b"%b%b%d%b}}}" % (body, self._tail, self.seq, extra)))

    def take(self) -> Frames:
        """Return the frames added since the last call, in order."""
        out, self._out = self._out, []
        return out


def patch(values: Mapping[str, Any]) -> list[JSON]:
    """Return a JSON patch (RFC 6902) that sets top-level keys; `add` also replaces."""
    return [
        {"op": "add", "path": "/" + key.replace("~", "~0").replace("/", "~1"), "value": value}
        for key, value in values.items()
    ]


def string(text: str) -> bytes:
    """Return text as a JSON string. Half of a surrogate pair, which no JSON text may hold, becomes U+FFFD."""
    try:
        return orjson.dumps(text)
    except TypeError:
        return orjson.dumps(mended(text))


def dump(value: Any) -> bytes:
    """Return a value as JSON. What JSON does not know becomes its text; halves of surrogate pairs become U+FFFD."""
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:
        return orjson.dumps(_cleaned(value))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    return str(value)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, Mapping):
        return {mended(str(key)): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return value if isinstance(value, int | float | bool | None) else mended(str(value))
