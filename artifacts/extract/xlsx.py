"""Sheets: each row a line of its cells, its number kept. Formulas by the value they had when the file was saved."""

from collections.abc import Iterator
from typing import IO

from lxml import etree

from artifacts.extract.characters import one_line
from artifacts.extract.office import STREAM, ZIP_ERRORS, Package, child, children, local, unescaped, unreadable, value
from artifacts.extract.outcome import Tell, Trouble, Unreadable
from artifacts.extract.tables import header_of
from artifacts.extract.xlsx_values import Formats
from artifacts.textfile import TextWriter

MOST_CELLS = 1_000_000  # with something in them, of a file
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # as Excel
MOST_STRINGS = 2_000_000
CELL_CHARS = 32_767  # as Excel
EMPTY_LINES = 3  # so many empty rows are written as such; after more the numbers jump


def extract(source: IO[bytes], out: TextWriter, mime: str, tell: Tell) -> None:
    package = Package(source)
    main = package.main()
    book = package.xml(main)
    relations = package.relations(main)
    formats = Formats(_first(package, main, "styles"), book)
    strings = _strings(package, main)
    sheets = children(child(book, "sheets"), "sheet")
    left, written = MOST_CELLS, 0
    for number, sheet in enumerate(sheets, 1):
        relation = next(
            (relations[v] for k, v in sheet.attrib.items() if str(k).endswith("}id") and v in relations), None
        )
        if relation is None or relation.kind != "worksheet" or not package.has(relation.target):
            continue  # a chart has no cells
        writer = _Sheet(one_line(value(sheet, "name")) or f"Sheet {number}", out)
        for row, cells in _rows(package, relation.target, strings, formats, writer):
            left -= len(cells)
            if left < 0:
                writer.cut(row)
                break
            writer.row(row, cells)
        writer.end()
        written += writer.last > 0
        tell(number, len(sheets))
        if left < 0:
            break
    if not written:
        raise Unreadable(Trouble.EMPTY)


class _Sheet:
    """A sheet being written. last: number of the row written last, 0 = none."""

    def __init__(self, name: str, out: TextWriter) -> None:
        self._name, self._out = name, out
        self._header = ""
        self._notes: list[str] = []
        self.last = 0
        self.unknown = 0  # formulas without a value
        out.sheet(name)
        out.add(f"{name}\n")

    def row(self, number: int, cells: dict[int, str]) -> None:
        if not self.last:
            self._header = header_of([cells.get(column, "") for column in range(1, max(cells) + 1)])
        gap = number - self.last - 1
        if self.last and gap <= EMPTY_LINES:
            self._out.add("\n" * gap)
        else:
            self._out.rows(number, self._header)
        width = max(cells)
        filled = [cells.get(column, "") for column in range(1, width + 1)] if width <= 4 * len(cells) + 16 else None
        self._out.add((" | ".join(filled) if filled else _sparse(cells)) + "\n")
        self.last = number

    def cut(self, row: int) -> None:
        self._notes.append(f"[Reading stopped before row {row} of {self._name}: there are too many cells.]\n")

    def end(self) -> None:
        if self.last:
            self._out.rows(0)
        else:
            self._notes.append("[This sheet is empty.]\n")
        if self.unknown:
            self._notes.append(f"[{self.unknown} formulas have no value: the file was not calculated when saved.]\n")
        self._out.add("".join(self._notes) + "\n")


def _sparse(cells: dict[int, str]) -> str:
    return " | ".join(f"{_letters(column)}: {text}" for column, text in sorted(cells.items()))


def _letters(column: int) -> str:
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def _first(package: Package, main: str, kind: str) -> etree._Element | None:
    parts = package.related(main, kind)
    return package.xml(parts[0]) if parts else None


def _elements(package: Package, part: str, name: str) -> Iterator[etree._Element]:
    """Give the elements of a name as they are read, and forget each afterwards."""
    try:
        with package.stream(part) as stream:
            for _, element in etree.iterparse(stream, events=("end",), tag="{*}" + name, **STREAM):
                yield element
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
    except ZIP_ERRORS as e:
        raise unreadable(e) from e


def _strings(package: Package, main: str) -> list[str]:
    parts = package.related(main, "sharedStrings")
    strings: list[str] = []
    for element in _elements(package, parts[0], "si") if parts else ():
        strings.append(_rich(element))
        if len(strings) > MOST_STRINGS:
            raise Unreadable(Trouble.TOO_LARGE)
    return strings


def _rich(element: etree._Element) -> str:
    """Return the text of a string, without what shows how it is read aloud."""
    runs = [run for run in element if local(run) in ("t", "r")]
    texts = [run if local(run) == "t" else child(run, "t") for run in runs]
    return one_line(unescaped("".join(text.text or "" for text in texts if text is not None)))[:CELL_CHARS]


def _rows(
    package: Package, part: str, strings: list[str], formats: Formats, sheet: _Sheet
) -> Iterator[tuple[int, dict[int, str]]]:
    """Give (number, column -> text) of each row with something in it, ascending."""
    last = 0
    for element in _elements(package, part, "row"):
        said = value(element, "r")
        number = int(said) if said.isdigit() and len(said) < 8 else last + 1
        if not last < number <= MOST_ROWS:
            continue
        last = number
        cells: dict[int, str] = {}
        column = 0
        for cell in element:
            column = _column(cell.get("r", "")) or column + 1
            text = _cell(cell, strings, formats)
            if text and column <= MOST_COLUMNS:
                cells[column] = text
            elif not text and cell.get("t") != "str" and child(cell, "f") is not None:
                sheet.unknown += 1
        if cells:
            yield number, cells


def _column(place: str) -> int:
    """Return the column, from 1, of a place such as "AB12"; 0 if it says none."""
    column = 0
    for char in place[:4]:
        if "A" <= char <= "Z":
            column = column * 26 + ord(char) - 64
    return column


def _cell(cell: etree._Element, strings: list[str], formats: Formats) -> str:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        inline = child(cell, "is")
        return "" if inline is None else _rich(inline)
    found = child(cell, "v")
    text = (found.text or "").strip() if found is not None else ""
    if kind == "s":
        return strings[int(text)] if text.isdigit() and int(text) < len(strings) else ""
    if kind == "b":
        return {"1": "TRUE", "0": "FALSE"}.get(text, text)
    if kind == "n" and text:
        return formats.shown(text, cell.get("s", "0"))
    return one_line(unescaped(text))[:CELL_CHARS]
