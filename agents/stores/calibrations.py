"""What models' tokens cost, learnt and kept: one Calibrator per model and process, in a row that all processes share.

Nothing here is waited for by a run. A row is read in a task at the first use (the defaults serve until then) and
written in a task after SAVE_CALLS calls or SAVE_S seconds, whichever comes first. The last writer wins, but a row never
goes back to fewer calls. When the database is away nothing is kept, and nobody hears of it but the log.
"""

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

import orjson
import psycopg

from agents.runtime.calibrating import Calibrator
from agents.runtime.errors import StorageUnavailable
from agents.runtime.tokens import Calibration, Mix, Rates, Uncalibrated
from agents.stores import pool

SAVE_CALLS: Final = 20
SAVE_S: Final = 60.0
CLOSE_S: Final = 2.0  # how long the last save may take
EARLY: Final = 64  # calls that are remembered until the row is read

LOAD: Final = """
select r.values from agents_tokenrate r where r.provider = %(provider)s and r.model = %(model)s
"""
SAVE: Final = """
insert into agents_tokenrate as r (provider, model, values, calls, updated_at)
values (%(provider)s, %(model)s, %(values)s::jsonb, %(calls)s, clock_timestamp())
on conflict (provider, model) do update
set values = excluded.values, calls = excluded.calls, updated_at = excluded.updated_at
where r.calls <= excluded.calls
"""

logger = logging.getLogger(__name__)


class PgCalibration:
    """The Calibration of one model in one event loop. Implements agents.runtime.tokens.Calibration."""

    def __init__(self, book: "_Book", provider: str, model: str) -> None:
        self._book = book
        self._key = {"provider": provider, "model": model}
        self._calibrator = Calibrator()
        self._early: list[tuple[Mix, int]] | None = []  # None as soon as the row was read
        self._unsaved = 0
        self._saved_at = book.loop.time()

    @property
    def rates(self) -> Rates:
        return self._calibrator.rates

    def learn(self, mix: Mix, prompt_tokens: int) -> None:
        """Take in what a request cost, and have it saved when it is time. Call it in the loop it belongs to."""
        before = self._calibrator.calls
        self._calibrator.learn(mix, prompt_tokens)
        self._unsaved += self._calibrator.calls - before
        if self._early is not None:
            if len(self._early) < EARLY:
                self._early.append((mix, prompt_tokens))
            return
        if self._unsaved and (self._unsaved >= SAVE_CALLS or self._book.loop.time() - self._saved_at >= SAVE_S):
            self._book.start(self.save())

    async def load(self) -> None:
        """Read the row and learn on top of it what was learnt meanwhile. Tried once; without a row all stays."""
        rows = await _fetch(LOAD, self._key)
        early, self._early = self._early or [], None
        if not rows:
            return
        found = Calibrator.load(rows[0][0]) if isinstance(rows[0][0], dict) else Calibrator()
        if found.calls:
            for mix, prompt_tokens in early:
                found.learn(mix, prompt_tokens)
            self._calibrator = found

    async def save(self) -> None:
        """Write what is not saved yet; nothing if another process has learnt from more calls."""
        if not self._unsaved:
            return
        unsaved, self._unsaved, self._saved_at = self._unsaved, 0, self._book.loop.time()
        values = orjson.dumps(self._calibrator.dump()).decode()
        if await _fetch(SAVE, {**self._key, "values": values, "calls": self._calibrator.calls}) is None:
            self._unsaved += unsaved


@dataclass(eq=False)
class _Book:
    """The calibrations of one event loop, and the tasks that read and write them. A process has one loop."""

    loop: asyncio.AbstractEventLoop
    known: dict[tuple[str, str], PgCalibration] = field(default_factory=dict)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work, name="token rates", context=contextvars.Context())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


_books: WeakKeyDictionary[asyncio.AbstractEventLoop, _Book] = WeakKeyDictionary()


def of(provider: str, model: str) -> Calibration:
    """Return the calibration of a model, the same for all runs of the running loop. Returns at once.

    Outside of a loop nothing could be read: then the defaults.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return Uncalibrated()
    book = _books.get(loop)
    if book is None:
        book = _books[loop] = _Book(loop)
    found = book.known.get((provider, model))
    if found is None:
        found = book.known[provider, model] = PgCalibration(book, provider, model)
        book.start(found.load())
    return found


async def settled() -> None:
    """Wait until this loop has read and written all that it began to."""
    book = _books.get(asyncio.get_running_loop())
    while book is not None and book.tasks:
        await asyncio.gather(*book.tasks, return_exceptions=True)


async def close() -> None:
    """Save what is not saved yet, for at most CLOSE_S seconds, and forget this loop's calibrations."""
    book = _books.pop(asyncio.get_running_loop(), None)
    if book is None:
        return
    for calibration in book.known.values():
        book.start(calibration.save())
    if book.tasks:
        _, late = await asyncio.wait(book.tasks, timeout=CLOSE_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


async def _fetch(statement: str, params: dict[str, Any]) -> list[tuple[Any, ...]] | None:
    """Return the rows; None if the database is away or refuses."""
    try:
        return await pool.fetch(statement, params)
    except (StorageUnavailable, psycopg.Error) as error:
        logger.warning("token rates were not %s: %s", "read" if statement is LOAD else "kept", type(error).__name__)
        return None
