"""Tool results and arguments shown shorter: texts made of the event and the part's params alone, so always the same."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from agents.runtime.events import ToolReturned, ToolStatus
from agents.runtime.policy import LOAD_TOOL
from agents.runtime.tokens import estimate, estimate_record

FORCED: Final = "forced"  # pass 0: this tool's results are never kept
EARLIER: Final = "earlier_request"  # pass 1
OVERSIZED: Final = "oversized"  # pass 2: head and tail
RESUMED: Final = "current_invocation_summary"  # of the round that goes on behind a summary
SKILL: Final = "skill_past"  # the text of a skill that is not loaded any more, or stands elsewhere
READ_TOOL: Final = "read_artifact"


def result_params(returned: ToolReturned, why: str, offered: frozenset[str]) -> dict[str, Any]:
    """Return the params of a placeholder for the result: why, and how it can be read again."""
    params: dict[str, Any] = {"why": why}
    if why != FORCED:
        if LOAD_TOOL in offered:
            params["load"] = True
        if returned.artifact is not None and READ_TOOL in offered:
            params["read"] = True
    return params


def placeholder(event_id: str, returned: ToolReturned, params: Mapping[str, Any]) -> str:
    """Return what the model reads in place of the result."""
    if params["why"] == SKILL:
        name = returned.data.get("skill", "")
        return (
            f'[The text of the skill "{name}" stood here. It was loaded for what was asked then, and this text of it '
            "is not in force now. If the skill is needed and not shown elsewhere, load it with skill_load.]"
        )
    if params["why"] == OVERSIZED:
        content, head, tail = returned.content, params["head"], params["tail"]
        marker = _marker(event_id, returned, params, len(content) - head - tail)
        return "\n".join(text for text in (content[:head], marker, content[len(content) - tail :]) if text)
    done = "succeeded" if returned.status is ToolStatus.OK else f"ended with status {returned.status.value}"
    ids = _ids(event_id, returned)
    if params["why"] == FORCED:
        return f"[Result left out by policy. The call {done} and its result was used already. {ids}]"
    return (
        f"[Result left out to keep this request small. The call {done} and its result was used already; do not repeat "
        f"the call for its effects. {ids}, reason: {params['why']}. {_recovery(event_id, returned, params)}]"
    )


def cut_params(event_id: str, returned: ToolReturned, *, limit: int, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params with which the result, shown by head and tail, costs at most limit tokens, frame included.

    head, tail: characters. Both 0 if the marker alone takes the room.
    """

    def cost(head: int) -> int:
        shown = placeholder(event_id, returned, {**params, "head": head, "tail": head})
        return estimate_record(replace(returned, content=shown))

    half = _half(returned.content, limit - cost(0))
    while half and cost(half) > limit:  # the pieces together may cost a little more than apart
        half = half * 9 // 10
    return {**params, "head": half, "tail": half}


@lru_cache(maxsize=64)  # the same results are cut for every request of a run
def _half(content: str, room: int) -> int:
    """Return how many characters of the head, and as many of the tail, cost together at most room tokens."""
    low, high = 0, len(content) // 2
    while low < high:
        half = (low + high + 1) // 2
        if estimate(content[:half] + content[len(content) - half :]) <= room:
            low = half
        else:
            high = half - 1
    return low


def short_arguments(arguments: str) -> str:
    """Return a JSON object that stands for arguments too large to be shown again."""
    return json.dumps({"omitted": f"{len(arguments)} characters of arguments; the call was made with all of them"})


def _marker(event_id: str, returned: ToolReturned, params: Mapping[str, Any], omitted: int) -> str:
    return f"[{omitted} characters left out here. {_ids(event_id, returned)}. {_recovery(event_id, returned, params)}]"


def _ids(event_id: str, returned: ToolReturned) -> str:
    return f"event_id: {event_id}, tool_call_id: {returned.call_id}, tool_name: {returned.name or 'unknown'}"


def _recovery(event_id: str, returned: ToolReturned, params: Mapping[str, Any]) -> str:
    if params.get("read") and returned.artifact is not None:
        name = json.dumps({"name": returned.artifact.uri}, ensure_ascii=False)
        return f"To read the whole result, call {READ_TOOL} with {name} and go on with the cursor that it returns."
    if params.get("load"):
        asked = json.dumps({"event_id": event_id, "tool_call_id": returned.call_id}, ensure_ascii=False)
        return f"To read it, call {LOAD_TOOL} with {asked} and page with content_offset."
    return "If it is needed again, call only tools again that read and change nothing."
