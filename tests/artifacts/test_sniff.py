"""What may come in, and under which name. No database."""

from typing import Any

import pytest
from django.utils import translation

from agents.runtime.artifacts import ArtifactInvalid
from artifacts import names, sniff

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def entry(name: bytes) -> bytes:
    """Return an entry of a ZIP archive, as far as its name."""
    return b"PK\x03\x04" + bytes(22) + len(name).to_bytes(2, "little") + bytes(2) + name + b"..."


@pytest.mark.parametrize(
    ("name", "head", "mime"),
    [
        ("a.txt", b"%PDF-1.7 ...", "application/pdf"),  # the bytes decide, not the name
        ("a.pdf", b"just words", "text/plain"),
        ("a.md", b"# x", "text/markdown"),
        ("A.CSV", b"a,b\n", "text/csv"),
        ("a.json", b'{"a": 1}', "application/json"),
        ("a.py", b"print(1)", "text/x-python"),
        ("a.txt", b"  <!DOCTYPE html><p>", "text/html"),
        ("a.txt", b"<svg xmlns='x'>", "image/svg+xml"),
        ("a.txt", b"<?xml version='1.0'?>\n<svg>", "image/svg+xml"),
        ("a.txt", "你好".encode("gb18030"), "text/plain"),
        ("a.txt", "hi".encode("utf-16"), "text/plain"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1....", sniff.OLE),
        ("a.zip", b"PK\x03\x04....", "application/zip"),
        ("a.docx", b"PK\x03\x04....", "application/zip"),  # the name alone makes no Word file
        ("a.docx", entry(b"[Content_Types].xml"), sniff.DOCX),
        ("a.docm", entry(b"_rels/.rels") + entry(b"word/document.xml"), sniff.DOCX),
        ("a.xlsx", entry(b"word/document.xml"), sniff.DOCX),
        ("a.bin", entry(b"xl/workbook.xml"), sniff.XLSX),
        ("a", entry(b"docProps/app.xml") + entry(b"ppt/presentation.xml"), sniff.PPTX),
        ("a.txt", "Hello, world".encode("utf-16-le"), "text/plain"),
        ("a.txt", ("的一是不了在人有我他这中大来上国个到说们" * 3).encode("utf-16-be"), "text/plain"),
        ("x.webp", b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        ("a.txt", b"a\x00b", sniff.UNKNOWN),
        ("noname", b"", "text/plain"),
    ],
)
def test_the_bytes_say_what_a_file_is(name: str, head: bytes, mime: str) -> None:
    assert sniff.sniff(head, name) == mime


@pytest.mark.parametrize(
    ("name", "head", "sentence"),
    [
        ("old.doc", OLE, ".doc is an old format of Office. Save it as .docx or PDF."),
        ("old.XLS", OLE, ".xls is an old format of Office. Save it as .xlsx or PDF."),
        ("old.ppt", OLE, ".ppt is an old format of Office. Save it as .pptx or PDF."),
        ("locked.docx", OLE, "locked.docx is protected by a password. Save it without one."),
        ("locked", OLE + "EncryptedPackage".encode("utf-16-le"), "locked is protected by a password."),
        ("mail.msg", OLE, ".msg isn't supported. Save it as PDF."),
        ("not.docx", b"PK\x03\x04", "not.docx doesn't hold what its name says. Is the file whole?"),
        ("run.docx", b"MZ\x00\x01\x00\x03", "run.docx doesn't hold what its name says. Is the file whole?"),
        ("book.epub", b"PK\x03\x04", ".epub isn't supported. Save it as PDF."),
        ("a.zip", b"PK\x03\x04", "Files of this kind (.zip) aren't supported."),
        ("run.exe", b"MZ\x00\x01", "Files of this kind (.exe) aren't supported."),
        ("a.txt", b"\x00\x01", "a.txt doesn't hold what its name says."),
        ("empty.txt", b"", "empty.txt is empty."),
        ("a.svg", b"<svg onload='x'>", "Files of this kind (.svg) aren't supported."),
    ],
)
def test_what_may_not_come_in_is_told_what_to_do(name: str, head: bytes, sentence: str) -> None:
    with translation.override("en"), pytest.raises(ArtifactInvalid) as told:
        sniff.admit(head, name, len(head))
    assert str(told.value).startswith(sentence)


def test_the_allowed_types_and_the_size_are_settings(settings: Any) -> None:
    assert sniff.admit(b"words", "a.txt", 5) == "text/plain"
    settings.UPLOAD_MAX_BYTES = 4
    with pytest.raises(ArtifactInvalid, match="too large"):
        sniff.admit(b"words", "a.txt", 5)
    settings.UPLOAD_MAX_BYTES = 100
    settings.UPLOAD_TYPES = ["application/zip"]
    assert sniff.admit(b"PK\x03\x04", "a.zip", 4) == "application/zip"
    with pytest.raises(ArtifactInvalid):
        sniff.admit(b"words", "a.txt", 5)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("报告.pdf", "报告.pdf"),
        ("C:\\Users\\x\\plan.md", "plan.md"),
        ("../../etc/passwd", "passwd"),
        ("e\u0301.txt", "é.txt"),
        ("👩‍💻.txt", "👩‍💻.txt"),
        ("ＡＢＣ．txt", "ＡＢＣ．txt"),
        ("عربي.txt", "عربي.txt"),
        ("invoice\u202efdp.exe", "invoice_fdp.exe"),
        ("a\x00b\nc.txt", "a_b_c.txt"),
        ("", "file"),
        ("..", "file"),
        ("   ", "file"),
        ("user:x.txt", "user_x.txt"),
        (".bashrc", "bashrc"),
    ],
)
def test_a_browsers_file_name_becomes_a_clean_one(raw: str, name: str) -> None:
    assert names.from_upload(raw) == name


@pytest.mark.parametrize("stem", ["a" * 400, "报" * 200, "👩‍💻" * 60])
def test_a_long_name_keeps_its_ending(stem: str) -> None:
    name = names.from_upload(stem + ".pdf")
    assert name.endswith(".pdf") and len(name.encode()) <= 255 and name[0] == stem[0]
