"""Which module reads what."""

import importlib
from typing import IO, Any

from artifacts.extract.outcome import Tell, Trouble, Unreadable
from artifacts.textfile import TextWriter

_OFFICE = "application/vnd.openxmlformats-officedocument."
# MIME type or its beginning -> module with `extract(source, out, mime, tell)`; the first that fits
_READERS = (
    ("application/pdf", "pdf"),
    (_OFFICE + "wordprocessingml.document", "docx"),
    (_OFFICE + "presentationml.presentation", "pptx"),
    (_OFFICE + "spreadsheetml.sheet", "xlsx"),
    ("text/html", "html"),
    ("text/csv", "tables"),
    ("text/tab-separated-values", "tables"),
    ("text/", "plain"),
    ("application/json", "plain"),
    ("image/svg+xml", "plain"),
)


def extract(source: IO[bytes], mime: str, out: TextWriter, tell: Tell) -> None:
    """Write the text of `source` to `out`. Raises Unreadable, TimeUp, MemoryError, OSError and PARSER_ERRORS."""
    reader = load(mime)
    if reader is None:
        raise Unreadable(Trouble.PICTURE if mime.startswith("image/") else Trouble.UNSUPPORTED)
    reader.extract(source, out, mime, tell)
    if not out.said:
        raise Unreadable(Trouble.EMPTY)


def load(mime: str) -> Any:
    """Return the module that reads such files, imported only now; None if there is none."""
    name = next((name for start, name in _READERS if mime.startswith(start)), None)
    return importlib.import_module(f"artifacts.extract.{name}") if name else None
