"""Where a follower's frames go: a WebSocket, or the body of an SSE response. Implements agents.live.feed.Sink."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

from agents.protocols.agui import control
from agents.protocols.agui.encode import is_terminal

LATE_FRAMES = 200  # control frames that wait for a paused socket; hints beyond that are dropped
HEARTBEAT_S = 15.0


class QuickSocket(Protocol):
    """What workbench.serve puts into a socket's scope."""

    def quick_send(self, *payloads: bytes) -> bool: ...


class SocketSink:
    """One WebSocket. Frames keep their order, whichever way they go out.

    asgi_send: the ASGI way, which waits while the socket is paused. socket: the server's fast way; None = another
    server, and everything goes the ASGI way.
    """

    def __init__(self, asgi_send: Callable[[dict[str, Any]], Awaitable[None]], socket: QuickSocket | None) -> None:
        self.closed = False
        self.on_doubt: Callable[[], None] | None = None
        self._asgi_send = asgi_send
        self._socket = socket
        self._lock = asyncio.Lock()
        self._late: deque[bytes] = deque()  # said by methods that may not wait
        self._flusher: asyncio.Task[None] | None = None

    def try_send(self, *frames: bytes) -> bool:
        """Write the frames now if that overtakes nothing and needs no waiting."""
        if self._socket is None or self.closed or self._late or self._lock.locked():
            return False
        return self._socket.quick_send(*frames)

    async def send(self, data: bytes) -> None:
        """Send the frame, waiting while the socket is paused. Does nothing once the socket is closed."""
        async with self._lock:
            while self._late and not self.closed:
                await self._write(self._late.popleft())
            await self._write(data)

    def post(self, *frames: bytes) -> None:
        """Send control frames from where nothing may wait, before every frame that comes after them."""
        if not self.try_send(*frames) and not self.closed:
            self._late += frames
            if self._flusher is None or self._flusher.done():
                self._flusher = asyncio.get_running_loop().create_task(self._flush())

    def hint(self, *frames: bytes) -> None:
        """Send control frames that may get lost."""
        if len(self._late) < LATE_FRAMES:
            self.post(*frames)

    def doubt(self) -> None:
        if self.on_doubt is not None and not self.closed:
            self.on_doubt()

    def resync(self, thread_id: str, run_id: str) -> None:
        self.post(control.resync(thread_id=thread_id, run_id=run_id))

    def run_started(self, thread_id: str, run_id: str) -> None:
        self.post(control.attached(thread_id=thread_id, run_id=run_id, mode="replay"))

    def close(self) -> None:
        """Note that the socket is gone: nothing is sent any more."""
        self.closed = True
        self._late.clear()
        if self._flusher is not None:
            self._flusher.cancel()

    async def _flush(self) -> None:
        async with self._lock:
            while self._late and not self.closed:
                await self._write(self._late.popleft())

    async def _write(self, data: bytes) -> None:
        if self.closed or (self._socket is not None and self._socket.quick_send(data)):
            return
        await self._asgi_send({"type": "websocket.send", "text": data.decode()})


class StreamSink:
    """The body of one SSE response: one run, from one seq to its end.

    `send` waits until the response has taken the frame, so a client that reads slowly costs one frame.
    """

    def __init__(self) -> None:
        self.lost = False  # frames are missing that cannot be had any more
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=64)

    def try_send(self, *frames: bytes) -> bool:
        if self._queue.qsize() + len(frames) > self._queue.maxsize:
            return False
        for data in frames:
            self._queue.put_nowait(data)
        return True

    async def send(self, data: bytes) -> None:
        await self._queue.put(data)

    def resync(self, thread_id: str, run_id: str) -> None:
        """Frames are missing: the response ends without a terminal event, which is how SSE says "cut off"."""
        self.lost = True
        if not self._queue.full():
            self._queue.put_nowait(None)

    def run_started(self, thread_id: str, run_id: str) -> None:
        """Nothing: a response is about one run, and the frames of a later one come after its end."""

    async def body(self) -> AsyncIterator[bytes]:
        """Yield SSE frames until the run's terminal event; a comment when nothing came for 15 seconds.

        Raises ConnectionError when frames are missing: the server then breaks the response off.
        """
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    data = await self._queue.get()
            except TimeoutError:
                yield b": still here\n\n"
                continue
            if data is None or (self.lost and self._queue.empty()):
                raise ConnectionError("the run's log no longer has the next frame")
            yield b"data: %b\n\n" % data
            if is_terminal(data):
                return
