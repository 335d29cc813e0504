"""What goes on in this process: runs are started here, followed, cancelled, steered and drained.

Everything in this package belongs to one event loop; `current()` gives the loop's own instance. A run is one asyncio
task in an empty context, held here until it is over; the socket that asked for it may close at any time.
"""

import asyncio
import contextvars
import hashlib
import logging
import weakref
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from agents import hints
from agents.background import sweep
from agents.live.beat import Beat
from agents.live.feed import Attachment, Feed, Sink
from agents.live.following import Following, Name, Opening
from agents.live.run import LocalRun, Watch
from agents.live.telling import Telling
from agents.runlog import RunLog
from agents.runtime.errors import Rejected, StorageUnavailable
from agents.runtime.events import UserMessage
from agents.runtime.model import FilePart
from agents.runtime.session import CancelReason, RunRequest, RunStatus
from agents.stores import calibrations, inbox, pool, runs, sessions, turns, writer
from agents.wiring import Wiring, build, close_clients

logger = logging.getLogger(__name__)

SERVE_AGAIN_S = 1.0
ID_CHARS = 128  # of a run's client name, as the table has it
# What a run may take to close itself once it was told to stop.
CLOSE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The answer to a request to run. duplicate: the run was there already, and nothing was started."""

    thread_id: str
    run_id: str
    session_id: str
    duplicate: bool = False


class Live:
    """The runs of one process. `current()` makes it; every method is for its event loop only."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.draining = False
        self.log = RunLog(wiring.redis_url)
        self.following = Following(self.log, spawn=self._spawn, on_told=self._told)
        self._telling = Telling(self._spawn)
        self._beat = Beat(self)
        self._runs: dict[int, LocalRun] = {}
        self._starting: dict[tuple[Name, str], asyncio.Task[Started]] = {}  # by run, and the message it answers
        self._doors: weakref.WeakValueDictionary[int, asyncio.Lock] = weakref.WeakValueDictionary()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._run_tasks: dict[int, asyncio.Task[None]] = {}
        self._services: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    # Lifecycle

    def begin(self) -> None:
        """Start what runs beside the runs: heartbeat and sweep, and the reader of other processes' logs."""
        self._serve("remote", self.following.remote.run)
        self._serve("beat", self._beat.run)
        self._serve("sweep", self._beat.sweep)

    def _serve(self, name: str, service: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Keep a service going: without the heartbeat every run would be lost, so a mistake in it ends one round."""

        def ended(task: asyncio.Task[None]) -> None:
            if task.cancelled() or self._services.get(name) is not task:
                return
            logger.error("live's %s broke off and is started again", name, exc_info=task.exception())
            loop.call_later(SERVE_AGAIN_S, self._serve, name, service)

        if self._closed:
            return
        loop = asyncio.get_running_loop()
        task = loop.create_task(service(), name=f"live {name}", context=contextvars.Context())
        self._services[name] = task
        task.add_done_callback(ended)

    async def drain(self, grace_s: float) -> None:
        """Take no new runs, let those that go on end within grace_s, stop the rest in order, and close everything."""
        self.draining = True
        if self._starting:  # cut off in the middle, they would be in the books and run nowhere
            await asyncio.wait(tuple(self._starting.values()), timeout=CLOSE_S)
        if self._run_tasks:
            await asyncio.wait(tuple(self._run_tasks.values()), timeout=grace_s)
        for run in tuple(self._runs.values()):
            run.token.cancel(CancelReason.SHUTDOWN)
        if self._run_tasks:
            await asyncio.wait(tuple(self._run_tasks.values()), timeout=CLOSE_S)
        for task in tuple(self._run_tasks.values()):
            task.cancel()
        if sending := self._telling.flush():
            await asyncio.wait(sending, timeout=hints.TIMEOUT_S)
        await self.log.drained(2.0)
        await self.close()

    async def close(self) -> None:
        """Stop everything at once. For tests and the end of a drain; runs that still go on become lost."""
        self.draining = self._closed = True
        self._telling.close()
        self.following.detach_all()
        # More than once: a client that is cancelled while it connects may swallow that as a time-out.
        left = {*self._services.values(), *self._starting.values(), *self._run_tasks.values(), *self._tasks}
        while left:
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=1.0)
        await self.following.remote.close()
        await self.log.close()
        await writer.close()
        await calibrations.close()
        await pool.close()
        await close_clients()
        if _instances.get(asyncio.get_running_loop()) is self:
            del _instances[asyncio.get_running_loop()]

    @property
    def runs(self) -> Mapping[int, LocalRun]:
        """The runs that go on in this process, by run key."""
        return self._runs

    async def warm_up(self) -> None:
        """Open connections and prepare statements, so that the first run need not; what is away now comes later."""
        await asyncio.gather(
            runs.running_count(owner_id=0),
            sessions.warm_up(),
            writer.current().warm_up(),
            self.log.end("workbench:none"),
            return_exceptions=True,
        )

    # Starting

    async def start(self, request: RunRequest, *, watch: Watch | None = None) -> Started:
        """Start a run that goes on whatever becomes of the caller, and return as soon as it exists.

        watch: is told each event of the run, joined as on the wire, and of the end by None.
        The same run id sent again with the same message gets the same answer. Raises Rejected, also for rate_limited
        and shutting_down, and StorageUnavailable.
        """
        name = (request.owner_id, request.thread_id, request.run_id)
        asked = (name, request.message.id if request.message else "")
        if (first := self._starting.get(asked)) is not None:
            started = await asyncio.shield(first)
            return Started(
                thread_id=started.thread_id, run_id=started.run_id, session_id=started.session_id, duplicate=True
            )
        if self.draining:
            raise Rejected("shutting_down", "The server is restarting. Try again in a moment.")
        # A task of its own: a caller who goes away in the middle would leave a run in the books that nobody executes.
        starting = asyncio.get_running_loop().create_task(self._start(request, watch), name="start")
        self._starting[asked] = starting
        starting.add_done_callback(partial(self._begun_or_not, asked))
        return await asyncio.shield(starting)

    def _begun_or_not(self, asked: tuple[Name, str], starting: "asyncio.Task[Started]") -> None:
        self._starting.pop(asked, None)
        if not starting.cancelled():
            starting.exception()  # looked at: perhaps nobody waits for it any more

    async def _start(self, request: RunRequest, watch: Watch | None) -> Started:
        # One at a time per owner, so that starts that race cannot pass the limit together.
        async with self._doors.setdefault(request.owner_id, asyncio.Lock()):
            return await self._open(request, watch)

    async def _open(self, request: RunRequest, watch: Watch | None) -> Started:
        if request.uploads:  # not stored for a run that will not be
            if found := await self._same(request):
                return found
            if await runs.running_count(owner_id=request.owner_id) >= self.wiring.runs_per_owner:
                raise sessions.too_many_runs()
        prepared = await self.wiring.prepare(request)
        try:
            opened = await self.wiring.runner.open(prepared)
        except Rejected as error:
            if error.code in ("run_conflict", "run_id_reused", "rate_limited") and (found := await self._same(request)):
                return found
            if error.code != "run_conflict" or not await self._clear_away(request):
                raise
            opened = await self.wiring.runner.open(prepared)
        name = (request.owner_id, request.thread_id, request.run_id)
        feed = Feed(name=name, run_key=opened.run_key, read=self.log.read, local=True)
        run = LocalRun(opened=opened, runner=self.wiring.runner, feed=feed, log=self.log, watch=watch)
        self._runs[opened.run_key] = run
        self.following.add(feed)
        task = asyncio.get_running_loop().create_task(
            self._execute(run), name=f"run {opened.run_key}", context=contextvars.Context()
        )
        self._run_tasks[opened.run_key] = task
        task.add_done_callback(lambda _: self._run_tasks.pop(opened.run_key, None))
        return Started(thread_id=request.thread_id, run_id=request.run_id, session_id=opened.session.id)

    async def _clear_away(self, request: RunRequest) -> bool:
        """Close a dead run that stands in a request's way, so that nobody waits for the sweep; False: none does."""
        lost = await runs.lost_run(owner_id=request.owner_id, thread_id=request.thread_id)
        if lost is None or lost.run_key in self._runs:
            return False
        return await sweep.close_lost_run(lost, self.log)

    async def _same(self, request: RunRequest) -> Started | None:
        """Return the answer to a request that came before; None: the run id is new, or was used for another message."""
        found = await runs.find_run(owner_id=request.owner_id, thread_id=request.thread_id, run_id=request.run_id)
        if found is None:
            return None
        if request.message is not None and await turns.message_id(found.run_key) != request.message.id:
            return None
        return Started(thread_id=request.thread_id, run_id=request.run_id, session_id=found.session_id, duplicate=True)

    # Running

    async def _execute(self, run: LocalRun) -> None:
        request = run.opened.request
        try:
            await run.execute(lambda: self._begun(run))
        finally:
            self._runs.pop(run.opened.run_key, None)
            self.following.ended(run.feed)
        if run.status is not None and not run.end_stored:
            self._spawn(self._close_later(run))
        self._telling.tell(request.owner_id, request.thread_id, "run_ended")
        if run.status is RunStatus.FINISHED:
            await self._run_next(request)

    async def _close_later(self, run: LocalRun) -> None:
        """Close a run whose end could not be stored as soon as the database is back: until then its conversation can
        take no message, and a heartbeat that was on its way may have made its lease long again."""
        while True:
            try:
                lost = await runs.give_up(run.opened.run_key, run.opened.epoch)
                if lost is not None:
                    await sweep.close_lost_run(lost, self.log)
                return
            except StorageUnavailable:
                await asyncio.sleep(SERVE_AGAIN_S)

    def _begun(self, run: LocalRun) -> None:
        """Let everybody who follows the thread know, here and elsewhere; called in the run's task."""
        request = run.opened.request
        self.following.began(run.feed)
        self._telling.tell(request.owner_id, request.thread_id, "run_started")

    async def _run_next(self, before: RunRequest) -> None:
        """Start the oldest message that waits for this conversation, if there is one.

        Its run id comes from the message, so that two processes that try at once start one run.
        """
        if self.draining:
            return
        waiting = await inbox.next_queued(owner_id=before.owner_id, thread_id=before.thread_id)
        if waiting is None:
            return
        message = waiting.message
        request = RunRequest(
            owner_id=before.owner_id,
            thread_id=before.thread_id,
            run_id=queued_run_id(message.id),
            agent=before.agent,
            model=before.model,
            message=message,
            render_html=before.render_html,
            origin=before.origin,
        )
        try:
            await self.start(request)
        except (Rejected, StorageUnavailable) as error:
            logger.info("a queued message goes on waiting: %s", error.code)

    # Following

    async def attach(
        self,
        *,
        owner_id: int,
        thread_id: str,
        sink: Sink,
        run_id: str | None = None,
        after: int | None = None,
        opening: Opening | None = None,
    ) -> Attachment:
        """Make a sink follow a thread; see Following.attach."""
        return await self.following.attach(
            owner_id=owner_id, thread_id=thread_id, sink=sink, run_id=run_id, after=after, opening=opening
        )

    # Stopping and steering

    async def cancel(self, *, owner_id: int, thread_id: str, run_id: str, call_id: str = "") -> bool:
        """Ask a run to stop, wherever it runs, or only one of its tool calls. False: unknown, over, or asked before.

        True for a call of a run in another process: asked, if the call still goes on there.
        """
        feed = self.following.feeds.get((owner_id, thread_id, run_id))
        local = self._runs.get(feed.run_key) if feed is not None else None
        if local is not None and call_id:
            return local.token.cancel_call(call_id)
        if local is not None:
            first = local.token.cancel(CancelReason.USER)
            if first:
                self._spawn(self._note_cancel(owner_id, thread_id, run_id))
            return first
        found = await runs.find_run(owner_id=owner_id, thread_id=thread_id, run_id=run_id)
        if found is None or found.cancel_requested:
            return False
        if call_id:
            await self.log.tell({"kind": "cancel_call", "key": str(found.run_key), "call": call_id})
            return found.status is RunStatus.RUNNING
        if not await runs.request_cancel(owner_id=owner_id, thread_id=thread_id, run_id=run_id):
            return False
        await self.log.tell({"kind": "cancel", "key": str(found.run_key)})
        return True

    async def _note_cancel(self, owner_id: int, thread_id: str, run_id: str) -> None:
        try:
            await runs.request_cancel(owner_id=owner_id, thread_id=thread_id, run_id=run_id)
        except StorageUnavailable:
            logger.info("the cancel of a run of this process is not in the books")

    async def steer(self, *, owner_id: int, thread_id: str, run_id: str, message: UserMessage, kind: str) -> None:
        """Send a message into a running run ("steer"), or keep it until the run has ended well ("queue").

        A queued message that finds no run starts one. The same message id sent again changes nothing. Raises
        Rejected: thread_not_found, invalid_input (the run to steer is over, a file is not there, the conversation has
        a message of this id); StorageUnavailable.
        """
        if message.sources or any(isinstance(part, FilePart) for part in message.parts):
            looked_up = RunRequest(
                owner_id=owner_id,
                thread_id=thread_id,
                run_id=run_id,
                message=message,
                sources=message.sources,
                sources_given=True,
            )
            message = (await self.wiring.prepare(looked_up)).message or message
        await inbox.put(owner_id=owner_id, thread_id=thread_id, message=message, kind=inbox.Kind(kind), run_id=run_id)
        self._telling.tell(owner_id, thread_id, "inbox")
        if self.following.going_on(owner_id, thread_id) is not None:
            return  # the store has told the run, or it is looked at when the run ends
        if kind == "steer":
            await self.log.tell({"kind": "steer", "owner": str(owner_id), "thread": thread_id, "run": run_id})
        elif await runs.active_run(owner_id=owner_id, thread_id=thread_id) is None:
            await self._run_next(RunRequest(owner_id=owner_id, thread_id=thread_id, run_id=run_id, render_html=True))

    def _told(self, message: Mapping[str, str]) -> None:
        """Act on what another process told; what is not for us, or not understood, is nothing to us."""
        if message.get("kind") == "cancel":
            if run := self._runs.get(int(message["key"])):
                run.token.cancel(CancelReason.USER)
        elif message.get("kind") == "cancel_call":
            if run := self._runs.get(int(message["key"])):
                run.token.cancel_call(message["call"])
        elif message.get("kind") == "steer":
            feed = self.following.feeds.get((int(message["owner"]), message["thread"], message["run"]))
            if feed is not None:
                sessions.notice_inbox(feed.run_key)

    async def check_remote(self) -> None:
        """Give up feeds of other processes whose run is over although their log does not say so."""
        await self.following.check_remote()

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def queued_run_id(message_id: str) -> str:
    """Return the id of the run that a queued message starts; at most 128 characters, as all ids have."""
    run_id = f"queued-{message_id}"
    return run_id if len(run_id) <= ID_CHARS else f"queued-{hashlib.sha256(message_id.encode()).hexdigest()}"


_instances: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Live]" = weakref.WeakKeyDictionary()


def current() -> Live:
    """Return this event loop's Live, made and begun on first use."""
    loop = asyncio.get_running_loop()
    live = _instances.get(loop)
    if live is None:
        live = install(Live(build()))
    return live


def install(live: Live) -> Live:
    """Make this the event loop's Live, and begin it. For tests that bring their own wiring."""
    _instances[asyncio.get_running_loop()] = live
    live.begin()
    return live
