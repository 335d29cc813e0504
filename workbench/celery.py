"""Celery's application. Its settings are Django's CELERY_*; its log lines are the product's own."""

import gc
import logging
import os
import signal
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from typing import Any

from celery import Celery, signals
from django.conf import settings

from workbench.processes import end_after

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
app = Celery("workbench")
app.set_default()  # for every thread, not only the one that imports this: jobs are sent from another
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["agents"])

CLOCK_S = 2.0  # between two looks whether the clock lives
LAUNCHER_S = 5.0  # for a worker to end by itself after the launcher died

logger = logging.getLogger(__name__)
_stopping = Event()


@signals.setup_logging.connect
def keep_our_logging(**_: Any) -> None:
    """A receiver is enough to keep Celery from setting up logging of its own; Django has done it."""


@signals.celeryd_after_setup.connect
def take_from_one_queue(**_: Any) -> None:
    """Take from the queue that WORKER_TAKES names, from both without one."""
    if settings.WORKER_TAKES:
        app.amqp.queues.select([settings.QUICK_QUEUE if settings.WORKER_TAKES == "quick" else settings.HEAVY_QUEUE])


@signals.worker_before_create_process.connect
def keep_memory_shared(**_: Any) -> None:
    """Keep the collector of a child from writing to everything that it shares with this process: 50 MB for each."""
    gc.freeze()


@signals.worker_ready.connect
def tell_the_launcher(**_: Any) -> None:
    """Let `manage.py up` know that tasks are taken."""
    if path := os.environ.get("WORKER_READY_FILE"):
        Path(path).touch()


@signals.worker_init.connect
def end_with_the_launcher(**_: Any) -> None:
    """See that nothing stays behind when `manage.py up` is killed: Celery ends by itself, if it waits for nobody."""
    if launcher := os.environ.get("WORKER_LAUNCHER"):  # not the parent: that may be dead by now
        grace = {"grace_s": LAUNCHER_S}
        Thread(target=end_after, args=(int(launcher),), kwargs=grace, name="launcher", daemon=True).start()


@signals.worker_ready.connect
def end_with_the_clock(sender: Any, **_: Any) -> None:
    """See that a worker ends when its clock dies, a process of its own: whoever started the worker starts both again.

    Celery would go on without it, and nothing would be swept any more.
    """
    clock = getattr(sender.controller, "beat", None)
    if clock is not None:
        Thread(target=_watch, args=(clock,), name="clock", daemon=True).start()


@signals.worker_process_shutdown.connect
def send_figures(**_: Any) -> None:
    """Send off what this child counted: it ends without Python's own way out."""
    import_module("agents.wiring").close_metrics()  # not before Django is set up


@signals.worker_shutting_down.connect
def stop_watching(**_: Any) -> None:
    _stopping.set()


def _watch(clock: Any) -> None:
    while not _stopping.wait(CLOCK_S):
        if not clock.is_alive():
            logger.error("the clock of this worker died: the worker ends, to be started again")
            os.kill(os.getpid(), signal.SIGTERM)
            return
