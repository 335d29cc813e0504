"""Text with anchors out of a file's bytes, in a process of its own: `python -m artifacts.extract`.

stdin: the file, seekable. stdout: an extracted text (textfile.py). Arguments: MIME type, seconds, bytes of memory.
The process limits itself before it looks at the file: time, memory, no writing elsewhere, no network, no other
program. Exit status 0: the text is there. Status 3: there is none, and stderr holds one word of `Trouble`. Anything
else, or a signal: the process died.

Nothing of Django or of the application is imported here, so that it starts in a tenth of a second and holds nothing
worth stealing.
"""

import io
import logging
import os
import re
import resource
import signal
import struct
import sys
import zlib
from collections.abc import Iterator
from enum import StrEnum
from typing import IO, Any, NoReturn

from artifacts.decoding import encoding_of
from artifacts.textfile import TextWriter

STATUS_TROUBLE = 3
OUTPUT_BYTES = 512 * 1024 * 1024
STREAM_BYTES = 20 * 1024 * 1024  # of one page's content, unpacked
LINE_CHARS = 64 * 1024  # what is read at a time; longer lines come in pieces
_UNWANTED = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff]")

# What a parser in Python raises when a file does not keep to its format
PARSER_ERRORS: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    NotImplementedError,
    RecursionError,
    zlib.error,
    struct.error,
)


class Trouble(StrEnum):
    """Why there is no text."""

    ENCRYPTED = "encrypted"
    BROKEN = "broken"
    SCANNED = "scanned"  # pages are pictures
    EMPTY = "empty"
    TOO_LARGE = "too_large"  # unpacks to more than the bounds allow
    TOO_SLOW = "too_slow"
    UNSUPPORTED = "unsupported"


class Unreadable(Exception):
    """There is no text to be had."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.value)
        self.trouble = trouble


class TimeUp(BaseException):
    """The time is up; what was read so far counts. Not an Exception, so that no parser swallows it."""


def extract(source: IO[bytes], mime: str, out: TextWriter) -> None:
    """Write the text of `source` to `out`. Raises Unreadable, MemoryError, TimeUp."""
    if mime == "application/pdf":
        _pdf(source, out)
    elif mime.startswith("text/") or mime in ("application/json", "image/svg+xml"):
        _text(source, out, markdown=mime == "text/markdown")
    else:
        raise Unreadable(Trouble.UNSUPPORTED)


def clean(text: str) -> str:
    """Return the text without control characters and lone surrogates, with "\\n" at line ends."""
    text = _without_controls(text.replace("\r\n", "\n").replace("\r", "\n"))
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _text(source: IO[bytes], out: TextWriter, *, markdown: bool) -> None:
    encoding, errors = encoding_of(source)
    lines = io.TextIOWrapper(source, encoding=encoding, errors=errors)
    if markdown:
        _lines(lines, out)
    else:
        while piece := lines.read(LINE_CHARS):
            out.add(_without_controls(piece))
    if not out.index.total_chars:
        raise Unreadable(Trouble.EMPTY)


def _lines(lines: IO[str], out: TextWriter) -> None:
    """Write Markdown line by line, with its headings."""
    fenced = False
    while line := lines.readline(LINE_CHARS):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and line.startswith("#"):
            out.heading(line.strip().strip("#").strip())
        out.add(_without_controls(line))


def _without_controls(text: str) -> str:
    return _UNWANTED.sub("", text).replace("\f", "\n")


def _pdf(source: IO[bytes], out: TextWriter) -> None:
    from pypdf import PdfReader  # noqa: PLC0415 - costs a tenth of a second, needed for PDF only
    from pypdf.errors import DependencyError, PyPdfError  # noqa: PLC0415 - as above

    broken: tuple[type[Exception], ...] = (PyPdfError, *PARSER_ERRORS)
    try:
        reader = PdfReader(source)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable(Trouble.ENCRYPTED)
        pages: Iterator[Any] = iter(reader.pages)
        total = len(reader.pages)
    except DependencyError as e:
        raise Unreadable(Trouble.ENCRYPTED) from e
    except broken as e:
        raise Unreadable(Trouble.BROKEN) from e
    seen = _Seen()
    try:
        for number in range(1, total + 1):
            out.page()
            out.add(_page_text(pages, number, seen))
    except TimeUp:
        if not seen.with_text:
            raise
        out.add(f"\n[Reading stopped at page {len(out.index.pages)} of {total}: the time was up.]\n")
    if not seen.with_text:
        raise Unreadable(seen.verdict())


class _Seen:
    """What the pages so far held."""

    def __init__(self) -> None:
        self.with_text = self.pictures = self.heavy = self.broken = 0

    def verdict(self) -> Trouble:
        if self.heavy:
            return Trouble.TOO_LARGE
        if self.broken:
            return Trouble.BROKEN
        return Trouble.SCANNED if self.pictures else Trouble.EMPTY


def _page_text(pages: Iterator[Any], number: int, seen: _Seen) -> str:
    from pypdf.errors import LimitReachedError, PyPdfError  # noqa: PLC0415 - for PDF only

    broken: tuple[type[Exception], ...] = (PyPdfError, StopIteration, *PARSER_ERRORS)
    try:
        page = next(pages)
        text = clean(page.extract_text()).strip()
        if not text:
            pictured = _has_picture(page)
            seen.pictures += pictured
            return f"[Page {number} has no text; it may be a scan.]\n" if pictured else "\n"
    except LimitReachedError:
        seen.heavy += 1
        return f"[Page {number} unpacks to more than can be read.]\n"
    except broken:
        seen.broken += 1
        return f"[Page {number} is broken and could not be read.]\n"
    seen.with_text += 1
    return text + "\n"


def _has_picture(page: Any) -> bool:
    resources = page.get("/Resources")
    objects = resources.get_object().get("/XObject") if resources is not None else None
    if objects is None:
        return False
    return any(item.get_object().get("/Subtype") in ("/Image", "/Form") for item in objects.get_object().values())


def confine(seconds: int, memory_bytes: int) -> None:
    """Give up all that reading a file does not need. What the system does not offer (namespaces) is left out."""
    _leave_network()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_BYTES, OUTPUT_BYTES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    signal.signal(signal.SIGXCPU, _time_up)  # at four fifths what was read is kept; at the end the system kills
    resource.setrlimit(resource.RLIMIT_CPU, (max(1, seconds * 4 // 5), seconds + 1))
    roots = tuple({sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), os.path.dirname(__file__)})
    sys.addaudithook(lambda event, args: _refuse(event, args, roots))


def _time_up(_signal: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    raise TimeUp


def _refuse(event: str, args: tuple[Any, ...], roots: tuple[str, ...]) -> None:
    if event.startswith(("socket.", "subprocess.", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "os.system")):
        raise PermissionError(event)
    if event == "open" and isinstance(args[0], str):
        writes = bool(args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) if isinstance(args[2], int) else False
        if writes or not args[0].startswith(roots):
            raise PermissionError(event)


def _leave_network() -> None:
    """Die with the parent, and move into an empty network namespace if the system lets us."""
    import ctypes  # noqa: PLC0415 - the application, which knows this module too, needs none of it

    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if hasattr(libc, "unshare"):
        new_user, new_net = 0x10000000, 0x40000000
        if libc.unshare(new_net) != 0:
            libc.unshare(new_user | new_net)


def _prepare(mime: str) -> None:
    """Import before the doors close what would be imported later."""
    logging.disable(logging.CRITICAL)  # parsers complain about files; stderr is for one word
    for name in ("utf-16", "utf-16-le", "gb18030", "cp1252", "latin-1", "charmap", "ascii", "mac_roman"):
        "".encode(name)
    if mime == "application/pdf":
        from pypdf import overwrite_configuration  # noqa: PLC0415 - for PDF only

        overwrite_configuration(
            array_based_stream_maximum_output_length=STREAM_BYTES,
            lzw_maximum_output_length=STREAM_BYTES,
            run_length_maximum_output_length=STREAM_BYTES,
            zlib_maximum_output_length=STREAM_BYTES,
            jbig2dec_binary=None,
        )


def main(argv: list[str]) -> int:
    mime, seconds, memory_bytes = argv[0], int(argv[1]), int(argv[2])
    _prepare(mime)
    confine(seconds, memory_bytes)
    source = open(0, "rb", closefd=False)
    output = open(1, "wb", closefd=False)
    out = TextWriter(output)
    try:
        extract(source, mime, out)
        out.close()
    except Unreadable as e:
        return _tell(e.trouble)
    except MemoryError:
        return _tell(Trouble.TOO_LARGE)
    except TimeUp:
        return _tell(Trouble.TOO_SLOW)
    except OSError as e:
        return _tell(Trouble.TOO_LARGE if e.errno == 27 else Trouble.BROKEN)  # EFBIG
    return 0


def _tell(trouble: Trouble) -> int:
    sys.stderr.write(trouble.value)
    sys.stderr.flush()
    return STATUS_TROUBLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
