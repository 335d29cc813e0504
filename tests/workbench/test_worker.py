"""A worker of its own process takes jobs from the configured broker, whichever that is, and does them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings as configured
from django.contrib.auth.models import User
from django.db import connection

from artifacts.models import Version
from tests.artifacts.finding import found, upload
from tests.artifacts.pdfs import pdf
from tests.conftest import make_user
from workbench import storages
from workbench.celery import CLOCK_S, app

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0


@pytest.fixture
def anna(transactional_db: Any) -> Any:
    return make_user("anna")


@pytest.fixture
def worker(anna: User, settings: Any, tmp_path: Path) -> Iterator[None]:
    """A Celery worker on the test's database and files."""
    files = f"file://{tmp_path}/files"
    settings.STORAGES = {**settings.STORAGES, "artifacts": storages.by_url(files, tmp_path)}
    database = urlsplit(configured.DATABASE_URL)._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
    ready = tmp_path / "ready"
    process = subprocess.Popen(
        [
            *(sys.executable, "-W", "ignore", "-m", "celery", "--app=workbench.celery", "--quiet", "worker"),
            *("--loglevel=ERROR", "--pool=solo", "--without-gossip", "--without-mingle"),
        ],
        env={**os.environ, "DATABASE_URL": database, "STORAGE_URL": files, "WORKER_READY_FILE": str(ready)},
        cwd=ROOT,
    )
    try:
        until(lambda: ready.exists(), process)
        yield
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(20)


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
def test_a_worker_reads_what_was_uploaded(worker: None, anna: User) -> None:
    upload(anna, "plan.pdf", pdf("Paint the wall", "Buy ropes"))
    until(lambda: Version.objects.of(anna.pk).get().text_status == "ready")
    assert found(anna, "rope") == ["Buy ropes"]


def test_the_broker_is_the_one_that_was_asked_for() -> None:
    scheme = configured.CELERY_BROKER_URL.partition("://")[0]
    with app.connection_for_write(connect_timeout=3) as link:
        link.ensure_connection(max_retries=1, timeout=3)
        assert link.transport.driver_type == ("amqp" if scheme in ("amqp", "pyamqp") else "redis")
