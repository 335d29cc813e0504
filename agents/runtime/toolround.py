"""The tool calls of one answer, run: in order or at once, each ending in exactly one result, results in call order.

The last two gates are here: permission (the tool's own word, then the run's policy; both must allow) and the tool.
Whatever a tool raises stays inside its task and becomes a result; only a RunError ends the run, and a hook that fails.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from agents.runtime import hooks as chains
from agents.runtime.context.guard import Family, guard
from agents.runtime.errors import RunError, ToolFailed, ToolFailure
from agents.runtime.events import Event, StateChanged, ToolProgress, ToolReturned, ToolStarted, ToolStatus
from agents.runtime.interrupt import Interrupt, Interrupted
from agents.runtime.invocation import Hooks, Invocation
from agents.runtime.model import ToolCall
from agents.runtime.remembering import said_in_turn
from agents.runtime.surrogates import mended
from agents.runtime.tools import Permission, Tool, ToolContext, ToolResult, Verdict
from agents.runtime.toolset import Prepared

logger = logging.getLogger(__name__)

STOP_GRACE_S = 1.0  # a tool that does not stop within this time after cancelling is left behind
BACKOFF_S = 0.2  # before the first retry, doubled for each further one
MAX_WAITING_EVENTS = 1000
GENERAL_ERROR = "The tool failed with an unexpected error."
RETRIED = (ConnectionError, EOFError, TimeoutError)


@dataclass(slots=True)
class _Running:
    """A call that was started. began: by the run's monotonic clock, in seconds."""

    prepared: Prepared
    task: asyncio.Task[ToolResult]
    began: float


@dataclass(slots=True)
class _Done:
    result: ToolResult
    elapsed_ms: int = 0


@dataclass(slots=True)
class ToolRound:
    """One round. After `run` ended: `pending` external call ids, and `end_run` if a tool asked for the end."""

    invocation: Invocation
    hooks: Hooks
    pending: tuple[str, ...] = ()
    end_run: bool = False
    _queue: "asyncio.Queue[Event | int]" = field(default_factory=asyncio.Queue)
    _running: dict[int, _Running] = field(default_factory=dict)
    _done: dict[int, _Done] = field(default_factory=dict)
    _out: int = 0  # calls before this one have their result out
    _calls: Sequence[Prepared] = ()

    async def run(self, calls: Sequence[Prepared]) -> AsyncGenerator[Event, None]:
        """Yield ToolStarted and ToolProgress as they come, a ToolReturned per call in call order, then StateChanged.

        When the run is told to stop, running calls are cancelled and every call without a result gets a cancelled one.
        A single call can be stopped too; then the round goes on without it.
        Raises RunError from a tool, after its siblings were stopped, and what a hook raises.
        """
        self._calls = calls
        self.pending = tuple(p.call.id for p in calls if p.external)
        unlisten = self.invocation.cancel.listen_calls(self._stop_call)
        for index, prepared in enumerate(calls):
            if prepared.problem:
                self._done[index] = _Done(_failed(prepared.problem, prepared.code))
        failure: RunError | None = None
        try:
            async with aclosing(self._working()) as events:
                async for event in events:
                    yield event
        except Interrupted:
            pass
        except RunError as error:
            failure = error
        finally:
            unlisten()
            await self._stop_all()
        for index in range(self._out, len(calls)):
            done = self._done.get(index) or (None if failure else _CANCELLED)
            if done is not None and not calls[index].external:
                yield await self._returned(calls[index], done)
        if failure is not None:
            raise failure
        if changed := self._state(calls):
            yield StateChanged(delta=changed)

    async def _working(self) -> AsyncGenerator[Event, None]:
        """Yield until every call has its result out, or something ends the round early."""
        calls = self._calls
        with Interrupt(self.invocation.cancel) as interrupt:
            while True:
                while self._out < len(calls) and (calls[self._out].external or self._out in self._done):
                    index = self._out
                    self._out += 1
                    if not calls[index].external:
                        yield await self._returned(calls[index], self._done[index])
                if self._out == len(calls):
                    return
                self._start()
                item = await interrupt.wait(self._queue.get())
                if isinstance(item, int):
                    self._finish(item)
                elif not self._late(item):
                    yield item

    def _start(self) -> None:
        """Start what may run now, in call order. A call that is not safe beside others is alone, and nobody passes."""
        limit = max(1, self.invocation.limits.parallel_tools)
        for index, prepared in enumerate(self._calls):
            if index in self._done or index in self._running or prepared.tool is None:
                continue
            traits = prepared.tool.traits
            if self._running:
                others = [r.prepared.tool.traits for r in self._running.values() if r.prepared.tool]
                if len(others) >= limit or not all(t.concurrency_safe for t in (traits, *others)):
                    return
                if traits.group and any(t.group == traits.group for t in others):
                    continue
            task = asyncio.create_task(self._execute(prepared))
            task.add_done_callback(partial(self._ended, index))
            began = self.invocation.services.monotonic()
            self._running[index] = _Running(prepared=prepared, task=task, began=began)

    def _late(self, item: Event) -> bool:
        """Return whether this is progress of a call whose result is out: a tool may leave something running."""
        return isinstance(item, ToolProgress) and any(self._calls[n].call.id == item.call_id for n in self._done)

    def _ended(self, index: int, _: "asyncio.Task[ToolResult]") -> None:
        self._queue.put_nowait(index)

    def _finish(self, index: int) -> None:
        running = self._running.pop(index, None)
        if running is None:  # stopped before it began
            return
        result = _STOPPED if running.task.cancelled() else running.task.result()
        self._done[index] = _Done(result, self._took(running, result))

    def _took(self, running: _Running, result: ToolResult) -> int:
        """Tell the metrics of a call that is over and return how long it took, in milliseconds."""
        services = self.invocation.services
        elapsed_ms = round((services.monotonic() - running.began) * 1000)
        name, status = running.prepared.call.name, result.status.value
        services.metrics.tool_called(name, status=status, elapsed_ms=elapsed_ms, ended=services.now())
        return elapsed_ms

    def _stop_call(self, call_id: str) -> bool:
        """Stop one call that runs or waits for its turn; False: it is not ours, or has its result."""
        for index, prepared in enumerate(self._calls):
            if prepared.call.id == call_id and not prepared.external and index not in self._done:
                if index in self._running:
                    return self._running[index].task.cancel()
                self._done[index] = _Done(_STOPPED)
                self._queue.put_nowait(index)
                return True
        return False

    async def _stop_all(self) -> None:
        running, self._running = self._running, {}
        tasks = [r.task for r in running.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2 * STOP_GRACE_S)
        for index, r in running.items():
            if r.task.done() and not r.task.cancelled() and r.task.exception() is None:
                result = r.task.result()
                self._done[index] = _Done(result, self._took(r, result))
            else:
                self._took(r, _CANCELLED.result)

    async def _execute(self, prepared: Prepared) -> ToolResult:
        """Return the result of one call, hooks included. Raises RunError, and what a hook raises."""
        assert prepared.tool is not None and prepared.arguments is not None
        found = await chains.before_tool(self.hooks, self.invocation, prepared.call, prepared.arguments)
        result = found if isinstance(found, ToolResult) else await self._tried(prepared.tool, prepared.call, found)
        return await chains.after_tool(self.hooks, self.invocation, prepared.call, result)

    async def _tried(self, tool: Tool, call: ToolCall, arguments: Mapping[str, Any]) -> ToolResult:
        tries = 1 + (tool.traits.retries if tool.traits.read_only else 0)
        for number in range(1, tries + 1):
            task = asyncio.create_task(self._permitted(tool, call, arguments))
            if not await _bounded(task, tool.traits.timeout_s):
                return _failed(f"no answer within {tool.traits.timeout_s:g} seconds", ToolFailure.TIMEOUT)
            if task.cancelled():
                return _failed(GENERAL_ERROR, ToolFailure.UNEXPECTED)
            error = task.exception()
            if error is None:
                return task.result()
            if isinstance(error, ToolFailed):
                return _failed(error.message, error.code)
            if isinstance(error, RunError) or not isinstance(error, Exception):
                raise error
            if number < tries and isinstance(error, RETRIED):
                await asyncio.sleep(BACKOFF_S * 2 ** (number - 1))
                continue
            logger.error("tool %s failed in run %s", call.name, self.invocation.run_id, exc_info=error)
            return _failed(GENERAL_ERROR, ToolFailure.UNEXPECTED)
        raise AssertionError("the last try always returns")

    async def _permitted(self, tool: Tool, call: ToolCall, arguments: Mapping[str, Any]) -> ToolResult:
        context = self._context(call)
        for permission in self._permissions(tool, arguments, context):
            if permission.verdict is not Verdict.ALLOW:
                return _refused(call, permission)
        self._queue.put_nowait(ToolStarted(call.id, call.name))
        return await tool.call(arguments, context)

    def _permissions(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[Permission]:
        own = tool.permission(arguments, context)
        if own.verdict is Verdict.DENY or self.invocation.permission is None:
            return (own,)
        policy = self.invocation.permission(tool, arguments, context)
        return (policy, own) if policy.verdict is Verdict.DENY else (own, policy)

    def _context(self, call: ToolCall) -> ToolContext:
        invocation = self.invocation

        def progress(text: str, done: float | None, total: float | None) -> None:
            if self._queue.qsize() < MAX_WAITING_EVENTS:
                self._queue.put_nowait(ToolProgress(call.id, text, done, total))

        return ToolContext(
            owner_id=invocation.session.owner_id,
            session_id=invocation.session.id,
            run_id=invocation.run_id,
            invocation_id=invocation.id,
            call_id=call.id,
            cancel=invocation.cancel,
            artifacts=invocation.services.artifacts,
            knowledge=invocation.services.knowledge,
            recall=invocation.services.recall,
            memories=invocation.services.memories,
            zone=invocation.services.zone,
            said=partial(said_in_turn, invocation),
            skills=invocation.skills,
            workspace=invocation.services.workspace,
            citations=invocation.citable().citations,
            state=MappingProxyType(invocation.state),
            now=invocation.services.now,
            progress=progress,
        )

    async def _returned(self, prepared: Prepared, done: _Done) -> ToolReturned:
        result, tool = done.result, prepared.tool
        content = mended(result.content)
        self.end_run = self.end_run or (result.end_run and result.status is ToolStatus.OK)
        return await guard(
            ToolReturned(
                id=self.invocation.services.new_id(),
                call_id=prepared.call.id,
                name=prepared.call.name,
                content=content,
                status=result.status,
                summary=result.summary,
                data=result.data,
                artifacts=result.artifacts,
                size_bytes=len(content.encode()),
                elapsed_ms=done.elapsed_ms,
                code=result.code,
                citations=result.citations,
            ),
            family=tool.traits.family if tool else Family.GENERAL,
            limit_bytes=(tool and tool.traits.result_bytes) or self.invocation.limits.tool_result_bytes,
            artifacts=self.invocation.services.artifacts,
            run_id=self.invocation.run_id,
        )

    def _state(self, calls: Sequence[Prepared]) -> dict[str, Any]:
        """Return the changes of the calls that went well; where two write one key, the later call wins."""
        merged: dict[str, Any] = {}
        for index in range(len(calls)):
            done = self._done.get(index)
            if done is not None and done.result.status is ToolStatus.OK:
                merged.update(done.result.state)
        return merged


async def _bounded(task: "asyncio.Task[Any]", timeout_s: float) -> bool:
    """Wait for the task and return whether it is done. After timeout_s, and when we are cancelled, it is cancelled.

    asyncio.timeout would wait for ever for a tool that swallows its cancellation; such a tool is left behind.
    """
    task.add_done_callback(_retrieve)
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout_s)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=STOP_GRACE_S)
        raise
    if not done:
        task.cancel()
        await asyncio.wait({task}, timeout=STOP_GRACE_S)
    return bool(done)


def _retrieve(task: "asyncio.Task[Any]") -> None:
    """Look at the exception, so that the loop does not complain about one that nobody wanted any more."""
    if not task.cancelled():
        task.exception()


def _failed(problem: str, code: ToolFailure) -> ToolResult:
    status = ToolStatus.TIMEOUT if code is ToolFailure.TIMEOUT else ToolStatus.ERROR
    return ToolResult(content=f"Error: {problem}", status=status, code=code)


def _refused(call: ToolCall, permission: Permission) -> ToolResult:
    asked = permission.verdict is Verdict.ASK
    status = ToolStatus.APPROVAL_REQUIRED if asked else ToolStatus.DENIED
    reason = permission.reason or (
        "This needs the approval of a person, and there is no way to ask for it here. It was not done."
        if asked
        else "This call is not allowed."
    )
    content = {"status": status.value, "tool": call.name, "reason": reason}
    return ToolResult(content=json.dumps(content, ensure_ascii=False), status=status, summary=reason)


_STOPPED = ToolResult(content="cancelled: the person stopped this step", status=ToolStatus.CANCELLED)
_CANCELLED = _Done(ToolResult(content="cancelled: the run was stopped", status=ToolStatus.CANCELLED))
