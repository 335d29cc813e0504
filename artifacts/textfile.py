"""Extracted text on disk: UTF-8, then an index that finds pages, lines and characters without reading it all.

    text | index as JSON | length of the index, 8 bytes, big-endian | b"WBTEXT1\\n"

Standard library only: the extracting process writes it, the store reads it.
"""

import json
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import IO, Any

MAGIC = b"WBTEXT1\n"
MARK_EVERY_CHARS = 16 * 1024
MOST_HEADINGS = 10_000  # what comes after has none
MOST_TABLES = 20_000  # stretches of rows; what comes after has no numbers
TITLE_CHARS = 120
HEADER_CHARS = 300
LOOK_AHEAD_CHARS = 64  # of the text after a cut, to see whether a character goes on there


class NotTextFile(ValueError):
    """The bytes are not an extracted text."""


@dataclass(slots=True)
class Index:
    """marks: (character, byte, line) of places to start reading from. pages: first character of each page.

    headings: (character, title, level from 1); a title of "" ends what stands above. sheets: (character, name).
    tables: (character, line, row, header): from here on each line is one row of a table, the first of them `row`, and
    row 0 = no table from here on. All ascending; lines, pages and rows from 1, characters from 0. Texts of earlier
    versions have headings without a level, and neither sheets nor tables.
    """

    total_chars: int = 0
    marks: list[tuple[int, int, int]] = field(default_factory=lambda: [(0, 0, 1)])
    pages: list[int] = field(default_factory=list)
    headings: list[tuple[int, str, int]] = field(default_factory=list)
    sheets: list[tuple[int, str]] = field(default_factory=list)
    tables: list[tuple[int, int, int, str]] = field(default_factory=list)

    def paths(self) -> list[tuple[str, ...]]:
        """Return the path of each heading, outermost first, itself included. A new sheet begins an empty path."""
        paths, stack, sheet = [], list[tuple[int, str]](), 0
        for char, title, level in self.headings:
            now = bisect_right(self.sheets, char, key=lambda sheet: sheet[0])
            stack = [above for above in stack if above[0] < level] if now == sheet else []
            sheet = now
            if title:
                stack = [*stack, (level, title)]
            paths.append(tuple(title for _, title in stack))
        return paths


class TextWriter:
    """Writes text in order. The text must be free of surrogates."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._bytes = 0
        self._line = 1
        self.index = Index()
        self.said = False  # anything but blanks

    def add(self, text: str) -> None:
        for start in range(0, len(text), MARK_EVERY_CHARS):
            piece = text[start : start + MARK_EVERY_CHARS]
            data = piece.encode()
            lines = piece.count("\n")
            self.said = self.said or not piece.isspace()
            self._out.write(data)
            self._bytes += len(data)  # no call stands between these three: a signal finds all of them or none
            self._line += lines
            self.index.total_chars += len(piece)
            if self.index.total_chars - self.index.marks[-1][0] >= MARK_EVERY_CHARS:
                self._mark()

    def page(self) -> None:
        """Begin the next page here."""
        self.index.pages.append(self.index.total_chars)
        self._mark()

    def heading(self, title: str, level: int = 1) -> None:
        """Say that what follows stands under this heading; "" = under none of this level or a deeper one."""
        left = MOST_HEADINGS - len(self.index.headings)
        if left == 1:  # what stands under those that are too many stands under none
            title, level = "", 1
        if left > 0:
            self.index.headings.append((self.index.total_chars, _bounded(title, TITLE_CHARS), level))

    def sheet(self, name: str) -> None:
        """Begin a sheet of tables here."""
        self.index.sheets.append((self.index.total_chars, _bounded(name, TITLE_CHARS)))
        self._mark()

    def rows(self, first: int, header: str = "") -> None:
        """Say that from here on each line is one row, beginning with this one. 0 = no more rows."""
        left = MOST_TABLES - len(self.index.tables)
        if left == 1:
            first = 0
        if left > 0:
            self.index.tables.append((self.index.total_chars, self._line, first, _bounded(header, HEADER_CHARS)))

    def close(self) -> None:
        """Write the index."""
        if self._out.seekable():  # a piece may have been written as the time was up, and not been counted
            self._out.seek(self._bytes)
            self._out.truncate()
        index: dict[str, Any] = {"chars": self.index.total_chars}
        index |= {name: getattr(self.index, name) for name in ("marks", "pages", "headings", "sheets", "tables")}
        data = json.dumps(index, ensure_ascii=False, separators=(",", ":")).encode()
        self._out.write(data + len(data).to_bytes(8, "big") + MAGIC)
        self._out.flush()

    def _mark(self) -> None:
        place = (self.index.total_chars, self._bytes, self._line)
        if place != self.index.marks[-1]:
            self.index.marks.append(place)


class TextReader:
    """Reads stretches of an extracted text from an open, seekable file. Raises NotTextFile."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        size = file.seek(0, 2)
        if size < 16:
            raise NotTextFile("too short")
        file.seek(size - 16)
        tail = file.read(16)
        self._text_bytes = size - 16 - int.from_bytes(tail[:8], "big")
        if tail[8:] != MAGIC or self._text_bytes < 0:
            raise NotTextFile("no index")
        file.seek(self._text_bytes)
        self.index = _load_index(file.read(size - 16 - self._text_bytes))

    def stretch(self, start: int, max_chars: int) -> tuple[str, int]:
        """Return at most max_chars characters from `start` on, and the character after them.

        Stops at the end of a paragraph, line, sentence or word if there is one in the last fifth, and never inside of
        what a reader sees as one character, unless that alone is longer than max_chars.
        """
        text = self.exactly(start, max_chars + LOOK_AHEAD_CHARS)
        cut = cut_before(text, max_chars)
        return text[:cut], start + cut

    def exactly(self, start: int, chars: int) -> str:
        """Return so many characters from `start` on, fewer at the end of the text."""
        char, byte, _ = self._mark_before(start)
        self._file.seek(byte)
        most = min((start - char + chars) * 4, self._text_bytes - byte)
        text = self._file.read(most).decode("utf-8", "ignore")  # the last character may be cut; it is beyond `chars`
        return text[start - char : start - char + chars]

    def line_at(self, position: int) -> int:
        """Return the number of the line, from 1, that the character stands in."""
        char, _, line = self._mark_before(position)
        return line + self.exactly(char, position - char).count("\n")

    def position_of_line(self, line: int) -> int:
        """Return where the line starts; the end of the text if there are fewer."""
        char, _, current = self._mark_before_line(line)
        while current < line and char < self.index.total_chars:
            text = self.exactly(char, MARK_EVERY_CHARS)
            at = 0
            while current < line and (found := text.find("\n", at)) >= 0:
                at, current = found + 1, current + 1
            char += at if current == line else len(text)
        return char

    def page_at(self, position: int) -> int:
        """Return the number of the page, from 1, that the character stands on. 0 = there are no pages."""
        return bisect_right(self.index.pages, position)

    def heading_at(self, position: int) -> str:
        """Return the heading that the character stands under, or ""."""
        at = bisect_right(self.index.headings, position, key=lambda heading: heading[0])
        return self.index.headings[at - 1][1] if at else ""

    def sheet_at(self, position: int) -> str:
        """Return the name of the sheet that the character stands on, or ""."""
        at = bisect_right(self.index.sheets, position, key=lambda sheet: sheet[0])
        return self.index.sheets[at - 1][1] if at else ""

    def _mark_before_line(self, line: int) -> tuple[int, int, int]:
        """Return the last mark before the line: one in the line itself may lie in its middle."""
        at = bisect_right(self.index.marks, line - 1, key=lambda mark: mark[2])
        return self.index.marks[max(0, at - 1)]

    def _mark_before(self, position: int) -> tuple[int, int, int]:
        return self.index.marks[bisect_right(self.index.marks, position, key=lambda mark: mark[0]) - 1]


def _load_index(data: bytes) -> Index:
    try:
        found: dict[str, Any] = json.loads(data)
        return Index(
            total_chars=int(found["chars"]),
            marks=[(char, byte, line) for char, byte, line in found["marks"]],
            pages=list(found["pages"]),
            headings=[(char, title, level[0] if level else 1) for char, title, *level in found["headings"]],
            sheets=[(char, name) for char, name in found.get("sheets", ())],
            tables=[(char, line, row, header) for char, line, row, header in found.get("tables", ())],
        )
    except (ValueError, KeyError, TypeError) as e:
        raise NotTextFile("broken index") from e


def _bounded(words: str, most: int) -> str:
    words = " ".join(words.split())
    return words if len(words) <= most else words[: most - 1] + "…"


def cut_before(text: str, most: int) -> int:
    """Return where to cut, at most `most`: a good place in the last fifth, else between two characters."""
    if len(text) <= most:
        return len(text)
    least = max(1, most - most // 5)
    for end in ("\n\n", "\n", "。", "！", "？", ". ", "! ", "? ", " "):
        at = text.rfind(end, least, most)
        if at >= 0:
            return at + len(end)
    cut = most
    while cut > 1 and not splits_here(text, cut):
        cut -= 1
    return cut if splits_here(text, cut) else most


def splits_here(text: str, at: int) -> bool:
    """Return whether a reader sees a new character begin at `at`: no mark, joiner, tone or half of a flag."""
    before, after = ord(text[at - 1]), ord(text[at])
    if _joins(after) or before == 0x200D:
        return False
    if _is_regional(after) and _is_regional(before):
        start = at - 1
        while start > 0 and _is_regional(ord(text[start - 1])):
            start -= 1
        return (at - start) % 2 == 0
    return not (before == 0x0D and after == 0x0A)


def _joins(code: int) -> bool:
    return (
        code in (0x200D, 0xFE0E, 0xFE0F, 0x20E3)
        or 0x0300 <= code <= 0x036F
        or 0x0E31 <= code <= 0x0E3A
        or 0x0E47 <= code <= 0x0E4E
        or 0x064B <= code <= 0x065F
        or 0x0900 <= code <= 0x0903
        or 0x093A <= code <= 0x094F
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
        or 0x3099 <= code <= 0x309A
    )


def _is_regional(code: int) -> bool:
    return 0x1F1E6 <= code <= 0x1F1FF
