"""A person's documents as a run sees them: search, reading, and citations that the server issues.

A citation names one passage of one version of one document. Its id comes with a tool result; the model puts
`[[c:ID]]` after a claim; the runtime (context/citing.py) holds that back until it is whole, and what people see and
what is stored is a Markdown link `[NUMBER](#c-ID)`, NUMBER being the same for one document in one answer. The model
gets its own form back when the history is assembled.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol

ID_CHARS: Final = 6
NOT_FOUND_ID: Final = "none"  # `[[c:none]]`: the model says that the documents do not answer
QUOTE_CHARS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a passage stands. page: from 1, 0 = there are no pages. heading: path, outermost first.

    sheet and rows (first, last, from 1) for tables; lines (first, last, from 1) for text. (0, 0) = not of that kind.
    """

    page: int = 0
    heading: tuple[str, ...] = ()
    sheet: str = ""
    rows: tuple[int, int] = (0, 0)
    lines: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """One passage that may be cited. start, end: characters of the version's extracted text.

    thread_id, message_id: of a piece of a conversation instead, whose title is `name`; artifact_id is "" then, version
    0, and start, end are characters of the message, which was written `at`.

    quote: the passage's text, at most QUOTE_CHARS. It is kept with every message that cites it, so that a citation
    still says what it said after the document is gone.
    """

    id: str
    artifact_id: str
    version: int
    name: str
    start: int
    end: int
    place: Place
    quote: str
    thread_id: str = ""
    message_id: str = ""
    at: datetime | None = None

    @property
    def source(self) -> str:
        """Return what one number stands for: the document, or the message."""
        return self.artifact_id or f"{self.thread_id}#{self.message_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """A citation as an answer uses it. number: from 1, one per source in the answer of a run."""

    number: int
    citation: Citation


class DocumentState(StrEnum):
    """waiting and reading: its text is not searchable yet. failed: Document.reason says why."""

    WAITING = "waiting"
    READING = "reading"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The latest version of one document. pages: 0 = has none or not known yet. reason: safe to show, "" unless failed.

    here: it belongs to this conversation; others are the owner's library or another conversation's.
    """

    artifact_id: str
    name: str
    version: int
    mime: str
    size_bytes: int
    state: DocumentState
    reason: str = ""
    pages: int = 0
    total_chars: int = 0
    here: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage that was found. text: whole passage. score: higher is better, comparable within one search only.

    second_hand: its document was written in runs, and no person has changed it. Told of searches only.
    """

    citation: Citation
    text: str
    score: float
    second_hand: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search gave, best first. searched: how many documents were. unread: names of those not searchable yet."""

    hits: tuple[Hit, ...]
    searched: int
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A stretch of a document: its passages in order, whole. next_at: where to read on, "" = the end."""

    document: Document
    version: int
    passages: tuple[Hit, ...]
    next_at: str


class DocumentMissing(LookupError):
    """There is no such document in the scope, or it belongs to somebody else. The message is safe to show."""


class DocumentUnread(ValueError):
    """The document has no text, or not yet. The message says why and is safe to show."""


class Knowledge(Protocol):
    """The documents one run may use: of one owner, narrowed to what the person chose for this message.

    Bound to owner, session and scope at construction; nothing here takes an owner. Every method is safe for many calls
    at once.
    """

    async def search(self, query: str, *, documents: Sequence[str] = (), limit: int = 8) -> Found:
        """Return passages that answer the query. documents: ids or names to look in, () = the whole scope.

        Raises DocumentMissing for a document outside the scope.
        """
        ...

    async def read(self, document: str, *, at: str = "", max_chars: int = 12_000) -> Reading:
        """Return a stretch. document: id, name, or "artifact://name@version" (no version = the latest).

        at: "" = the beginning, "page:3", "line:120", "char:5000", "row:40", "heading:Results", or a citation's id
        given in this conversation. Raises DocumentMissing, DocumentUnread.
        """
        ...

    async def list(self, query: str = "") -> tuple[Document, ...]:
        """Return the documents of the scope whose name holds the query's words, newest first, at most 500."""
        ...


class NoKnowledge:
    """A scope without documents."""

    async def search(self, query: str, *, documents: Sequence[str] = (), limit: int = 8) -> Found:
        return Found(hits=(), searched=0)

    async def read(self, document: str, *, at: str = "", max_chars: int = 12_000) -> Reading:
        raise DocumentMissing("There are no documents.")

    async def list(self, query: str = "") -> tuple[Document, ...]:
        return ()


NO_KNOWLEDGE: Final = NoKnowledge()


def citation_id(artifact_id: str, version: int, start: int, end: int) -> str:
    """Return the id of a passage: the same for the same passage for ever, ID_CHARS of a-z and 2-7."""
    return _short_id(f"{artifact_id}@{version}:{start}-{end}")


def message_citation_id(thread_id: str, event_id: str, start: int, end: int) -> str:
    """Return the id of a stretch of an event's text, in bytes, made like that of a passage."""
    return _short_id(f"{thread_id}#{event_id}:{start}-{end}")


def _short_id(what: str) -> str:
    digest = hashlib.sha256(what.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest)[:ID_CHARS].decode().lower()


def place_to_json(place: Place) -> dict[str, Any]:
    """Return a place as tables and frames hold it: the fields that say something."""
    values = {name: getattr(place, name) for name in Place.__slots__}
    said = {name: value for name, value in values.items() if value not in (0, "", (), (0, 0))}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}


def place_from_json(found: Mapping[str, Any]) -> Place:
    """Return the place that `place_to_json` made this of; unknown fields are left out."""
    known = {name: value for name, value in found.items() if name in Place.__slots__}
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
    return Place(**fields)


def place_words(place: Place) -> str:
    """Return where a passage stands, in English, for a model and for files: "page 3, Results > Costs"; "" = nowhere."""
    where = []
    if place.page:
        where.append(f"page {place.page}")
    if place.sheet:
        where.append(f"sheet {place.sheet}")
    if place.rows[0]:
        where.append(_span("row", place.rows))
    elif place.lines[0] and not place.page:
        where.append(_span("line", place.lines))
    if place.heading:
        where.append(" > ".join(place.heading))
    return ", ".join(where)


def stretch_words(first: Place, last: Place) -> str:
    """Return where a stretch from one passage to another is, in English, without headings: "pages 3-4"."""
    if first.page:
        return _span("page", (first.page, last.page))
    if first.sheet != last.sheet:
        return f"sheet {first.sheet} to sheet {last.sheet}"
    if first.rows[0]:
        rows = _span("row", (first.rows[0], last.rows[1]))
        return f"sheet {first.sheet}, {rows}" if first.sheet else rows
    return _span("line", (first.lines[0], last.lines[1])) if first.lines[0] else ""


def _span(unit: str, ends: tuple[int, int]) -> str:
    first, last = ends
    return f"{unit} {first}" if last <= first else f"{unit}s {first}-{last}"
