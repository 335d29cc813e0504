"""A real OpenAI-compatible HTTP server for tests and the bench, on a thread of its own or as a process.

    with ModelServer() as server:
        server.script(Reply(steps=(*text("Hello"), *finish())))
        ...                                    # point a client at server.base_url
        server.requests[0].body["messages"]

Scripted replies are used up in order; after them (or without any) every chat request gets `server.steady`: a number of
tokens at a rate, each request on its own clock. As a process: `python -m tests.modelserver --tokens 200 --rate 40`
prints the base URL and serves until it is stopped. With --stamp each token is the sender's monotonic clock in
nanoseconds, which is one clock for all processes of a machine.
"""

import argparse
import asyncio
import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

WAIT_S = 20.0  # the longest a test waits for the server; a hang here is a failure there
WORDS = ("The ", "answer ", "comes ", "in ", "small ", "pieces, ", "one ", "after ", "the ", "other. ")


@dataclass(frozen=True, slots=True)
class Data:
    """One SSE event; a mapping is sent as JSON."""

    value: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes of the body exactly as they are."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing for a time."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Gate:
    """Nothing until the test sets the event."""

    event: threading.Event


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends in the middle of the body; reset=True: by RST, which also takes unread bytes away."""

    reset: bool = False


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing more, with the connection open until the client closes it."""


Step = Data | Raw | Pause | Gate | Cut | Hang


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer: status and headers, then the steps of its body."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """The unscripted answer: `tokens` pieces of text, `per_s` of them a second (0 = at once), usage if asked for."""

    tokens: int = 20
    per_s: float = 0.0
    stamp: bool = False


@dataclass(slots=True, kw_only=True)
class Received:
    """A request as it came. closed is set when its connection went away or the answer was complete; `broken` tells
    which: True = the client closed before the end."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    at: float
    connection: int = 0
    closed: threading.Event = field(default_factory=threading.Event)
    broken: bool = False


def chunk(delta: Mapping[str, Any], *, finish: str | None = None, index: int = 0, **extra: Any) -> Data:
    """Return one chat.completion.chunk with one choice."""
    choice = {"index": index, "delta": dict(delta), "finish_reason": finish}
    return Data({"id": "c-1", "object": "chat.completion.chunk", "model": "test", "choices": [choice], **extra})


def text(content: str) -> tuple[Step, ...]:
    """Return the content as chunks of a word each."""
    words = content.split(" ")
    return tuple(chunk({"content": word if i == 0 else f" {word}"}) for i, word in enumerate(words))


def call(arguments: str = "", *, index: int | None = 0, id: str | None = None, name: str | None = None) -> Data:
    """Return one fragment of a tool call; what is None is left out, as sloppy servers do."""
    function: dict[str, Any] = {"arguments": arguments}
    if name is not None:
        function["name"] = name
    fragment: dict[str, Any] = {"type": "function", "function": function}
    if index is not None:
        fragment["index"] = index
    if id is not None:
        fragment["id"] = id
    return chunk({"tool_calls": [fragment]})


def usage(prompt: int = 10, completion: int = 5, *, cached: int = 0, reasoning: int = 0) -> Data:
    """Return the chunk without choices that carries the usage."""
    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
    return Data({"id": "c-1", "object": "chat.completion.chunk", "choices": [], "usage": counts})


def finish(reason: str = "stop", *, counts: Data | None = None) -> tuple[Step, ...]:
    """Return the end of a stream: the finish reason, usage if given, and [DONE]."""
    return (chunk({}, finish=reason), *((counts,) if counts else ()), Data("[DONE]"))


def error(status: int, message: str = "no", *, headers: Mapping[str, str] | None = None, **fields: Any) -> Reply:
    """Return an error answer in OpenAI's shape."""
    body = json.dumps({"error": {"message": message, "type": "error", **fields}}).encode()
    return Reply(status=status, headers={"Content-Type": "application/json", **(headers or {})}, steps=(Raw(body),))


def plain(body: Any, status: int = 200) -> Reply:
    """Return an answer that is one JSON document."""
    return Reply(status=status, headers={"Content-Type": "application/json"}, steps=(Raw(json.dumps(body).encode()),))


class ModelServer:
    """The server on a thread. Methods are for the test's thread; start and stop are safe to call once each."""

    def __init__(self, *, port: int = 0, steady: Steady = Steady(), models: Iterable[Mapping[str, Any]] = ()) -> None:
        self.port = port
        self.steady = steady
        self.models = [dict(m) for m in models] or [{"id": "test", "object": "model"}]
        self.list_reply: Reply | None = None  # in place of the models
        self.requests: list[Received] = []
        self._replies: list[Reply] = []
        self._changed = threading.Condition()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="modelserver", daemon=True)

    # Lifecycle

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(WAIT_S):
            raise TimeoutError("the model server did not start")
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    # What a test says and asks

    def script(self, *replies: Reply) -> None:
        """Answer the next chat requests with these, in order."""
        with self._changed:
            self._replies.extend(replies)

    def wait_for(self, count: int) -> list[Received]:
        """Return the requests as soon as there are `count` of them. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, WAIT_S):
                raise TimeoutError(f"{len(self.requests)} requests, not {count}")
            return list(self.requests)

    @property
    def chats(self) -> list[Received]:
        """The chat requests so far."""
        return [r for r in self.requests if r.path.endswith("/chat/completions")]

    # The thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", self.port))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while (request := await _read_request(reader)) is not None:
                request.connection = writer.get_extra_info("peername")[1]
                reply = self._accept(request)
                alive = await self._answer(request, reply, reader, writer)
                request.closed.set()
                if not alive:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    def _accept(self, request: Received) -> Reply:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            if request.path.endswith("/models"):
                return self.list_reply or plain({"object": "list", "data": self.models})
            if not request.path.endswith("/chat/completions"):
                return error(404, "unknown path")
            if self._replies:
                return self._replies.pop(0)
        return Reply(steps=_steady(self.steady, request.body))

    async def _answer(
        self, request: Received, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send the reply while watching for the client to go away. Return whether the connection may be used again."""
        sending = asyncio.ensure_future(self._send(request, reply, writer))
        gone = asyncio.ensure_future(_until_gone(reader))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done() or sending.exception():
                request.broken = True
                return False
            return sending.result()
        finally:
            for task in (sending, gone):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                    await task

    async def _send(self, request: Received, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        head = [f"HTTP/1.1 {reply.status} status", *(f"{k}: {v}" for k, v in reply.headers.items())]
        writer.write("\r\n".join([*head, "Transfer-Encoding: chunked", "", ""]).encode())
        started, sent = time.monotonic(), 0
        for step in reply.steps:
            match step:
                case Data(value):
                    if value == STAMP:
                        sent += 1
                        await _pace(started + sent / self.steady.per_s if self.steady.per_s else 0.0)
                        value = chunk({"content": f"{time.monotonic_ns()} "}).value
                    line = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                    _write(writer, f"data: {line}\n\n".encode())
                    await writer.drain()
                case Raw(data):
                    _write(writer, data)
                    await writer.drain()
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Gate(event):
                    await asyncio.get_running_loop().run_in_executor(None, event.wait, WAIT_S)
                case Cut(reset):
                    await writer.drain()
                    if reset:
                        sock = writer.get_extra_info("socket")
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    writer.transport.close()  # flushes what was written, then closes without the last chunk
                    return False
                case Hang():
                    await asyncio.Event().wait()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


STAMP = "@stamp"


def _steady(steady: Steady, body: Any) -> tuple[Step, ...]:
    """Return the steps of an unscripted answer; tokens are paced against the start so that delays do not add up."""
    steps: list[Step] = [chunk({"role": "assistant", "content": ""})]
    if steady.stamp or steady.per_s:
        steps += [Data(STAMP)] * steady.tokens
    else:
        steps += [chunk({"content": WORDS[i % len(WORDS)]}) for i in range(steady.tokens)]
    asked = isinstance(body, dict) and (body.get("stream_options") or {}).get("include_usage")
    return (*steps, *finish(counts=usage(100, steady.tokens) if asked else None))


def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))


async def _pace(due: float) -> None:
    if (wait := due - time.monotonic()) > 0:
        await asyncio.sleep(wait)


async def _until_gone(reader: asyncio.StreamReader) -> None:
    # An HTTP/1.1 client sends nothing while it waits for the answer, so only its end can come; `at_eof` turns true
    # only after the buffer is read, which is empty here.
    while not reader.at_eof():
        await reader._wait_for_data("modelserver")  # type: ignore[attr-defined]  # no public way to wait unread


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    method, path, _ = head[0].split(" ", 2)
    pairs = (line.split(":", 1) for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    raw = await reader.readexactly(int(headers.get("content-length") or 0))
    body = json.loads(raw) if raw else None
    return Received(method=method, path=path, headers=headers, body=body, at=time.monotonic())


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve steady streams.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rate", type=float, default=40.0)
    parser.add_argument("--stamp", action="store_true")
    options = parser.parse_args()
    steady = Steady(tokens=options.tokens, per_s=options.rate, stamp=options.stamp)
    with ModelServer(port=options.port, steady=steady) as server, contextlib.suppress(KeyboardInterrupt):
        print(server.base_url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
