"""PDF, page by page, with the headings of its outline."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

from pypdf import PdfReader, overwrite_configuration
from pypdf.errors import DependencyError, DeprecationError, LimitReachedError, PyPdfError

from artifacts.extract.characters import clean, one_line
from artifacts.extract.outcome import PARSER_ERRORS, Tell, TimeUp, Trouble, Unreadable
from artifacts.extract.pdf_lines import mended
from artifacts.textfile import TextWriter

STREAM_BYTES = 20 * 1024 * 1024  # of one page's content, unpacked
MOST_OUTLINE = 2_000
REPEATED_SHARE = 0.6  # of the pages: a first or last line on so many of them is furniture
_BROKEN: tuple[type[Exception], ...] = (
    PyPdfError,
    DependencyError,
    DeprecationError,  # what it calls a filter of an older name
    StopIteration,
    *PARSER_ERRORS,
)
_PAGE_NUMBER = re.compile(
    r"[-–—\s]*(?:page|seite|p\.|第)?\s*\d{1,5}\s*(?:(?:of|von|/|共)\s*\d{1,5})?\s*页?[-–—\s]*", re.I
)

overwrite_configuration(
    array_based_stream_maximum_output_length=STREAM_BYTES,
    lzw_maximum_output_length=STREAM_BYTES,
    run_length_maximum_output_length=STREAM_BYTES,
    zlib_maximum_output_length=STREAM_BYTES,
    jbig2dec_binary=None,
)


def extract(source: IO[bytes], out: TextWriter, mime: str, tell: Tell) -> None:
    reader, pages, total = _opened(source)
    seen = _Seen()
    texts: list[str] = []
    outline: dict[int, list[tuple[int, str]]] = {}
    stopped = False
    try:
        for number in range(1, total + 1):
            texts.append(_page_text(pages, number, seen))
            tell(number, total)
        outline = _outline(reader)
    except TimeUp:
        if not seen.with_text:
            raise
        stopped = len(texts) < total
    if not seen.with_text:
        raise Unreadable(seen.verdict())
    for number, text in enumerate(_without_furniture(texts)):
        out.page()
        _write(out, text, outline.get(number, []))
    if stopped:
        out.add(f"\n[Reading stopped after page {len(texts)} of {total}: the time was up.]\n")


def _opened(source: IO[bytes]) -> tuple[PdfReader, Iterator[Any], int]:
    try:
        reader = PdfReader(source)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable(Trouble.ENCRYPTED)
        return reader, iter(reader.pages), len(reader.pages)
    except DependencyError as e:
        raise Unreadable(Trouble.ENCRYPTED) from e
    except _BROKEN as e:
        raise Unreadable(Trouble.BROKEN) from e


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
    try:
        page = next(pages)
        text = mended(clean(page.extract_text())).strip()
        if not text:
            pictured = _has_picture(page)
            seen.pictures += pictured
            return f"[Page {number} has no text; it may be a scan.]\n" if pictured else "\n"
    except LimitReachedError:
        seen.heavy += 1
        return f"[Page {number} unpacks to more than can be read.]\n"
    except _BROKEN:
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


def _without_furniture(texts: list[str]) -> Iterator[str]:
    """Give the pages without bare page numbers and without first and last lines that most pages share.

    The first page that has such a line keeps it, so that nothing is lost. Pages of a few lines stay as they are.
    """
    ends = Counter(line for text in texts for line in {*_edges(text.splitlines())})
    most = max(4, int(len(texts) * REPEATED_SHARE))
    repeated = {line: False for line, count in ends.items() if count >= most and line}
    for text in texts:
        lines = text.splitlines()
        if len(lines) < 5:
            yield text
            continue
        for at in (0, -1):
            line = lines[at].strip()
            if len(texts) >= 4 and _PAGE_NUMBER.fullmatch(line):
                lines.pop(at)
                line = lines[at].strip()
            if line in repeated:
                if repeated[line]:
                    lines.pop(at)
                repeated[line] = True
        yield "\n".join(lines) + "\n"


def _edges(lines: list[str]) -> Iterator[str]:
    """Give a page's first and last line, and those next to a bare page number."""
    if len(lines) < 5:
        return
    for first, second in ((0, 1), (-1, -2)):
        yield lines[second if _PAGE_NUMBER.fullmatch(lines[first].strip()) else first].strip()


def _outline(reader: PdfReader) -> dict[int, list[tuple[int, str]]]:
    """Return per page, from 0, the outline's entries that point to it: (level, title)."""
    found: dict[int, list[tuple[int, str]]] = {}
    try:
        for level, entry in _entries(reader.outline, 1):
            page = reader.get_destination_page_number(entry)
            title = one_line(str(entry.title or ""))
            if page is not None and page >= 0 and title:
                found.setdefault(page, []).append((level, title))
    except _BROKEN:
        return found  # the pages are there without it
    return found


def _entries(outline: list[Any], level: int) -> Iterator[tuple[int, Any]]:
    stack, count = [(iter(outline), level)], 0
    while stack and count < MOST_OUTLINE:
        entry = next(stack[-1][0], None)
        if entry is None:
            stack.pop()
        elif isinstance(entry, list):
            stack.append((iter(entry), len(stack) + level))
        else:
            count += 1
            yield len(stack) + level - 1, entry


def _write(out: TextWriter, text: str, titles: list[tuple[int, str]]) -> None:
    """Write a page, each heading of the outline where its words stand, else where the one before it stands."""
    at = 0
    for level, title in titles:
        words = r"\s*".join(re.escape(word) for word in title.split())
        found = re.compile(words, re.IGNORECASE).search(text, at)
        start = max(at, text.rfind("\n", 0, found.start()) + 1) if found else at
        out.add(text[at:start])
        out.heading(title, level)
        at = start
    out.add(text[at:])
