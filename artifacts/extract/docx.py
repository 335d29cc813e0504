"""Word: paragraphs, headings, lists, tables and notes in the order of the document, as Markdown."""

from collections.abc import Iterator
from typing import IO

from lxml import etree

from artifacts.extract.characters import clean, one_line
from artifacts.extract.docx_styles import Numbering, Style, Styles
from artifacts.extract.office import Package, child, children, local, value
from artifacts.extract.outcome import Tell, Trouble, Unreadable
from artifacts.extract.tables import write_table
from artifacts.textfile import TextWriter

_WRAPPERS = frozenset("sdt sdtContent customXml ins moveTo smartTag hyperlink fldSimple AlternateContent".split())
_UNREAD = frozenset("del moveFrom rPr pPr instrText delText delInstrText rt tblPr sectPr".split())
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


def extract(source: IO[bytes], out: TextWriter, mime: str, tell: Tell) -> None:
    package = Package(source)
    main = package.main()
    root = package.xml(main)
    body = child(root, "body")
    if body is None:
        raise Unreadable(Trouble.BROKEN)
    document = _Document(package, main, out)
    document.read(body)
    document.furniture()
    if not out.said:
        raise Unreadable(Trouble.SCANNED if package.pictured() else Trouble.EMPTY)


class _Document:
    def __init__(self, package: Package, main: str, out: TextWriter) -> None:
        self._package, self._main, self._out = package, main, out
        self._styles = Styles(self._first("styles"))
        self._numbering = Numbering(self._first("numbering"))
        self._notes = {kind: self._notes_of(kind) for kind in ("footnote", "endnote")}
        self._owed: list[tuple[str, str]] = []  # notes that the section so far refers to: mark, text
        self._boxes: list[etree._Element] = []  # text boxes that hang on the paragraph being read
        self._in_list = False

    def read(self, body: etree._Element) -> None:
        """Write a body, a cell or a text box."""
        for block in _blocks(body):
            if local(block) == "tbl":
                self._table(block)
            else:
                self._paragraph(block)
        self._pay_notes()

    def furniture(self) -> None:
        """Write what stands at the top and bottom of pages, once, at the end."""
        said = set[str]()
        for kind in ("header", "footer"):
            for part in self._package.related(self._main, kind):
                root = self._package.xml(part)
                text = one_line(" ".join(self._text(block) for block in _every_paragraph(root)))
                if any(char.isalpha() for char in text) and text not in said:
                    if not said:
                        self._out.heading("")
                    self._out.add(f"[Page {kind}] {text}\n\n")
                    said.add(text)

    def _first(self, kind: str) -> etree._Element | None:
        parts = self._package.related(self._main, kind)
        return self._package.xml(parts[0]) if parts else None

    def _notes_of(self, kind: str) -> dict[str, etree._Element]:
        notes = children(self._first(kind + "s"), kind)
        return {value(note, "id"): note for note in notes if value(note, "type") in ("", "normal")}

    def _paragraph(self, paragraph: etree._Element) -> None:
        style = self._styles.of(paragraph)
        text = clean(self._text(paragraph)).strip("\n")
        boxes, self._boxes = self._boxes, []
        if text.strip() and not style.contents:
            self._write(text, style)
        for box in boxes:
            self.read(box)

    def _write(self, text: str, style: Style) -> None:
        number = self._numbering.next(style.number, style.depth)
        if style.level:
            self._pay_notes()
            title = " ".join(f"{number} {text}".split())
            self._end_list()
            self._out.heading(title, style.level)
            self._out.add("#" * min(style.level, 6) + " " + title + "\n\n")
        elif number:
            self._out.add("  " * style.depth + f"{number} {text.strip()}\n")
            self._in_list = True
        else:
            self._end_list()
            self._out.add(text.rstrip() + "\n\n")

    def _end_list(self) -> None:
        if self._in_list:
            self._out.add("\n")
        self._in_list = False

    def _pay_notes(self) -> None:
        self._end_list()
        owed, self._owed = self._owed, []
        for mark, text in owed:
            self._out.add(f"[^{mark}]: {text}\n\n")

    def _table(self, table: etree._Element) -> None:
        self._end_list()
        rows: list[list[str]] = []
        for row in _inner(table, "tr"):
            cells: list[str] = []
            for cell in _inner(row, "tc"):
                rules = child(cell, "tcPr")
                merged = child(rules, "vMerge")
                goes_on = merged is not None and value(merged) != "restart" and rows and len(cells) < len(rows[-1])
                cells.append(rows[-1][len(cells)] if goes_on else self._cell(cell))
                span = value(child(rules, "gridSpan"))
                cells += [""] * (min(int(span), 64) - 1 if span.isdigit() else 0)
            rows.append(cells)
        if max(map(len, rows), default=0) <= 1:  # a frame around text
            for cell in (cell for row in _inner(table, "tr") for cell in _inner(row, "tc")):
                self.read(cell)
            return
        write_table(self._out, rows)

    def _cell(self, cell: etree._Element) -> str:
        texts = [self._text(paragraph) for paragraph in _every_paragraph(cell)]
        boxes, self._boxes = self._boxes, []
        texts += [self._text(paragraph) for box in boxes for paragraph in _every_paragraph(box)]
        return one_line(" ".join(texts))

    def _text(self, element: etree._Element) -> str:
        pieces: list[str] = []
        for inner in element:
            name = local(inner)
            if name == "t":
                pieces.append(inner.text or "")
            elif name in _SIGNS:
                pieces.append(_SIGNS[name])
            elif name in ("footnoteReference", "endnoteReference"):
                pieces.append(self._note(name.removesuffix("Reference"), value(inner, "id")))
            elif name in ("drawing", "pict", "AlternateContent"):
                self._boxes += _text_boxes(inner)
            elif name not in _UNREAD:
                pieces.append(self._text(inner))
        return "".join(pieces)

    def _note(self, kind: str, number: str) -> str:
        note = self._notes[kind].pop(number, None)  # a note is written once, whoever refers to it
        mark = number if kind == "footnote" else f"e{number}"
        if note is not None:
            self._owed.append((mark, one_line(" ".join(self._text(paragraph) for paragraph in _every_paragraph(note)))))
        return f"[^{mark}]"


def _blocks(body: etree._Element) -> Iterator[etree._Element]:
    """Give paragraphs and tables in order, also those inside of content controls and tracked insertions."""
    for element in body:
        name = local(element)
        if name in ("p", "tbl"):
            yield element
        elif name in _WRAPPERS:
            yield from _blocks(element)


def _inner(element: etree._Element, name: str) -> Iterator[etree._Element]:
    for inner in element:
        if local(inner) == name:
            yield inner
        elif local(inner) in _WRAPPERS:
            yield from _inner(inner, name)


def _every_paragraph(element: etree._Element | None) -> Iterator[etree._Element]:
    """Give the paragraphs of an element and of the tables in it."""
    if element is None:
        return
    for block in _blocks(element):
        if local(block) == "p":
            yield block
        else:
            for row in _inner(block, "tr"):
                for cell in _inner(row, "tc"):
                    yield from _every_paragraph(cell)


def _text_boxes(element: etree._Element) -> list[etree._Element]:
    """Return the text boxes in a drawing; of alternatives that say the same the first is taken."""
    if local(element) == "AlternateContent":
        first = next((inner for inner in element if local(inner) in ("Choice", "Fallback")), None)
        return [] if first is None else _text_boxes(first)
    if local(element) == "txbxContent":
        return [element]
    return [box for inner in element for box in _text_boxes(inner)]
