"""Clients that start runs over the WebSocket and note how old each token is when it arrives."""

import asyncio
import contextlib
import json
import time
import urllib.request
import uuid
from dataclasses import dataclass, field
from typing import Any

import orjson
import websockets

CONTENT = b"TEXT_MESSAGE_CONTENT"
ENDS = (b"RUN_FINISHED", b"RUN_ERROR")


@dataclass
class Seen:
    """What one run looked like from outside. Times in milliseconds; ages: of each token on arrival."""

    ages: list[float] = field(default_factory=list)
    sent: float = 0.0  # monotonic seconds
    first_ms: float = 0.0
    ended: str = ""
    marker: str = ""


class Client:
    """One socket, signed in by token."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.replace("http", "ws", 1) + "/ws/agui/"
        self.protocols = [websockets.Subprotocol("agui.v1"), websockets.Subprotocol(f"bearer.{token}")]
        self.socket: Any = None

    async def open(self) -> "Client":
        self.socket = await websockets.connect(
            self.url, subprotocols=self.protocols, compression=None, max_size=None, ping_interval=None, open_timeout=60
        )
        return self

    async def close(self) -> None:
        with contextlib.suppress(websockets.WebSocketException):
            await self.socket.close()

    async def attach(self, thread: str) -> None:
        await self.socket.send(json.dumps({"type": "attach", "threadId": thread}))

    async def run(self, thread: str, model: str, *, html: bool = False) -> Seen:
        """Start a run in the thread and read until it ends."""
        seen = Seen(marker=uuid.uuid4().hex)
        content = f"{thread} please {seen.marker}"
        run = {
            "threadId": thread,
            "runId": uuid.uuid4().hex,
            "messages": [{"id": uuid.uuid4().hex, "role": "user", "content": content}],
            "tools": [],
            "context": [],
            "state": {},
            "forwardedProps": {"workbench": {"model": model, "render": "html" if html else "text"}},
        }
        seen.sent = time.monotonic()
        await self.socket.send(json.dumps(run))
        async for frame in self.socket:
            data = frame.encode() if isinstance(frame, str) else frame
            if CONTENT in data[:64]:
                now = time.monotonic_ns() // 1000
                if not seen.first_ms:
                    seen.first_ms = (time.monotonic() - seen.sent) * 1000
                seen.ages += [(now - int(word, 16)) / 1000 for word in orjson.loads(data)["delta"].split()]
            elif b'"rejected"' in data[:64] or any(end in data[:64] for end in ENDS):
                seen.ended = orjson.loads(data).get("code") or orjson.loads(data)["type"]
                return seen
        seen.ended = "closed"
        return seen


async def direct(port: int, model: str) -> list[float]:
    """Return the ages of tokens read straight from the model server: the harness's own floor."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "floor x"}]}).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    ages: list[float] = []
    async for line in reader:
        now = time.monotonic_ns() // 1000
        if line.startswith(b'data: {"id"') and b'"content"' in line:
            word = orjson.loads(line[6:])["choices"][0]["delta"]["content"]
            ages.append((now - int(word, 16)) / 1000)
        elif line.startswith(b"data: [DONE]"):
            break
    writer.close()
    return ages


def arrivals(port: int) -> dict[str, tuple[float, float]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/seen") as answer:
        return {k: (v[0], v[1]) for k, v in json.load(answer).items()}


def at(values: list[float], share: float) -> float:
    """Return the quantile of the values, 0 if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
