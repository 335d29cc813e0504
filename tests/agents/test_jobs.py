"""Who has a job, when it is free again, and in which queue it waits."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from agents import holders, jobs
from agents.models.job import Job
from tests.conftest import make_user
from workbench.celery import app

OF_PSYCOPG = frozenset({"dbname", "user", "password", "host", "port"})


@pytest.fixture
def job(transactional_db: Any) -> Job:
    return Job.objects.create(kind=jobs.READ, next_at=timezone.now(), created_at=timezone.now())


@pytest.fixture
def other() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that lives until somebody ends it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def held_by(job: Job, holder: str) -> None:
    assert jobs.claim(job.pk) is not None
    Job.objects.filter(pk=job.pk).update(held_by=holder)


def test_a_job_is_free_as_soon_as_the_process_that_has_it_is_dead(job: Job, other: "subprocess.Popen[bytes]") -> None:
    held_by(job, holders.of(other.pid))
    assert jobs.claim(job.pk) is None
    assert not jobs.due()
    other.kill()
    other.wait()
    assert jobs.due() == {job.pk: jobs.READ}
    again = jobs.claim(job.pk)
    assert again is not None and again.attempt == 2
    job.refresh_from_db()
    assert job.held_by == holders.me()
    assert jobs.claim(job.pk) is None


@pytest.mark.parametrize("over", [jobs.done, lambda claim: jobs.failed(claim, "X", "")])
def test_a_job_is_closed_although_the_database_restarted_while_it_was_done(job: Job, over: Any) -> None:
    claim = jobs.claim(job.pk)
    assert claim is not None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (backend,) = cursor.fetchone()
    with psycopg.connect(**{k: v for k, v in connection.get_connection_params().items() if k in OF_PSYCOPG}) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (backend,))
    over(claim)
    job.refresh_from_db()
    assert (job.status, job.lease_expires_at) == (Job.Status.DONE if over is jobs.done else Job.Status.QUEUED, None)


def test_a_dead_child_that_nobody_has_waited_for_counts_as_dead(job: Job, other: "subprocess.Popen[bytes]") -> None:
    held_by(job, holders.of(other.pid))
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # it is over, and still has its number
    assert holders.gone(Job.objects.get(pk=job.pk).held_by)


def test_a_process_number_that_came_again_is_another_process(job: Job, other: "subprocess.Popen[bytes]") -> None:
    machine, pid, began = holders.of(other.pid).split(" ")
    held_by(job, f"{machine} {pid} {int(began) - 1}")
    assert jobs.claim(job.pk) is not None


def test_of_a_process_on_another_machine_only_the_lease_tells(job: Job, other: "subprocess.Popen[bytes]") -> None:
    _, pid, began = holders.of(other.pid).split(" ")
    held_by(job, f"elsewhere/pid:[1] {pid} {began}")
    other.kill()
    other.wait()
    assert jobs.claim(job.pk) is None
    held = Job.objects.filter(pk=job.pk)
    held.update(held_by="")  # one that an earlier version took
    assert jobs.claim(job.pk) is None
    held.update(lease_expires_at=timezone.now())
    assert jobs.claim(job.pk) is not None


def test_a_job_that_is_done_stays_done_when_its_holder_dies(job: Job, other: "subprocess.Popen[bytes]") -> None:
    taken = jobs.claim(job.pk)
    assert taken is not None
    Job.objects.update(held_by=holders.of(other.pid))
    jobs.done(taken)
    other.kill()
    other.wait()
    assert jobs.claim(job.pk) is None
    assert not jobs.due()


@pytest.mark.parametrize(
    ("kind", "queue"),
    [
        (jobs.TITLE, "QUICK_QUEUE"),
        (jobs.SUMMARY, "QUICK_QUEUE"),
        (jobs.READ, "HEAVY_QUEUE"),
        (jobs.EMBED, "HEAVY_QUEUE"),
    ],
)
def test_a_job_waits_in_the_queue_of_its_kind(transactional_db: Any, kind: str, queue: str) -> None:
    owner = make_user("anna")
    with app.connection_for_write() as link:
        channel = link.default_channel
        waiting = {name: app.amqp.queues[name](channel) for name in (settings.QUICK_QUEUE, settings.HEAVY_QUEUE)}
        for waits in waiting.values():
            waits.declare()
        jobs.plant(kind, owner_id=owner.pk, scope="文件:1")
        ours = {"job_id": Job.objects.get(kind=kind).pk}
        right = waiting.pop(getattr(settings, queue))
        until = time.monotonic() + 20
        while ours not in taken(right):  # what other tests have sent may still come in between
            assert time.monotonic() < until
            time.sleep(0.01)
        assert all(ours not in taken(wrong) for wrong in waiting.values())


def taken(queue: Any) -> list[Any]:
    """Empty a queue, and return what its messages said."""
    return [message.payload[1] for message in iter(lambda: queue.get(no_ack=True), None)]
