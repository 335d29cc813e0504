"""Office files for tests: well-formed ones by the libraries that write them, and parts by hand for the others."""

import io
import struct
import zipfile
from collections.abc import Iterable

import openpyxl
import pptx
from docx import Document

CONTENT_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/></Types>'
)
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"


def rels(**targets: str) -> str:
    """Return a part of relations: kind=target, the id being the kind."""
    entries = (f'<Relationship Id="{kind}" Type="{_KIND}{kind}" Target="{name}"/>' for kind, name in targets.items())
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{"".join(entries)}</Relationships>'


def zipped(parts: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as package:
        for name, content in parts.items():
            package.writestr(name, content)
    return out.getvalue()


def word_parts(body: str, **more: str | bytes) -> dict[str, str | bytes]:
    """Return the parts of a Word file with this body. more: parts of word/ by name, "." as "_"."""
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": CONTENT_TYPES,
        "_rels/.rels": rels(officeDocument="word/document.xml"),
        "word/document.xml": f'<w:document xmlns:w="{_W}"><w:body>{body}</w:body></w:document>',
    }
    if more:
        parts["word/_rels/document.xml.rels"] = rels(**{name: f"{name}.xml" for name in more})
    return parts | {f"word/{name}.xml": content for name, content in more.items()}


def word(body: str, **more: str) -> bytes:
    inner = {name: f'<w:{name} xmlns:w="{_W}">{content}</w:{name}>' for name, content in more.items()}
    return zipped(word_parts(body, **inner))


def paragraph(text: str, properties: str = "") -> str:
    return f'<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def docx(*paragraphs: str) -> bytes:
    """Return a Word file. "# x" is a heading of the first level, "## x" of the second, "1. x" and "- x" are items."""
    document = Document()
    for text in paragraphs:
        if text.startswith("#"):
            document.add_heading(text.lstrip("# "), text.count("#"))
        elif text.startswith(("1. ", "- ")):
            document.add_paragraph(text.partition(" ")[2], style="List Number" if text[0] == "1" else "List Bullet")
        else:
            document.add_paragraph(text)
    return _saved(document)


def xlsx(**sheets: Iterable[Iterable[object]]) -> bytes:
    book = openpyxl.Workbook(write_only=True)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    return _saved(book)


def pptx_of(*slides: tuple[str, str, str]) -> bytes:
    """Return slides of (title, body, notes)."""
    shown = pptx.Presentation()
    for title, body, notes in slides:
        slide = shown.slides.add_slide(shown.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, body
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    return _saved(shown)


def blank_pptx(slides: int) -> bytes:
    shown = pptx.Presentation()
    for _ in range(slides):
        shown.slides.add_slide(shown.slide_layouts[6])
    return _saved(shown)


def with_part(data: bytes, name: str, content: str | bytes | None) -> bytes:
    """Return the archive with one part replaced, or left out."""
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        parts: dict[str, str | bytes] = {entry: package.read(entry) for entry in package.namelist() if entry != name}
    return zipped(parts if content is None else parts | {name: content})


def said_encrypted(data: bytes) -> bytes:
    """Return the archive with every entry marked as protected by a password."""
    out = bytearray(data)
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = out.find(magic)
        while at >= 0:
            out[at + flags] |= 1
            at = out.find(magic, at + 4)
    return bytes(out)


def overlapping(parts: dict[str, str | bytes], times: int) -> bytes:
    """Return the archive with its last entry listed so many times more: all of them share the same bytes."""
    data = zipped(parts)
    end = data.rindex(b"PK\x05\x06")
    _, _, _, count, _, size, start, _ = struct.unpack("<4s4H2LH", data[end : end + 22])
    last = data.rindex(b"PK\x01\x02")
    entry = data[last:end]
    name_at, name_chars = 46, struct.unpack("<H", entry[28:30])[0]
    more = b""
    for number in range(times):
        more += entry[:name_at] + b"%0*d" % (name_chars, number) + entry[name_at + name_chars :]
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count + times, count + times, size + len(more), start, 0)
    return data[:end] + more + tail


def _saved(document: object) -> bytes:
    out = io.BytesIO()
    document.save(out)  # type: ignore[attr-defined] # each of the three libraries names it so
    return out.getvalue()
