"""Search and load of a conversation's own events, over a history in memory, as two tools of the measured model.

A stand-in for the product's session tools while those are not there: words counted, no index, no vectors.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from agents.runtime.events import AssistantMessage, Stored, ToolReturned, UserMessage
from agents.runtime.model import TextPart, ToolCall, ToolSpec
from workbench.bench.scoring import tokens

HITS: Final = 5
SNIPPET: Final = 280
LOAD_BYTES: Final = 16_384
CUTOFF: Final = 0.2
HINT: Final = (
    "Earlier parts of this conversation are not shown. Before you answer, search them with session_search; read around "
    "a hit with session_load if its snippet is not enough."
)

SEARCH: Final = ToolSpec(
    name="session_search",
    description="Search earlier messages of this conversation that are not shown. Returns snippets with event ids.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
LOAD: Final = ToolSpec(
    name="session_load",
    description="Load one earlier message by its event id, with the message before and after it.",
    parameters={"type": "object", "properties": {"event_id": {"type": "string"}}, "required": ["event_id"]},
)
TOOLS: Final = (SEARCH, LOAD)


@dataclass(slots=True)
class Recall:
    """history: the events that may be found. searches, loads: how often each tool was used."""

    history: Sequence[Stored]
    searches: int = 0
    loads: int = 0

    def answer(self, call: ToolCall) -> str:
        """Return what the call returns; a call that cannot be read says so."""
        try:
            arguments = json.loads(call.arguments or "{}")
        except ValueError:
            return "The arguments are not JSON."
        if not isinstance(arguments, dict):
            return "The arguments are not a JSON object."
        if call.name == SEARCH.name:
            self.searches += 1
            return self.search(str(arguments.get("query", "")))
        if call.name == LOAD.name:
            self.loads += 1
            return self.load(str(arguments.get("event_id", "")))
        return f'There is no tool "{call.name}".'

    def search(self, query: str) -> str:
        """Return up to five hits, best first, newer first among equals, as JSON lines."""
        wanted = set(tokens(query))
        if not wanted:
            return "Nothing found."
        found = []
        for stored in self.history:
            if text := text_of(stored):
                words = set(tokens(text))
                matched = len(wanted & words) / len(wanted) + 0.75 * (query.lower() in text.lower())
                if matched >= CUTOFF:
                    found.append((matched, stored.position, stored.id, text))
        rows = [_row(event_id, text[:SNIPPET]) for _, _, event_id, text in sorted(found, reverse=True)[:HITS]]
        return "\n".join(rows) or "Nothing found."

    def load(self, event_id: str) -> str:
        """Return the event between its neighbours, or how an event id looks."""
        shown = [s for s in self.history if text_of(s)]
        place = next((n for n, s in enumerate(shown) if s.id == event_id), None)
        if place is None:
            return f'There is no event "{event_id}"; use the event_id of a hit.'
        rows = [_row(s.id, text_of(s)) for s in shown[max(0, place - 1) : place + 2]]
        return "\n".join(rows).encode()[:LOAD_BYTES].decode(errors="ignore")


def text_of(stored: Stored) -> str:
    """Return what was said or returned, "" for other events."""
    match stored.record:
        case UserMessage(parts=parts):
            return "".join(p.text for p in parts if isinstance(p, TextPart))
        case AssistantMessage(text=text):
            return text
        case ToolReturned(content=content):
            return content
    return ""


def _row(event_id: str, text: str) -> str:
    row: dict[str, Any] = {"event_id": event_id, "text": text}
    return json.dumps(row, ensure_ascii=False)
