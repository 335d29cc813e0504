"""The text of a version: extracted once by a child process, kept as a blob, read in pages."""

import logging
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO

from django.conf import settings

from agents.runtime.artifacts import ArtifactRef, ArtifactUnreadable, TextPage
from agents.runtime.errors import ToolFailure
from artifacts.extract.outcome import STATUS_TROUBLE, Tell, Trouble
from artifacts.textfile import TextReader

LEAST_CHARS = 100
TELL_EVERY_S = 0.25
_PROGRESS = re.compile(rb"(\d{1,9}) (\d{1,9})\n")
KEPT_ENV = ("LD_LIBRARY_PATH",)  # some Pythons need it to start; nothing else is told to the child

# Kept troubles beside those of the child
NOT_READ = "not_read"  # not the file's fault; another try may do
UNAVAILABLE = "unavailable"  # the bytes are gone or not what was written

logger = logging.getLogger(__name__)


class ExtractionFailed(Exception):
    """The child died of something that is not the file's fault, so that another try may succeed."""


class Extraction:
    """One run of the extracting process. `run` is for a worker thread; `stop` may come from any other."""

    def __init__(self, source: IO[bytes], mime: str) -> None:
        self._source = source
        self._mime = mime
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self, out: IO[bytes], progress: Tell | None = None) -> Trouble | None:
        """Write the extracted text to `out`, a real file, and return None, or why there is no text.

        progress: called on this thread with (pages read, pages in all), at most four times a second, for what has
        pages, slides or sheets. Takes at most EXTRACT_TIMEOUT_S and a little. Raises ExtractionFailed.
        """
        deadline = time.monotonic() + settings.EXTRACT_TIMEOUT_S + 5
        hears, tells = os.pipe()
        with tempfile.TemporaryFile() as complaint, open(hears, "rb", buffering=0) as heard:
            try:
                child = self._start(out, complaint, tells)
            finally:
                os.close(tells)
            try:
                _hear(heard, progress, deadline)
                status = child.wait(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return Trouble.TOO_SLOW
            finally:
                child.kill()
                child.wait()
            complaint.seek(0)
            return self._verdict(status, complaint.read(10_000).decode(errors="replace"))

    def _start(self, out: IO[bytes], complaint: IO[bytes], tells: int) -> "subprocess.Popen[bytes]":
        limits = [str(settings.EXTRACT_TIMEOUT_S), str(settings.EXTRACT_MEMORY_BYTES)]
        with self._lock:
            if self._stopped:
                raise ExtractionFailed("stopped")
            self._child = subprocess.Popen(
                [sys.executable, "-E", "-s", "-m", "artifacts.extract", self._mime, *limits, str(tells)],
                stdin=self._source,
                stdout=out,
                stderr=complaint,
                cwd=settings.BASE_DIR,
                env={"LANG": "C.UTF-8", **{key: os.environ[key] for key in KEPT_ENV if key in os.environ}},
                pass_fds=[tells],
                start_new_session=True,
            )
            return self._child

    def stop(self) -> None:
        """End the process, or keep it from starting."""
        with self._lock:
            self._stopped = True
            if self._child is not None:
                self._child.kill()

    def _verdict(self, status: int, complaint: str) -> Trouble | None:
        if status == 0:
            return None
        if status == STATUS_TROUBLE:
            trouble, _, error = complaint.partition(" ")
            if error:
                logger.warning("A file of type %s is taken for broken after %s", self._mime, error)
            return Trouble(trouble)
        if status == -signal.SIGXCPU or (status == -signal.SIGKILL and not self._stopped):
            return Trouble.TOO_SLOW
        if self._stopped:
            raise ExtractionFailed("stopped")
        last_line = complaint.strip().rpartition("\n")[2]
        error = last_line.split(":", 1)[0]  # its kind only: the rest may quote the file
        if error == "MemoryError":
            return Trouble.TOO_LARGE
        logger.error("Reading a file of type %s ended with status %s, %s", self._mime, status, error)
        raise ExtractionFailed(f"status {status}")


def _hear(heard: IO[bytes], progress: Tell | None, deadline: float) -> None:
    """Pass on what the child tells until it ends, or time is up."""
    passed_on = 0.0
    while (left := deadline - time.monotonic()) > 0 and select.select([heard], [], [], left)[0]:
        said = heard.read(4096)
        if not said:
            return
        found = _PROGRESS.findall(said)
        if progress is not None and found and time.monotonic() - passed_on >= TELL_EVERY_S:
            passed_on = time.monotonic()
            progress(int(found[-1][0]), int(found[-1][1]))


def unreadable(trouble: str, name: str) -> ArtifactUnreadable:
    """Return the error for a kept trouble: English for the model, what helps included, and the code for people."""
    sentences: dict[str, str] = {
        Trouble.ENCRYPTED: "is protected by a password. Save it without one and attach it again.",
        Trouble.BROKEN: "is broken: it does not hold what its type says. Save or export it again.",
        Trouble.SCANNED: "has no text: its pages are pictures (a scan). Use a version with text (OCR).",
        Trouble.PICTURE: "is a picture: no text can be read from it, and it is not searched.",
        Trouble.EMPTY: "holds no text.",
        Trouble.TOO_LARGE: "unpacks to more than can be read. Split it and attach the parts.",
        Trouble.TOO_SLOW: "took too long to read. Split it and attach the parts.",
        Trouble.UNSUPPORTED: "is of a type that no text can be read from.",
        NOT_READ: "could not be read. It may be read if the person tries again.",
        UNAVAILABLE: "is unavailable: its content is gone or damaged.",
    }
    return ArtifactUnreadable(f"{name} {sentences[trouble]}", ToolFailure(f"file_{trouble}"))


def page(ref: ArtifactRef, file: IO[bytes], *, cursor: str, max_chars: int) -> TextPage:
    """Return the stretch of an extracted text that begins at the cursor.

    cursor: "" = the beginning, "page:3", "line:120" (from 1) or "char:5000" (from 0; a bare number is the same).
    Where the text has pages, each begins with a line "[page 3]", which does not count as text. Raises
    ArtifactUnreadable for a cursor that points nowhere.
    """
    reader = TextReader(file)
    start = _start(reader, cursor.strip())
    text, end = reader.stretch(start, max(LEAST_CHARS, max_chars))
    total = reader.index.total_chars
    pages = reader.index.pages
    return TextPage(
        ref=ref,
        text=_with_page_lines(text, start, pages),
        anchor=_anchor(reader, start, end),
        next_cursor="" if end >= total else f"page:{reader.page_at(end)}" if end in pages else f"char:{end}",
        total_chars=total,
        pages=len(pages) or None,
    )


def _start(reader: TextReader, cursor: str) -> int:
    kind, colon, value = cursor.rpartition(":")
    if not cursor:
        return 0
    if (
        not value.isascii()
        or not value.isdigit()
        or len(value) > 12
        or (colon and kind not in ("page", "line", "char"))
    ):
        said = f'"{cursor}" is no place in a file. Use page:3, line:120 or char:5000.'
        raise ArtifactUnreadable(said, ToolFailure.PLACE_INVALID)
    number = int(value)
    total, pages = reader.index.total_chars, reader.index.pages
    if kind == "page":
        if not pages:
            raise _no_place("This file has no pages. Use line:120 or char:5000.")
        if not 1 <= number <= len(pages):
            raise _no_place(f"There is no page {number}; the file has {len(pages)}.")
        return pages[number - 1]
    if kind == "line":
        position = reader.position_of_line(max(1, number))
        if position >= total:
            raise _no_place(f"There is no line {number}; the file has {reader.line_at(total)} lines.")
        return position
    if number >= total:
        raise _no_place(f"The file ends at character {total}.")
    return number


def _no_place(said: str) -> ArtifactUnreadable:
    return ArtifactUnreadable(said, ToolFailure.PLACE_NOT_FOUND)


def _with_page_lines(text: str, start: int, pages: list[int]) -> str:
    pieces, at = [], 0
    for number, position in enumerate(pages, 1):
        if start <= position < start + len(text):
            pieces += [text[at : position - start], f"[page {number}]\n"]
            at = position - start
    return "".join([*pieces, text[at:]])


def _anchor(reader: TextReader, start: int, end: int) -> str:
    last = max(start, end - 1)
    if reader.index.pages:
        return _span("page", reader.page_at(start), reader.page_at(last))
    if sheet := reader.sheet_at(start):
        return f"sheet {sheet}" + (f" to {reader.sheet_at(last)}" if reader.sheet_at(last) != sheet else "")
    where = _span("line", reader.line_at(start), reader.line_at(last))
    heading = reader.heading_at(start)
    return f'{where}, under "{heading}"' if heading else where


def _span(word: str, first: int, last: int) -> str:
    return f"{word} {first}" if first == last else f"{word}s {first}-{last}"
