"""A text cut into what is weighed and quoted: sentences, list items, rows of a table, each with its place. Pure."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agents.providers.offline.results import Excerpt

UNIT_CHARS = 320  # a sentence, a line or a table row; longer ones are cut
QUOTE_CHARS = 320
TITLE_CHARS = 60
_PAGE_IN_LINE = re.compile(r"(?<=[^\n])(?=\[page \d+\]\n)")
_PAGE_LINE = re.compile(r"^\[page (\d+)\]$")
_HEADING = re.compile(
    r"^#{1,6}\s+\S|^第[一二三四五六七八九十百\d]+[章节条编][^。！？；]{0,40}$|^[一二三四五六七八九十]{1,3}、[^。！？，；]{1,20}$"
    r"|^\d+(?:\.\d+)*\.?\s+[A-Z\u3400-\u9fff][^.。!?！？]{0,60}$"
)
_TITLE = re.compile(r"^[A-Z\u00c0-\u00de][^.!?。！？；;,，:：|]*(?:\. [A-Z][^.!?;,:|]*)?$")
_CLOSED = re.compile(r"[.!?。！？；:：)\]”\"]$")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"“'(\[]?[A-Z0-9\u00c0-\u024f])|(?<=[。！？；])")
_ITEM = re.compile(r"[-*•|>]|\(?\d+[.)、]\s?")
_TABLE_RULE = re.compile(r"^\|[\s:|-]*-[\s:|-]*$")
_NOTE_MARK = re.compile(r"\s*\[\^\d{1,3}\](?::\s*)?")  # of a footnote, in Markdown
_MARKDOWN_NAME = re.compile(r"\.(md|markdown)$", re.IGNORECASE)
_TABLE_NAME = re.compile(r"\.(csv|tsv)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The smallest thing that is weighed. page, line: 0 = unknown. Units of one paragraph are quoted together.

    cite: id of the passage it stands in, "" = none was issued. path: the headings above it, `heading` the innermost.
    row: it is a row of a table, which says all by itself. item: it is an item of a list.
    """

    document: str
    text: str
    place: int
    paragraph: int
    page: int = 0
    line: int = 0
    heading: str = ""
    is_heading: bool = False
    cite: str = ""
    path: tuple[str, ...] = ()
    row: bool = False
    item: bool = False


@dataclass(slots=True)
class _Cutter:
    """Walks through the lines of one document and remembers where it is."""

    document: str
    units: list[Unit] = field(default_factory=list)
    page: int = 0
    paragraph: int = 0
    heading: str = ""
    cite: str = ""
    path: tuple[str, ...] = ()

    def add(self, text: str, *, line: int = 0, is_heading: bool = False, row: bool = False, item: bool = False) -> None:
        for piece in [text[: 2 * UNIT_CHARS]] if row or is_heading else _pieces(text):
            self.units.append(
                Unit(
                    document=self.document,
                    text=piece,
                    place=len(self.units),
                    paragraph=self.paragraph,
                    page=self.page,
                    line=line,
                    heading=self.heading,
                    is_heading=is_heading,
                    cite=self.cite,
                    path=self.path or ((self.heading,) if self.heading else ()),
                    row=row,
                    item=item,
                )
            )

    def take(self, text: str, first_line: int) -> None:
        """Cut a stretch of running text."""
        held: list[str] = []
        held_line = 0
        header: list[str] = []  # of a table drawn with bars

        def let_go() -> None:
            if held:
                self.paragraph += 1
                self.add(joined(held), line=held_line)
                held.clear()

        if _MARKDOWN_NAME.search(self.document):
            text = "\n".join(_NOTE_MARK.sub("", line) for line in text.split("\n"))
        lines = _PAGE_IN_LINE.sub("\n", text).split("\n")
        for count, raw in enumerate(lines):
            number = first_line + count if first_line else 0
            line = raw.strip()
            if page := _PAGE_LINE.match(line):
                let_go()
                self.page = int(page[1])
            elif not line:
                let_go()
            elif _HEADING.match(line) or _is_title(lines, count):
                let_go()
                self.paragraph += 1
                self.heading = line.lstrip("# ")
                self.add(self.heading, line=number, is_heading=True)
            elif _ITEM.match(line):  # lists and tables: each line for itself
                let_go()
                self.paragraph += 1
                if not line.startswith("|"):
                    self.add(line, line=number, item=True)
                elif count + 1 < len(lines) and _TABLE_RULE.match(lines[count + 1].strip()):
                    header = _piped(line)
                elif not _TABLE_RULE.match(line):
                    self.add(_paired(header, _piped(line)), line=number, row=True)
            else:
                if not held:
                    held_line = number
                held.append(line)
                if sum(map(len, held)) > 4 * UNIT_CHARS:
                    let_go()
        let_go()


def units_of(
    document: str, text: str, *, first_line: int = 1, first_page: int = 0, first_paragraph: int = 0
) -> list[Unit]:
    """Return the units of a document's text; lines "[page 3]" set the page and are no text."""
    cutter = _Cutter(document, page=first_page, paragraph=first_paragraph)
    if _TABLE_NAME.search(document):
        for line, cells in _records(text, "\t" if document.lower().endswith("tsv") else ","):
            cutter.paragraph += 1
            cutter.add(cells, line=first_line + line - 1, row=True)
    else:
        cutter.take(text, first_line)
    return cutter.units


def units_of_excerpts(excerpts: Iterable[Excerpt]) -> list[Unit]:
    """Return the units of passages, each passage once, those of a document in its order."""
    once = {excerpt.id: excerpt for excerpt in excerpts}
    documents = {name: place for place, name in reversed(list(enumerate(e.reference for e in once.values())))}
    units: list[Unit] = []
    paragraph = 0
    for excerpt in sorted(once.values(), key=lambda e: (documents[e.reference], e.page, e.row, e.line)):
        path = excerpt.heading[:-1] if excerpt.row else excerpt.heading
        cutter = _Cutter(
            excerpt.name,
            units,
            page=excerpt.page,
            paragraph=paragraph + 1,
            heading=path[-1] if path else "",
            cite=excerpt.id,
            path=path,
        )
        if excerpt.row:
            for row in _rows(excerpt):
                cutter.paragraph += 1
                cutter.add(row, row=True)
        else:
            cutter.take(excerpt.text, excerpt.line)
        paragraph = cutter.paragraph
    return units


def outline(units: Iterable[Unit], *, count: int = 8) -> list[str]:
    """Return the first headings."""
    return list(dict.fromkeys(u.text for u in units if u.is_heading))[:count]


def joined(lines: Sequence[str]) -> str:
    """Return the lines of a paragraph as one text: no blank between wide characters, no hyphens at line ends."""
    text = ""
    for line in lines:
        if not text:
            text = line
        elif text[-1] == "-" and len(text) > 1 and text[-2].islower() and line[0].islower():
            text = text[:-1] + line
        else:
            text += ("" if ord(text[-1]) >= 0x2E80 and ord(line[0]) >= 0x2E80 else " ") + line
    return text


def _is_title(lines: Sequence[str], at: int) -> bool:
    """Return whether a line is a heading though nothing marks it as one: short, open at its end, text below it, and
    the line before it is over."""
    line = lines[at].strip()
    if len(line) > TITLE_CHARS or not _TITLE.match(line) or _CLOSED.search(line) or at + 1 >= len(lines):
        return False
    before, after = lines[at - 1].strip() if at else "", lines[at + 1].strip()
    begins = bool(after) and not after[0].islower() and len(after) > len(line)
    return begins and (not before or bool(_CLOSED.search(before)))


def _pieces(text: str) -> list[str]:
    """Return the sentences of the text; one that is too long is cut at a blank."""
    out: list[str] = []
    for sentence in _SENTENCE_END.split(text):
        rest = sentence.strip()
        while len(rest) > UNIT_CHARS:
            at = rest.rfind(" ", UNIT_CHARS // 2, UNIT_CHARS)
            at = at if at > 0 else UNIT_CHARS
            out.append(rest[:at].strip())
            rest = rest[at:].strip()
        if rest:
            out.append(rest)
    return out


def _records(text: str, separator: str) -> list[tuple[int, str]]:
    """Return a table's rows as "column: value" pairs with their lines, so that a row is found by its column's name."""
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    found: list[tuple[int, str]] = []
    header: list[str] = []
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if header and any(cells):
                found.append((reader.line_num, _paired(header, cells)))
            elif any(cells):
                header = cells
    except csv.Error:
        pass  # what was read until here is sound
    return found


def _rows(excerpt: Excerpt) -> list[str]:
    """Return the rows of a passage of a table, without its header and the name of its sheet."""
    header = excerpt.heading[-1].split(" | ") if excerpt.heading else []
    rows = []
    for line in excerpt.text.split("\n"):
        cells = _cells(line, len(header))
        if len(cells) > 1 and cells != header:
            rows.append(_paired(header, cells))
    return rows


def _cells(line: str, count: int) -> list[str]:
    """Return a row's cells, by the separator that gives as many as there are columns."""
    found = [line.split(" | ")]
    for separator in ",\t;":
        try:
            found += list(csv.reader([line], delimiter=separator))
        except csv.Error:
            continue
    best = min(found, key=lambda cells: abs(len(cells) - count)) if count else max(found, key=len)
    return [cell.strip() for cell in best]


def _piped(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| ").split("|")]


def _paired(header: Sequence[str], cells: Sequence[str]) -> str:
    pairs = [f"{name}: {cell}" if name else cell for name, cell in zip(header, cells, strict=False) if cell]
    return "; ".join((*pairs, *filter(None, cells[len(header) :])))
