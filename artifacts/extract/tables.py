"""Tables: CSV and its kin, one row a line, its number kept; and how a table inside of another document is written."""

import csv
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import IO

from artifacts.extract.characters import without_controls
from artifacts.extract.outcome import Tell
from artifacts.extract.plain import decoded
from artifacts.textfile import TextWriter

LINE_CHARS = 4 * 1024 * 1024  # a longer line is cut, and so counts as more than one row
SAMPLE_ROWS = 30
LONG_ROWS, LONG_CHARS = 12, 1_500  # a table that may become more than one passage keeps its rows' numbers and header
_DELIMITERS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"[-+(]?[\s$€£¥]*\d[\d.,\s%:/-]*\)?")


def extract(source: IO[bytes], out: TextWriter, mime: str, tell: Tell) -> None:
    lines = decoded(source)
    sample = [without_controls(line) for line in islice(iter(lambda: lines.readline(LINE_CHARS), ""), SAMPLE_ROWS)]
    delimiter = "\t" if mime == "text/tab-separated-values" else _delimiter(sample)
    rest = (without_controls(line) for line in iter(lambda: lines.readline(LINE_CHARS), ""))
    for number, row in enumerate(_rows(chain(sample, rest), delimiter), 1):
        if number == 1:
            out.rows(1, header_of(_cells(row, delimiter)))
        out.add(row)
    out.rows(0)


def header_of(cells: list[str]) -> str:
    """Return the row as the header of what follows, "" if it does not look like one: names, more than one of them."""
    named = [" ".join(cell.split()) for cell in cells]
    if len([name for name in named if name]) < 2 or any(_NUMBER.fullmatch(name) for name in named):
        return ""
    return " | ".join(named).strip(" |")


def write_table(out: TextWriter, rows: list[list[str]]) -> None:
    """Write a table of cells without line ends as Markdown, its first row as the header."""
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if not rows:
        return
    width = max(len(row) for row in rows)
    lines = [_markdown([*row, *[""] * (width - len(row))]) for row in rows]
    long = len(rows) > LONG_ROWS or sum(map(len, lines)) > LONG_CHARS
    header = header_of(rows[0])
    if long:
        out.rows(1, header)
    out.add(lines[0] + "|" + " --- |" * width + "\n")
    if long:
        out.rows(2, header)
    out.add("".join(lines[1:]))
    if long:
        out.rows(0)
    out.add("\n")


def _markdown(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _delimiter(sample: list[str]) -> str:
    """Return the delimiter that cuts the sample into the most columns, the same number in nearly all rows."""
    best, most = ",", 1.0
    for delimiter in _DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(sample, delimiter=delimiter) if row]
        except csv.Error:
            continue
        usual = max(set(widths), key=widths.count, default=0)
        if usual > 1 and (score := usual * (widths.count(usual) / len(widths)) ** 4) > most:
            best, most = delimiter, score
    return best


def _cells(row: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([row], delimiter=delimiter), [])
    except csv.Error:
        return []


def _rows(lines: Iterator[str], delimiter: str) -> Iterator[str]:
    """Give each row as one line: line ends inside of a cell become blanks."""
    taken: list[str] = []

    def told() -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    reader = csv.reader(told(), delimiter=delimiter)
    try:
        for _ in reader:
            yield taken[0] if len(taken) == 1 else " ".join(line.rstrip("\n") for line in taken) + "\n"
            taken.clear()
    except csv.Error:  # a quote that is never closed: what it swallowed, and all that follows, is read line by line
        yield from taken
        yield from lines
