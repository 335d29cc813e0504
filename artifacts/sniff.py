"""What a file is, by its bytes; and the door for what people bring."""

import codecs
from pathlib import PurePosixPath

from django.conf import settings
from django.utils.translation import gettext as _

from agents.runtime.artifacts import ArtifactInvalid
from agents.runtime.errors import ToolFailure
from artifacts.decoding import unmarked_utf16

HEAD_BYTES = 64 * 1024  # how much of a file `sniff` wants to see
UNKNOWN = "application/octet-stream"
OLE = "application/x-ole-storage"  # .doc, .xls, .ppt
_OFFICE = "application/vnd.openxmlformats-officedocument."

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
    (b"{\\rtf", "application/rtf"),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!", "application/vnd.rar"),
    (b"\x7fELF", "application/x-executable"),
)
DOCX = _OFFICE + "wordprocessingml.document"
XLSX = _OFFICE + "spreadsheetml.sheet"
PPTX = _OFFICE + "presentationml.presentation"
_FOLDERS = ((b"word/", DOCX), (b"xl/", XLSX), (b"ppt/", PPTX))
_PACKED = (b"[Content_Types].xml", b"_rels/.rels", b"docProps/", b"customXml/")  # every Office file has some of them
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_NEWER = {".doc": ".docx", ".dot": ".docx", ".xls": ".xlsx", ".xlt": ".xlsx", ".ppt": ".pptx", ".pps": ".pptx"}
_ZIPPED = {
    ".docx": DOCX,
    ".xlsx": XLSX,
    ".pptx": PPTX,
    ".docm": DOCX,  # macros are never looked at
    ".xlsm": XLSX,
    ".pptm": PPTX,
    ".epub": "application/epub+zip",
    ".odt": "application/vnd.oasis.opendocument.text",
}
_TEXTS = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".svg": "image/svg+xml",
    ".xml": "text/xml",
    ".py": "text/x-python",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".yaml": "text/yaml",
    ".yml": "text/yaml",
}
# Bytes that stand in no text of any encoding handled here
_NOT_TEXT = frozenset(range(32)) - frozenset(b"\t\n\r\f\x1b\b")


def sniff(head: bytes, name: str) -> str:
    """Return the MIME type of a file, from its first 64 KB; the name only tells kinds of text and of zip apart."""
    suffix = PurePosixPath(name.lower()).suffix
    for magic, mime in _MAGIC:
        if head.startswith(magic):
            return _zipped(head, suffix) if mime == "application/zip" else mime
    if b"%PDF-" in head[:1024]:
        return "application/pdf"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    if not is_text(head):
        return UNKNOWN
    start = head[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    if start.startswith(b"<svg") or (start.startswith(b"<?xml") and b"<svg" in head):
        return "image/svg+xml"
    return _TEXTS.get(suffix, "text/plain")


def _zipped(head: bytes, suffix: str) -> str:
    """Return what a ZIP archive is: by the names of its first entries, then by its own name if they allow it."""
    entries = _entries_in(head)
    for folder, mime in _FOLDERS:
        if any(entry.startswith(folder) for entry in entries):
            return mime
    named = _ZIPPED.get(suffix, "application/zip")
    if named.startswith(_OFFICE) and not any(entry.startswith(_PACKED) for entry in entries):
        return "application/zip"
    return named


def _entries_in(head: bytes) -> list[bytes]:
    """Return the names of the entries that begin in the head."""
    names, at = [], head.find(b"PK\x03\x04")
    while at >= 0:
        length = int.from_bytes(head[at + 26 : at + 28], "little")
        names.append(head[at + 30 : at + 30 + length])
        at = head.find(b"PK\x03\x04", at + 30)
    return names


def is_text(head: bytes) -> bool:
    """Return whether the bytes look like the beginning of a text, in any encoding."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    return not any(byte in _NOT_TEXT for byte in head) or bool(unmarked_utf16(head))


def admit(head: bytes, name: str, size_bytes: int) -> str:
    """Return the MIME type of a file that a person brings, if it may come in.

    Raises ArtifactInvalid with a message in the person's language that says what to do: empty, larger than
    UPLOAD_MAX_BYTES, or of a type that is not in UPLOAD_TYPES.
    """
    if size_bytes == 0:
        raise ArtifactInvalid(_("%(name)s is empty.") % {"name": name}, ToolFailure.FILE_EMPTY)
    if size_bytes > settings.UPLOAD_MAX_BYTES:
        raise ArtifactInvalid(too_large(), ToolFailure.CONTENT_TOO_LARGE)
    mime = sniff(head, name)
    if not _allowed(mime):
        raise _not_supported(head, mime, name)
    return mime


def too_large() -> str:
    """Return the sentence that tells a person how large a file may be."""
    most = settings.UPLOAD_MAX_BYTES
    size = f"{most / 1024**2:.0f} MB" if most >= 1024**2 else f"{max(1, most // 1024)} KB"
    return _("The file is too large. Files can have up to %(size)s.") % {"size": size}


def _allowed(mime: str) -> bool:
    family = mime.split("/", 1)[0] + "/*"
    return mime in settings.UPLOAD_TYPES or family in settings.UPLOAD_TYPES


def _not_supported(head: bytes, mime: str, name: str) -> ArtifactInvalid:
    suffix = PurePosixPath(name.lower()).suffix
    if mime == OLE and (suffix in _ZIPPED or _ENCRYPTED in head):
        said = _("%(name)s is protected by a password. Save it without one.") % {"name": name}
        return ArtifactInvalid(said, ToolFailure.FILE_ENCRYPTED)
    if mime == OLE and suffix in _NEWER:
        kinds = {"kind": suffix, "new": _NEWER[suffix]}
        said = _("%(kind)s is an old format of Office. Save it as %(new)s or PDF.") % kinds
    elif mime in (OLE, "application/rtf", *_ZIPPED.values()):
        said = _("%(kind)s isn't supported. Save it as PDF.") % {"kind": suffix or mime}
    elif suffix in (*_TEXTS, ".txt", ".pdf", *_ZIPPED) and _TEXTS.get(suffix) != mime:
        said = _("%(name)s doesn't hold what its name says. Is the file whole?") % {"name": name}
    else:
        said = _("Files of this kind (%(kind)s) aren't supported. Use PDF, Word, slides, sheets, text or an image.")
        said %= {"kind": suffix or mime}
    return ArtifactInvalid(said, ToolFailure.FILE_UNSUPPORTED)
