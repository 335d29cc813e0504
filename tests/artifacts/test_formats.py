"""What is read out of each kind of file, and where it says it stands. No database."""

import datetime
import io
from typing import Any

import openpyxl
import pytest
from docx import Document
from pypdf import PdfReader, PdfWriter

from agents.runtime.knowledge import Place
from artifacts.extract.outcome import Trouble
from artifacts.extract.pdf_lines import mended
from artifacts.textfile import TextReader
from tests.artifacts import office
from tests.artifacts.extracting import brought, extracted, passages_of, read, text_of
from tests.artifacts.office import paragraph
from tests.artifacts.pdfs import pdf


def place_of(reader: TextReader, words: str) -> Place:
    (found,) = [passage.place for passage in passages_of(reader) if words in passage.text]
    return found


def test_word_comes_as_markdown_with_its_headings() -> None:
    data = office.docx(
        "# 报告", "## Costs", "The pump costs two million. 水泵的费用为两百万。", "1. a", "1. b", "- c", "# End"
    )
    reader = read(data, "报告.docx")
    assert text_of(reader) == (
        "# 报告\n\n## Costs\n\nThe pump costs two million. 水泵的费用为两百万。\n\n1. a\n2. b\n- c\n\n# End\n\n"
    )
    assert place_of(reader, "水泵").heading == ("报告", "Costs") and place_of(reader, "# End").heading == ("End",)


def test_a_table_in_word_stands_in_its_place() -> None:
    document = Document()
    document.add_paragraph("before")
    table = document.add_table(2, 2)
    for cell, text in zip((c for row in table.rows for c in row.cells), ("项目", "a|b", "x\ny", "2"), strict=True):
        cell.text = text
    document.add_paragraph("after")
    out = io.BytesIO()
    document.save(out)
    assert text_of(read(out.getvalue(), "a.docx")) == (
        "before\n\n| 项目 | a\\|b |\n| --- | --- |\n| x y | 2 |\n\nafter\n\n"
    )


def test_word_with_notes_changes_fields_and_boxes_is_read_as_it_is_seen() -> None:
    body = (
        '<w:sdt><w:sdtContent><w:p><w:r><w:t>in a control</w:t></w:r></w:p></w:sdtContent></w:sdt>'
        '<w:p><w:ins><w:r><w:t>put in</w:t></w:r></w:ins><w:del><w:r><w:delText>taken out</w:delText></w:r></w:del>'
        '<w:hyperlink><w:r><w:t> a link</w:t><w:tab/><w:t>x</w:t></w:r></w:hyperlink>'
        '<w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
        '<w:p><w:r><w:pict><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></w:pict></w:r></w:p>'
        + paragraph("Costs ..... 3", '<w:pStyle w:val="c"/>')
        + paragraph("Next", '<w:outlineLvl w:val="1"/>')
    )  # fmt: skip
    data = office.word(
        body,
        styles='<w:style w:styleId="c"><w:name w:val="toc 1"/></w:style>',
        footnotes='<w:footnote w:id="0" w:type="separator"/>'
        '<w:footnote w:id="2"><w:p><w:r><w:t>so it is</w:t></w:r></w:p></w:footnote>',
    )
    assert text_of(read(data, "a.docx")) == (
        "in a control\n\nput in a link\tx[^2]\n\nboxed\n\n[^2]: so it is\n\n## Next\n\n"
    )


def test_headings_of_word_carry_the_numbers_that_word_shows() -> None:
    levels = (
        '<w:lvl w:ilvl="0"><w:numFmt w:val="chineseCounting"/><w:lvlText w:val="%1、"/></w:lvl>'
        '<w:lvl w:ilvl="1"><w:start w:val="3"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%2.%1"/></w:lvl>'
    )
    numbering = f'<w:abstractNum w:abstractNumId="5">{levels}</w:abstractNum>'
    numbering += '<w:num w:numId="7"><w:abstractNumId w:val="5"/></w:num>'
    styles = (
        '<w:style w:styleId="h1"><w:name w:val="heading 1"/>'
        '<w:pPr><w:numPr><w:numId w:val="7"/></w:numPr></w:pPr></w:style>'
        '<w:style w:styleId="own"><w:name w:val="Own"/><w:basedOn w:val="h1"/></w:style>'
        '<w:style w:styleId="x"><w:name w:val="x"/><w:basedOn w:val="x"/></w:style>'
    )
    body = paragraph("总则", '<w:pStyle w:val="h1"/>') + paragraph("费用", '<w:pStyle w:val="own"/>')
    body += paragraph("c", '<w:pStyle w:val="x"/><w:numPr><w:ilvl w:val="1"/><w:numId w:val="7"/></w:numPr>')
    text = text_of(read(office.word(body, styles=styles, numbering=numbering), "a.docx"))
    assert text == "# 一、 总则\n\n# 二、 费用\n\n  3.二 c\n\n"


def test_slides_are_pages_with_notes() -> None:
    seen: list[tuple[int, int]] = []
    data = office.pptx_of(("Plan 计划", "One\nTwo", "Say hello"), ("Costs", "Three", ""))
    reader = brought(data, "a.pptx", lambda done, total: seen.append((done, total)))
    assert isinstance(reader, TextReader)
    assert text_of(reader) == "# Plan 计划\n\n- One\n- Two\n\nNotes: Say hello\n\n# Costs\n\nThree\n\n"
    assert place_of(reader, "hello") == Place(page=1, heading=("Plan 计划",))
    assert place_of(reader, "Three") == Place(page=2, heading=("Costs",))
    assert seen and seen[-1][1] == 2


def test_sheets_are_rows_with_their_numbers() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Costs"
    sheet.append(["Item", "Price", "When", "Share"])
    sheet.append(["pump\nbig", 0.1 + 0.2, datetime.datetime.fromisoformat("2024-05-31 09:30"), 0.25])
    sheet["D2"].number_format = "0.0%"
    sheet["A400"] = True
    sheet["B400"] = "=B2*2"
    book.create_sheet("空")
    out = io.BytesIO()
    book.save(out)
    reader = read(out.getvalue(), "a.xlsx")
    assert text_of(reader) == (
        "Costs\nItem | Price | When | Share\npump big | 0.3 | 2024-05-31 09:30 | 25%\nTRUE\n"
        "[1 formulas have no value: the file was not calculated when saved.]\n\n空\n[This sheet is empty.]\n\n"
    )
    assert place_of(reader, "TRUE") == Place(sheet="Costs", rows=(1, 400), heading=("Item | Price | When | Share",))
    assert reader.sheet_at(text_of(reader).index("TRUE")) == "Costs"


def test_a_long_sheet_gives_every_passage_its_rows_and_header() -> None:
    rows = [["Name", "Town"], *([f"Person {n}", f"Town {n}"] for n in range(2, 1_001))]
    found = passages_of(read(office.xlsx(People=rows), "a.xlsx"))
    assert len(found) > 20 and found[0].place.rows[0] == 1 and found[-1].place.rows[1] == 1_000
    for passage in found[1:]:
        first, last = passage.place.rows
        assert passage.text.startswith(f"Person {first} |") and passage.text.endswith(f"Town {last}")
        assert passage.place.heading == ("Name | Town",) and passage.place.sheet == "People"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_of_any_delimiter_has_rows_and_a_header(delimiter: str) -> None:
    lines = [["Name", "Note", "n"], *([f"Person {n}", '"two\nlines, or; three"', str(n)] for n in range(2, 201))]
    data = "\n".join(delimiter.join(cells) for cells in lines).encode()
    reader = read(data, "a.csv")
    assert text_of(reader).startswith(f'Name{delimiter}Note{delimiter}n\nPerson 2{delimiter}"two lines, or; three"')
    place = place_of(reader, f"Person 150{delimiter}")
    assert place.heading == ("Name | Note | n",) and place.rows[0] <= 150 <= place.rows[1] and place.lines == (0, 0)


def test_csv_with_a_quote_that_is_never_closed_loses_nothing() -> None:
    data = 'a,b\n"never closed,1\n' + "".join(f"row {n},{n}\n" for n in range(20_000))
    text = text_of(read(data.encode(), "a.csv"))
    assert text.replace(" ", "").replace("\n", "") == data.replace(" ", "").replace("\n", "")


def test_numbers_are_no_header() -> None:
    assert {p.place.heading for p in passages_of(read(b"1,2\n3,4\n", "a.csv"))} == {()}


def test_html_is_read_as_it_is_seen() -> None:
    page = """<!doctype html><html><head><title>Site</title><style>p{}</style><script>bad()</script></head><body>
    <nav><a href=x>Home</a></nav><h1>Top &amp; more</h1><p>A <a href="http://x">link</a>,<br>a line.
    <div hidden>unseen</div><ul><li>one<li>two<ul><li>in</ul></ul><ol><li>a<li>b</ol>
    <table><tr><th>A<th>B<tr><td>1<td><p>2</p></table><h2>Below</h2><pre>  x\n    y</pre>
    <table><tr><td><h3>Laid out</h3>text<td>more</table><footer>©</footer></body>"""
    reader = read(page.encode(), "a.html")
    assert text_of(reader) == (
        "Site\n\n# Top & more\n\nA link,\na line.\n\n- one\n- two\n  - in\n\n1. a\n2. b\n\n"
        "| A | B |\n| --- | --- |\n| 1 | 2 |\n\n## Below\n\n  x\n    y\n\n### Laid out\n\ntext\n\nmore\n\n"
    )
    assert place_of(reader, "Laid out").heading == ("Top & more", "Below", "Laid out")


@pytest.mark.parametrize("encoding", ["gb2312", "big5", "shift_jis", "windows-1251"])
def test_html_is_read_in_the_encoding_it_names(encoding: str) -> None:
    text = {"gb2312": "中文网页", "big5": "繁體中文網頁", "shift_jis": "日本語のページ", "windows-1251": "Русский"}[
        encoding
    ]
    page = f'<html><head><meta http-equiv="Content-Type" content="text/html; charset={encoding}"></head><p>{text}</p>'
    assert text_of(read(page.encode(encoding), "a.html")).strip() == text


def test_markdown_knows_the_levels_of_its_headings() -> None:
    text = "---\ntitle: x\n---\n\nTop\n===\n\na\n\nSub\n---\n\nb\n\n```\n# no\n```\n\n### Deep ###\nc\n\n#hash\n"
    reader = read(text.encode(), "a.md")
    assert text_of(reader) == text
    assert [(title, level) for _, title, level in reader.index.headings] == [("Top", 1), ("Sub", 2), ("Deep", 3)]
    assert place_of(reader, "#hash").heading == ("Top", "Sub", "Deep")


def outlined(data: bytes, *entries: tuple[str, int, str]) -> bytes:
    """Return the PDF with an outline of (title, page from 0, title of the one above)."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    made = {"": None}
    for title, page, above in entries:
        made[title] = writer.add_outline_item(title=title, page_number=page, parent=made[above])
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_pdf_takes_its_headings_from_its_outline() -> None:
    data = outlined(
        pdf("Intro\nGood morning\nCosts\nTwo million", "More of it\nThree"),
        ("Intro", 0, ""), ("Costs", 0, "Intro"), ("Not in the text", 1, ""),
    )  # fmt: skip
    reader = read(data, "a.pdf")
    assert place_of(reader, "Two million") == Place(page=1, heading=("Intro", "Costs"))
    assert place_of(reader, "Three") == Place(page=2, heading=("Not in the text",))


def test_what_stands_on_every_page_of_a_pdf_is_kept_once() -> None:
    pages = [f"ACME annual report\nText {n} a\nb {n}\nc {n}\nd {n}\nPage {n} of 9" for n in range(1, 10)]
    text = text_of(read(pdf(*pages), "a.pdf"))
    assert text.count("ACME annual report") == 1 and " of 9" not in text
    assert all(f"Text {n} a\nb {n}\nc {n}\nd {n}\n" in text for n in range(1, 10))


@pytest.mark.parametrize(
    ("page", "whole"),
    [
        ("an exam-\nple of it", "an example\nof it"),
        ("a well-\nknown and well-known one", "a well-known\nand well-known one"),
        ("pages 3-\n4", "pages 3-\n4"),
        ("Jean-\nPaul", "Jean-\nPaul"),
        ("ﬁne ﬂow", "fine flow"),
        ("这一行很长写到了行的末尾所以断\n开了。\n下一段", "这一行很长写到了行的末尾所以断开了。\n下一段"),
        ("标题\n这一行很长写到了行的末尾\n也", "标题\n这一行很长写到了行的末尾也"),
        ("", ""),
    ],
)
def test_lines_that_a_pdf_broke_are_mended(page: str, whole: str) -> None:
    assert mended(page) == whole


def test_a_picture_is_no_failure_of_the_file() -> None:
    assert brought(b"\x89PNG\r\n\x1a\n" + bytes(50), "photo.png") is Trouble.PICTURE


def test_progress_is_told_while_a_pdf_is_read() -> None:
    seen: list[tuple[int, int]] = []
    page = b"BT /F1 12 Tf " + b"(aaaa) Tj " * 1_000 + b"ET"
    assert isinstance(
        extracted(pdf(*[page] * 60), "application/pdf", lambda done, total: seen.append((done, total))), TextReader
    )
    assert len(seen) >= 2 and seen == sorted(seen) and {total for _, total in seen} == {60}


def test_what_was_read_until_the_time_was_up_is_kept_and_said(settings: Any) -> None:
    settings.EXTRACT_TIMEOUT_S = 2
    reader = extracted(b"<p>Words <b>and</b> more</p>" * 1_500_000, "text/html")
    assert isinstance(reader, TextReader)
    text = text_of(reader)
    assert text.startswith("Words and more\n") and text.endswith("\n[Reading stopped here: the time was up.]\n")
    assert reader.line_at(len(text) - 1) == text.count("\n")


def test_xml_that_takes_more_memory_than_there_is_is_too_large(settings: Any) -> None:
    settings.EXTRACT_MEMORY_BYTES = 256 * 1024 * 1024
    body = "".join(f'<w:p a{n}="1"/>' for n in range(900_000))
    assert brought(office.word(body), "a.docx") is Trouble.TOO_LARGE
