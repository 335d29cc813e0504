"""The tools of one invocation, and what each call of a model comes to before anything runs.

The first two gates are here: visibility (hidden tools are not in the request, and a call of one is "not found") and
ownership (external tools, and own ones the server may not run, are left to the caller).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.runtime.errors import ToolFailure
from agents.runtime.jsonrepair import NotJson, parse_object
from agents.runtime.model import ToolCall, ToolSpec
from agents.runtime.schema import problems
from agents.runtime.tools import Tool

MAX_DISTANCE = 3
MAX_SUGGESTIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """visible: may the model see the tool. executes: may the server run it; if not, the call is left to the caller."""

    visible: Callable[[Tool], bool] = lambda tool: True
    executes: Callable[[Tool], bool] = lambda tool: True


OPEN_GATES = Gates()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One call, looked at. Exactly one holds: tool is set (run it), external, or problem says why it cannot run.

    code: of the problem.
    """

    call: ToolCall
    tool: Tool | None = None
    arguments: Mapping[str, Any] | None = None
    external: bool = False
    problem: str = ""
    code: ToolFailure = ToolFailure.ARGUMENTS_INVALID


class Toolset:
    """A snapshot for one invocation. Where a name is declared twice, the agent's own tool wins over an external one.

    Raises ValueError if two of the agent's own tools share a name.
    """

    def __init__(self, tools: Iterable[Tool], external: Sequence[ToolSpec] = (), gates: Gates = OPEN_GATES) -> None:
        self._tools: dict[str, Tool] = {}
        self._external: dict[str, ToolSpec] = {}
        self._gates = gates
        hidden: set[str] = set()
        for tool in tools:
            name = tool.spec.name
            if name in self._tools or name in hidden:
                raise ValueError(f'two tools are called "{name}"')
            if gates.visible(tool):
                self._tools[name] = tool
            else:
                hidden.add(name)
        for spec in external:
            if spec.name not in self._tools and spec.name not in hidden:
                self._external.setdefault(spec.name, spec)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The declarations for the model: own tools in their order, then external ones."""
        return tuple(tool.spec for tool in self._tools.values()) + tuple(self._external.values())

    def prepare(self, call: ToolCall, *, cut: bool = False) -> Prepared:
        """Return what the call comes to. cut: the answer was cut off, so unfinished arguments must not be used.

        The call in the result carries repaired arguments; that is the form to store.
        """
        tool = self._tools.get(call.name)
        if tool is None and call.name not in self._external:
            return Prepared(call=call, problem=self._not_found(call.name), code=ToolFailure.TOOL_NOT_FOUND)
        try:
            parsed = parse_object(call.arguments)
        except NotJson as error:
            return Prepared(call=call, problem=f"{error} Call the tool again with a JSON object.")
        call = ToolCall(id=call.id, name=call.name, arguments=parsed.text)
        if cut and parsed.cut:
            problem = "The arguments were cut off before their end, so nothing was done."
            return Prepared(call=call, problem=problem, code=ToolFailure.ARGUMENTS_CUT)
        if tool is None:
            return Prepared(call=call, external=True)
        found = problems(parsed.arguments, tool.spec.parameters)
        if found:
            return Prepared(call=call, problem=f"The arguments do not fit {call.name}: {' '.join(found)}")
        if not self._gates.executes(tool):
            return Prepared(call=call, external=True)
        return Prepared(call=call, tool=tool, arguments=parsed.arguments)

    def _not_found(self, name: str) -> str:
        near = suggestions(name, [spec.name for spec in self.specs])
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"tool not found: {name}{hint}"


def suggestions(name: str, known: Iterable[str]) -> list[str]:
    """Return at most three known names within an edit distance of 3, the nearest first."""
    measured = sorted((distance(name.lower(), other.lower(), MAX_DISTANCE), other) for other in known)
    return [other for away, other in measured if away <= MAX_DISTANCE][:MAX_SUGGESTIONS]


def distance(a: str, b: str, limit: int) -> int:
    """Return how many characters to insert, delete or replace to make b of a; limit + 1 if it is more than limit."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)
