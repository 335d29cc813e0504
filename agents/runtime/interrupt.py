"""Waiting that ends as soon as the run is told to stop.

The run's own task waits for the model and for tools. A CancelToken does not cancel a task, so `Interrupt` does it for
exactly the time of one wait, and turns the CancelledError back into `Interrupted`. The wait costs no extra task.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from agents.runtime.session import CancelReason, CancelToken

T = TypeVar("T")


class Interrupted(Exception):
    """The token was set while we waited. Never leaves an agent."""


class Interrupt:
    """Use as a context manager around a series of waits of one task; no wait may stretch over a yield."""

    __slots__ = ("_cancel", "_loop", "_sent", "_stop", "_task", "_waiting")

    def __init__(self, cancel: CancelToken) -> None:
        self._cancel = cancel
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._waiting: asyncio.Task[object] | None = None
        self._sent = False
        self._stop = cancel.listen(self._told)

    def __enter__(self) -> "Interrupt":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    async def wait(self, awaitable: Awaitable[T]) -> T:
        """Return what the awaitable returns. Raises Interrupted when the token is set before that.

        Cancelling the task itself from outside counts as a shutdown: the token is set, and the run closes in order.
        """
        task = self._task
        assert task is not None
        if self._cancel.cancelled:
            if close := getattr(awaitable, "close", None):
                close()
            raise Interrupted
        self._waiting = task
        try:
            return await awaitable
        except asyncio.CancelledError:
            if not self._sent:
                if not task.cancelling():
                    raise RuntimeError("what the run waited for was cancelled from inside") from None
                self._cancel.cancel(CancelReason.SHUTDOWN)
            raise Interrupted from None
        finally:
            self._waiting = None
            if self._sent:
                self._sent = False
                task.uncancel()

    def _told(self) -> None:
        # Not at once: the task that sets the token may be the one that waits, and cancelling oneself strikes later.
        self._loop.call_soon(self._fire)

    def _fire(self) -> None:
        if self._waiting is not None and not self._sent:
            self._sent = True
            self._waiting.cancel()
