"""Fragments of tool calls, as providers send them, put together.

Known habits: the index is always 0; the id comes late, on every fragment, or never; one id is used for two calls; the
name is repeated or never comes; a whole call comes in one fragment. Rule: a fragment belongs to the call of its id,
else to the open call at its index. A new id, or a name after arguments that are already a whole JSON object, begins
another call. A call is announced once its id and name are known; without an id it gets one of ours.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from agents.runtime.jsonrepair import is_complete
from agents.runtime.model import ToolCall, ToolCallChunk

# What every store and every client can hold; anything else would come back changed and match nothing.
_SOUND_ID = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,128}")
NAMELESS = "unnamed_tool"  # never a tool's name: the model is told so and can try again


@dataclass(slots=True)
class CallDelta:
    """A call begins (first delta of its id), or its arguments go on."""

    call_id: str
    name: str
    arguments: str


@dataclass(slots=True)
class _Open:
    index: int
    given_id: str = ""
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    announced: bool = False

    @property
    def whole(self) -> bool:
        return is_complete("".join(self.arguments))


class CallAssembler:
    """The tool calls of one answer.

    new_id: makes ids where the provider gave none, one twice, or one that cannot be kept. taken: of earlier answers.
    """

    def __init__(self, new_id: Callable[[], str], taken: Collection[str] = ()) -> None:
        self._new_id = new_id
        self._taken = taken
        self._calls: list[_Open] = []
        self._at_index: dict[int, _Open] = {}

    def feed(self, chunk: ToolCallChunk) -> tuple[CallDelta, ...]:
        """Take a fragment and return what can be shown because of it, in order."""
        call = self._find(chunk)
        deltas: tuple[CallDelta, ...] = ()
        if call is None:
            before = self._at_index.get(chunk.index)
            if before is not None and not before.announced:  # no id will come for it any more
                deltas = self._announce(before)
            call = _Open(index=chunk.index)
            self._calls.append(call)
        self._at_index[chunk.index] = call
        call.given_id = call.given_id or chunk.id
        call.name = call.name or chunk.name
        if chunk.arguments:
            call.arguments.append(chunk.arguments)
        if call.announced:
            return (CallDelta(call.id, call.name, chunk.arguments),) if chunk.arguments else ()
        if call.given_id and call.name:
            return deltas + self._announce(call)
        return deltas

    def finish(self) -> tuple[CallDelta, ...]:
        """Announce what is still unannounced. Fragments that held nothing at all are no calls."""
        self._calls = [c for c in self._calls if c.name or "".join(c.arguments).strip() or c.given_id]
        return tuple(delta for call in self._calls if not call.announced for delta in self._announce(call))

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the announced calls in the order the model began them."""
        return tuple(
            ToolCall(id=call.id, name=call.name, arguments="".join(call.arguments))
            for call in self._calls
            if call.announced
        )

    def _find(self, chunk: ToolCallChunk) -> _Open | None:
        """Return the call that this fragment continues; None = it begins one."""
        here = self._at_index.get(chunk.index)
        if chunk.id:
            if here is not None and here.given_id in ("", chunk.id):
                return None if self._begins(here, chunk) else here
            if chunk.name and here is None:
                return None  # a new index with a name: another call, whatever its id
            known = next((c for c in reversed(self._calls) if c.given_id == chunk.id), None)
            return None if known is None or self._begins(known, chunk) else known
        if here is not None:
            return None if self._begins(here, chunk) else here
        if not chunk.name and self._calls:
            return self._calls[-1]  # a fragment with nothing but arguments and an index of its own
        return None

    def _begins(self, call: _Open, chunk: ToolCallChunk) -> bool:
        # `{}` alone says little: some providers open with it and send the arguments afterwards.
        return bool(chunk.name and chunk.arguments.strip() and call.name and call.whole)

    def _announce(self, call: _Open) -> tuple[CallDelta, ...]:
        given = call.given_id
        free = _SOUND_ID.fullmatch(given) and given not in self._taken and all(given != c.id for c in self._calls)
        call.id = given if free else f"call_{self._new_id()}"
        call.name = call.name or NAMELESS
        call.announced = True
        return (CallDelta(call.id, call.name, "".join(call.arguments)),)
