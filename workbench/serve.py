"""The web server: Daphne with backpressure, message limits, a fast way out and a graceful stop.

    python -m workbench.serve --host 127.0.0.1 --port 8000
    python -m workbench.serve --fd 3

Daphne's own send never waits: a client that reads nothing costs its whole stream in memory. Here every socket and every
streaming response registers a gate with its transport, and a send waits while the gate is shut. Frames are not
compressed; they are built here and given to the kernel at once while nothing else waits in the transport.
"""

# mypy: disable-error-code="no-untyped-call"
# daphne and autobahn have no annotations

import workbench.eventloop as eventloop  # isort: skip  # first: it chooses the loop that daphne makes

import argparse
import asyncio
import contextlib
import gc
import importlib
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import daphne.server
from daphne.endpoints import build_endpoint_description_strings
from daphne.http_protocol import WebRequest
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from django.conf import settings

from agents.protocols.agui import control
from workbench import bodies

logger = logging.getLogger(__name__)

# How much may wait between a socket and its consumer, in greatest messages and in messages, before we stop reading.
INBOX_GREATEST = 2
INBOX_MESSAGES = 256
# Close codes a server may use by its own decision: going away, restart, try again later.
SERVER_CODES = (1001, 1012, 1013)
PING_S = 25
PING_TIMEOUT_S = 30
# Between the last frame and the end of the process: close frames reach the clients.
CLOSE_WAIT_S = 0.3
INTERRUPT_GRACE_S = 2.0


class Gate:
    """What a transport calls when its buffer is full (64 KB) and when it is empty again, made something to wait for."""

    __slots__ = ("_shut",)

    def __init__(self) -> None:
        self._shut: asyncio.Future[None] | None = None

    @property
    def shut(self) -> bool:
        return self._shut is not None

    async def wait(self) -> None:
        """Return as soon as the gate is open."""
        while self._shut is not None:
            await asyncio.shield(self._shut)

    def pauseProducing(self) -> None:
        if self._shut is None:
            self._shut = asyncio.get_running_loop().create_future()

    def resumeProducing(self) -> None:
        shut, self._shut = self._shut, None
        if shut is not None and not shut.done():
            shut.set_result(None)

    # The connection is gone: who waits must not wait for ever.
    stopProducing = resumeProducing


class Socket(WebSocketProtocol):
    """One client's socket. The consumer finds it in its scope as "workbench.socket" and may use `ready`, `quick_send`
    and `drained`, all from the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self._inbox: deque[int] = deque()  # bytes of each message the consumer has not taken
        self._inbox_bytes = 0
        self._reading = True

    @property
    def ready(self) -> bool:
        """Whether `quick_send` would take a frame: the socket is open and not paused."""
        return self.state == self.STATE_OPEN and not self.gate.shut

    def quick_send(self, *payloads: bytes) -> bool:
        """Write text frames (UTF-8) now in one go, or return False if the socket is closed or paused. Never waits."""
        if self.state != self.STATE_OPEN or self.gate.shut:
            return False
        frame = text_frame(payloads[0]) if len(payloads) == 1 else b"".join(map(text_frame, payloads))
        transport: Any = self.transport
        if self.send_queue:
            for payload in payloads:
                self.sendMessage(payload, False)  # behind what autobahn still has to send
        elif transport.dataBuffer or transport._tempDataBuffer or transport.disconnecting:
            transport.write(frame)
        else:
            written = transport.writeSomeData(frame)
            if not isinstance(written, int) or written < 0:
                return False  # the connection broke; reading will tell
            if written < len(frame):
                transport.write(frame[written:])
        return True

    async def drained(self) -> None:
        """Wait while the socket is paused; returns also when it is closed."""
        await self.gate.wait()

    # Called by autobahn and daphne

    def onOpen(self) -> None:
        # The HTTP channel is still the transport's producer; left there, a full write buffer would stop *reading*.
        transport: Any = self.transport
        transport.unregisterProducer()
        transport.registerProducer(self.gate, True)
        super().onOpen()

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        if self.muted:
            return
        try:
            super().onMessage(payload, isBinary)
        except UnicodeDecodeError:  # autobahn checks it; this is for the day it does not
            self.sendClose(code=1007)
            return
        self._inbox.append(len(payload))
        self._inbox_bytes += len(payload)
        if self._reading and (
            self._inbox_bytes > INBOX_GREATEST * settings.MAX_MESSAGE_BYTES
            or self.application_queue.qsize() > INBOX_MESSAGES
        ):
            self._reading = False
            self._reader().pauseProducing()

    def sendClose(self, code: int | None = None, reason: str | None = None) -> None:
        if code in SERVER_CODES:
            # autobahn allows an application only 1000 and 3000 to 4999
            self.sendCloseFrame(code=code, reasonUtf8=(reason or "").encode(), isReply=False)
        else:
            super().sendClose(code, reason)

    def onClose(self, wasClean: bool, code: int | None, reason: str | None) -> None:
        self.gate.stopProducing()
        super().onClose(wasClean, code, reason)

    def taken(self) -> None:
        """Hear that the consumer took a message."""
        self._inbox_bytes -= self._inbox.popleft()
        if not self._reading and self.application_queue.qsize() < INBOX_MESSAGES // 2:
            self._reading = True
            self._reader().resumeProducing()

    def _reader(self) -> Any:
        return self.transport

    def serverSend(self, content: str | bytes, binary: bool = False) -> None:
        payload = content.encode() if isinstance(content, str) else content
        if binary or not self.quick_send(payload):
            super().serverSend(content, binary)


def text_frame(payload: bytes) -> bytes:
    """Return an unmasked, uncompressed WebSocket text frame: https://www.rfc-editor.org/rfc/rfc6455#section-5.2"""
    size = len(payload)
    if size < 126:
        return b"\x81%c%b" % (size, payload)
    if size < 65536:
        return b"\x81\x7e%b%b" % (size.to_bytes(2, "big"), payload)
    return b"\x81\x7f%b%b" % (size.to_bytes(8, "big"), payload)


class SocketFactory(WebSocketFactory):
    protocol = Socket

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A client whose message is too long hears so (1009); cut off without a word it would send it again and again.
        self.setProtocolOptions(failByDrop=False)


class WebServer(daphne.server.Server):
    """Daphne's server with our sockets and our way to stop.

    announce is called once nothing listens any more: word to the clients. Then drain(grace_s) is awaited: runs end.
    Then sockets are closed.
    """

    def __init__(
        self,
        application: Any,
        *,
        announce: Callable[[], None],
        drain: Callable[[float], Awaitable[None]],
        **options: Any,
    ) -> None:
        super().__init__(
            application,
            signal_handlers=False,
            websocket_max_message_size=settings.MAX_MESSAGE_BYTES,
            websocket_max_frame_size=settings.MAX_MESSAGE_BYTES,
            websocket_timeout=-1,
            ping_interval=PING_S,
            ping_timeout=PING_TIMEOUT_S,
            request_buffer_size=bodies.READ_BYTES,
            server_name="workbench",
            **options,
        )
        self.failed = False
        self._announce = announce
        self._drain = drain
        self._ports: list[Any] = []
        self._gates: dict[Any, Gate] = {}
        self._stopping: asyncio.Task[None] | None = None

    def run(self) -> None:
        # Daphne makes its factory inside run(), by this name of its module.
        setattr(daphne.server, "WebSocketFactory", SocketFactory)  # noqa: B010  # mypy: not exported
        bodies.bound(2 * settings.UPLOAD_MAX_BYTES)
        super().run()

    def listen_success(self, port: Any) -> None:
        self._ports.append(port)
        super().listen_success(port)

    def listen_error(self, failure: Any) -> None:
        logger.critical("cannot listen: %s", failure.getErrorMessage())
        self.failed = True
        self.stop()

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        if isinstance(protocol, Socket):
            scope["workbench.socket"] = protocol
        return super().create_application(protocol, scope)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        if isinstance(protocol, Socket):
            if message["type"] == "websocket.send":
                await protocol.gate.wait()
        elif message["type"] == "http.response.body" and isinstance(protocol, WebRequest):
            await self._pace(protocol, more=message.get("more_body", False))
        await super().handle_reply(protocol, message)

    async def _pace(self, request: Any, *, more: bool) -> None:
        """Make a streaming response wait for its client."""
        gate = self._gates.get(request)
        if gate is None:
            if more and request.channel is not None and request in self.connections:
                self._gates[request] = gate = Gate()
                request.registerProducer(gate, True)
            return
        await gate.wait()
        if not more and self._gates.pop(request, None) is not None and request.channel is not None:
            request.unregisterProducer()

    def protocol_disconnected(self, protocol: Any) -> None:
        gate = self._gates.pop(protocol, None)
        if gate is not None:
            gate.stopProducing()
        super().protocol_disconnected(protocol)

    def kill_all_applications(self) -> Any:
        # Daphne's own expects an application of every connection; one that has ended has none any more.
        for protocol, details in tuple(self.connections.items()):
            if "application_instance" not in details:
                del self.connections[protocol]
        return super().kill_all_applications()

    def shut_down(self, grace_s: float) -> None:
        """Stop in order: no new connections, word to the clients, runs end, close. A second call stops at once."""
        if self._stopping is not None:
            self.stop()
            return
        self._stopping = asyncio.get_running_loop().create_task(self._shut_down(grace_s))

    async def _shut_down(self, grace_s: float) -> None:
        logger.info("stopping, with %.0f s for what goes on", grace_s)
        for port in self._ports:
            port.stopListening()
        try:
            self._announce()
            await self._drain(grace_s)
        except Exception:  # the edge: whatever the drain brings, the process must end
            logger.exception("drain failed")
        try:
            for socket in self._sockets():
                socket.sendClose(code=control.CLOSE_CODES[control.Closing.SHUTDOWN])
            await asyncio.sleep(CLOSE_WAIT_S)
        finally:
            self.stop()

    def _sockets(self) -> list[Socket]:
        return [p for p in self.connections if isinstance(p, Socket) and p.state == Socket.STATE_OPEN]


def counted(application: Any) -> Any:
    """Return the ASGI application with each socket told what its consumer took, so that reading may go on."""

    async def call(scope: dict[str, Any], receive: Any, send: Any) -> None:
        socket = scope.get("workbench.socket")
        if socket is None:
            await application(scope, receive, send)
            return

        async def take() -> dict[str, Any]:
            message: dict[str, Any] = await receive()
            if message["type"] == "websocket.receive":
                socket.taken()
            return message

        await application(scope, take, send)

    return call


async def warm_up() -> None:
    """Open what the first request would otherwise wait for; what is away now is opened later."""
    live = importlib.import_module("agents.live.registry").current()
    await live.warm_up()
    # What is loaded now stays for good. Without this a full collection walks through it all, up to 80 ms in a run.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # streams make many small objects, and hardly one of them is in a circle


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m workbench.serve", description="Serve the workbench.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--fd", type=int, help="a listening socket that was inherited, instead of host and port")
    options = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    # Only now: Django's apps must find the reactor made.
    application = importlib.import_module("workbench.asgi").application
    settings = importlib.import_module("django.conf").settings
    registry = importlib.import_module("agents.live.registry")
    if options.fd is None:
        endpoints = build_endpoint_description_strings(host=options.host, port=options.port)
    else:
        endpoints = build_endpoint_description_strings(file_descriptor=options.fd)
    server = WebServer(
        counted(application),
        announce=importlib.import_module("workbench.consumers").announce_shutdown,
        drain=lambda grace_s: registry.current().drain(grace_s),
        endpoints=endpoints,
    )
    loop = eventloop.loop
    loop.add_signal_handler(signal.SIGTERM, server.shut_down, settings.SHUTDOWN_GRACE_S)
    # Somebody sits at the terminal and waits.
    loop.add_signal_handler(signal.SIGINT, server.shut_down, min(INTERRUPT_GRACE_S, settings.SHUTDOWN_GRACE_S))
    warming = loop.create_task(warm_up())
    warming.add_done_callback(_report)
    server.run()
    with contextlib.suppress(Exception):  # the process ends; nothing can be done about a pool that will not close
        importlib.import_module("django.db").connections["default"].close_pool()
    return 1 if server.failed else 0


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.warning("warm-up failed: %s", type(error).__name__)


if __name__ == "__main__":
    sys.exit(main())
