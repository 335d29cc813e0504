"""Which function does which kind of job."""

import asyncio
import inspect

from agents import jobs
from agents.background import embed, read, title


class UnknownJob(LookupError):
    """A newer version planted this job; it waits for a newer worker."""


def do(job: jobs.Claim) -> None:
    """Do one job in this thread; whatever it raises means that it was not done. Safe to do twice."""
    match job.kind:
        case jobs.TITLE:
            result = title.run(job)
        case jobs.READ:
            result = read.run(job)
        case jobs.EMBED:
            embed.run(job)
            return
        case _:
            raise UnknownJob(job.kind)
    if inspect.iscoroutine(result):
        asyncio.run(result)
