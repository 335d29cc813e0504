"""One run going on in this process: events in, numbered frames out.

The task that executes it is one of the three places where any exception is caught: whatever an agent does, its run ends
with exactly one last event.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from agents.live.coalesce import Coalescer
from agents.live.feed import Feed
from agents.protocols.agui.encode import RunEncoder
from agents.runlog import RunLog, Writer
from agents.runtime import logcontext
from agents.runtime.errors import RunError, RunFenced, StorageUnavailable
from agents.runtime.events import Emitted, Outcome, RunFailed, RunFinished
from agents.runtime.runner import Runner
from agents.runtime.session import Action, CancelReason, CancelToken, OpenRun, RunStatus

logger = logging.getLogger(__name__)

# A model that never makes us wait must not own the loop.
BREATHE_EVERY = 64

Watch = Callable[[Emitted | None], None]


class LocalRun:
    """A run of this process. Its task calls `execute` once; everybody else only follows the feed and sets the token."""

    def __init__(self, *, opened: OpenRun, runner: Runner, feed: Feed, log: RunLog, watch: Watch | None = None) -> None:
        request = opened.request
        self.opened = opened
        self.feed = feed
        self.token = CancelToken()
        self.status: RunStatus | None = None  # None: still running, or fenced
        self.end_stored = False
        self._watch = watch or _nobody
        self._runner = runner
        self._log = log
        self._encoder = RunEncoder(
            thread_id=request.thread_id,
            run_id=request.run_id,
            render_html=request.render_html,
            parent_run_id=request.parent_run_id,
            baseline=opened.history if request.action in (Action.EDIT, Action.RETRY) else None,
            state=opened.session.state,
        )
        self._writer = Writer(stream=feed.stream, epoch=opened.epoch, source=feed, on_fenced=self.fence)

    def fence(self) -> None:
        """Another process closed this run: stop without a word."""
        if self.token.cancel(CancelReason.FENCED):
            logger.warning("run %s was closed by another process", self.opened.run_key)

    async def execute(self, begin: Callable[[], None]) -> None:
        """Run to the end. begin is called in the task, before the first frame. Never raises but for cancellation."""
        request = self.opened.request
        logcontext.run_id.set(request.run_id)
        logcontext.session_id.set(self.opened.session.id)
        self._coalescer = Coalescer(self._send)
        begin()
        try:
            await self._events()
        except RunFenced:
            self.fence()
        except Exception as error:  # the live task: one of the three places
            await self._fail(error)
        finally:
            self._coalescer.flush()
            if self.status is None:
                self.feed.break_off()
            self._watch(None)

    async def _events(self) -> None:
        count = 0
        opening = len(self.opened.records)
        take = self._coalescer.take
        async for emitted in self._runner.run(self.opened, self.token):
            take(emitted)
            count += 1
            if count == opening:
                self._publish(self._encoder.begin())
            if count % BREATHE_EVERY == 0:
                await asyncio.sleep(0)

    def _send(self, emitted: Emitted) -> None:
        """Number the event's frames and hand them to everyone at once; the log gets them in the next batch."""
        self._publish(self._encoder.encode(emitted))
        self._watch(emitted)
        event = emitted.event
        if isinstance(event, RunFinished):
            self.status = RunStatus.FINISHED if event.outcome is Outcome.SUCCESS else RunStatus.CANCELLED
        elif isinstance(event, RunFailed):
            self.status = RunStatus.FAILED
        if self.status is not None:
            self.end_stored = emitted.position is not None
            # In one step with its last frame: what the log gets next must say that it is the last.
            self.feed.end()

    def _publish(self, frames: list[tuple[int, bytes]]) -> None:
        if frames:
            self.feed.publish([data for _, data in frames])
            self._log.dirty(self._writer)

    async def _fail(self, error: Exception) -> None:
        """End the run with an error, in the store if it answers, on the wire in any case."""
        if self.status is not None:
            logger.exception("run %s failed after its end", self.opened.run_key)
            return
        try:
            emitted = await self._runner.fail(self.opened, error)
            if isinstance(emitted.event, RunFailed):
                logcontext.reference.set(emitted.event.reference)
            if not isinstance(error, RunError):
                logger.error("run %s failed", self.opened.run_key, exc_info=error)
            self._coalescer.take(emitted)
        except RunFenced:
            self.fence()
        except StorageUnavailable as away:
            self._coalescer.take(self._unstored(away))

    def _unstored(self, error: StorageUnavailable) -> Emitted:
        failed = RunFailed(code=error.code, message=error.message, retryable=True)
        origin = self.opened.records[0].origin
        return Emitted(failed, None, origin, datetime.now(UTC))


def _nobody(emitted: Emitted | None) -> None:
    """Watch a run that nobody watches."""
