"""A client of the WebSocket door, as short as a test needs it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import orjson
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.test import Client

from workbench import tokens
from workbench.asgi import application

PATIENCE_S = 15.0


class Wire(WebsocketCommunicator):  # type: ignore[misc]  # Channels has no types
    """Channels' own, without its patch that keeps database connections open: they would all be used up."""

    send_input = ApplicationCommunicator.send_input
    receive_output = ApplicationCommunicator.receive_output


def question(words: str = "Hello?", *, thread: str = "t", run: str = "", **more: Any) -> dict[str, Any]:
    """Return a RunAgentInput."""
    run = run or f"r-{uuid4().hex[:8]}"
    messages = [{"id": f"u-{run}", "role": "user", "content": words}]
    return {"threadId": thread, "runId": run, "messages": messages, **more}


async def token_of(user: Any, scope: str = "run") -> str:
    make = database_sync_to_async(tokens.make_token, thread_sensitive=False)
    return (await make(owner_id=user.pk, name="test", scope=scope))[1]


async def cookie_of(user: Any) -> str:
    def sign_in() -> str:
        client = Client()
        client.force_login(user)
        return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"

    return await sync_to_async(sign_in)()


class Door:
    """One open socket: frames in and out, kept in order."""

    def __init__(self, communicator: Wire) -> None:
        self.wire = communicator
        self.frames: list[dict[str, Any]] = []
        self.raw: list[bytes] = []

    async def say(self, **frame: Any) -> None:
        await self.wire.send_to(text_data=orjson.dumps(frame).decode())

    async def hear(self) -> dict[str, Any]:
        """Return the next frame."""
        text = await self.wire.receive_from(timeout=PATIENCE_S)
        self.raw.append(text.encode())
        self.frames.append(orjson.loads(text))
        return self.frames[-1]

    async def until(self, *kinds: str) -> dict[str, Any]:
        """Return the next frame of one of these types; what comes before it is kept in `frames`."""
        while (frame := await self.hear())["type"] not in kinds:
            pass
        return frame

    async def run(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """Ask, and return the run's events."""
        await self.say(type="run", input=asked)
        await self.until("RUN_FINISHED", "RUN_ERROR")
        return self.events(asked["runId"])

    def events(self, run_id: str) -> list[dict[str, Any]]:
        return [f for f in self.frames if f["type"].isupper() and f["metadata"]["workbench"]["runId"] == run_id]

    def raw_events(self, run_id: str) -> list[bytes]:
        return [
            raw
            for raw, f in zip(self.raw, self.frames, strict=True)
            if f["type"].isupper() and f["metadata"]["workbench"]["runId"] == run_id
        ]

    async def closed(self) -> int:
        """Return the code the server closes with; frames before that are kept."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                message = await self.wire.receive_output(timeout=PATIENCE_S)
                if message["type"] == "websocket.close":
                    return int(message["code"])
                self.frames.append(orjson.loads(message["text"]))


def knock(
    *, token: str = "", cookie: str = "", origin: str = "", path: str = "/ws/agui/", protocols: tuple[str, ...] = ()
) -> Wire:
    """Return a socket that is not connected yet."""
    headers = [(b"host", b"testserver")]
    if token:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    if cookie:
        headers.append((b"cookie", cookie.encode()))
    if origin:
        headers.append((b"origin", origin.encode()))
    return Wire(application, path, headers=headers, subprotocols=list(protocols))


@asynccontextmanager
async def door(**how: Any) -> AsyncIterator[Door]:
    """Open a socket that is expected to be let in, past its hello."""
    communicator = knock(**how)
    accepted, _ = await communicator.connect(timeout=PATIENCE_S)
    assert accepted
    opened = Door(communicator)
    assert (await opened.hear())["type"] == "hello"
    opened.frames.clear()
    opened.raw.clear()
    try:
        yield opened
    finally:
        await communicator.disconnect(timeout=PATIENCE_S)
