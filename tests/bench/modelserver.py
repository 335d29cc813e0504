"""A model server that costs as little as possible: OpenAI-compatible streaming on a raw asyncio protocol.

The model's name says what it answers: "bench-200x40" is 200 tokens at 40 a second, "bench-20x0" 20 tokens at once.
Every token is the microsecond it was sent at (CLOCK_MONOTONIC, hexadecimal) and a space, so that whoever receives it
on this machine knows how old it is. GET /seen answers what arrived: {marker: [monotonic seconds, shared prefix]}, the
marker being the last word of the last user message.
"""

import asyncio
import json
import re
import sys
import time
from typing import cast

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNK = '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":%s}'
PIECE = CHUNK % '[{"index":0,"delta":%s,"finish_reason":%s}]'
USAGE = CHUNK[:-1] % "[]" + ',"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}'

seen: dict[str, tuple[float, float]] = {}
last_body: dict[str, str] = {}


def event(text: str) -> bytes:
    data = b"data: " + text.encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


def token() -> bytes:
    return event(PIECE % ('{"content":"%x "}' % (time.monotonic_ns() // 1000), "null"))


def remember(body: dict[str, object]) -> None:
    """Note when a request came and which share of the one before in the same conversation it begins with."""
    messages = body["messages"]
    assert isinstance(messages, list)
    content = next(m["content"] for m in reversed(messages) if m["role"] == "user")
    text = content if isinstance(content, str) else " ".join(p.get("text", "") for p in content)
    words = text.split() or [""]
    # a title asked for the same conversation is another series of requests
    thread, whole = f"{words[0]} {messages[0]['content']}", json.dumps(messages, ensure_ascii=False)
    before = last_body.get(thread, "")
    shared = 0
    for a, b in zip(before, whole, strict=False):
        if a != b:
            break
        shared += 1
    seen[words[-1]] = (time.monotonic(), shared / len(before) if before else 1.0)
    last_body[thread] = whole


class Connection(asyncio.Protocol):
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self.buffer = b""
        self.task: asyncio.Task[None] | None = None

    def connection_lost(self, error: Exception | None) -> None:
        if self.task:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = re.search(rb"content-length: *(\d+)", head, re.I)
        size = int(length[1]) if length else 0
        if len(rest) < size:
            return
        self.buffer = rest[size:]
        self.answer(head, rest[:size])

    def answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET /seen"):
            text = json.dumps(seen).encode()
        elif head.startswith(b"GET"):
            text = b'{"object":"list","data":[]}'
        else:
            request = json.loads(body)
            remember(request)
            tokens, rate = (int(number) for number in re.findall(r"\d+", request["model"]))
            if most := request.get("max_tokens") or request.get("max_completion_tokens"):
                tokens, rate = min(tokens, most, 5), 0  # a title: short, and not what is measured
            self.task = asyncio.create_task(self.stream(tokens, rate))
            return
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text)
        )

    async def stream(self, tokens: int, rate: float) -> None:
        loop = asyncio.get_running_loop()
        write = self.transport.write
        write(HEAD)
        start = loop.time()
        for n in range(tokens):
            if rate:
                await asyncio.sleep(max(0.0, start + n / rate - loop.time()))
            write(token())
        write(event(PIECE % ("{}", '"stop"')) + event(USAGE % (100, tokens, 100 + tokens)))
        write(event("[DONE]") + b"0\r\n\r\n")


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", port, backlog=1000)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(int(sys.argv[1])))
