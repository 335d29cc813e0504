"""What a version of a file looks like: Markdown and tables drawn, code coloured, pictures and HTML in a frame.

Everything is drawn from the stored bytes, at most SHOWN_BYTES of them, and passes the sanitiser that answers pass.
"""

import csv
import io
import re
import time
from base64 import b64encode
from dataclasses import dataclass
from enum import StrEnum

from agents.protocols.agui import blocks
from agents.protocols.agui.footnotes import Footnotes
from artifacts import blobs, diff
from artifacts.decoding import encoding_of
from artifacts.rows import Stored, TextStatus
from artifacts.textfile import NotTextFile, TextReader

SHOWN_BYTES = 512 * 1024  # of a text, in a preview; the text view shows the rest
EDIT_BYTES = 256 * 1024  # longer texts are not edited in the page
FRAME_BYTES = 32 * 1024 * 1024  # of a file in a frame; it passes through memory
DRAWN_S = 2.0  # a text of a thousand blocks takes 0.1 s; one made to take long is cut where the time is over
SAMPLE_CHARS = 2048  # of a table, to find what parts its cells: a made-up one takes the square of it
BYTES_PER_CHAR = 4  # at most
ROWS = 500  # of a table
CELLS = 60  # of a row
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_CODE = {
    "application/json": "json",
    "text/x-python": "python",
    "text/javascript": "javascript",
    "text/css": "css",
    "text/yaml": "yaml",
    "text/xml": "xml",
    "image/svg+xml": "xml",
}


class Kind(StrEnum):
    """How a file is drawn. PDF: by the browser. OTHER: only its extracted text is shown (Word, slides, sheets)."""

    MARKDOWN = "markdown"
    TABLE = "table"
    CODE = "code"
    PLAIN = "plain"
    HTML = "html"
    IMAGE = "image"
    PDF = "pdf"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """html: sanitised. rows: of a table, the first is its head. cut: there is more than is shown.

    picture: the address of a drawing, for an img element only, in which it runs nothing and loads nothing.
    """

    kind: Kind
    html: str = ""
    rows: tuple[tuple[str, ...], ...] = ()
    cut: bool = False
    picture: str = ""


def kind_of(mime: str) -> Kind:
    if mime == "text/markdown":
        return Kind.MARKDOWN
    if mime in ("text/csv", "text/tab-separated-values"):
        return Kind.TABLE
    if mime == "text/html":
        return Kind.HTML
    if mime in IMAGES:
        return Kind.IMAGE
    if mime == "application/pdf":
        return Kind.PDF
    if mime in _CODE:
        return Kind.CODE
    return Kind.PLAIN if mime.startswith("text/") else Kind.OTHER


def is_text(mime: str) -> bool:
    """Return whether a file is text as it stands, so that it can be edited here."""
    return kind_of(mime) not in (Kind.IMAGE, Kind.PDF, Kind.OTHER)


def is_framed(mime: str, size_bytes: int) -> bool:
    """Return whether a file is shown by the browser in a frame of its own."""
    return kind_of(mime) in (Kind.HTML, Kind.PDF) and size_bytes <= FRAME_BYTES


def preview(stored: Stored) -> Preview:
    """Draw a version. Raises BlobMissing."""
    kind = kind_of(stored.ref.mime)
    if kind in (Kind.IMAGE, Kind.HTML, Kind.PDF, Kind.OTHER):
        return Preview(kind=kind)
    text, cut = _decoded(stored, SHOWN_BYTES)
    if kind is Kind.MARKDOWN:
        return _markdown(text, cut)
    if kind is Kind.TABLE:
        return _table(text, cut)
    if stored.ref.mime == "image/svg+xml" and not cut and "<!" not in text:  # no document type, so no entities
        return Preview(kind=kind, picture=f"data:image/svg+xml;base64,{b64encode(text.encode()).decode()}")
    return Preview(kind=kind, html=_code(text, _CODE.get(stored.ref.mime, "")), cut=cut)


def whole_text(stored: Stored) -> str | None:
    """Return all text of a version: of a text file its own, else what was extracted; None if there is none (yet).

    Raises BlobMissing; diff.TooLong, before it is read, for more than anything is done with.
    """
    if is_text(stored.ref.mime):
        if stored.ref.size_bytes > diff.TEXT_CHARS * BYTES_PER_CHAR:
            raise diff.TooLong
        return _decoded(stored, stored.ref.size_bytes)[0]
    if stored.text_status != TextStatus.READY or not stored.text_blob:
        return None
    with blobs.open_blob(stored.text_blob) as file:
        try:
            reader = TextReader(file)
        except NotTextFile as e:
            raise blobs.BlobMissing(stored.text_blob) from e
        if reader.index.total_chars > diff.TEXT_CHARS:
            raise diff.TooLong
        return reader.exactly(0, reader.index.total_chars)


def drawn(text: str) -> Preview:
    """Draw Markdown that is no file."""
    return _markdown(text, False)


def _decoded(stored: Stored, most: int) -> tuple[str, bool]:
    """Return the text of a text file up to so many bytes, and whether there is more."""
    data = blobs.read(stored.blob, size_bytes=stored.ref.size_bytes, sha256=stored.ref.sha256)
    encoding, errors = encoding_of(io.BytesIO(data))
    shown = data[:most]
    text = shown.decode(encoding, "ignore" if len(data) > most else errors).replace("\r\n", "\n").replace("\r", "\n")
    return text, len(data) > most


def _markdown(text: str, cut: bool) -> Preview:
    drawn: list[str] = []
    notes = Footnotes(text)
    until = time.monotonic() + DRAWN_S
    for block in blocks.split(text):
        if drawn and time.monotonic() > until:  # something is shown, however busy the machine is
            cut = True
            break
        drawn.append(blocks.render_block(block, notes))
    return Preview(kind=Kind.MARKDOWN, html="".join(drawn), cut=cut)


def _table(text: str, cut: bool) -> Preview:
    try:
        dialect: type[csv.Dialect] | str = csv.Sniffer().sniff(text[:SAMPLE_CHARS], delimiters=",;\t|")
    except csv.Error:
        dialect = "excel"
    rows: list[tuple[str, ...]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), dialect):
            if len(rows) > ROWS:
                cut = True
                break
            cut = cut or len(row) > CELLS
            rows.append(tuple(row[:CELLS]))
    except csv.Error:
        return Preview(kind=Kind.PLAIN, html=_code(text, ""), cut=cut)
    width = max(map(len, rows), default=0)
    return Preview(kind=Kind.TABLE, rows=tuple(row + ("",) * (width - len(row)) for row in rows), cut=cut)


def _code(text: str, language: str) -> str:
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return blocks.render_block(f"{fence}{language}\n{text}\n{fence}\n")
