"""Names of the background jobs, how to ask for them, and how a worker takes one.

A Job row is planted in the transaction that made the work (stores/writer.py plants `after_run` with the last event of a
run). `send` then tells the broker; if that fails the row simply waits until the sweep sends it again.
"""

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from celery import current_app
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from agents import holders
from agents.models.job import Job

logger = logging.getLogger(__name__)

# Celery task names
RUN_JOB: Final = "agents.tasks.run_job"
SWEEP: Final = "agents.tasks.sweep"

# Kinds of Job rows
TITLE: Final = "title"  # name a conversation after its first run
READ: Final = "read"  # scope "version:<pk>": read a file's text and make it searchable
EMBED: Final = "embed"  # vectors for what is searchable by word; scopes: background/embed.py
SUMMARY: Final = "summary"  # scope "" after events, "manual", "archive": bring a conversation's summary up to date
MEMORY: Final = "memory"  # read what a person said for what is to be remembered
REVIEW: Final = "review"  # look at what was done for what is to be learned
HEAVY: Final = frozenset({READ, EMBED})  # minutes of work: a queue of their own, so that titles need not wait for them

SWEEP_EVERY_S: Final = 10.0
MAX_ATTEMPTS: Final = 5
# Longer than any job here takes without renewing it; a job whose worker died is done again after it, or as soon as a
# process on the same machine sees that.
LEASE: Final = timedelta(seconds=90)
RESEND_AFTER: Final = timedelta(seconds=60)
# A fresh row is the sender's; only what has waited this long is sent again.
GRACE: Final = timedelta(seconds=5)
AGAIN_AFTER: Final = timedelta(seconds=5)  # of what is put back, unless somebody sends it sooner
BACKOFF: Final = tuple(timedelta(seconds=s) for s in (10, 60, 300, 900))
MAX_UNSENT: Final = 1_000

_PLANT: Final = """
insert into agents_job (kind, owner_id, session_id, scope, range, status, attempts, next_at, error_code, error_message,
                        created_at)
values (%s, %s, %s, %s, '{}', 'queued', 0, clock_timestamp(), '', '', clock_timestamp())
on conflict do nothing returning id
"""

_sender = ThreadPoolExecutor(max_workers=1, thread_name_prefix="job-sender")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A job that this worker has for LEASE. attempt: from 1. asked_at: when it was planted, by the database's clock."""

    id: int
    kind: str
    owner_id: int | None
    session_id: int | None
    scope: str
    attempt: int
    asked_at: datetime


class NotYet(Exception):
    """Somebody else has what a job needs; it is to be done after that."""


def after_run() -> list[str]:
    """Return the kinds of jobs that are planted at the end of every run."""
    return [MEMORY, REVIEW, TITLE] if settings.EMBEDDER == "none" else [EMBED, MEMORY, REVIEW, TITLE]


def send(job_ids: Iterable[int], kind: str = TITLE) -> None:
    """Tell the broker about jobs whose rows are committed. Returns at once and never fails: the sweep is behind it.

    kind: of all of them; it says which queue they wait in.
    """
    ids = tuple(job_ids)
    if not ids:
        return
    # The queue is short as long as the broker answers; when it does not, the rows can wait.
    if _sender._work_queue.qsize() < MAX_UNSENT:
        _sender.submit(_publish, ids, settings.HEAVY_QUEUE if kind in HEAVY else settings.QUICK_QUEUE)


def plant(kind: str, *, owner_id: int | None, scope: str, session_id: int | None = None) -> None:
    """Owe a job in the caller's transaction; it is sent once that is committed. Asking twice is asking once."""
    with connection.cursor() as cursor:
        cursor.execute(_PLANT, [kind, owner_id, session_id, scope])
        planted = tuple(job_id for (job_id,) in cursor.fetchall())
    transaction.on_commit(lambda: send(planted, kind))


def _publish(job_ids: tuple[int, ...], queue: str) -> None:
    try:
        for job_id in job_ids:
            current_app.send_task(RUN_JOB, kwargs={"job_id": job_id}, queue=queue, retry=False, ignore_result=True)
    except (OperationalError, OSError) as error:
        logger.warning("jobs not sent, the sweep will: %s", type(error).__name__)


def claim(job_id: int) -> Claim | None:
    """Take a job for LEASE; None if it is done, dead, gone, or another worker has it that is not known to be dead."""
    if not _take(job_id):
        _free_lost(pk=job_id)
        if not _take(job_id):
            return None
    job = Job.objects.get(pk=job_id)
    if job.attempts > MAX_ATTEMPTS:
        _bury(job_id, "worker_lost", "Every worker that tried it died.")
        return None
    return Claim(
        id=job.pk,
        kind=job.kind,
        owner_id=job.owner_id,
        session_id=job.session_id,
        scope=job.scope,
        attempt=job.attempts,
        asked_at=job.created_at,
    )


def _take(job_id: int) -> int:
    free = Q(status=Job.Status.QUEUED) | Q(status=Job.Status.RUNNING, lease_expires_at__lt=Now())
    return Job.objects.filter(free, pk=job_id).update(
        status=Job.Status.RUNNING,
        attempts=F("attempts") + 1,
        lease_expires_at=Now() + LEASE,
        held_by=holders.me(),
    )


def _free_lost(**which: int) -> None:
    """End the lease of jobs whose worker was a process of this machine and lives no more."""
    held = Job.objects.filter(
        status=Job.Status.RUNNING, lease_expires_at__gt=Now(), held_by__startswith=f"{holders.machine()} "
    )
    for job in held.filter(**which).only("attempts", "held_by"):
        if holders.gone(job.held_by):
            Job.objects.filter(pk=job.pk, status=Job.Status.RUNNING, attempts=job.attempts).update(
                lease_expires_at=Now() - timedelta(seconds=1)
            )


def renew(job: Claim) -> bool:
    """Have the job for LEASE from now on; False if somebody else has it by now. For jobs that may take longer."""
    return bool(_mine(job).update(lease_expires_at=Now() + LEASE))


def done(job: Claim, result: str = "") -> None:
    """Close a job that was done. result: a code of what came of it, kept in the row's `range`."""
    kept = {"range": {"result": result[:64]}} if result else {}
    _reconnect()
    _mine(job).update(
        status=Job.Status.DONE, ended_at=Now(), lease_expires_at=None, error_code="", error_message="", **kept
    )


def latest(kind: str, *, owner_id: int, session_id: int, scope: str) -> tuple[str, str] | None:
    """Return (status, result) of the job of this kind and scope asked for last; None if there is none.

    status: of Job.Status. result: what `done` was told, "" before.
    """
    rows = Job.objects.filter(kind=kind, owner_id=owner_id, session_id=session_id, scope=scope)
    job = rows.order_by("-id").first()
    return (job.status, str(job.range.get("result", ""))) if job else None


def failed(job: Claim, code: str, message: str) -> None:
    """Put a job back for another try later, or bury it after MAX_ATTEMPTS tries."""
    _reconnect()
    if job.attempt >= MAX_ATTEMPTS:
        _bury(job.id, code, message)
        return
    wait = BACKOFF[min(job.attempt, len(BACKOFF)) - 1]
    try:
        with transaction.atomic():
            _mine(job).update(
                status=Job.Status.QUEUED,
                next_at=Now() + wait,
                lease_expires_at=None,
                error_code=code[:64],
                error_message=message[:1000],
            )
    except IntegrityError:
        # Somebody asked for the same again meanwhile; that row does the work.
        _bury(job.id, "superseded", message)


def put_back(job: Claim) -> None:
    """Let a job wait on that is NotYet to be done. That counts as no try. It is not this worker's any more."""
    _reconnect()
    try:
        with transaction.atomic():
            _mine(job).update(
                status=Job.Status.QUEUED,
                attempts=F("attempts") - 1,
                next_at=Now() + AGAIN_AFTER,
                lease_expires_at=None,
            )
    except IntegrityError:
        done(job)  # somebody asked for the same again meanwhile; that row waits


def send_waiting(kind: str, session_id: int) -> None:
    """Send what of this kind waits in a session: what it may have waited for is free."""
    waiting = Job.objects.filter(kind=kind, session_id=session_id, status=Job.Status.QUEUED)
    send(waiting.order_by("id").values_list("id", flat=True), kind)


def due() -> dict[int, str]:
    """Return jobs that nobody works on although their time has come, oldest first, with their kinds; at most 500.

    Those that wait are not returned again for a minute.
    """
    _free_lost()
    waiting = Q(status=Job.Status.QUEUED, next_at__lt=Now() - GRACE) & (
        Q(lease_expires_at=None) | Q(lease_expires_at__lt=Now())
    )
    dropped = Q(status=Job.Status.RUNNING, lease_expires_at__lt=Now())
    with transaction.atomic():
        found = dict(
            Job.objects.select_for_update(skip_locked=True)
            .filter(waiting | dropped)
            .order_by("next_at", "id")
            .values_list("id", "kind")[:500]
        )
        # Of a queued row the lease only says when to send it again.
        Job.objects.filter(pk__in=found, status=Job.Status.QUEUED).update(lease_expires_at=Now() + RESEND_AFTER)
    return found


def trim(older_than: timedelta) -> int:
    """Delete finished rows older than that and return how many."""
    return Job.objects.filter(status=Job.Status.DONE, ended_at__lt=Now() - older_than).delete()[0]


def _reconnect() -> None:
    """Give up a connection that broke while the job was done: its row would stay held until the lease is over."""
    if connection.connection is not None and not connection.is_usable():
        connection.close()


def _mine(job: Claim) -> QuerySet[Job]:
    return Job.objects.filter(pk=job.id, status=Job.Status.RUNNING, attempts=job.attempt)


def _bury(job_id: int, code: str, message: str) -> None:
    Job.objects.filter(pk=job_id).update(
        status=Job.Status.DEAD,
        ended_at=Now(),
        lease_expires_at=None,
        error_code=code[:64],
        error_message=message[:1000],
    )
    logger.error("job %s is dead: %s", job_id, code)
