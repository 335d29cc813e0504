"""AG-UI over WebSocket: a door, nothing else. docs/protocol.md describes the frames.

Frames are received by a pump of this file's own and not through Channels' dispatch, which costs more than all the
rest. The runs are `agents.live`'s; when a socket goes, they go on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, assert_never

from django.conf import settings

from agents.live import registry
from agents.live.feed import Attachment
from agents.protocols.agui import control, decode, history, runinput
from agents.protocols.agui.control import CLOSE_CODES, SUBPROTOCOL, Closing
from agents.protocols.agui.decode import (
    AttachFrame,
    CancelFrame,
    ClientFrame,
    DetachFrame,
    PingFrame,
    RunFrame,
    SteerFrame,
)
from agents.runtime.errors import AgentError, Rejected, RunError, StorageUnavailable
from agents.runtime.session import RunRequest
from agents.stores import sessions
from workbench import access, hearing
from workbench.access import Identity, Verb
from workbench.limits import OwnerLimits
from workbench.middleware import new_reference
from workbench.sinks import SocketSink
from workbench.version import version

logger = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

LARGE_BYTES = 256 * 1024  # decoded off the loop from here on
BAD_FRAMES = 20  # unreadable ones, one after the other, then the socket is closed
EXCESS_FRAMES = 1000  # so many more over the rate than within it, then the socket is closed
LAST_WORD_S = 2.0
TRUST_S = 60.0  # how long a signed-in socket is believed without looking again

_limits: OwnerLimits | None = None
_open: set["Connection"] = set()


async def agui(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """ASGI application for one WebSocket. scope["url_route"]["kwargs"]["agent"]: which agent new threads get."""
    if (await receive())["type"] != "websocket.connect":
        return
    subprotocol = SUBPROTOCOL if SUBPROTOCOL in scope.get("subprotocols", ()) else None
    try:
        who = await access.of_socket(scope)
    except access.Forbidden:
        await send({"type": "websocket.close", "code": CLOSE_CODES[Closing.AUTH]})
        return
    except access.Unauthorized:
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
        await _close(send, Closing.AUTH)
        return
    except StorageUnavailable:
        logger.warning("a socket was sent away: the database is away")
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
        await _close(send, Closing.SHUTDOWN, retry_after_ms=1000)
        return
    await send({"type": "websocket.accept", "subprotocol": subprotocol})
    limits = _owner_limits()
    if not limits.enter(who.owner_id):
        await _close(send, Closing.OVERLOAD)
        return
    try:
        await Connection(scope, receive, send, who).run()
    finally:
        limits.leave(who.owner_id)


async def nothing_here(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """ASGI application for any other WebSocket address: refused with 403."""
    await receive()
    await send({"type": "websocket.close"})


def announce_shutdown() -> None:
    """Tell every open socket of this process that the server goes; the runs go on until it does. Never waits."""
    for connection in tuple(_open):
        connection.sink.post(control.closing(Closing.SHUTDOWN, retry_after_ms=1000))


class Connection:
    """One open socket: its owner, and the threads it follows."""

    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send, who: Identity) -> None:
        self.sink = SocketSink(send, scope.get("workbench.socket"))
        self._scope = scope
        self._receive = receive
        self._send = send
        self._who = who
        self._agent = scope.get("url_route", {}).get("kwargs", {}).get("agent", "")
        self._followed: dict[str, Attachment] = {}
        self._now = asyncio.get_running_loop().time
        self._trusted_until = self._now() + TRUST_S
        self._looking: asyncio.TimerHandle | None = None
        self._look: asyncio.Task[None] | None = None
        self.sink.on_doubt = self._doubt
        self._dismissed = False
        self._bad = 0
        self._excess = 0

    async def run(self) -> None:
        """Serve the socket until it closes."""
        _open.add(self)
        hearing.current().join(self._who.owner_id, self.sink)
        self._look_later()
        try:
            limits = {"frameBytes": settings.MAX_MESSAGE_BYTES, "framesPerSecond": settings.FRAMES_PER_SECOND}
            await self.sink.send(control.hello(version=version(), limits=limits))
            while (reason := await self._next()) is None:
                pass
            if reason != "disconnect":
                await _close(self._send, Closing(reason))
        finally:
            if self._looking is not None:
                self._looking.cancel()
            if self._look is not None:
                self._look.cancel()
            self._go_quiet()

    def _go_quiet(self) -> None:
        """Send nothing any more. Safe to call twice."""
        _open.discard(self)
        self.sink.close()
        for attachment in tuple(self._followed.values()):
            attachment.detach()
        hearing.current().leave(self._who.owner_id, self.sink)

    # Frames

    async def _next(self) -> str | None:
        """Serve one frame; return why the socket ends, if it does."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect" or self._dismissed:
            return "disconnect"
        if not _owner_limits().take(self._who.owner_id):
            self._excess += 1
            if self._excess > EXCESS_FRAMES:
                return Closing.OVERLOAD.value
            await self._reject(Rejected("rate_limited", "Too many frames in a second."))
            return None
        self._excess = max(0, self._excess - 1)
        try:
            frame, request = await self._read(message)
        except _RejectedRun as error:
            await self._reject(error)
            return None
        except Rejected as error:
            self._bad += 1
            await self._refuse(error)
            return Closing.PROTOCOL.value if self._bad >= BAD_FRAMES else None
        self._bad = 0
        if not isinstance(frame, PingFrame) and not await self._still_welcome():
            return Closing.AUTH.value
        await self._guarded(frame, request)
        return None

    async def _read(self, message: dict[str, Any]) -> tuple[ClientFrame, RunRequest | None]:
        data: bytes | str | None = message.get("text")
        if data is None:
            data = message.get("bytes") or b""
        if len(data) > LARGE_BYTES:
            return await asyncio.to_thread(self._decode, data)
        return self._decode(data)

    def _decode(self, data: bytes | str) -> tuple[ClientFrame, RunRequest | None]:
        frame = decode.frame(data)
        if not isinstance(frame, RunFrame):
            return frame, None
        try:
            return frame, runinput.run_input(
                frame.input, owner_id=self._who.owner_id, agent=self._agent, origin=self._who.origin
            )
        except Rejected as error:
            raise _RejectedRun(error, frame) from error

    async def _guarded(self, frame: ClientFrame, request: RunRequest | None) -> None:
        """Serve a frame and answer for what goes wrong with it."""
        try:
            await self._serve(frame, request)
        except (Rejected, RunError) as error:
            await self._reject(error, frame)
        except Exception:  # the edge
            reference = new_reference()
            logger.exception("a frame failed: kind=%s reference=%s", type(frame).__name__, reference)
            await self._reject(Rejected("internal", f"Something went wrong here. Reference: {reference}"), frame)

    async def _serve(self, frame: ClientFrame, request: RunRequest | None) -> None:
        if not access.may(self._who, _VERBS.get(type(frame), Verb.READ)):
            raise Rejected("forbidden", "This token may only read.")
        match frame:
            case RunFrame():
                assert request is not None
                await self._run(frame, request)
            case AttachFrame():
                await self._attach(frame)
            case DetachFrame():
                if attachment := self._followed.pop(frame.thread_id, None):
                    attachment.detach()
                await self._accept(frame, frame.thread_id)
            case CancelFrame():
                if not await registry.current().cancel(
                    owner_id=self._who.owner_id,
                    thread_id=frame.thread_id,
                    run_id=frame.run_id,
                    call_id=frame.call_id,
                ):
                    raise Rejected(
                        "thread_not_found", "There is no such run or call, it is over, or it was told to stop before."
                    )
                await self._accept(frame, frame.thread_id, run_id=frame.run_id)
            case SteerFrame():
                await registry.current().steer(
                    owner_id=self._who.owner_id,
                    thread_id=frame.thread_id,
                    run_id=frame.run_id,
                    message=frame.message,
                    kind=frame.mode,
                )
                await self._accept(frame, frame.thread_id, run_id=frame.run_id)
            case PingFrame():
                await self.sink.send(control.pong(request_id=frame.request_id))
            case _:
                assert_never(frame)

    async def _run(self, frame: RunFrame, request: RunRequest) -> None:
        started = await registry.current().start(request)
        thread_id, run_id = started.thread_id, started.run_id

        async def accept(_: Attachment | None = None) -> None:
            await self._accept(frame, thread_id, run_id=run_id, duplicate=started.duplicate)

        if (following := self._followed.get(thread_id)) and not following.detached:
            await accept()  # the attachment follows the thread's next run by itself
            return
        self._followed[thread_id] = await registry.current().attach(
            owner_id=self._who.owner_id, thread_id=thread_id, sink=self.sink, run_id=run_id, after=0, opening=accept
        )

    async def _attach(self, frame: AttachFrame) -> None:
        async def opening(attachment: Attachment) -> None:
            shown = await self._history(frame, attachment)
            await self.sink.send(
                control.attached(
                    thread_id=frame.thread_id,
                    run_id=attachment.run_id,
                    mode=attachment.mode,
                    request_id=frame.request_id,
                )
            )
            for data in shown:
                await self.sink.send(data)

        if old := self._followed.pop(frame.thread_id, None):
            old.detach()
        self._followed[frame.thread_id] = await registry.current().attach(
            owner_id=self._who.owner_id,
            thread_id=frame.thread_id,
            sink=self.sink,
            run_id=frame.run_id,
            after=frame.after,
            opening=opening,
        )

    async def _history(self, frame: AttachFrame, attachment: Attachment) -> list[bytes]:
        """Return the closed run that comes first, for a client that has nothing. Raises Rejected(thread_not_found)."""
        limit = 1 if frame.after is not None else decode.HISTORY_MESSAGES
        if frame.after is not None and attachment.going:
            return []
        found = await sessions.history(self._who.owner_id, frame.thread_id, limit=limit)
        if frame.after is not None:
            return []
        # Runs whose frames this attachment will send are left out: a client would hold their text twice.
        stored = [item for item in found.stored if item.origin.run_id not in attachment.coming]
        return history.snapshot_run(
            frame.thread_id, f"history-{new_reference()}", stored, found.truncated, found.session.state
        )

    # Answers

    async def _accept(self, frame: ClientFrame, thread_id: str, *, run_id: str = "", duplicate: bool = False) -> None:
        await self.sink.send(
            control.accepted(
                what=_NAMES[type(frame)],
                thread_id=thread_id,
                run_id=run_id,
                request_id=frame.request_id,
                duplicate=duplicate,
            )
        )

    async def _reject(self, error: AgentError, frame: ClientFrame | None = None) -> None:
        if isinstance(error, _RejectedRun):
            frame = error.frame
        await self.sink.send(
            control.rejected(
                code=error.code,
                message=error.message,
                what=_NAMES[type(frame)] if frame else "",
                request_id=frame.request_id if frame else "",
                thread_id=_thread_id(frame),
            )
        )

    async def _refuse(self, error: Rejected) -> None:
        """Answer a message that is no frame, naming what could be read of it."""
        named = error if isinstance(error, decode.RejectedFrame) else None
        await self.sink.send(
            control.rejected(
                code=error.code,
                message=error.message,
                what=named.what if named else "",
                request_id=named.request_id if named else "",
                thread_id=named.thread_id if named else "",
            )
        )

    # Beside the frames

    def _look_later(self) -> None:
        """Look again in a minute: a socket may send nothing and yet hear everything."""

        def look() -> None:
            self._look = asyncio.get_running_loop().create_task(self._dismiss_unwelcome())

        self._looking = asyncio.get_running_loop().call_later(TRUST_S, look)

    def _doubt(self) -> None:
        """Look again now: this person has just signed out somewhere."""
        self._trusted_until = 0.0
        if self._looking is not None:
            self._looking.cancel()
        self._look = asyncio.get_running_loop().create_task(self._dismiss_unwelcome())

    async def _dismiss_unwelcome(self) -> None:
        if await self._still_welcome():
            self._look_later()
            return
        self._dismissed = True
        self._go_quiet()
        await _close(self._send, Closing.AUTH)

    async def _still_welcome(self) -> bool:
        """Look again, once a minute at most, whether this socket's session or token is still good."""
        if self._now() < self._trusted_until:
            return True
        try:
            who = await access.of_socket(self._scope)
        except (access.Unauthorized, access.Forbidden):
            return False
        except StorageUnavailable:
            return True  # asked again with the next frame; until then there is nothing to be read anyway
        self._trusted_until = self._now() + TRUST_S
        return who == self._who


class _RejectedRun(Rejected):
    """The input of a run frame cannot become a run."""

    def __init__(self, error: Rejected, frame: RunFrame) -> None:
        super().__init__(error.code, error.message)
        self.frame = frame


_NAMES: dict[type[Any], str] = {
    RunFrame: "run",
    CancelFrame: "cancel",
    AttachFrame: "attach",
    DetachFrame: "detach",
    SteerFrame: "steer",
    PingFrame: "ping",
}
_VERBS: dict[type[Any], Verb] = {RunFrame: Verb.RUN, CancelFrame: Verb.RUN, SteerFrame: Verb.RUN}


def _thread_id(frame: ClientFrame | None) -> str:
    if isinstance(frame, RunFrame):
        return decode.thread_named(frame.input)
    return getattr(frame, "thread_id", "")


def _owner_limits() -> OwnerLimits:
    global _limits
    if _limits is None:
        _limits = OwnerLimits(
            sockets=settings.SOCKETS_PER_OWNER,
            frames_per_second=settings.FRAMES_PER_SECOND,
            now=asyncio.get_running_loop().time,
        )
    return _limits


async def _close(send: Send, reason: Closing, *, retry_after_ms: int = 0) -> None:
    try:
        async with asyncio.timeout(LAST_WORD_S):  # a client that does not read must go all the same
            text = control.closing(reason, retry_after_ms=retry_after_ms).decode()
            await send({"type": "websocket.send", "text": text})
    except TimeoutError:
        pass
    await send({"type": "websocket.close", "code": CLOSE_CODES[reason], "reason": reason.value})
