"""A text cut into passages: what is searched, cited and opened. Pure; standard library only.

A passage ends where its page, sheet, table or section ends, and before it is too long at the best place there is: a
paragraph, a row, a sentence, a clause, a word. Passages follow each other without overlap and leave out nothing but
blank space.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agents.runtime.knowledge import Place
from artifacts.textfile import Index, TextReader, splits_here

MOST_PASSAGES: Final = 50_000  # of one version; what comes after the last one's end cannot be searched
MOST_CHARS: Final = 1_000
WIDE: Final = 2.25  # what a Chinese, Japanese or Korean character says, in Latin ones: at most 444 of them
LEAST_SHARE: Final = 0.6  # no good place to cut is looked for before this share of a passage
BLOCK_CHARS: Final = 256 * 1024
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
# Where a passage may end, best first; what matches stays with the text before it
_ENDS: Final = (
    re.compile(r"\n(?:[^\S\n]*\n)+"),
    re.compile(r"[。！？；…][”’」』）]*|[.!?][\"'”’)\]]*(?=\s)"),
    re.compile(r"\n"),
    re.compile(r"[，、：]|[,;:](?=\s)"),
    re.compile(r"\s|[,;](?=\S)"),
)
_ROW_ENDS: Final = (re.compile(r"\n"), *_ENDS[3:])


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPassage:
    """A passage to be. number: from 0. start, end: characters of the text, of which `text` is exactly that stretch."""

    number: int
    start: int
    end: int
    text: str
    place: Place


def split(text: str | TextReader, index: Index, *, most: int = MOST_PASSAGES) -> Iterator[NewPassage]:
    """Give the passages of an extracted text, in order, at most so many.

    Of a reader a block is held at a time. In a table the last item of a place's heading is the table's header row.
    """
    window, places = _Window(text), _Places(index)
    number = 0
    for begin, stop in _segments(index):
        at = begin
        while at < stop and number < most:
            after = _cut(window, at, stop, in_table=places.table_in(at, at + 200) is not None)
            piece = window.read(at, after)
            start, end = _trimmed(piece)
            if start < end:
                place = places.of(at + start, at + end, piece[:start].count("\n"), piece[start:end].count("\n"))
                yield NewPassage(number=number, start=at + start, end=at + end, text=piece[start:end], place=place)
                number += 1
            places.line += piece.count("\n")
            at = after


class _Window:
    """The part of the text that is being cut."""

    def __init__(self, text: str | TextReader) -> None:
        self._source = text
        self._start, self._text = (0, text) if isinstance(text, str) else (0, "")

    def read(self, start: int, end: int) -> str:
        if isinstance(self._source, TextReader) and not self._start <= start <= end <= self._start + len(self._text):
            self._start = start
            self._text = self._source.exactly(start, max(BLOCK_CHARS, end - start))
        return self._text[start - self._start : end - self._start]


class _Places:
    """Says where a stretch stands. line: number of the line that the next stretch begins in, kept by who cuts."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._paths = index.paths()
        self._sheet_starts = [char for char, _ in index.sheets]
        self._heading_starts = [char for char, _, _ in index.headings]
        self._table_starts = [char for char, _, _, _ in index.tables]
        self.line = 1

    def of(self, start: int, end: int, lines_before: int, lines_in: int) -> Place:
        """Return the place of [start, end), which begins so many lines after self.line and holds so many line ends."""
        index = self._index
        sheet = bisect_right(self._sheet_starts, start)
        heading = bisect_right(self._heading_starts, end - 1)
        path = self._paths[heading - 1] if heading else ()
        if sheet and heading and self._heading_starts[heading - 1] < self._sheet_starts[sheet - 1]:
            path = ()
        first = self.line + lines_before
        rows, lines = (0, 0), (first, first + lines_in)
        table = self.table_in(start, end)
        if table is not None:
            _, line, row, header = table
            last = self.table_in(end - 1, end) or table
            rows = (row + max(0, first - line), last[2] + first + lines_in - last[1])
            path = (*path, header) if header else path
        return Place(
            page=bisect_right(index.pages, start),
            heading=path,
            sheet=index.sheets[sheet - 1][1] if sheet else "",
            rows=rows,
            lines=(0, 0) if index.pages or index.sheets or table else lines,
        )

    def table_in(self, start: int, end: int) -> tuple[int, int, int, str] | None:
        """Return the table's entry that holds `start`, else the first that begins before `end`."""
        at = bisect_right(self._table_starts, start)
        for table in self._index.tables[max(0, at - 1) : at + 1]:
            if table[2] and table[0] < end:
                return table
        return None


def _segments(index: Index) -> Iterator[tuple[int, int]]:
    """Give the stretches (start, end) that no passage goes beyond."""
    starts = {0, *index.pages, *(char for char, _ in index.sheets)}
    named = {char + len(name) + 1 for char, name in index.sheets}  # a sheet's name goes with its first rows
    before: tuple[int, str] = (0, "")
    for char, _, row, header in index.tables:
        if (min(row, 1), header) != before and char not in named:  # where only row numbers jump, the table goes on
            starts.add(char)
        before = (min(row, 1), header)
    last = (-1, "", 0)
    for char, title, level in index.headings:
        if char - last[0] > len(last[1]) + last[2] + 4:  # something stands between the two headings
            starts.add(char)
        last = (char, title, level)
    ends = sorted(start for start in starts if start < index.total_chars)
    yield from pairwise([*ends, index.total_chars])


def _cut(window: _Window, at: int, stop: int, *, in_table: bool) -> int:
    """Return where the passage that begins at `at` ends, at most `stop`."""
    piece = window.read(at, min(stop, at + 2 * MOST_CHARS))
    most = _fitting(piece, MOST_CHARS)
    if at + len(piece) == stop:
        if most == len(piece):
            return stop
        weight = _weight(piece)
        if weight < 1.6 * MOST_CHARS:  # two of one size rather than a long one and a crumb
            most = _fitting(piece, 0.6 * weight)
    least = int(most * LEAST_SHARE)
    for end in _ROW_ENDS if in_table else _ENDS:
        found = [match.end() for match in end.finditer(piece, least, most + 2) if match.end() <= most]
        if found:
            return at + found[-1]
    cut = most
    while cut > 1 and not splits_here(piece, cut):
        cut -= 1
    return at + (cut if splits_here(piece, cut) else most)


def _fitting(text: str, most: float) -> int:
    """Return how many characters from the beginning weigh at most so much."""
    if not text.isascii():
        for count, wide in enumerate(_WIDE.finditer(text)):
            left = most - (WIDE - 1) * count
            if wide.start() + WIDE > left:
                return min(wide.start(), int(left))
        most -= (WIDE - 1) * len(_WIDE.findall(text))
    return min(len(text), int(most))


def _weight(text: str) -> float:
    return len(text) + (WIDE - 1) * len(_WIDE.findall(text))


def _trimmed(piece: str) -> tuple[int, int]:
    """Return the piece's stretch (start, end) without blank lines around it; its first line keeps its indent."""
    end = len(piece.rstrip())
    solid = len(piece) - len(piece.lstrip())
    return piece.rfind("\n", 0, solid) + 1, end
