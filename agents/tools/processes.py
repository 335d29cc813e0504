"""Commands that go on between two calls: which conversation has which, in this process."""

import asyncio
import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from agents.runtime.code import Process
from agents.runtime.errors import ToolFailed, ToolFailure
from agents.runtime.tools import ToolContext

KEEP_S: Final = 30 * 60.0  # one that ended can be read for so long
MOST: Final = 4  # of one conversation at once
UNKNOWN: Final = "There is no such session. It has ended long ago, or was started elsewhere."


@dataclass(slots=True, kw_only=True)
class Entry:
    process: Process
    owner_id: int
    session_id: str
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    read: int = 0  # characters that the model has read


_entries: dict[str, Entry] = {}
_ending: set[asyncio.Task[None]] = set()


def add(process: Process, context: ToolContext) -> str:
    """Keep a process for its conversation and return its id. Raises ToolFailed when there are too many.

    When the run that started it is stopped, it is ended; and in any case at its own limit of time.
    """
    _tidy()
    mine = [one for one in _entries.values() if one.session_id == context.session_id and not one.process.over]
    if len(mine) >= MOST:
        raise ToolFailed(f"{MOST} commands are running already. End one first.", ToolFailure.CODE_NOT_RUN)
    key = secrets.token_hex(4)
    _entries[key] = Entry(process=process, owner_id=context.owner_id, session_id=context.session_id)

    def stop() -> None:
        task = asyncio.create_task(process.kill())
        _ending.add(task)
        task.add_done_callback(_ending.discard)

    if context.cancel.cancelled:
        stop()
    else:
        context.cancel.listen(stop)
    return key


def find(key: str, context: ToolContext) -> Entry:
    """Return a process of this conversation. Raises ToolFailed for one that is unknown or another's."""
    _tidy()
    entry = _entries.get(key)
    if entry is None or (entry.owner_id, entry.session_id) != (context.owner_id, context.session_id):
        raise ToolFailed(UNKNOWN, ToolFailure.PROCESS_NOT_FOUND)
    return entry


def _tidy() -> None:
    now = time.monotonic()
    for key, entry in list(_entries.items()):
        if entry.ended is None and entry.process.over:
            entry.ended = now
        if entry.ended is not None and now - entry.ended > KEEP_S:
            del _entries[key]
