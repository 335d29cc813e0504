"""Running the chains of Hooks: in order, the first result ends the chain."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from agents.runtime.events import AssistantMessage, Event
from agents.runtime.invocation import Hooks, Invocation
from agents.runtime.model import ModelRequest, ToolCall
from agents.runtime.tools import ToolResult

logger = logging.getLogger(__name__)


async def before_agent(hooks: Hooks, invocation: Invocation) -> str | None:
    for hook in hooks.before_agent:
        if (answer := await hook(invocation)) is not None:
            return answer
    return None


async def after_agent(hooks: Hooks, invocation: Invocation) -> str | None:
    for hook in hooks.after_agent:
        if (answer := await hook(invocation)) is not None:
            return answer
    return None


async def before_model(hooks: Hooks, invocation: Invocation, request: ModelRequest) -> ModelRequest | str:
    """Return the request to send (each hook sees what the one before made of it), or a text that answers instead."""
    for hook in hooks.before_model:
        found = await hook(invocation, request)
        if isinstance(found, str):
            return found
        request = found or request
    return request


async def after_model(
    hooks: Hooks, invocation: Invocation, segments: tuple[AssistantMessage, ...]
) -> tuple[AssistantMessage, ...]:
    for hook in hooks.after_model:
        if (replaced := await hook(invocation, segments)) is not None:
            return replaced
    return segments


async def before_tool(
    hooks: Hooks, invocation: Invocation, call: ToolCall, arguments: Mapping[str, Any]
) -> Mapping[str, Any] | ToolResult:
    """Return the arguments to call with (each hook sees what the one before made of them), or a result."""
    for hook in hooks.before_tool:
        found = await hook(invocation, call, arguments)
        if isinstance(found, ToolResult):
            return found
        arguments = arguments if found is None else found
    return arguments


async def after_tool(hooks: Hooks, invocation: Invocation, call: ToolCall, result: ToolResult) -> ToolResult:
    for hook in hooks.after_tool:
        if (replaced := await hook(invocation, call, result)) is not None:
            return replaced
    return result


async def on_event(hooks: Hooks, invocation: Invocation, event: Event) -> Event:
    """Return the event as the hooks leave it. A hook that fails is logged, and the event goes on as it came to it."""
    for hook in hooks.on_event:
        # gather gives the exception back as a value: whatever a hook does, it does not end the run
        (found,) = await asyncio.gather(hook(invocation, event), return_exceptions=True)
        if isinstance(found, Exception):
            logger.error("an event hook failed in run %s", invocation.run_id, exc_info=found)
        elif isinstance(found, BaseException):
            raise found
        elif found is not None:
            event = found
    return event
