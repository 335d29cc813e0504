"""The product's session tools over a history in memory, as the measured model uses them: by words alone."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from agents.runtime.errors import ToolFailed
from agents.runtime.events import Stored
from agents.runtime.memoryrecall import by_words
from agents.runtime.memorystores import MemoryArtifactStore
from agents.runtime.model import Message, Role, TextPart, ToolCall
from agents.runtime.pieces import content_of, piece_of, pieces_of
from agents.runtime.recall import Anchor, Piece, RecallScope, Recollection, Window, missing
from agents.runtime.session import CancelToken
from agents.runtime.tools import ToolContext
from agents.tools import session as session_tools

THREAD: Final = "measured"
TITLE: Final = "The measured conversation"
HINT: Final = (
    "Earlier parts of this conversation are not shown. Before you answer, search them with session_search; read around "
    "a hit with session_load if its snippet is not enough."
)
TOOLS: Final = tuple(tool.spec for tool in session_tools.tools())
_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Past:
    """A history as agents.runtime.recall.Recall: all of it may be found, whatever the scope."""

    def __init__(self, history: Sequence[Stored]) -> None:
        self._found: dict[tuple[str, int], Piece] = {}
        self._whole: list[Piece] = []
        for stored in history:
            whole = piece_of(stored, thread_id=THREAD, title=TITLE)
            if whole is None:
                continue
            self._whole.append(whole)
            for offset, _ in pieces_of(content_of(stored.record)):
                piece = piece_of(stored, thread_id=THREAD, title=TITLE, offset=offset)
                if piece is not None:
                    self._found[THREAD, len(self._found)] = piece

    async def search(
        self, query: str, *, scope: RecallScope, limit: int = 10, dense: bool = False, min_score: float = 0.0
    ) -> tuple[Recollection, ...]:
        found = by_words(self._found, query, limit)
        return tuple(Recollection(piece=piece, scope=scope, score=score) for piece, score in found)

    async def load(self, anchor: Anchor, *, before: int, after: int) -> Window:
        ids = (anchor.event_id, anchor.call_id, anchor.message_id)
        for at, piece in enumerate(self._whole):
            if piece.event_id in ids or piece.message_id in ids:
                first = max(0, at - before)
                return Window(pieces=tuple(self._whole[first : at + after + 1]), anchor=at - first)
        raise missing(anchor.named)


class Recall:
    """Answers the session tools' calls about one history. searches, loads: how often each was used."""

    def __init__(self, history: Sequence[Stored]) -> None:
        self._past = Past(history)
        self._tools = {tool.spec.name: tool for tool in session_tools.tools()}
        self.searches = 0
        self.loads = 0

    async def answer(self, call: ToolCall) -> str:
        """Return what the call returns to the model; a call that cannot be read says so."""
        try:
            arguments = json.loads(call.arguments or "{}")
        except ValueError:
            return "The arguments are not JSON."
        if not isinstance(arguments, dict):
            return "The arguments are not a JSON object."
        tool = self._tools.get(call.name)
        if tool is None:
            return f'There is no tool "{call.name}".'
        if missed := [name for name in tool.spec.parameters.get("required", ()) if name not in arguments]:
            return f"Arguments are missing: {', '.join(missed)}."
        if call.name == session_tools.SEARCH.name:
            self.searches += 1
        else:
            self.loads += 1
        try:
            return (await tool.call(arguments, self._context(call))).content
        except ToolFailed as error:
            return str(error)

    def _context(self, call: ToolCall) -> ToolContext:
        return ToolContext(
            owner_id=0,
            session_id=THREAD,
            run_id="measured",
            invocation_id="measured",
            call_id=call.id,
            cancel=CancelToken(),
            artifacts=MemoryArtifactStore(),
            state={},
            now=lambda: _AT,
            recall=self._past,
        )


def returned(call: ToolCall, content: str) -> Message:
    """Return the message in which a model reads what its call returned."""
    return Message(role=Role.TOOL, parts=(TextPart(text=content),), tool_call_id=call.id, name=call.name)
