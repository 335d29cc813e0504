"""Why a call failed travels as a code: in the stored result, and beside the text that the model reads."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from agents.runtime.errors import ToolFailed, ToolFailure, ToolTimeout
from agents.runtime.events import ToolReturned, ToolStatus
from agents.runtime.memorystores import MemorySessionStore
from agents.runtime.model import Role
from agents.runtime.session import CancelReason, CancelToken
from agents.runtime.testing import ScriptedModel, call, collect, memory_runner, text, turn
from agents.runtime.tools import Permission, Tool, ToolContext, ToolResult, Traits, Verdict
from tests.runtime.samples import Q, of, request, tool


async def look(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    match arguments.get("q"):
        case "nothing there":
            raise ToolFailed("There is no file.", ToolFailure.FILE_NOT_FOUND)
        case "own words":
            raise ToolFailed("The shop is closed.")
        case "slow shop":
            raise ToolTimeout("The shop does not answer.")
        case "hanging":
            await asyncio.Event().wait()
        case "bug":
            raise RuntimeError("password=hunter2")
    return ToolResult(content="found")


def policy(one: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Permission:
    verdicts = {"forbidden": Verdict.DENY, "dangerous": Verdict.ASK}
    return Permission(verdict=verdicts.get(arguments["q"], Verdict.ALLOW))


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("look", {"q": "here"}, ""),
        ("look", {"q": "nothing there"}, ToolFailure.FILE_NOT_FOUND),
        ("look", {"q": "own words"}, ToolFailure.TOOL_FAILED),
        ("look", {"q": "slow shop"}, ToolFailure.TIMEOUT),
        ("look", {"q": "hanging"}, ToolFailure.TIMEOUT),
        ("look", {"q": "bug"}, ToolFailure.UNEXPECTED),
        ("look", {"q": "forbidden"}, ToolFailure.DENIED),
        ("look", {"q": "dangerous"}, ToolFailure.APPROVAL_REQUIRED),
        ("look", {"q": 7}, ToolFailure.ARGUMENTS_INVALID),
        ("look", "no json at all", ToolFailure.ARGUMENTS_INVALID),
        ("lok", {}, ToolFailure.TOOL_NOT_FOUND),
    ],
)
async def test_each_way_to_fail_has_its_code(name: str, arguments: Any, code: str) -> None:
    model = ScriptedModel(turn(call("c1", name, arguments)), turn(text("ok")))
    store = MemorySessionStore()
    patience = 0.05 if arguments == {"q": "hanging"} else 30.0
    tools = (tool("look", look, parameters=Q, traits=Traits(timeout_s=patience)),)
    (result,) = of(
        await collect(memory_runner(model, tools=tools, store=store, permission=policy), request()), ToolReturned
    )
    assert result.failure == code
    (heard,) = [m for m in model.requests[1].messages if m.role is Role.TOOL]
    assert (heard.failure, heard.text) == (code, result.content)


async def test_what_was_stopped_or_left_behind_has_its_code_too() -> None:
    cancel = CancelToken()

    async def stop(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        cancel.cancel(CancelReason.USER)
        await asyncio.Event().wait()
        raise AssertionError

    model = ScriptedModel(turn(call("c1", "stop", {})))
    (result,) = of(await collect(memory_runner(model, tools=(tool("stop", stop),)), request(), cancel), ToolReturned)
    assert result.failure == ToolFailure.CANCELLED


def test_every_status_but_ok_is_a_failure_that_can_be_worded() -> None:
    for status in ToolStatus:
        failure = ToolReturned(id="r", call_id="c", name="look", content="", status=status).failure
        assert failure == "" if status is ToolStatus.OK else failure in set(ToolFailure)
