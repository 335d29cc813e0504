"""Text that is read as it is: plain, source code, JSON, Markdown with its headings."""

import io
import re
from typing import IO

from artifacts.decoding import encoding_of
from artifacts.extract.characters import without_controls
from artifacts.extract.outcome import Tell
from artifacts.textfile import TextWriter

LINE_CHARS = 64 * 1024  # what is read at a time; longer lines come in pieces
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_NO_TITLE = ("|", "-", "*", "+", ">", "#", " ", "\t", "=")


def extract(source: IO[bytes], out: TextWriter, mime: str, tell: Tell) -> None:
    lines = decoded(source)
    if mime == "text/markdown":
        _markdown(lines, out)
        return
    while piece := lines.read(LINE_CHARS):
        out.add(without_controls(piece))


def decoded(source: IO[bytes]) -> io.TextIOWrapper:
    """Return the file as text in the encoding it is most likely written in, with "\\n" at line ends."""
    encoding, errors = encoding_of(source)
    return io.TextIOWrapper(source, encoding=encoding, errors=errors)


def _markdown(lines: IO[str], out: TextWriter) -> None:
    """Write line by line. A line is held until the next one has shown whether it is a title underlined."""
    fence, before, held = "", "", ""
    while line := lines.readline(LINE_CHARS):
        line = without_controls(line)
        text = line.rstrip("\n")
        fenced = bool(fence)
        if mark := _FENCE.match(text):
            fence = mark[1] if not fence else "" if mark[1].startswith(fence) else fence
        titled = not fenced and held.strip() and not before.strip() and not held.startswith(_NO_TITLE)
        if titled and (under := _UNDERLINE.match(text)):
            out.heading(held.strip(), 1 if under[1][0] == "=" else 2)
        out.add(held)
        if not fenced and (found := _HEADING.match(text)):
            out.heading(found[2], len(found[1]))
            out.add(line)
            before, held = line, ""
        else:
            before, held = held or before, line
    out.add(held)
