"""What searchable entries add to an append: `make bench ARGS="--only indexing"`.

The same number of events of the same lengths is stored by the real writer, one append each: once as what is searched,
once as results of failed calls, which are not. CPU is that of the writer's own backend, which must run on this machine.
"""

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import django

from agents.runtime.events import (
    AssistantMessage,
    Origin,
    Outcome,
    Record,
    RunFinished,
    RunStarted,
    Stamped,
    ToolReturned,
    ToolStatus,
    UserMessage,
)
from agents.runtime.model import TextPart
from agents.runtime.session import Opening, OpenRun, Plan, RunEnd, RunRequest, RunStatus
from tests.bench.search import CHINESE_CHARS, Language, at

LENGTHS = {"user message": 100, "answer": 800, "tool result": 4_000}
ROUNDS = 4
ADDED_MS = 2

Make = Callable[[str, str], Record]


@dataclass(slots=True)
class Cost:
    """Milliseconds: of each append, and CPU of the database and of this process for all of them."""

    walls: list[float]
    database: float = 0.0
    process: float = 0.0


def searched(text: str, key: str) -> Record:
    if len(text) <= LENGTHS["user message"]:
        return UserMessage(id=key, parts=(TextPart(text=text),))
    if len(text) <= LENGTHS["answer"]:
        return AssistantMessage(id=key, response_id=key, text=text)
    return ToolReturned(id=key, call_id=key, name="look", content=text)


def not_searched(text: str, key: str) -> Record:
    return ToolReturned(id=key, call_id=key, name="look", content=text, status=ToolStatus.ERROR)


def stamp(record: Record, key: str) -> Stamped:
    origin = Origin(run_id="r", invocation_id="i", author="assistant")
    return Stamped(id=key, at=datetime.now(UTC), origin=origin, record=record, tokens=1)


async def begun(owner: int, name: str) -> OpenRun:
    from agents.stores.sessions import PgSessionStore

    def plan(_: Opening) -> Plan:
        return Plan(records=(stamp(RunStarted(agent="assistant", model="m"), f"{name}-started"),))

    asked = RunRequest(owner_id=owner, thread_id=name, run_id=name, agent="assistant")
    return await PgSessionStore().open_run(asked, plan)


async def stored(run: OpenRun, texts: list[str], make: Make, cost: Cost) -> None:
    """Append each text and add to the cost. The run is ended, so that nothing sweeps it."""
    from agents.stores import writer

    backend = (await writer.current()._connected()).info.backend_pid
    records = [stamp(make(text, f"{run.run_key}-{n}"), f"{run.run_key}-{n}") for n, text in enumerate(texts)]
    before, before_process = _cpu_ms(backend), time.process_time()
    for record in records:
        sent = time.perf_counter()
        await run.ledger.append([record])
        cost.walls.append((time.perf_counter() - sent) * 1000)
    cost.database += _cpu_ms(backend) - before
    cost.process += (time.process_time() - before_process) * 1000
    ended = stamp(RunFinished(outcome=Outcome.SUCCESS), f"{run.run_key}-ended")
    await run.ledger.append([ended], end=RunEnd(status=RunStatus.FINISHED))


def _cpu_ms(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def texts(count: int) -> list[str]:
    """Return texts of LENGTHS in turn, a fifth of them Chinese."""
    language = Language(3)
    lengths = tuple(LENGTHS.values())
    made = []
    for n in range(count):
        chars = lengths[n % len(lengths)]
        if n % 5 == 4:
            made.append("".join(language.chinese() for _ in range(1 + chars // CHINESE_CHARS))[:chars])
        else:
            made.append(language.english(chars))
    return made


async def measure(count: int) -> tuple[Cost, Cost]:
    """Return what `count` events cost as they are not searched, and as they are."""
    from django.contrib.auth.models import User

    from agents.stores import db, pool, writer

    owner = (await db.in_thread(User.objects.create)(username=f"writer{time.time_ns()}")).pk
    plain, full = Cost([]), Cost([])
    some = texts(count // ROUNDS)
    try:
        for again in range(ROUNDS + 1):  # in turn, so that a slow moment meets both; the first round warms up
            for make, cost in ((not_searched, plain), (searched, full)):
                run = await begun(owner, f"{make.__name__}-{again}")
                await stored(run, some, make, cost if again else Cost([]))
    finally:
        await writer.close()
        await pool.close()
    return plain, full


def lines(plain: Cost, full: Cost) -> Iterator[str]:
    count = len(full.walls)
    without, with_ = plain.database / count, full.database / count
    yield f"Indexing added to an append: CPU ms of the database per event|{with_ - without:.2f}|{ADDED_MS}"
    yield f"  without / with, {count} events|{without:.2f} / {with_:.2f}|"
    for name, cost in (("without", plain), ("with", full)):
        yield f"  an append {name}: ms p50 / p95|{at(cost.walls, 0.5):.2f} / {at(cost.walls, 0.95):.2f}|"
    without, with_ = plain.process / count, full.process / count
    yield f"  CPU ms of the process that writes: without / with|{without:.2f} / {with_:.2f}|"


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--events", type=int, default=2_000)
    options = words.parse_args()
    django.setup()
    for line in lines(*asyncio.run(measure(options.events))):
        print(line, flush=True)


if __name__ == "__main__":
    main()
