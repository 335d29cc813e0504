"""Puts in order what died on the way: lost runs are closed, due jobs sent again, old things removed.

Celery's beat calls `sweep_once`; every web process calls `close_lost_runs` at its start and about every 10 s, so that a
lost run is closed within 30 s even if no worker lives. One process sweeps at a time. Done twice, it changes nothing.
"""

import hashlib
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from agents import hints, jobs, wiring
from agents.background import embed
from agents.models import search_entry
from agents.models.session import Session
from agents.protocols.agui import history, salvage
from agents.protocols.agui.encode import RunEncoder
from agents.runlog import UNAVAILABLE, RunLog, stream
from agents.runtime.events import (
    AssistantMessage,
    Origin,
    Record,
    RunFailed,
    Stamped,
    ToolReturned,
    ToolStatus,
)
from agents.runtime.model import ToolCall
from agents.runtime.session import RunEnd, RunStatus
from agents.runtime.tokens import estimate_record
from agents.stores import db, pool, runs, sessions, skillfiles, skilljudging, skilllibrary, writer
from agents.workspaces import sweeping
from artifacts import indexing, library, rows

logger = logging.getLogger(__name__)

LOCK = "sweep"
# How long a deleted conversation can be brought back.
UNDO_TIME = timedelta(minutes=10)
KEEP_DONE_JOBS = timedelta(days=7)
PURGE_AT_ONCE = 20
CLOSE_TRIES = 5

LOST = RunFailed(
    code="lost", message="Stopped early because the server restarted. What was written is kept.", retryable=True
)
LOST_RESULT = "The server stopped while this ran. Whether it had an effect is not known. It was not run again."


async def sweep_once() -> None:
    """Do everything that is due. For a process of its own event loop: the pools it opens are closed at the end."""
    log = RunLog(wiring.redis_url())
    try:
        await close_lost_runs(log)
        for job_id, kind in (await db.in_thread(jobs.due)()).items():
            jobs.send((job_id,), kind)
        for owner_id, document in await db.in_thread(indexing.settle)():
            await hints.documents_changed(owner_id, [document])
        await db.in_thread(_trim)()
    finally:
        await log.close()
        await writer.close()
        await pool.close()


async def close_lost_runs(log: RunLog) -> int:
    """Close runs whose lease is out, unless another process is at it, and return how many were closed here.

    Raises StorageUnavailable and psycopg.Error.
    """
    async with pool.try_lock(LOCK) as mine:
        if not mine:
            return 0
        closed = 0
        for run in await runs.expired():
            if await close_lost_run(run, log):
                closed += 1
        return closed


async def close_lost_run(run: runs.Run, log: RunLog) -> bool:
    """Close one lost run: in the store, then in its log; False if somebody else did or it is not lost."""
    frames = await _frames(run, log)

    async def closing(lost: runs.Lost) -> tuple[Sequence[Stamped], RunEnd]:
        # Read again: until the epoch was raised the owner may have written more.
        nonlocal frames
        frames = await _frames(run, log)
        return closing_records(lost, frames)

    stored = await runs.close_lost(run, closing)
    if not stored:
        return False
    wiring.metrics().run_lost()
    logger.warning("run %s was lost and is closed: records=%d frames=%d", run.run_key, len(stored), len(frames))
    await _close_log(run, log)
    await hints.thread_changed(run.owner_id, run.thread_id, "run_ended")
    return True


def closing_records(lost: runs.Lost, frames: Sequence[bytes]) -> tuple[tuple[Stamped, ...], RunEnd]:
    """Return what a lost run gets stored at its end: the unstored text, one result for each open call, RunFailed."""
    messages = [s.record for s in lost.records if isinstance(s.record, AssistantMessage)]
    found = salvage.unstored(frames, messages)
    answered = {s.record.call_id for s in lost.records if isinstance(s.record, ToolReturned)}
    calls = [call for message in (*messages, *found) for call in message.tool_calls if call.id not in answered]
    results = [_lost_result(call) for call in calls]
    records: list[Record] = [*found, *results, LOST]
    end = RunEnd(status=RunStatus.LOST, error_code=LOST.code, error_message=LOST.message)
    origin = _origin(lost)
    return tuple(_stamped(record, origin) for record in records), end


def _lost_result(call: ToolCall) -> ToolReturned:
    return ToolReturned(
        id=f"{call.id}:lost", call_id=call.id, name=call.name, content=LOST_RESULT, status=ToolStatus.LOST
    )


def _origin(lost: runs.Lost) -> Origin:
    """Return the origin of the run's own agent, as its records carry it."""
    for stored in reversed(lost.records):
        if not isinstance(stored.record, RunFailed) and stored.origin.author == lost.run.agent:
            return stored.origin
    if lost.records:
        first = lost.records[0].origin
        return Origin(run_id=first.run_id, invocation_id=first.invocation_id, author=lost.run.agent)
    return Origin(run_id=lost.run.run_id, invocation_id=f"lost-{lost.run.run_key}", author=lost.run.agent)


def _stamped(record: Record, origin: Origin) -> Stamped:
    # The id follows from what is stored: a second closing of the same run stores nothing twice.
    name = record.id if isinstance(record, AssistantMessage | ToolReturned) else record.type
    digest = hashlib.sha256(f"lost:{origin.run_id}:{record.type}:{name}".encode()).hexdigest()[:32]
    return Stamped(
        id=f"lost-{digest}", at=datetime.now(UTC), origin=origin, record=record, tokens=estimate_record(record)
    )


async def _frames(run: runs.Run, log: RunLog) -> list[bytes]:
    """Return the run's frames from its log; [] if there is none or it cannot be read: then the text is gone."""
    try:
        frames, _ = await log.frames(stream(run.run_key, run.run_id))
    except UNAVAILABLE as error:
        logger.warning("the log of lost run %s cannot be read: %s", run.run_key, type(error).__name__)
        return []
    return frames


async def _close_log(run: runs.Run, log: RunLog) -> None:
    """Append the last frames, so that whoever follows the run hears of its end."""
    visible = (await sessions.visible(owner_id=run.owner_id, thread_id=run.thread_id)).stored
    name = stream(run.run_key, run.run_id)
    for _ in range(CLOSE_TRIES):
        try:
            end = await log.end_now(name)
            if end is not None and end.ended:
                return
            after = end.seq if end is not None else 0
            encoder = RunEncoder(thread_id=run.thread_id, run_id=run.run_id, seq=after)
            frames = [data for _, data in encoder.close_lost(history.messages(visible), LOST)]
            if await log.close_run(name, epoch=run.epoch + 1, after=after, frames=frames):
                return
        except UNAVAILABLE as error:
            # Followers elsewhere find out from the row and ask for a snapshot.
            logger.warning("the log of lost run %s cannot be closed: %s", run.run_key, type(error).__name__)
            return


def _trim() -> None:
    """Remove what nobody can want back."""
    gone = Session.objects.of_everyone().filter(deleted_at__lt=Now() - UNDO_TIME).order_by("deleted_at", "id")
    for session in gone[:PURGE_AT_ONCE]:
        key = session.pk
        with transaction.atomic():
            library.forget_session(session.owner_id, key)
            session.delete()
            # after it: until the row is gone, a run may still store and index
            search_entry.drop(session.owner_id, search_entry.Kind.EVENT, [key])
        sweeping.forget(settings.WORKSPACES_DIR, session.owner_id, key)
        logger.info("deleted conversation %s purged", key)
    jobs.trim(KEEP_DONE_JOBS)
    library.purge()
    rows.sweep()
    skilllibrary.purge(now=datetime.now(UTC))
    skillfiles.sweep()
    skilljudging.expire(datetime.now(UTC))
    sweeping.sweep(settings.WORKSPACES_DIR, keep_s=settings.WORKSPACE_KEEP_S)
    embed.owe_missing()
