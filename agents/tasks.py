"""Celery tasks: a few lines each. What they do stands in agents/background."""

import asyncio
import logging
from typing import Any

from celery import shared_task

from agents import jobs
from agents.background import sweep as sweeping
from agents.background import work

logger = logging.getLogger(__name__)


@shared_task(name=jobs.RUN_JOB, ignore_result=True)
def run_job(*, job_id: int, **_: Any) -> None:
    if (job := jobs.claim(job_id)) is None:
        return
    try:
        jobs.done(job, work.do(job))
    except jobs.NotYet:
        jobs.put_back(job)
    except Exception as error:
        logger.exception("job %s failed", job_id)
        jobs.failed(job, type(error).__name__, str(error))


@shared_task(name=jobs.SWEEP, ignore_result=True)
def sweep(**_: Any) -> None:
    asyncio.run(sweeping.sweep_once())
