"""A worker of its own process takes jobs from the configured broker, whichever that is, and does them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings as configured
from django.contrib.auth.models import User
from django.db import connection

from agents import jobs
from agents.models.job import Job
from agents.models.session import Session
from artifacts.models import Version
from tests.artifacts.finding import found, upload
from tests.artifacts.pdfs import pdf
from tests.conftest import make_user
from workbench import storages
from workbench.celery import CLOCK_S, app

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
LONG = [f"Page {n} of a long report, café" for n in range(300)]


@pytest.fixture
def anna(transactional_db: Any) -> Any:
    return make_user("anna")


@pytest.fixture
def hire(anna: User, settings: Any, tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Start Celery workers on the test's database and files: takes, and more of their words."""
    files = f"file://{tmp_path}/files"
    settings.STORAGES = {**settings.STORAGES, "artifacts": storages.by_url(files, tmp_path)}
    database = urlsplit(configured.DATABASE_URL)._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
    hired: list[subprocess.Popen[bytes]] = []

    def hire(takes: str = "", pool: str = "--pool=solo") -> "subprocess.Popen[bytes]":
        ready = tmp_path / f"ready-{len(hired)}"
        env = {"DATABASE_URL": database, "STORAGE_URL": files, "WORKER_READY_FILE": str(ready), "WORKER_TAKES": takes}
        process = subprocess.Popen(
            [
                *(sys.executable, "-W", "ignore", "-m", "celery", "--app=workbench.celery", "--quiet", "worker"),
                *("--loglevel=ERROR", "--without-gossip", "--without-mingle"),
                *(pool, f"--hostname=hired-{len(hired)}@%h"),
            ],
            env={**os.environ, **env},
            cwd=ROOT,
        )
        hired.append(process)
        until(lambda: ready.exists(), process)
        return process

    try:
        yield hire
    finally:
        for process in hired:
            process.send_signal(signal.SIGQUIT)
        for process in hired:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:  # asked in the moment in which it gives out a task, Celery waits for ever
                process.kill()
                process.wait()


@pytest.mark.slow
def test_a_worker_whose_clock_dies_ends_to_be_started_again(anna: User, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    process = subprocess.Popen(
        [
            *(sys.executable, "-W", "ignore", "-m", "celery", "--app=workbench.celery", "--quiet", "worker", "--beat"),
            *("--loglevel=ERROR", "--pool=solo", "--without-gossip", "--without-mingle"),
        ],
        env={**os.environ, "WORKER_READY_FILE": str(ready), "CELERY_BROKER_URL": "memory://"},
        cwd=ROOT,
    )
    try:
        until(lambda: ready.exists(), process)
        (clock,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2 * CLOCK_S)
        os.kill(int(clock), signal.SIGKILL)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()


def until(done: Any, process: "subprocess.Popen[bytes] | None" = None) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert process is None or process.poll() is None, "the worker ended"
        assert time.monotonic() < end, "this takes too long"
        time.sleep(0.05)


@pytest.mark.slow
def test_a_worker_reads_what_was_uploaded(hire: Callable[..., Any], anna: User) -> None:
    hire()
    upload(anna, "plan.pdf", pdf("Paint the wall", "Buy ropes"))
    until(lambda: Version.objects.of(anna.pk).get().text_status == "ready")
    assert found(anna, "rope") == ["Buy ropes"]


@pytest.mark.slow
def test_the_quick_worker_leaves_readings_to_the_reader(hire: Callable[..., Any], anna: User) -> None:
    hire("quick")
    upload(anna, "plan.pdf", pdf("Paint the wall", "Buy ropes"))
    later = plant_title(anna)
    until(lambda: Job.objects.get(pk=later).status == "done")
    assert Job.objects.get(kind=jobs.READ).status == "queued"
    hire("heavy")
    until(lambda: Version.objects.of(anna.pk).get().text_status == "ready")
    assert found(anna, "rope") == ["Buy ropes"]


@pytest.mark.slow
def test_readings_that_do_not_end_hold_up_no_title(hire: Callable[..., Any], anna: User) -> None:
    hire("quick", "--concurrency=1")
    hire("heavy", "--concurrency=1")
    upload(anna, "报告.pdf", pdf(*LONG))
    until(lambda: Job.objects.get(kind=jobs.READ).held_by)
    reader = pid_of(Job.objects.get(kind=jobs.READ))
    os.kill(reader, signal.SIGSTOP)  # it reads for as long as this takes
    try:
        upload(anna, "second.pdf", pdf("Buy ropes"))
        title = plant_title(anna)
        until(lambda: Job.objects.get(pk=title).status == "done")
        assert {job.status for job in Job.objects.filter(kind=jobs.READ)} == {"running", "queued"}
    finally:
        os.kill(reader, signal.SIGCONT)
    until(lambda: {v.text_status for v in Version.objects.of(anna.pk)} == {"ready"})


@pytest.mark.slow
def test_a_reading_whose_process_is_killed_is_read_again_at_once(hire: Callable[..., Any], anna: User) -> None:
    hire("heavy", "--concurrency=1")
    began = time.monotonic()
    upload(anna, "plan.pdf", pdf(*LONG, "Buy ropes"))
    until(lambda: Version.objects.of(anna.pk).get().text_status == "reading")
    os.kill(pid_of(Job.objects.get(kind=jobs.READ)), signal.SIGKILL)
    until(lambda: Version.objects.of(anna.pk).get().text_status == "ready")
    assert time.monotonic() - began < jobs.LEASE.total_seconds() / 3
    assert Job.objects.get(kind=jobs.READ).attempts == 2
    assert found(anna, "rope") == ["Buy ropes"]


def plant_title(owner: User) -> int:
    """Owe a title for a conversation with nothing in it, and return the job's id."""
    session = Session.objects.of(owner.pk).create(owner=owner, thread_id="t", agent="a")
    jobs.plant(jobs.TITLE, owner_id=owner.pk, scope="", session_id=session.pk)
    return Job.objects.get(kind=jobs.TITLE).pk


def pid_of(job: Job) -> int:
    return int(job.held_by.split(" ")[1])


def test_the_broker_is_the_one_that_was_asked_for() -> None:
    scheme = configured.CELERY_BROKER_URL.partition("://")[0]
    with app.connection_for_write(connect_timeout=3) as link:
        link.ensure_connection(max_retries=1, timeout=3)
        assert link.transport.driver_type == ("amqp" if scheme in ("amqp", "pyamqp") else "redis")
