"""The server the Node tests talk to: the real doors, live runs and stores, with a model that follows a script.

    python -m tests.client.server

Prints one line of JSON, {"http", "ws", "tokens"}, once it listens; ends when its stdin is closed. A line "go" on
stdin lets a model that stands still go on. Uses the services of DATABASE_URL and REDIS_URL, or starts embedded ones,
and makes a database of its own that it drops at the end.
"""

import workbench.eventloop as eventloop  # isort: skip  # first: it chooses the loop that daphne makes
from tests import conftest  # isort: skip  # second: it starts servers and sets Django up

import asyncio
import json
import os
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from daphne.endpoints import build_endpoint_description_strings
from django.db import connection
from django.test.utils import setup_databases, teardown_databases

from agents.live import registry
from agents.live.registry import Live
from agents.runtime.errors import StreamCut
from agents.runtime.knowledge import Citation, Place
from agents.runtime.model import ModelRequest, Role, ToolSpec
from agents.runtime.testing import ScriptedModel, Step, WaitFor, call, reasoning, text, turn
from agents.runtime.tools import FunctionTool, ToolContext, ToolResult, Traits
from tests.agents.house import wiring
from workbench import tokens
from workbench.asgi import application
from workbench.consumers import announce_shutdown
from workbench.serve import WebServer, counted

GO = asyncio.Event()
PASSAGE = Citation(
    id="k3f9ab",
    artifact_id="d1",
    version=2,
    name="report.pdf",
    start=0,
    end=18,
    place=Place(page=3),
    quote="Costs fell by 5 %.",
)


def script(request: ModelRequest) -> Sequence[Step]:
    """Answer by the last thing a person said, and by what came after it."""
    at = max(n for n, message in enumerate(request.messages) if message.role is Role.USER)
    asked = request.messages[at].text
    results = [message.text for message in request.messages[at:] if message.role is Role.TOOL]
    if results and asked == "cited":
        return turn(text("Costs fell [[c:k3", "f9ab]]. [[c:zzzzzz]]"))
    if results:
        return turn(text("Results: ", ", ".join(results), "."))
    match asked:
        case "plain":
            return turn(reasoning("Let me ", "see."), text("Good ", "day."))
        case "cited":
            return turn(call("c1", "lookup", {"q": "costs"}))
        case "tools":
            return turn(text("I look."), call("c1", "lookup", {"q": "a"}, pieces=3))
        case "parallel":
            return turn(call("c1", "lookup", {"q": "a"}, pieces=2), call("c2", "lookup", {"q": "b"}, index=1))
        case "external":
            return turn(call("c1", "pick_colour", {"from": ["red"]}))
        case "slow":
            GO.clear()
            return turn(text("Once upon ", "a ti"), WaitFor(GO), text("me", ", the end."))
        case "error":
            return turn(text("I try"), StreamCut())
    return turn(text(f"You said: {asked}"))


async def lookup(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    content, summary = f"found {arguments['q']}", f"Looked {arguments['q']} up"
    return ToolResult(content=content, summary=summary, citations=(PASSAGE,))


LOOKUP = FunctionTool(
    spec=ToolSpec(
        name="lookup",
        description="Look a word up.",
        parameters={"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
    ),
    function=lookup,
    traits=Traits(read_only=True, destructive=False, concurrency_safe=True),
)


async def begin(address: str, keys: dict[str, str]) -> None:
    registry.install(Live(wiring(ScriptedModel(script, repeat_last=True), tools=(LOOKUP,))))
    print(json.dumps({"http": f"http://{address}", "ws": f"ws://{address}", "tokens": keys}), flush=True)


def obey(server: WebServer) -> None:
    """Follow stdin, in a thread of its own."""
    for line in sys.stdin:
        if line.strip() == "go":
            eventloop.loop.call_soon_threadsafe(GO.set)
    eventloop.loop.call_soon_threadsafe(server.shut_down, 1.0)


def main() -> None:
    connection.settings_dict["TEST"]["NAME"] = f"{os.environ['TEST_DATABASE_NAME']}_client"
    made = setup_databases(verbosity=0, interactive=False)
    keys = {}
    for name in ("alice", "bob"):
        keys[name] = tokens.make_token(owner_id=conftest.make_user(name).pk, name="node")[1]
    connection.close()
    listening = socket.create_server(("127.0.0.1", 0))
    address = "{}:{}".format(*listening.getsockname())
    server = WebServer(
        counted(application),
        announce=announce_shutdown,
        drain=lambda grace_s: registry.current().drain(grace_s),
        endpoints=build_endpoint_description_strings(file_descriptor=listening.detach()),
    )
    eventloop.loop.create_task(begin(address, keys))
    threading.Thread(target=obey, args=(server,), daemon=True).start()
    try:
        server.run()
    finally:
        conftest.cut_other_connections()
        teardown_databases(made, verbosity=0)


if __name__ == "__main__":
    main()
