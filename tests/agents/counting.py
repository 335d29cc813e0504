"""How many statements were sent, counted at psycopg on every connection of this process: ours, the pools', Django's.

BEGIN and COMMIT of Django's transactions count too; they are round trips like any other.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg._connection_base import BaseConnection


@dataclass(slots=True)
class Statements:
    """What was sent since counting began, in order."""

    texts: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.texts)


@contextmanager
def counted() -> Iterator[Statements]:
    """Count the statements sent while the block runs. Not for two blocks at once."""
    found = Statements()
    execute, execute_async = psycopg.Cursor.execute, psycopg.AsyncCursor.execute
    command = BaseConnection._exec_command

    def counting(self: Any, query: Any, *args: Any, **more: Any) -> Any:
        found.texts.append(str(query))
        return execute(self, query, *args, **more)

    async def counting_async(self: Any, query: Any, *args: Any, **more: Any) -> Any:
        found.texts.append(str(query))
        return await execute_async(self, query, *args, **more)

    def counting_command(self: Any, given: Any, *args: Any, **more: Any) -> Any:
        found.texts.append(str(given))
        return command(self, given, *args, **more)

    psycopg.Cursor.execute = counting  # type: ignore[method-assign]  # put back below
    psycopg.AsyncCursor.execute = counting_async  # type: ignore[method-assign]  # put back below
    BaseConnection._exec_command = counting_command  # type: ignore[method-assign, assignment]  # put back below
    try:
        yield found
    finally:
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]  # as it was
        psycopg.AsyncCursor.execute = execute_async  # type: ignore[method-assign]  # as it was
        BaseConnection._exec_command = command  # type: ignore[method-assign]  # as it was
