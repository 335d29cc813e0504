"""Celery's application. Its settings are Django's CELERY_*; its log lines are the product's own."""

import os
from pathlib import Path
from typing import Any

from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
app = Celery("workbench")
app.set_default()  # for every thread, not only the one that imports this: jobs are sent from another
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["agents"])


@signals.setup_logging.connect
def keep_our_logging(**_: Any) -> None:
    """A receiver is enough to keep Celery from setting up logging of its own; Django has done it."""


@signals.worker_ready.connect
def tell_the_launcher(**_: Any) -> None:
    """Let `manage.py up` know that tasks are taken."""
    if path := os.environ.get("WORKER_READY_FILE"):
        Path(path).touch()
