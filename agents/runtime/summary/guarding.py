"""Hooks of others: whatever they do, a summary is made, unless they are to abort it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from agents.runtime.summary.asking import SummaryFailed
from agents.runtime.summary.report import Reason, Report

logger = logging.getLogger(__name__)
T = TypeVar("T")


async def guarded(hook: Awaitable[T], abort: bool) -> T | None:
    """Return what the hook returns, None if it fails. Raises SummaryFailed (hook_error) instead if it is to abort."""
    # gather gives the exception back as a value, whatever it is
    (found,) = await asyncio.gather(hook, return_exceptions=True)
    if isinstance(found, Exception):
        if abort:
            raise SummaryFailed(Reason.HOOK_ERROR, f"A hook failed: {type(found).__name__}.") from found
        logger.error("a hook of a summary failed", exc_info=found)
        return None
    if isinstance(found, BaseException):
        raise found
    return found


async def told(report: Report, hear: Callable[[Report], None] | None) -> None:
    """Give the report to whoever wants it; what they do with it never fails a making."""
    if hear is None:
        return

    async def tell() -> None:
        hear(report)

    await guarded(tell(), False)
