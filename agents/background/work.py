"""Which function does which kind of job."""

import asyncio

from agents import jobs
from agents.background import embed, read, remember, review, summarize, title


class UnknownJob(LookupError):
    """A newer version planted this job; it waits for a newer worker."""


def do(job: jobs.Claim) -> str:
    """Do one job in this thread; whatever it raises means that it was not done. Safe to do twice.

    Return a code of what came of it, "" where there is only one.
    """
    match job.kind:
        case jobs.TITLE:
            asyncio.run(title.run(job))
        case jobs.READ:
            asyncio.run(read.run(job))
        case jobs.EMBED:
            embed.run(job)
        case jobs.SUMMARY:
            return asyncio.run(summarize.run(job))
        case jobs.MEMORY:
            return asyncio.run(remember.run(job))
        case jobs.REVIEW:
            return asyncio.run(review.run(job))
        case _:
            raise UnknownJob(job.kind)
    return ""
