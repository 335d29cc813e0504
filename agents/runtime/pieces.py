"""Which text of a record is searched and loaded, and how a long one is cut.

Offsets are bytes of that text in UTF-8, so a search leads to the right place of a load.
"""

from collections.abc import Iterator
from typing import Final

from agents.runtime.context.citing import marked
from agents.runtime.events import AssistantMessage, Record, ToolReturned, ToolStatus, UserMessage
from agents.runtime.model import FilePart, Part, TextPart
from agents.runtime.policy import LOAD_TOOL, SEARCH_TOOL

PIECE_CHARS: Final = 1_500


def content_of(record: Record) -> str:
    """Return what of a record is searched and loaded: "" = nothing of it.

    Citations stand as the model writes them. What the session tools themselves returned is left out: it stands in the
    events it was taken from.
    """
    match record:
        case UserMessage():
            return "\n".join(_shown(part) for part in record.parts)
        case AssistantMessage():
            return marked(record.text, record.citations)
        case ToolReturned() if record.status is ToolStatus.OK and record.name not in (SEARCH_TOOL, LOAD_TOOL):
            return record.content
        case _:
            return ""


def pieces_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield the text in pieces of at most PIECE_CHARS, each with the byte at which it begins; blank pieces are left
    out. A piece ends behind a paragraph, line, sentence or word where its second half has one."""
    start = offset = 0
    while start < len(text):
        end = len(text) if len(text) - start <= PIECE_CHARS else _border(text, start)
        piece = text[start:end]
        if piece.strip():
            yield offset, piece
        offset += len(piece.encode())
        start = end


def _border(text: str, start: int) -> int:
    stop = start + PIECE_CHARS
    for ends in (("\n\n",), ("\n",), (". ", "? ", "! ", "。", "？", "！"), (" ", "，", "、")):
        found = max(text.rfind(end, start + PIECE_CHARS // 2, stop) + len(end) for end in ends)
        if found > start + PIECE_CHARS // 2:
            return found
    return stop


def _shown(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case FilePart():
            return f'[Attached file "{part.name}"]'
