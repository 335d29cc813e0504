"""The upload table: a file that somebody brings, and what becomes of it. No database.

Each row ends at the door, in words, or in the extracting process, with a text or a trouble. What a process that died
would look like (`ExtractionFailed`) fails every row.
"""

import gzip
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.utils import translation

from agents.runtime.errors import ToolFailure
from artifacts import names
from artifacts.extract.outcome import Trouble
from artifacts.reading import unreadable
from artifacts.textfile import TextReader
from tests.artifacts import office
from tests.artifacts.extracting import Refused, brought, passages_of, text_of
from tests.artifacts.office import CONTENT_TYPES, paragraph, rels, word, word_parts, zipped
from tests.artifacts.pdfs import PICTURE, encrypted, pdf

MB = 1024 * 1024
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
CHINESE = "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后"
LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha ha ha ha ha ha ha ha ha ha ">' + "".join(
    f'<!ENTITY {name} "{f"&{before};" * 20}">' for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
OUTSIDE = '<!DOCTYPE x [<!ENTITY i SYSTEM "file:///etc/passwd">'
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


@dataclass(frozen=True, slots=True)
class Door:
    """Refused before it is kept, with a code and words that begin so."""

    code: ToolFailure
    words: str


@dataclass(frozen=True, slots=True)
class Text:
    """Read; these words are in it, those are not."""

    words: str = ""
    without: str = "root:"


Outcome = Door | Trouble | Text
UNSUPPORTED, ENCRYPTED, EMPTY = ToolFailure.FILE_UNSUPPORTED, ToolFailure.FILE_ENCRYPTED, ToolFailure.FILE_EMPTY


def sheet_of(rows: str, before: str = "", strings: str = "") -> bytes:
    """Return a workbook with one sheet of these rows, in XML."""
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": CONTENT_TYPES,
        "_rels/.rels": rels(officeDocument="xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{SHEET}" xmlns:r="urn:r"><sheets>'
        '<sheet name="S" r:id="worksheet"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": rels(worksheet="s.xml", sharedStrings="strings.xml"),
        "xl/s.xml": f'{before}<worksheet xmlns="{SHEET}"><dimension ref="A1:XFD1048576"/>'
        f"<sheetData>{rows}</sheetData></worksheet>",
        "xl/strings.xml": f'<sst xmlns="{SHEET}">{strings}</sst>',
    }
    return zipped(parts)


def five_million_cells() -> bytes:
    cells = "".join(f"<c><v>{n * 7919 % 9973}</v></c>" for n in range(50))
    return sheet_of("".join(f'<row r="{n}">{cells}</row>' for n in range(1, 100_001)))


def zip_of_zips() -> bytes:
    data = zipped({"zeros": bytes(20 * MB)})
    for level in range(4):
        data = zipped({f"{level}-{n}.zip": data for n in range(10)})
    return zipped({**word_parts(paragraph("Only these words")), "word/embeddings/bomb.zip": data})


def looping_pages() -> bytes:
    return pdf("One", "Two").replace(b"/Kids [6 0 R", b"/Kids [2 0 R")


def random_bytes(size: int) -> bytes:
    return random.Random(7).randbytes(size)


ROWS: list[tuple[str, str, Callable[[], bytes], Outcome]] = [
    # bombs
    ("a part that swells a thousand times", "a.docx", lambda: zipped(word_parts("<w:p/>" * 7 * MB)), Trouble.TOO_LARGE),
    (
        "a picture that swells",
        "a.docx",
        lambda: zipped({**word_parts(paragraph("x")), "word/media/a": bytes(60 * MB)}),
        Trouble.TOO_LARGE,
    ),
    ("archives in archives stay packed", "a.docx", zip_of_zips, Text("Only these words")),
    (
        "too many entries",
        "a.docx",
        lambda: zipped({**word_parts(paragraph("x")), **{f"word/{n}": "" for n in range(10_001)}}),
        Trouble.TOO_LARGE,
    ),
    (
        "entries that share their bytes",
        "a.docx",
        lambda: office.overlapping({**word_parts(paragraph("x")), "zzzzzzzzz": random_bytes(1000)}, 500),
        Trouble.BROKEN,
    ),
    (
        "billion laughs in Word",
        "a.docx",
        lambda: office.with_part(word(paragraph("x")), "word/document.xml", LAUGHS + "]><x>&i;</x>"),
        Trouble.BROKEN,
    ),
    (
        "billion laughs in a relation",
        "a.docx",
        lambda: office.with_part(word(paragraph("x")), "_rels/.rels", LAUGHS + "]><x>&i;</x>"),
        Trouble.BROKEN,
    ),
    (
        "billion laughs in a sheet",
        "a.xlsx",
        lambda: sheet_of('<row r="1"><c t="inlineStr"><is><t>&i;</t></is></c></row>', LAUGHS + "]>"),
        Trouble.BROKEN,
    ),
    (
        "billion laughs in a slide",
        "a.pptx",
        lambda: office.with_part(office.pptx_of(("T", "b", "")), "ppt/slides/slide1.xml", LAUGHS + "]><x>&i;</x>"),
        Trouble.BROKEN,
    ),
    (
        "billion laughs in SVG",
        "a.svg",
        lambda: (LAUGHS + "]><svg>&i;</svg>").encode(),
        Door(UNSUPPORTED, "Files of this kind (.svg)"),
    ),
    (
        "billion laughs in HTML",
        "a.html",
        lambda: ("<!doctype html>" + LAUGHS + "]><p>&i; end</p>").encode(),
        Text("end", without="ha ha ha ha ha ha ha ha ha ha ha ha"),
    ),
    (
        "billion laughs in XML are text",
        "a.xml",
        lambda: ("<?xml version='1.0'?>" + LAUGHS + "]><x>&i;</x>").encode(),
        Text("<x>&i;</x>"),
    ),
    (
        "another file named in Word",
        "a.docx",
        lambda: office.with_part(word(paragraph("x")), "word/document.xml", OUTSIDE + "]><x>&i;</x>"),
        Trouble.BROKEN,
    ),
    (
        "another file named in HTML",
        "a.html",
        lambda: f"<html>{OUTSIDE}]><p>&i; a<iframe src='file:///etc/passwd'></iframe>".encode(),
        Text("a"),
    ),
    (
        "another file named in UTF-16",
        "a.docx",
        lambda: office.with_part(
            word(paragraph("x")),
            "word/document.xml",
            ("<?xml version='1.0' encoding='utf-16'?>" + OUTSIDE + "]><x>&i;</x>").encode("utf-16"),
        ),
        Trouble.BROKEN,
    ),
    (
        "a page that unpacks to 44 MB",
        "a.pdf",
        lambda: pdf(b"BT " + b"(aaaaaaaaaaaaaaaa) Tj " * 2_000_000),
        Trouble.TOO_LARGE,
    ),
    # Office files that are not whole, or not what they say
    (
        "Word without its document",
        "a.docx",
        lambda: office.with_part(word(paragraph("x")), "word/document.xml", None),
        Trouble.BROKEN,
    ),
    (
        "Word without relations",
        "a.docx",
        lambda: office.with_part(word(paragraph("x")), "_rels/.rels", None),
        Trouble.BROKEN,
    ),
    (
        "Word without styles, numbers and notes",
        "a.docx",
        lambda: word(paragraph("Words", '<w:pStyle w:val="none"/><w:numPr><w:numId w:val="9"/></w:numPr>')),
        Text("Words"),
    ),
    (
        "Word cut in the middle",
        "a.docx",
        lambda: office.docx(*("Words " * 50 for _ in range(50)))[:9000],
        Trouble.BROKEN,
    ),
    (
        "Word with broken XML",
        "a.docx",
        lambda: office.with_part(word(paragraph("x")), "word/document.xml", "<w:document><w:body>"),
        Trouble.BROKEN,
    ),
    (
        "Word with a part that is not what was packed",
        "a.docx",
        lambda: word(paragraph("x" * 500)).replace(b"word/document.xml", b"word/documENT.xml", 1),
        Trouble.BROKEN,
    ),
    ("Word with nothing in it", "a.docx", lambda: word(""), Trouble.EMPTY),
    (
        "Word of pictures",
        "a.docx",
        lambda: zipped({**word_parts("<w:p/>"), "word/media/image1.png": b"\x89PNG"}),
        Trouble.SCANNED,
    ),
    (
        "Word, nested deep",
        "a.docx",
        lambda: word("<w:sdt><w:sdtContent>" * 5_000 + paragraph("x") + "</w:sdtContent></w:sdt>" * 5_000),
        Trouble.BROKEN,
    ),
    (
        "Word with tables in tables",
        "a.docx",
        lambda: word("<w:tbl><w:tr><w:tc>" * 50 + paragraph("inmost") + "</w:tc></w:tr></w:tbl>" * 50),
        Text("inmost"),
    ),
    (
        "Word with macros",
        "a.docm",
        lambda: zipped({**word_parts(paragraph("Words")), "word/vbaProject.bin": OLE}),
        Text("Words"),
    ),
    (
        "Word with a password",
        "a.docx",
        lambda: OLE + random_bytes(5000),
        Door(ENCRYPTED, "a.docx is protected by a password."),
    ),
    (
        "Excel with a password",
        "a.xlsx",
        lambda: OLE + random_bytes(5000),
        Door(ENCRYPTED, "a.xlsx is protected by a password."),
    ),
    ("Word packed with a password", "a.docx", lambda: office.said_encrypted(word(paragraph("x"))), Trouble.ENCRYPTED),
    (
        "a program named Word",
        "a.docx",
        lambda: b"MZ\x90\x00\x03\x00" + bytes(500),
        Door(UNSUPPORTED, "a.docx doesn't hold what its name says."),
    ),
    (
        "an archive named Word",
        "a.docx",
        lambda: zipped({"photo.png": "x"}),
        Door(UNSUPPORTED, "a.docx doesn't hold what its name says."),
    ),
    (
        "a web page named Word",
        "a.docx",
        lambda: b"<html><body><p>Words</p><script>bad()</script>",
        Text("Words", without="bad()"),
    ),
    ("Word named as a text", "a.txt", lambda: word(paragraph("Words")), Text("Words", without="PK")),
    ("Excel named as Word", "a.docx", lambda: office.xlsx(S=[["Words"]]), Text("Words")),
    (
        "an old Word file",
        "a.doc",
        lambda: OLE + bytes(2000),
        Door(UNSUPPORTED, ".doc is an old format of Office. Save it as .docx or PDF."),
    ),
    (
        "an old Excel file",
        "a.xls",
        lambda: OLE + bytes(2000),
        Door(UNSUPPORTED, ".xls is an old format of Office. Save it as .xlsx or PDF."),
    ),
    (
        "an old PowerPoint file",
        "a.ppt",
        lambda: OLE + bytes(2000),
        Door(UNSUPPORTED, ".ppt is an old format of Office. Save it as .pptx or PDF."),
    ),
    ("slides without text", "a.pptx", lambda: office.blank_pptx(3), Trouble.EMPTY),
    (
        "slides, one of them lost",
        "a.pptx",
        lambda: office.with_part(office.pptx_of(("One", "x", ""), ("Two", "y", "")), "ppt/slides/slide1.xml", None),
        Text("[Slide 1 is missing.]\n# Two"),
    ),
    # sheets
    (
        "five million cells",
        "a.xlsx",
        five_million_cells,
        Text("[Reading stopped before row 20001 of S: there are too many cells.]"),
    ),
    ("a sheet without cells", "a.xlsx", lambda: sheet_of(""), Trouble.EMPTY),
    (
        "a cell in the last row and column",
        "a.xlsx",
        lambda: sheet_of('<row r="1048576"><c r="XFD1048576"><v>7</v></c></row>'),
        Text("XFD: 7"),
    ),
    (
        "rows and columns that cannot be",
        "a.xlsx",
        lambda: sheet_of('<row r="999999999"><c r="ZZZZ1"><v>7</v></c></row><row r="-1"><c r="A1"><v>5</v></c></row>'),
        Text("5", without="7"),
    ),
    (
        "strings that are not there",
        "a.xlsx",
        lambda: sheet_of(
            '<row r="1"><c t="s"><v>9</v></c><c t="s"><v>-1</v></c><c><v>1e999</v></c><c><v>x</v></c></row>'
        ),
        Text("1e999 | x"),
    ),
    (
        "a string of 5 MB",
        "a.xlsx",
        lambda: sheet_of(
            '<row r="1"><c t="s"><v>0</v></c></row>', strings=f"<si><t>a {random_bytes(2_500_000).hex()}</t></si>"
        ),
        Text("S\na "),
    ),
    # PDF
    ("a PDF cut in the middle", "a.pdf", lambda: pdf(*(f"Page {n}" for n in range(20)))[:2500], Trouble.BROKEN),
    ("a PDF of rubbish", "a.pdf", lambda: b"%PDF-1.7\n" + random_bytes(20_000), Trouble.BROKEN),
    ("a PDF whose pages go in a circle", "a.pdf", looping_pages, Trouble.BROKEN),
    ("a PDF with a password", "a.pdf", lambda: encrypted(pdf("Hidden"), user_password="secret"), Trouble.ENCRYPTED),
    (
        "a PDF with a filter of no known name",
        "a.pdf",
        lambda: pdf("One").replace(b"/FlateDecode", b"/Fl"),
        Trouble.BROKEN,
    ),
    ("a PDF that is a scan", "a.pdf", lambda: pdf(PICTURE, PICTURE), Trouble.SCANNED),
    ("a PDF without anything", "a.pdf", lambda: pdf(b"", b""), Trouble.EMPTY),
    ("a web page named PDF", "a.pdf", lambda: b"<!doctype html><p>Not found</p>", Text("Not found", without="<p>")),
    ("a PDF named as a text", "a.txt", lambda: pdf("Words"), Text("Words", without="%PDF")),
    # texts
    ("one line of 50 MB", "a.txt", lambda: b"word and " * (50 * MB // 9), Text("word and")),
    (
        "UTF-16 without its mark",
        "a.txt",
        lambda: "Words, and more words".encode("utf-16-le"),
        Text("Words, and more words"),
    ),
    ("Chinese UTF-16 without its mark", "a.txt", lambda: (CHINESE + "\n").encode("utf-16-be") * 20, Text(CHINESE)),
    ("GB 18030", "a.txt", lambda: (CHINESE + "𠮷").encode("gb18030"), Text(CHINESE + "𠮷")),
    (
        "Big5",
        "a.txt",
        lambda: ("會議紀錄：我們明天去臺北開會，請大家準備好資料，不要遲到。這是一個很重要的會議。" * 5).encode("big5"),
        Text("會議紀錄：我們明天去臺北開會"),
    ),
    (
        "a zero in a text",
        "a.txt",
        lambda: b"Words\x00more",
        Door(UNSUPPORTED, "a.txt doesn't hold what its name says."),
    ),
    (
        "a zero after the first 64 KB",
        "a.txt",
        lambda: b"Words " * 20_000 + b"\x00\x01end",
        Text("Words end", without="\x00"),
    ),
    (
        "two encodings in one file",
        "a.txt",
        lambda: ("Grüße " * 100).encode() + ("Grüße " * 3).encode("latin-1"),
        Text("Grüße"),
    ),
    ("JSON of one line", "a.json", lambda: b'{"a":[' + b'{"key":"value"},' * 100_000 + b"1]}", Text('{"key":"value"}')),
    ("JSON, nested deep", "a.json", lambda: b"[" * 500_000, Text("[[[")),
    (
        "10,000 columns",
        "a.csv",
        lambda: "\n".join(",".join(f"c{n}x{m}" for n in range(10_000)) for m in range(20)).encode(),
        Text("c9999x19"),
    ),
    ("a table of quotes", "a.csv", lambda: b'"' * 300_000, Text('""')),
    ("HTML, nested deep", "a.html", lambda: b"<html>" + b"<div><table><tr><td>" * 20_000 + b"inmost", Text("inmost")),
    ("HTML that never ends a comment", "a.html", lambda: b"<html><p>Words</p><!-- " + b"-" * 5 * MB, Text("Words")),
    ("HTML, all of it script", "a.html", lambda: b"<html><script>" + b"bad();" * 1000, Trouble.EMPTY),
    ("source code", "a.py", lambda: b"def f():\n    return 1\n", Text("def f():\n    return 1")),
    # empty ones, pictures, archives
    *(
        (f"an empty {kind}", f"a.{kind}", bytes, Door(EMPTY, f"a.{kind} is empty."))
        for kind in ("pdf", "docx", "csv", "md")
    ),
    ("a text of blanks", "a.txt", lambda: b" \n\t\n " * 10, Trouble.EMPTY),
    ("a picture", "a.png", lambda: b"\x89PNG\r\n\x1a\n" + random_bytes(500), Trouble.PICTURE),
    ("a picture named PDF", "a.pdf", lambda: b"\xff\xd8\xff\xe0" + random_bytes(500), Trouble.PICTURE),
    ("a picture named as a text", "a.txt", lambda: b"GIF89a" + random_bytes(500), Trouble.PICTURE),
    ("an archive", "a.zip", lambda: zipped({"a.txt": "x"}), Door(UNSUPPORTED, "Files of this kind (.zip)")),
    ("a packed file", "a.gz", lambda: gzip.compress(b"Words"), Door(UNSUPPORTED, "Files of this kind (.gz)")),
    (
        "bytes without meaning",
        "a.bin",
        lambda: zlib.compress(random_bytes(5000)),
        Door(UNSUPPORTED, "Files of this kind (.bin)"),
    ),
]


SLOW = ("five million cells", "one line of 50 MB")


@pytest.mark.parametrize(
    ("name", "made", "outcome"),
    [pytest.param(*row, id=title, marks=[pytest.mark.slow] if title in SLOW else []) for title, *row in ROWS],
)
def test_a_file_that_is_brought(name: str, made: Callable[[], bytes], outcome: Outcome) -> None:
    with translation.override("en"):
        found = brought(made(), name)
    if isinstance(outcome, Door):
        assert isinstance(found, Refused) and found.code is outcome.code and found.said.startswith(outcome.words), found
    elif isinstance(outcome, Trouble):
        assert found is outcome
        assert unreadable(outcome, name).code == f"file_{outcome}"
    else:
        assert isinstance(found, TextReader), found
        text = text_of(found)
        assert outcome.words in text and outcome.without not in text
        assert all(passage.text == text[passage.start : passage.end] for passage in passages_of(found))


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("عقد الإيجار.pdf", "عقد الإيجار.pdf"),
        ("חוזה.docx", "חוזה.docx"),
        ("📊🇨🇳 季度报告.xlsx", "📊🇨🇳 季度报告.xlsx"),
        ("evil\u202excod.exe", "evil_xcod.exe"),
        ("../../../etc/报告.pdf", "报告.pdf"),
        ("a\x00b.pdf", "a_b.pdf"),
    ],
)
def test_a_name_that_is_brought(raw: str, name: str) -> None:
    assert names.from_upload(raw) == name
