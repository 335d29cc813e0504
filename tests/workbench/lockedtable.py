"""A table that cannot be read for a while, really."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, connections


@contextmanager
def locked_out(table: str) -> Iterator[None]:
    """Let somebody else hold a table, and our statements wait for it a tenth of a second."""
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            other = connections["default"]
            other.set_autocommit(False)
            with other.cursor() as cursor:
                cursor.execute(f"lock table {table} in access exclusive mode")
            holding.set()
            done.wait(30)
            other.rollback()
        finally:
            connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(30)
    with connection.cursor() as cursor:
        cursor.execute("set lock_timeout = '100ms'")
    try:
        yield
    finally:
        done.set()
        thread.join()
        with connection.cursor() as cursor:
            cursor.execute("reset lock_timeout")
