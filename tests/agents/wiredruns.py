"""Runs of a scripted model over everything that an installation wires, with the tools that a test is about."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from agents import wiring
from agents.runtime.events import Record
from agents.runtime.invocation import Services
from agents.runtime.llm import LLMAgent
from agents.runtime.runner import Runner
from agents.runtime.session import CancelToken, OpenRun, RunRequest
from agents.runtime.testing import ScriptedModel
from agents.runtime.tools import Tool
from agents.stores.sessions import PgSessionStore


def runner_of(tools: Sequence[Tool], *turns: Any) -> tuple[Runner, ScriptedModel]:
    model = ScriptedModel(*turns)

    def services(request: RunRequest, opened: OpenRun) -> Services:
        return replace(wiring.services(request, opened), model=model)

    agent = LLMAgent(name="assistant", instruction="x", tools=tools)
    runner = Runner(
        agents={agent.name: agent},
        default_agent=agent.name,
        sessions=PgSessionStore(),
        services=services,
        limits=wiring.LIMITS,
        now=wiring.now,
        new_id=lambda: uuid4().hex,
    )
    return runner, model


async def records_of(runner: Runner, request: RunRequest) -> list[Record]:
    """Run it and return what was stored after the opening, in order."""
    opened = await runner.open(request)
    return [e.event for e in [e async for e in runner.run(opened, CancelToken())] if isinstance(e.event, Record)]
