"""The one writer of events: a queue, and one task that stores what waits in it, one statement per batch.

A batch is a transaction of its own, so an append is durable when its future has its result. A batch that fails as a
whole is cut in halves until the one append that cannot be stored stands alone. If the connection breaks, the batch is
sent again; event ids are unique in a session, so what had arrived is not stored twice.
"""

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import orjson
import psycopg

from agents import jobs
from agents.runtime.errors import AgentError, RecordInvalid, RunFenced, StorageUnavailable
from agents.runtime.events import Stamped, Stored
from agents.runtime.session import ModelCall, RunEnd
from agents.stores import events, modelcalls, pool, sql

logger = logging.getLogger(__name__)

BATCH_ROWS = 500
RECORDS_PER_APPEND = 64
_CONNECT_S = 2.0
_PAUSE_S = 0.02

_writers: WeakKeyDictionary[asyncio.AbstractEventLoop, "Writer"] = WeakKeyDictionary()


@dataclass(slots=True, eq=False)
class _Item:
    """One append, or one model call. deadline: loop time after which its caller is told StorageUnavailable."""

    run_key: int
    epoch: int
    deadline: float
    rows: tuple[events.Row, ...] = ()
    end: RunEnd | None = None
    summarise: bool = False
    call: bytes = b""
    answer: "asyncio.Future[tuple[Stored, ...]] | None" = None

    @property
    def size(self) -> int:
        return len(self.rows) or 1

    def resolve(self, result: tuple[Stored, ...]) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(result)

    def fail(self, error: AgentError) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)
        elif self.call:
            logger.warning("model call not stored: run=%s code=%s", self.run_key, error.code)


class _Away(Exception):
    """The database cannot be reached, or not in time."""


class Writer:
    """The batching writer of one process. Belongs to one event loop; `current()` gives the loop's own."""

    def __init__(self) -> None:
        self._queue: deque[_Item] = deque()
        self._awake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._connection: pool.Connection | None = None
        self._batch: list[_Item] = []  # what is being stored now
        self._skip_locked = False
        self._away = False
        self._closing = False
        self.batches = 0  # statements that stored something, for the bench
        self.rows = 0

    def append(
        self,
        *,
        run_key: int,
        epoch: int,
        records: Sequence[Stamped],
        end: RunEnd | None = None,
        summarise: bool = False,
    ) -> "asyncio.Future[tuple[Stored, ...]]":
        """Queue records of one run and return a future of what lies in the store then, in order.

        records: 1 to 64. summarise: also plant the job that looks whether to summarise. The future raises RunFenced,
        StorageUnavailable after 10 s, RecordInvalid if these records cannot be stored. Raises ValueError for a state
        key that is never stored. All appends of a run keep their order. A caller that goes away does not take its
        records with it.
        """
        if not 1 <= len(records) <= RECORDS_PER_APPEND:
            raise ValueError(f"An append takes 1 to {RECORDS_PER_APPEND} records, not {len(records)}.")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[tuple[Stored, ...]] = loop.create_future()
        rows = tuple(events.row(record, run_key=run_key) for record in records)
        deadline = loop.time() + pool.AWAY_S
        self._put(_Item(run_key, epoch, deadline, rows=rows, end=end, summarise=summarise, answer=answer))
        return answer

    def model_called(self, *, run_key: int, epoch: int, call: ModelCall) -> None:
        """Queue a model call. It is stored no later than the next append of its run."""
        deadline = asyncio.get_running_loop().time() + pool.AWAY_S
        self._put(_Item(run_key, epoch, deadline, call=modelcalls.row(call, run_key=run_key)))

    async def warm_up(self) -> None:
        """Connect and prepare the statement, so that the first append need not. Raises StorageUnavailable."""
        try:
            await self._execute([], pool.AWAY_S)
        except _Away as e:
            raise StorageUnavailable from e

    async def close(self) -> None:
        """Store what is queued, then stop. Later appends raise StorageUnavailable."""
        self._closing = True
        self._awake.set()
        if self._task is not None:
            await self._task
        await self._drop_connection()

    def _put(self, item: _Item) -> None:
        if self._closing:
            item.fail(StorageUnavailable())
            return
        self._queue.append(item)
        self._awake.set()
        if self._task is None:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._drain(), name="event writer", context=contextvars.Context())
            self._task.add_done_callback(self._stopped)

    async def _drain(self) -> None:
        while True:
            if not self._queue:
                if self._closing:
                    return
                self._awake.clear()
                await self._awake.wait()
                continue
            self._batch = self._next_batch()
            again = await self._store(self._batch)
            self._batch = []
            if again:
                self._queue.extendleft(reversed(again))
                await asyncio.sleep(_PAUSE_S)

    def _stopped(self, task: "asyncio.Task[None]") -> None:
        """Leave nobody waiting if the task ended by a mistake of ours; the next append starts it anew."""
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("event writer stopped", exc_info=error)
        waiting, self._batch = [*self._batch, *self._queue], []
        self._queue.clear()
        for item in waiting:
            item.fail(StorageUnavailable())

    def _next_batch(self) -> list[_Item]:
        """Take items off the queue, up to 500 rows; nothing after the end of its own run, one epoch per run."""
        batch: list[_Item] = []
        epochs: dict[int, int] = {}
        ended: set[int] = set()
        size = 0
        while self._queue:
            item = self._queue[0]
            other_epoch = epochs.setdefault(item.run_key, item.epoch) != item.epoch
            if batch and (size + item.size > BATCH_ROWS or item.run_key in ended or other_epoch):
                break
            batch.append(self._queue.popleft())
            size += item.size
            if item.end is not None:
                ended.add(item.run_key)
        return batch

    async def _store(self, batch: list[_Item]) -> list[_Item]:
        """Store a batch and answer its items. Return those to try again, in order."""
        now = asyncio.get_running_loop().time()
        for item in batch:
            if item.deadline <= now:
                item.fail(StorageUnavailable())
        batch = [item for item in batch if item.deadline > now]
        if not batch:
            return []
        try:
            held = await self._execute(batch, min(item.deadline for item in batch) - now)
            self._away = False
            return await self._settle(batch, held)
        except _Away as e:
            if not self._away:
                logger.warning("database away: %s", e)
            self._away = True
            return batch
        except psycopg.errors.UniqueViolation as e:
            # A statement sent twice met its first copy, still on its way when we asked. Ask again.
            if e.diag.constraint_name in ("event_id_once", "event_position"):
                return batch
            return await self._halve(batch, e)
        except psycopg.Error as e:
            return await self._halve(batch, e)

    async def _halve(self, batch: list[_Item], error: psycopg.Error) -> list[_Item]:
        if len(batch) == 1:
            logger.error("record not stored: run=%s sqlstate=%s", batch[0].run_key, error.sqlstate)
            batch[0].fail(RecordInvalid())
            return []
        middle = len(batch) // 2
        again = await self._store(batch[:middle])
        return again + await self._store(batch[middle:])

    async def _execute(self, batch: Sequence[_Item], within_s: float) -> list[tuple[Any, ...]]:
        """Send one batch and return the rows of the runs that still hold. Raises _Away, psycopg.Error."""
        statement = sql.APPEND_SKIPPING_LOCKED if self._skip_locked else sql.APPEND
        self._skip_locked = False
        calls = _array([item.call for item in batch if item.call])
        params = (_runs(batch), _records(batch), calls, jobs.after_run(), jobs.SUMMARY)
        try:
            connection = await self._connected()
            # psycopg waits for the server when its task is cancelled, so a server that hangs is left behind instead
            sent = asyncio.ensure_future(connection.execute(statement, params, prepare=True))
            await asyncio.wait((sent,), timeout=within_s)
            if not sent.done():
                sent.add_done_callback(partial(_abandon, connection))
                self._connection = None
                sent.cancel()
                raise _Away("no answer in time")
            rows = await sent.result().fetchall()
        except psycopg.errors.LockNotAvailable as e:
            self._skip_locked = True
            raise _Away("a session is locked") from e
        except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.ReadOnlySqlTransaction) as e:
            await self._drop_connection()
            raise _Away(type(e).__name__) from e
        except (OSError, TimeoutError) as e:
            await self._drop_connection()
            raise _Away(type(e).__name__) from e
        if batch:
            self.batches += 1
        return rows

    async def _settle(self, batch: list[_Item], held: list[tuple[Any, ...]]) -> list[_Item]:
        """Answer the items from what the statement returned; look up what it could not tell."""
        positions = {run: last for run, _, last, _, _ in held}
        forks = {run: fork for run, fork, _, _, _ in held}
        known = {run: set(ids) for run, _, _, ids, _ in held if ids}
        planted: dict[str, list[int]] = {}
        for *_, jobs_of_run in held:
            for kind, job in (jobs_of_run or {}).items():
                planted.setdefault(kind, []).append(job)
        missing = [item for item in batch if item.run_key not in positions]
        met: dict[int, dict[str, Stored]] = {}
        if known:
            met = await self._lookup(list(known), [i for ids in known.values() for i in ids])
        for item in batch:
            run = item.run_key
            if run not in positions:
                continue
            found = met.setdefault(run, {})
            out: list[Stored] = []
            for row in item.rows:
                stored = found.get(row.stamped.id) if row.stamped.id else None
                if stored is None:
                    positions[run] += 1
                    self.rows += 1
                    stored = found[row.stamped.id] = events.stored(row, position=positions[run], fork=forks[run])
                out.append(stored)
            item.resolve(tuple(out))
        for kind in sorted(planted, key=lambda kind: kind != jobs.TITLE):  # people wait for titles
            jobs.send(planted[kind], kind)
        return await self._explain(missing) if missing else []

    async def _explain(self, missing: list[_Item]) -> list[_Item]:
        """Find out about runs that the statement did not find: stored by an earlier try, locked, or fenced."""
        runs = sorted({item.run_key for item in missing})
        fates = {run: (epoch, running) for run, epoch, running in await self._ask(sql.FATE, (runs,))}
        ids = [row.stamped.id for item in missing for row in item.rows]
        met = await self._lookup(runs, ids) if ids else {}
        again: list[_Item] = []
        for item in missing:
            epoch, running = fates.get(item.run_key, (0, False))
            found = met.get(item.run_key, {})
            if epoch == item.epoch and running:
                again.append(item)
                self._skip_locked = True
            elif epoch == item.epoch and item.rows and all(row.stamped.id in found for row in item.rows):
                item.resolve(tuple(found[row.stamped.id] for row in item.rows))
            elif item.rows:
                item.fail(RunFenced())
        return again

    async def _lookup(self, runs: Sequence[int], ids: Sequence[str]) -> dict[int, dict[str, Stored]]:
        """Return the records of these ids in the runs' sessions, by run that asks and id."""
        out: dict[int, dict[str, Stored]] = {}
        for run, *columns in await self._ask(sql.EVENTS_BY_ID, (list(runs), list(ids))):
            stored = events.load(columns)
            out.setdefault(run, {})[stored.id] = stored
        return out

    async def _ask(self, statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            return await pool.fetch(statement, params)
        except StorageUnavailable as e:
            raise _Away("no answer to a question") from e

    async def _connected(self) -> pool.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = await asyncio.wait_for(pool.connect(), _CONNECT_S)
        return self._connection

    async def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def current() -> Writer:
    """Return this process's writer, made on first use inside the event loop."""
    loop = asyncio.get_running_loop()
    writer = _writers.get(loop)
    if writer is None:
        writer = _writers[loop] = Writer()
    return writer


async def close() -> None:
    """Store what is queued and stop this loop's writer, if there is one."""
    writer = _writers.pop(asyncio.get_running_loop(), None)
    if writer is not None:
        await writer.close()


def _runs(batch: Sequence[_Item]) -> str:
    """Return the batch's runs as JSON, each once, with its end if it has one."""
    runs: dict[int, dict[str, Any]] = {}
    for item in batch:
        out = runs.setdefault(item.run_key, {"run": item.run_key, "epoch": item.epoch})
        if item.summarise:
            out["summarise"] = True
        if item.end is not None:
            usage = item.end.usage
            out |= {
                "status": item.end.status.value,
                "prompt": usage.prompt,
                "cached": usage.cached,
                "completion": usage.completion,
                "reasoning": usage.reasoning,
                "model_calls": item.end.model_calls,
                "error_code": item.end.error_code,
                "error_message": item.end.error_message.replace("\0", "\ufffd"),
            }
    return orjson.dumps(list(runs.values())).decode()


def _records(batch: Sequence[_Item]) -> str:
    """Return the batch's records as JSON, each id of a run once; an empty id is nobody's."""
    rows: list[bytes] = []
    met: set[tuple[int, str]] = set()
    for item in batch:
        for row in item.rows:
            if not row.stamped.id or (item.run_key, row.stamped.id) not in met:
                met.add((item.run_key, row.stamped.id))
                rows.append(row.json)
    return _array(rows)


def _array(values: Sequence[bytes]) -> str:
    return (b"[" + b",".join(values) + b"]").decode()


def _abandon(connection: pool.Connection, sent: "asyncio.Future[Any]") -> None:
    if not sent.cancelled():
        sent.exception()  # looked at, so that asyncio does not complain
    connection.pgconn.finish()
