"""Background work's settings: what must hold when a broker or a worker dies."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings

from agents import jobs
from workbench.celery import app

ROOT = Path(__file__).resolve().parents[2]
PUBLISH = """
import json, time, django
django.setup()
from workbench.celery import app
took = []
for _ in range(2):
    began = time.monotonic()
    try:
        app.send_task("nothing", retry=False, ignore_result=True)
    except Exception as e:
        took.append([type(e).__name__, time.monotonic() - began])
print(json.dumps(took))
"""


def test_the_clock_calls_the_sweep_by_the_name_it_has() -> None:
    app.loader.import_default_modules()
    entry = settings.CELERY_BEAT_SCHEDULE["sweep"]
    assert entry["task"] == jobs.SWEEP
    assert entry["task"] in app.tasks
    assert entry["schedule"] == jobs.SWEEP_EVERY_S


def test_tasks_carry_json_and_run_again_when_their_worker_dies() -> None:
    conf = app.conf
    assert (conf.task_serializer, conf.accept_content) == ("json", ["json"])
    assert (conf.task_acks_late, conf.task_reject_on_worker_lost, conf.task_ignore_result) == (True, True, True)


@pytest.mark.skipif(
    settings.CELERY_BROKER_URL.startswith("amqp"),
    reason="RabbitMQ gives out again what a lost connection held; only Redis goes by a time",
)
def test_a_running_task_is_not_given_out_twice() -> None:
    assert settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"] > settings.CELERY_TASK_TIME_LIMIT


@pytest.mark.parametrize("broker", ["redis://127.0.0.1:{port}/0", "amqp://127.0.0.1:{port}//", "redis+socket://{path}"])
def test_asking_for_work_fails_at_once_when_the_broker_is_away(broker: str, tmp_path: Path) -> None:
    with socket.socket() as held:  # bound and not listening: refused, and nobody else gets the port
        held.bind(("127.0.0.1", 0))
        url = broker.format(port=held.getsockname()[1], path=tmp_path / "none.sock")
        assert all(seconds < 5 for _, seconds in publish(url))  # the first one imports the broker's client, too


def test_asking_for_work_gives_up_on_a_broker_that_hangs() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        assert publish(f"amqp://127.0.0.1:{silent.getsockname()[1]}//")
        assert time.monotonic() - began < 20


def publish(url: str) -> list[tuple[str, float]]:
    """Ask twice for a task in a process of its own, and return how each try failed, and after how long."""
    done = subprocess.run(
        [sys.executable, "-c", PUBLISH],
        env={**os.environ, "CELERY_BROKER_URL": url},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    failed = json.loads(done.stdout)
    assert [name for name, _ in failed] == ["OperationalError"] * 2
    return [(name, seconds) for name, seconds in failed]
