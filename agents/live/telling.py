"""Hints of runs, gathered: of a process in which much begins and ends, what comes at once is one message per owner."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from agents import hints

GATHER_S: Final = 0.02


class Telling:
    """Belongs to one event loop. spawn: starts a task and holds it."""

    def __init__(self, spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> None:
        self._spawn = spawn
        self._gathered: dict[int, list[tuple[str, str]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def tell(self, owner_id: int, thread_id: str, changed: str) -> None:
        """Tell the owner's open pages soon, unless it is closed; see hints.thread_changed. Never waits."""
        if self._closed:
            return
        self._gathered.setdefault(owner_id, []).append((thread_id, changed))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_S, self.flush)

    def flush(self) -> tuple[asyncio.Task[None], ...]:
        """Send what was gathered, and return the tasks that do it."""
        self._stop()
        gathered, self._gathered = self._gathered, {}
        return tuple(self._spawn(hints.threads_changed(owner_id, changes)) for owner_id, changes in gathered.items())

    def close(self) -> None:
        """Send nothing any more."""
        self._closed = True
        self._stop()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
