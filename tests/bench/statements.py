"""Statements that the database itself saw: every one, of every pool of the web process."""

import json
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType

import psycopg

from tests.bench.stack import Stack

LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC \[(\d+)\] .*(?:statement|execute [^:]*): (.*)")
FRAME = ("BEGIN", "COMMIT", "ROLLBACK")


@dataclass(frozen=True)
class Count:
    """all: every statement. work: without begin, commit and rollback."""

    all: int
    work: int


class Statements:
    """Between enter and exit the server logs every statement of client backends."""

    def __init__(self, stack: Stack) -> None:
        services = json.loads((stack.data / "services.json").read_text())
        self.url = services["DATABASE_URL"]
        self.logs = stack.data / "logs"
        self.rows: list[tuple[float, str]] = []

    def __enter__(self) -> "Statements":
        self._set("all")
        self.offsets = {p: p.stat().st_size for p in self.logs.glob("*")}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._set("none")
        shift = time.time() - time.monotonic()
        for path in self.logs.glob("*"):
            with path.open("rb") as file:
                file.seek(self.offsets.get(path, 0))
                for line in file.read().decode(errors="replace").splitlines():
                    if found := LINE.match(line):
                        at = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC)
                        self.rows.append((at.timestamp() - shift, found[3].strip()))

    def _set(self, what: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"alter system set log_statement = '{what}'")  # type: ignore[arg-type]
            connection.execute("alter system set log_line_prefix = '%m [%p] %a '")
            connection.execute("select pg_reload_conf()")
        time.sleep(0.2)  # the server tells its backends by a signal, and there is nothing to wait on

    def between(self, begin: float, end: float) -> Count:
        """Count statements from begin to end, in monotonic seconds (the log has milliseconds)."""
        inside = [text for at, text in self.rows if begin - 0.001 <= at <= end + 0.001]
        return Count(all=len(inside), work=sum(not text.upper().startswith(FRAME) for text in inside))
