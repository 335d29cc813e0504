"""A web server of our kind with a small application of its own, as a process: for tests of workbench/serve.py.

    python -m tests.workbench.socketserver FD

Frames a client may send: "flood N SIZE" (N frames of SIZE bytes, the next message waits until they are sent), "quick N
SIZE" (the same by quick_send, says how many were taken), "size" (of the message behind it), "memory" (RSS in KiB).
GET / streams a megabyte after another for as long as the client reads.
"""

import workbench.eventloop as eventloop  # isort: skip

import signal
import sys
from pathlib import Path
from typing import Any

from workbench.serve import WebServer, counted


def memory_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await sockets(scope, receive, send)
    elif scope["type"] == "http":
        await stream(send, endless=scope["path"] == "/endless")


async def stream(send: Any, *, endless: bool) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    sent = 0
    while endless or sent < 3:
        await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
        sent += 1
        print(f"sent {sent}", flush=True)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def sockets(scope: dict[str, Any], receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    socket = scope["workbench.socket"]
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return
        text = message.get("text") or ""
        word, _, rest = text.partition(" ")
        if word == "flood":
            count, size = map(int, rest.split())
            for n in range(count):
                await send({"type": "websocket.send", "text": f"{n} ".ljust(size, "x")})
        elif word == "quick":
            count, size = map(int, rest.split())
            taken = sum(socket.quick_send(f"{n} ".ljust(size, "x").encode()) for n in range(count))
            print(f"taken {taken} ready {socket.ready}", flush=True)
            await socket.drained()
            await send({"type": "websocket.send", "text": f"taken {taken}"})
        elif word == "size":
            await send({"type": "websocket.send", "text": str(len(text))})
        elif word == "memory":
            await send({"type": "websocket.send", "text": str(memory_kib())})


async def drain(grace_s: float) -> None:
    print(f"drained {grace_s}", flush=True)


if __name__ == "__main__":
    server = WebServer(
        counted(application),
        announce=lambda: print("announced", flush=True),
        drain=drain,
        endpoints=[f"fd:fileno={sys.argv[1]}"],
    )
    eventloop.loop.add_signal_handler(signal.SIGTERM, server.shut_down, 5.0)
    eventloop.loop.call_soon(print, "up")
    server.run()
