"""HTML: what a reader of the page would read. Nothing is loaded and nothing runs; no tree is built."""

import io
import re
from typing import IO

from lxml import etree

from artifacts.decoding import encoding_of
from artifacts.extract.characters import without_controls
from artifacts.extract.outcome import Tell
from artifacts.extract.tables import write_table
from artifacts.textfile import TextWriter

PIECE_CHARS = 64 * 1024
_BREAK = "\x1f"  # a line end that the page asks for; control characters of its own are gone by then
_SKIPPED = frozenset(
    "script style template noscript nav footer iframe object embed svg math select button form canvas audio video head"
    .split()
)  # fmt: skip
_BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure h1 h2"
    " h3 h4 h5 h6 header hgroup hr html li main menu ol p pre section summary table tbody td tfoot th thead tr"
    " ul".split()
)
_VOID = frozenset("br hr img input link meta area base col embed source track wbr".split())
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_CHARSET = re.compile(rb"<meta[^>]{1,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)


def extract(source: IO[bytes], out: TextWriter, mime: str, tell: Tell) -> None:
    text = _decoded(source)
    parser = etree.HTMLParser(target=_Page(out), huge_tree=True, no_network=True, remove_comments=True)
    fed = False
    while piece := text.read(PIECE_CHARS):
        if piece := without_controls(piece):
            parser.feed(piece)
            fed = True
    if fed:
        parser.close()


def _decoded(source: IO[bytes]) -> io.TextIOWrapper:
    encoding, errors = encoding_of(source)
    if encoding not in ("utf-8", "utf-8-sig", "utf-16"):
        named = _CHARSET.search(source.read(4096))
        source.seek(0)
        if named:
            try:
                "".encode(named[1].decode())
                encoding, errors = named[1].decode(), "replace"
            except LookupError:
                pass  # the page names an encoding that nobody knows; the guess stays
    return io.TextIOWrapper(source, encoding=encoding, errors=errors)


class _Table:
    """A table being read. layout: it holds other blocks, so that its cells are written as text."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.layout = False


class _Page:
    """Receives the parser's events and writes blocks as they are finished."""

    def __init__(self, out: TextWriter) -> None:
        self._out = out
        self._text: list[str] = []  # of the block being read
        self._skipping = 0  # depth below an element that is not read
        self._title = 0
        self._pre = 0
        self._lists: list[int] = []  # per open list the number of its last item, -1 = without numbers
        self._bullet = ""
        self._tables: list[_Table] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "title" and self._skipping <= 1:  # it stands in the head
            self._title += 1
            return
        if self._skipping or self._unseen(tag, attributes):
            self._skipping += tag not in _VOID
            return
        if tag == "br":
            self._text.append(_BREAK)
        if tag in _BLOCKS:
            self._open(tag)

    def end(self, tag: str) -> None:
        if tag == "title" and self._title:
            self._title -= 1
            self._block()
        elif self._skipping:
            self._skipping -= tag not in _VOID
        elif tag in _BLOCKS:
            self._close(tag)

    def data(self, data: str) -> None:
        if self._title or not self._skipping:
            self._text.append(data)

    def comment(self, text: str) -> None:
        return

    def close(self) -> None:
        while self._tables:
            self._close("table")
        self._block()

    def _unseen(self, tag: str, attributes: dict[str, str]) -> bool:
        return tag in _SKIPPED or "hidden" in attributes or attributes.get("role") in ("navigation", "contentinfo")

    def _open(self, tag: str) -> None:
        if tag in ("td", "th"):
            if self._tables and not self._tables[-1].layout:
                self._tables[-1].rows = self._tables[-1].rows or [[]]
                self._text = []
            return
        if tag == "tr":
            if self._tables and not self._tables[-1].layout:
                self._tables[-1].rows.append([])
            return
        if self._in_cell() and (tag in _LEVELS or tag in ("table", "pre")):
            self._lay_out()
        self._block()
        if tag in ("ul", "ol", "menu"):
            self._lists.append(0 if tag == "ol" else -1)
        elif tag == "li":
            self._bullet = self._next_bullet()
        elif tag == "table":
            self._tables.append(_Table())
        elif tag == "pre":
            self._pre += 1

    def _close(self, tag: str) -> None:
        table = self._tables[-1] if self._tables else None
        if tag in ("td", "th"):
            if table and not table.layout:
                if table.rows:
                    table.rows[-1].append(" ".join("".join(self._text).split()))
                self._text = []
            else:
                self._block()
        elif tag in _LEVELS:
            self._block(_LEVELS[tag])
        elif tag == "table" and table:
            self._block()
            self._tables.pop()
            if not table.layout:
                write_table(self._out, table.rows)
        elif tag != "tr":
            self._block()
            if tag in ("ul", "ol", "menu") and self._lists:
                self._lists.pop()
                self._out.add("" if self._lists else "\n")
            self._pre -= tag == "pre" and self._pre > 0

    def _in_cell(self) -> bool:
        return bool(self._tables and self._tables[-1].rows and not self._tables[-1].layout)

    def _lay_out(self) -> None:
        """Write what the table has held so far as text: it is there to arrange things, not to list them."""
        table, text = self._tables[-1], self._text
        table.layout = True
        for cell in (cell for row in table.rows for cell in row):
            self._text = [cell]
            self._block()
        table.rows, self._text = [], text

    def _next_bullet(self) -> str:
        if not self._lists:
            return "- "
        if self._lists[-1] >= 0:
            self._lists[-1] += 1
        number = self._lists[-1]
        return "  " * (len(self._lists) - 1) + (f"{number}. " if number > 0 else "- ")

    def _block(self, level: int = 0) -> None:
        """Write what was read since the last block; in a table's cell it is only set off by a blank."""
        if self._in_cell():
            self._text.append(" ")
            self._bullet = ""
            return
        raw, self._text = "".join(self._text), []
        if self._pre:
            text = raw.replace(_BREAK, "\n").strip("\n")
        else:
            text = "\n".join(" ".join(line.split()) for line in raw.split(_BREAK)).strip()
        if not text.strip():
            return
        if level:
            title = " ".join(text.split())
            self._out.heading(title, level)
            self._out.add("#" * level + " " + title + "\n\n")
            return
        bullet, self._bullet = self._bullet, ""
        self._out.add(bullet + text + ("\n" if self._lists else "\n\n"))
