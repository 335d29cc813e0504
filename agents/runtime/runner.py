"""The one entrance to a run. Start reading here.

    opened = await runner.open(request)              may be refused: Rejected, and nothing happened
    async for emitted in runner.run(opened, cancel): every Record is stored before it comes out
        ...
    except Exception as error:                       live's, the only place that catches everything
        emitted = await runner.fail(opened, error)   the run ends in order, with a reference for the log

The runner stamps, stores and counts; agents decide. Whatever an agent leaves undone is closed here: every announced
call gets its one result, and the run its one end.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime

from agents.runtime import hooks as chains
from agents.runtime.errors import (
    AgentError,
    Rejected,
    Retryable,
    RunFenced,
    RunTimeout,
    ServerStopping,
    StorageUnavailable,
    ToolFailure,
)
from agents.runtime.events import (
    AssistantMessage,
    Delta,
    Emitted,
    Origin,
    Outcome,
    Record,
    RunFailed,
    RunFinished,
    RunStarted,
    Stamped,
    StateChanged,
    Stored,
    ToolReturned,
    ToolStatus,
    UserMessage,
)
from agents.runtime.invocation import NO_HOOKS, Agent, Counters, Hooks, Invocation, Limits, Services
from agents.runtime.metrics import NO_METRICS, Metrics
from agents.runtime.model import ToolCall
from agents.runtime.modelcall import calls_of
from agents.runtime.planning import PERSON, Stamp, check, open_calls, plan
from agents.runtime.session import (
    CancelReason,
    CancelToken,
    Opening,
    OpenRun,
    Plan,
    RunEnd,
    RunRequest,
    RunStatus,
    SessionStore,
)
from agents.runtime.state import TEMP, stored_part
from agents.runtime.tools import PermissionPolicy

logger = logging.getLogger(__name__)

APPEND_LIMIT = 64
SUMMARY_EVERY = 50
STOP_GRACE_S = 5.0  # an agent that still waits this long after the run was told to stop is torn off
LOOK_AGAIN_S = 0.1
INTERNAL = "Something went wrong on our side."


@dataclass(slots=True)
class _Going:
    """A run that is going on: what its end needs, even if it never got as far as an invocation.

    history and counters are the invocation's own. first: records of history before this one belong to earlier runs.
    """

    opened: OpenRun
    cancel: CancelToken
    agent: str
    stamp: Stamp
    history: list[Stored]
    first: int
    began: datetime
    counters: Counters = field(default_factory=Counters)
    invocation: Invocation | None = None
    looked_at: int = 0  # events there were when summary_due was last asked

    def open_calls(self) -> list[ToolCall]:
        return list(open_calls(self.history[self.first :]).values())

    def summary_due(self, records: Sequence[Stamped], end: RunEnd | None) -> bool:
        """Return whether a job should look for something to summarise: at the end, every 50 events before it, and when
        the run gave up waiting for a summary."""
        if self.invocation is None:
            return False
        early = end is None and not self.invocation.summary_owed
        if early and len(self.history) - self.looked_at < SUMMARY_EVERY:
            return False
        self.looked_at = len(self.history)
        return self.invocation.summary_due(records)

    def unfinished(self) -> tuple[AssistantMessage, ...]:
        """Return, once, what an answer holds that was torn off without its agent's doing."""
        if self.invocation is None or self.invocation.unfinished is None:
            return ()
        unfinished, self.invocation.unfinished = self.invocation.unfinished, None
        return unfinished()


class _Deadline:
    """Stops a run that is over time, and tears off an agent that goes on waiting after it was told to stop.

    inside: the run's task waits in the agent, so cancelling it cannot hit a store or a follower.
    """

    def __init__(self, cancel: CancelToken, duration_s: float | None) -> None:
        self.inside = False
        self._cancel = cancel
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._timers = [] if duration_s is None else [self._loop.call_later(duration_s, self._timeout)]
        self._torn = False
        self._stop = cancel.listen(self._told)
        if cancel.cancelled:
            self._told()

    def __enter__(self) -> "_Deadline":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        for timer in self._timers:
            timer.cancel()

    def caught(self) -> None:
        """Take a CancelledError that came out of the agent: ours, or somebody cancels the task and means a shutdown."""
        if self._torn and self._task is not None:
            self._task.uncancel()
        else:
            self._cancel.cancel(CancelReason.SHUTDOWN)

    def _timeout(self) -> None:
        self._cancel.cancel(CancelReason.TIMEOUT)

    def _told(self) -> None:
        self._timers.append(self._loop.call_later(STOP_GRACE_S, self._tear))

    def _tear(self) -> None:
        if not self.inside:  # a store or a follower is at work; look again, the agent may go on waiting afterwards
            self._timers[-1] = self._loop.call_later(LOOK_AGAIN_S, self._tear)
        elif not self._torn and self._task is not None:
            logger.warning("an agent went on waiting after its run was told to stop")
            self._torn = True
            self._task.cancel()


class Runner:
    """Opens and runs. One instance serves all runs of a process.

    agents by name; default_agent for new threads that name none. services: made per run, after it was opened.
    permission: the run's policy, besides each tool's own word. hooks: come before the agents' own.
    resolve_model: the configured name that answers a request; raises Rejected("model_unavailable"). metrics: told of
    every end of a run.
    """

    def __init__(  # noqa: PLR0913  # a constructor, all by keyword: nothing else gathers these
        self,
        *,
        agents: Mapping[str, Agent],
        default_agent: str,
        sessions: SessionStore,
        services: Callable[[RunRequest, OpenRun], Services],
        limits: Limits,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
        permission: PermissionPolicy | None = None,
        hooks: Hooks = NO_HOOKS,
        resolve_model: Callable[[RunRequest], str] = lambda request: request.model,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        if default_agent not in agents:
            raise ValueError(f'there is no agent "{default_agent}"')
        self._agents = dict(agents)
        self._default = default_agent
        self._sessions = sessions
        self._services = services
        self._limits = limits
        self._now = now
        self._new_id = new_id
        self._permission = permission
        self._hooks = hooks
        self._resolve_model = resolve_model
        self._metrics = metrics
        self._going: dict[tuple[str, int], _Going] = {}

    @property
    def agent_names(self) -> tuple[str, ...]:
        """Return the agents a thread may begin with, the default first."""
        return (self._default, *(name for name in self._agents if name != self._default))

    async def open(self, request: RunRequest) -> OpenRun:
        """Store what begins the run and return it. Raises Rejected, with nothing stored, and StorageUnavailable."""
        check(request)
        if request.agent and request.agent not in self._agents:
            raise Rejected("agent_unavailable", f'There is no agent "{request.agent}".')
        model = self._resolve_model(request)

        def planner(opening: Opening) -> Plan:
            name = request.agent or opening.session.agent or self._default
            if name not in self._agents:
                raise Rejected("agent_unavailable", f'There is no agent "{name}" any more.')
            started = RunStarted(agent=name, model=model, parent_run_id=request.parent_run_id, zone=request.zone)
            origin = Origin(
                run_id=request.run_id, invocation_id=self._new_id(), author=PERSON, branch=name, filter_key=name
            )
            return plan(
                opening, request, started=started, stamp=Stamp(origin=origin, now=self._now, new_id=self._new_id)
            )

        return await self._sessions.open_run(replace(request, agent=request.agent or self._default), planner)

    async def run(self, opened: OpenRun, cancel: CancelToken) -> AsyncIterator[Emitted]:
        """Yield the run's first records, then everything that happens, and as the last one RunFinished or RunFailed.

        A Record comes out after it is durable. Setting `cancel` ends the run soon, in order; cancelling the task does
        the same, and CancelledError is raised after the end. Raises RunFenced when another process closed the run
        (nothing more is stored), and what an agent or hook raises that is no AgentError: then call `fail`.
        """
        task = asyncio.current_task()
        cancelled_before = task.cancelling() if task else 0
        for stored in opened.records:
            yield _emitted(stored)
        going = self._begin(opened, cancel)
        try:
            async with aclosing(self._events(going, self._invocation(going))) as events:
                async for emitted in events:
                    yield emitted
            ending = self._ending(going)
        except RunFenced:
            self._forget(going)
            raise
        except AgentError as error:
            ending = self._failing(going, error)
        for emitted in await self._end(going, *ending):
            yield emitted
        if task is not None and task.cancelling() > cancelled_before:
            raise asyncio.CancelledError

    async def fail(self, opened: OpenRun, error: BaseException) -> Emitted:
        """End a run whose `run` raised, and return its RunFailed.

        Keeps the text that was being written. The message is neutral unless error is an AgentError; the reference that
        a person sees stands in the log beside the run's id. Raises RunFenced.
        """
        going = self._going.get(_key(opened)) or self._begin(opened, CancelToken())
        if isinstance(error, AgentError):
            record, end = self._failing(going, error)
        else:
            reference = self._new_id()[-12:]
            logger.error("run %s failed with reference %s", opened.request.run_id, reference)
            record = RunFailed(code="internal", message=INTERNAL, reference=reference, usage=going.counters.usage)
            end = self._run_end(going, RunStatus.FAILED, record)
        return (await self._end(going, record, end))[-1]

    def _begin(self, opened: OpenRun, cancel: CancelToken) -> _Going:
        started = opened.records[0]
        assert isinstance(started.record, RunStarted)
        name = started.record.agent
        going = self._going[_key(opened)] = _Going(
            opened=opened,
            cancel=cancel,
            agent=name,
            stamp=Stamp(origin=replace(started.origin, author=name), now=self._now, new_id=self._new_id),
            history=[*opened.history, *opened.records],
            first=len(opened.history),
            looked_at=len(opened.history),
            began=self._now(),
        )
        logger.info("run %s started in session %s with agent %s", opened.request.run_id, opened.session.id, name)
        return going

    def _invocation(self, going: _Going) -> Invocation:
        """Return the work order. Raises what the services raise, if the model is not there for example."""
        opened, origin = going.opened, going.stamp.origin
        state = dict(opened.session.state)
        for stored in opened.records:
            if isinstance(stored.record, StateChanged):
                state.update(stored.record.delta)
        state.update({key: value for key, value in opened.request.state.items() if key.startswith(TEMP)})
        going.invocation = Invocation(
            id=origin.invocation_id,
            run_id=origin.run_id,
            session=opened.session,
            services=self._services(opened.request, opened),
            limits=self._limits,
            cancel=going.cancel,
            agent_name=going.agent,
            action=opened.request.action,
            branch=origin.branch,
            filter_key=origin.filter_key,
            external_tools=opened.request.external_tools,
            permission=self._permission,
            hooks=self._hooks,
            history=going.history,
            state=state,
            run_counters=going.counters,
            summaries=dict(opened.summaries),
        )
        return going.invocation

    async def _events(self, going: _Going, invocation: Invocation) -> AsyncGenerator[Emitted, None]:
        """Yield what the agent does. Ends quietly when the run was told to stop, whether or not the agent listens."""
        origin, now, watched = going.stamp.origin, self._now, bool(self._hooks.on_event)
        events = self._agents[going.agent].run(invocation)
        with _Deadline(going.cancel, self._limits.duration_s) as deadline:
            try:
                deadline.inside = True
                async for event in events:
                    deadline.inside = False
                    if watched:
                        event = await chains.on_event(self._hooks, invocation, event)
                    if isinstance(event, Delta):
                        yield Emitted(event, None, origin, now())
                    elif going.cancel.reason is CancelReason.FENCED:
                        raise RunFenced
                    else:
                        for stored in await self._store(going, _storable(event, invocation)):
                            yield _emitted(stored)
                    deadline.inside = True
            except asyncio.CancelledError:
                deadline.caught()
            finally:
                deadline.inside = False
                if (close := getattr(events, "aclose", None)) is not None:
                    await close()

    async def _store(self, going: _Going, records: Sequence[Record], end: RunEnd | None = None) -> tuple[Stored, ...]:
        """Append to store and history, whatever happens to the task meanwhile. Raises what the ledger raises."""
        out: list[Stored] = []
        stamped = [self._stamped(going, record) for record in records]
        for at in range(0, len(stamped), APPEND_LIMIT):
            closing = end if at + APPEND_LIMIT >= len(stamped) else None
            ledger, some = going.opened.ledger, stamped[at : at + APPEND_LIMIT]
            append = asyncio.ensure_future(ledger.append(some, end=closing, summarise=going.summary_due(some, closing)))
            while not append.done():
                try:
                    await asyncio.shield(append)
                except asyncio.CancelledError:
                    if not append.cancelled():
                        going.cancel.cancel(CancelReason.SHUTDOWN)
            out += append.result()
        going.history.extend(out)
        return tuple(out)

    def _stamped(self, going: _Going, record: Record) -> Stamped:
        stamp = going.stamp
        if isinstance(record, UserMessage):
            stamp = replace(stamp, origin=replace(stamp.origin, author=PERSON))
        return stamp(record)

    def _ending(self, going: _Going) -> tuple[RunFinished | RunFailed, RunEnd]:
        """Return how a run ends whose agent came to its end. Raises RunFenced."""
        usage = going.counters.usage
        match going.cancel.reason:
            case None:
                pending = tuple(call.id for call in going.open_calls())
                finished = RunFinished(outcome=Outcome.SUCCESS, usage=usage, pending_call_ids=pending)
                return finished, self._run_end(going, RunStatus.FINISHED)
            case CancelReason.USER:
                return (
                    RunFinished(outcome=Outcome.CANCELLED, usage=usage),
                    self._run_end(going, RunStatus.CANCELLED),
                )
            case CancelReason.TIMEOUT:
                return self._failing(going, RunTimeout())
            case CancelReason.SHUTDOWN:
                return self._failing(going, ServerStopping())
            case CancelReason.FENCED:
                raise RunFenced

    def _failing(self, going: _Going, error: AgentError) -> tuple[RunFailed, RunEnd]:
        record = RunFailed(
            code=error.code,
            message=error.message,
            retryable=isinstance(error, Retryable),
            usage=going.counters.usage,
        )
        return record, self._run_end(going, RunStatus.FAILED, record)

    def _run_end(self, going: _Going, status: RunStatus, failed: RunFailed | None = None) -> RunEnd:
        counters = going.counters
        return RunEnd(
            status=status,
            usage=counters.usage,
            error_code=failed.code if failed else "",
            error_message=failed.message if failed else "",
            model_calls=counters.model_calls,
        )

    async def _end(self, going: _Going, record: RunFinished | RunFailed, end: RunEnd) -> tuple[Emitted, ...]:
        """Close what is open, store the end and return what to emit; the run is forgotten here."""
        partial = going.unfinished()
        records: list[Record] = [*partial, record]
        if end.status is not RunStatus.FINISHED:
            status = ToolStatus.CANCELLED if end.status is RunStatus.CANCELLED else ToolStatus.ERROR
            waiting = [*going.open_calls(), *calls_of(partial)]
            records = [*partial, *(self._closed(call, status) for call in waiting), record]
        try:
            emitted = tuple(_emitted(stored) for stored in await self._store(going, records, end))
        except RunFenced:
            self._forget(going)
            raise
        except StorageUnavailable as error:
            # Nothing can be stored now: whoever watches is told, the sweep closes the row once the database is back.
            failed = record if isinstance(record, RunFailed) else self._failing(going, error)[0]
            emitted = (Emitted(failed, None, going.stamp.origin, self._now()),)
        self._forget(going)
        self._tell_end(going, end)
        return emitted

    def _forget(self, going: _Going) -> None:
        self._going.pop(_key(going.opened), None)

    def _closed(self, call: ToolCall, status: ToolStatus) -> ToolReturned:
        reason = "the run was stopped" if status is ToolStatus.CANCELLED else "the run ended with an error"
        return ToolReturned(
            id=self._new_id(),
            call_id=call.id,
            name=call.name,
            content=f"{'cancelled' if status is ToolStatus.CANCELLED else 'not executed'}: {reason}",
            status=status,
            code="" if status is ToolStatus.CANCELLED else ToolFailure.RUN_ENDED,
        )

    def _tell_end(self, going: _Going, end: RunEnd) -> None:
        run_id, ended = going.opened.request.run_id, self._now()
        self._metrics.of_run(going.opened.session.id, run_id).run_ended(
            outcome=end.status, code=end.error_code, began=going.began, ended=ended, usage=end.usage
        )
        logger.info(
            "run %s ended %s: %d ms, %d model calls, %d tool rounds, %d + %d tokens",
            run_id,
            end.error_code or end.status.value,
            (ended - going.began).total_seconds() * 1000,
            end.model_calls,
            going.counters.tool_rounds,
            end.usage.prompt,
            end.usage.completion,
        )


def _storable(record: Record, invocation: Invocation) -> list[Record]:
    """Return the records to store for what an agent yielded, with its effect on the state."""
    if isinstance(record, RunStarted | RunFinished | RunFailed):
        raise TypeError(f"an agent must not yield {record.type}")
    if not isinstance(record, StateChanged):
        return [record]
    invocation.state.update(record.delta)
    kept = stored_part(record.delta)
    return [StateChanged(delta=kept)] if kept else []


def _emitted(stored: Stored) -> Emitted:
    return Emitted(stored.record, stored.position, stored.origin, stored.at)


def _key(opened: OpenRun) -> tuple[str, int]:
    return opened.session.id, opened.run_key
