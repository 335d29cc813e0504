"""What a file is, by its bytes; and the door for what people bring."""

import codecs
from pathlib import PurePosixPath

from django.conf import settings
from django.utils.translation import gettext as _

from agents.runtime.artifacts import ArtifactInvalid

HEAD_BYTES = 64 * 1024  # how much of a file `sniff` wants to see
UNKNOWN = "application/octet-stream"
WORD_97 = "application/x-ole-storage"  # .doc, .xls, .ppt
_OFFICE = "application/vnd.openxmlformats-officedocument."

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", WORD_97),
    (b"{\\rtf", "application/rtf"),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!", "application/vnd.rar"),
    (b"\x7fELF", "application/x-executable"),
)
_ZIPPED = {
    ".docx": _OFFICE + "wordprocessingml.document",
    ".xlsx": _OFFICE + "spreadsheetml.sheet",
    ".pptx": _OFFICE + "presentationml.presentation",
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
            return _ZIPPED.get(suffix, mime) if mime == "application/zip" else mime
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


def is_text(head: bytes) -> bool:
    """Return whether the bytes look like the beginning of a text, in any encoding."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    return not any(byte in _NOT_TEXT for byte in head)


def admit(head: bytes, name: str, size_bytes: int) -> str:
    """Return the MIME type of a file that a person brings, if it may come in.

    Raises ArtifactInvalid with a message in the person's language that says what to do: empty, larger than
    UPLOAD_MAX_BYTES, or of a type that is not in UPLOAD_TYPES.
    """
    if size_bytes == 0:
        raise ArtifactInvalid(_("%(name)s is empty.") % {"name": name})
    if size_bytes > settings.UPLOAD_MAX_BYTES:
        raise ArtifactInvalid(too_large())
    mime = sniff(head, name)
    if not _allowed(mime):
        raise ArtifactInvalid(_not_supported(mime, name))
    return mime


def too_large() -> str:
    """Return the sentence that tells a person how large a file may be."""
    most = settings.UPLOAD_MAX_BYTES
    size = f"{most / 1024**2:.0f} MB" if most >= 1024**2 else f"{max(1, most // 1024)} KB"
    return _("The file is too large. Files can have up to %(size)s.") % {"size": size}


def _allowed(mime: str) -> bool:
    family = mime.split("/", 1)[0] + "/*"
    return mime in settings.UPLOAD_TYPES or family in settings.UPLOAD_TYPES


def _not_supported(mime: str, name: str) -> str:
    suffix = PurePosixPath(name.lower()).suffix
    if mime == WORD_97 or mime in _ZIPPED.values() or mime == "application/rtf":
        return _("%(kind)s isn't supported. Save it as PDF.") % {"kind": suffix or mime}
    if mime == UNKNOWN and suffix in (*_TEXTS, ".txt", ".pdf", *_ZIPPED):
        return _("%(name)s doesn't hold what its name says. Is the file whole?") % {"name": name}
    return _("Files of this kind (%(kind)s) aren't supported. Use text, Markdown, CSV, JSON, PDF or an image.") % {
        "kind": suffix or mime
    }
