"""The one door to threads for ORM work of coroutines.

Not thread-sensitive: Channels would run all of a process's thread-sensitive calls on one thread, so that one slow query
stalls every socket. Connections are given back after each call.
"""

from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from channels.db import DatabaseSyncToAsync

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 8
_executor = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="orm")


def in_thread(fn: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return fn as a coroutine function that runs on one of the eight ORM threads.

    fn does its whole transaction inside. It must not wait for anything but the database.
    """
    made: Callable[P, Coroutine[Any, Any, R]] = DatabaseSyncToAsync(fn, thread_sensitive=False, executor=_executor)
    return made
