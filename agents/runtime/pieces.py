"""Which text of a record is searched and loaded, and how a long one is cut.

Offsets are bytes of that text in UTF-8, so a search leads to the right place of a load.
"""

from collections.abc import Iterator
from typing import Final

from agents.runtime.context.citing import marked
from agents.runtime.events import AssistantMessage, Record, Stored, ToolReturned, ToolStatus, UserMessage
from agents.runtime.knowledge import Citation
from agents.runtime.model import FilePart, Part, TextPart
from agents.runtime.policy import MEMORY_TOOLS, SESSION_TOOLS
from agents.runtime.recall import Piece, Role

PIECE_CHARS: Final = 1_500
SILENT_TOOLS: Final = (*SESSION_TOOLS, *MEMORY_TOOLS)


def content_of(record: Record) -> str:
    """Return what of a record is searched and loaded: "" = nothing of it.

    Citations stand as the model writes them. What the session tools themselves returned is left out: it stands in the
    events it was taken from; and what the memory tools did: it may be forgotten.
    """
    match record:
        case UserMessage():
            return "\n".join(_shown(part) for part in record.parts)
        case AssistantMessage():
            return marked(record.text, record.citations)
        case ToolReturned() if record.status is ToolStatus.OK and record.name not in SILENT_TOOLS:
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


def piece_at(text: str, offset: int) -> tuple[str, int]:
    """Return the piece that begins at this byte, as `pieces_of` cuts it, and the character at which that is."""
    start = len(text.encode()[:offset].decode(errors="ignore"))
    end = len(text) if len(text) - start <= PIECE_CHARS else _border(text, start)
    return text[start:end], start


def piece_of(stored: Stored, *, thread_id: str, title: str, offset: int | None = None) -> Piece | None:
    """Return the piece of an event that begins at this byte; None if it has no text.

    offset: None = all of the text, also of a result that no search finds: a placeholder may stand for it.
    """
    record, content = stored.record, content_of(stored.record)
    if offset is None and isinstance(record, ToolReturned):
        content = record.content
    if not content.strip():
        return None
    text, start = (content, 0) if offset is None else piece_at(content, offset)
    role, message_id = Role.USER, ""
    call_id = tool = ""
    citations: tuple[Citation, ...] = ()
    match record:
        case UserMessage():
            message_id = record.id
        case AssistantMessage():
            role, message_id = Role.ASSISTANT, record.id
            citations = tuple(cited.citation for cited in record.citations)
        case ToolReturned():
            role, message_id, call_id, tool = Role.TOOL, record.call_id, record.call_id, record.name
            citations = record.citations
        case _:
            pass
    return Piece(
        thread_id=thread_id,
        title=title,
        event_id=stored.id,
        message_id=message_id,
        position=stored.position,
        role=role,
        at=stored.at,
        text=text,
        offset=offset or 0,
        start=start,
        content_bytes=len(content.encode()),
        tool_call_id=call_id,
        tool_name=tool,
        citations=citations,
    )


def stretch_of(text: str, offset: int, limit: int) -> tuple[int, int]:
    """Return from which byte to which a page of the text reaches: from `offset` on, at most `limit` bytes.

    Both lie on borders of characters, moved back to them, but a page before the end never is empty. So pages that
    begin where the one before ended give the whole text.
    """
    data = text.encode()
    start = _back_to_border(data, min(max(offset, 0), len(data)))
    end = _back_to_border(data, min(start + limit, len(data)))
    while end <= start < len(data):
        limit += 1
        end = _back_to_border(data, min(start + limit, len(data)))
    return start, end


def _back_to_border(data: bytes, at: int) -> int:
    while 0 < at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


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
