"""Slides: one page each, its title as the heading, tables, and what the speaker noted."""

from collections.abc import Iterator
from typing import IO

from lxml import etree

from artifacts.extract.characters import clean, one_line
from artifacts.extract.office import Package, child, children, local, value
from artifacts.extract.outcome import Tell, Trouble, Unreadable
from artifacts.extract.tables import write_table
from artifacts.textfile import TextWriter

_FURNITURE = ("sldNum", "dt", "ftr", "hdr", "sldImg")  # placeholders that say nothing of their own
_TITLES = ("title", "ctrTitle")


def extract(source: IO[bytes], out: TextWriter, mime: str, tell: Tell) -> None:
    package = Package(source)
    main = package.main()
    relations = package.relations(main)
    slides = [relations[id_].target for id_ in _slide_ids(package.xml(main)) if id_ in relations]
    if not slides:
        raise Unreadable(Trouble.EMPTY)
    for number, name in enumerate(slides, 1):
        out.page()
        out.heading("")
        root = package.xml(name)
        if root is None:
            out.add(f"[Slide {number} is missing.]\n")
        else:
            _slide(package, name, root, out)
        tell(number, len(slides))
    if not out.said:
        raise Unreadable(Trouble.SCANNED if package.pictured() else Trouble.EMPTY)


def _slide_ids(root: etree._Element | None) -> list[str]:
    found = children(child(root, "sldIdLst"), "sldId")
    return [  # the relation's id; the slide's own, which has no namespace, comes first
        next((str(value) for key, value in slide.attrib.items() if str(key).endswith("}id")), "") for slide in found
    ]


def _slide(package: Package, name: str, root: etree._Element, out: TextWriter) -> None:
    before = out.index.total_chars
    shapes = list(_shapes(child(root, "cSld", "spTree")))
    titles = [shape for shape in shapes if _placeholder(shape) in _TITLES]
    title = one_line(" ".join(text for shape in titles for _, text in _paragraphs(shape)))
    if title:
        out.heading(title)
        out.add(f"# {title}\n\n")
    for shape in shapes:
        if shape not in titles and _placeholder(shape) not in _FURNITURE:
            _shape(shape, out)
    for part in package.related(name, "diagramData"):
        _add(out, [(0, text) for _, text in _paragraphs(package.xml(part))])
    for part in package.related(name, "notesSlide"):
        notes = package.xml(part)
        spoken = [shape for shape in _shapes(child(notes, "cSld", "spTree")) if _placeholder(shape) == "body"]
        lines = [text for shape in spoken for _, text in _paragraphs(shape)]
        if lines:
            out.add("Notes: " + "\n".join(lines) + "\n\n")
    if out.index.total_chars == before:
        out.add("\n")


def _shapes(tree: etree._Element | None) -> Iterator[etree._Element]:
    """Give the shapes of a tree and of the groups in it, in order."""
    for element in tree if tree is not None else ():
        name = local(element)
        if name in ("sp", "graphicFrame"):
            yield element
        elif name == "grpSp":
            yield from _shapes(element)
        elif name == "AlternateContent":
            yield from _shapes(child(element, "Choice"))


def _placeholder(shape: etree._Element) -> str:
    """Return the kind of placeholder that a shape fills; "" if it is none."""
    found = child(shape, "nvSpPr", "nvPr", "ph")
    return "" if found is None else value(found, "type") or "obj"


def _shape(shape: etree._Element, out: TextWriter) -> None:
    table = child(shape, "graphic", "graphicData", "tbl")
    if table is None:
        _add(out, list(_paragraphs(child(shape, "txBody"))))
        return
    cells = [children(row, "tc") for row in children(table, "tr")]
    write_table(out, [[one_line(" ".join(text for _, text in _paragraphs(cell))) for cell in row] for row in cells])


def _add(out: TextWriter, paragraphs: list[tuple[int, str]]) -> None:
    if paragraphs:
        listed = len(paragraphs) > 1
        lines = ["  " * depth + ("- " if listed else "") + text for depth, text in paragraphs]
        out.add("\n".join(lines) + "\n\n")


def _paragraphs(element: etree._Element | None) -> Iterator[tuple[int, str]]:
    """Give (depth in a list, text) of each paragraph with text below an element."""
    for paragraph in element.iter("{*}p") if element is not None else ():
        pieces = []
        for run in paragraph.iter("{*}t", "{*}br"):
            pieces.append("\n" if local(run) == "br" else run.text or "")
        text = clean("".join(pieces)).strip()
        if text:
            depth = value(child(paragraph, "pPr"), "lvl")
            yield (min(int(depth), 8) if depth.isdigit() else 0), text
