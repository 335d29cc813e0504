"""Text with anchors out of a file's bytes, in a process of its own: `python -m artifacts.extract`.

stdin: the file, seekable. stdout: an extracted text (textfile.py). Arguments: MIME type, seconds, bytes of memory,
descriptor to tell progress on (-1 = none), a line "DONE TOTAL" now and then. The process limits itself before it looks
at the file: time, memory, no writing elsewhere, no network, no other program (confine.py). Exit status 0: the text is
there. Status 3: there is none, and stderr holds one word of `Trouble`, then the error that no reader had foreseen, if
there was one. Anything else, or a signal: the process died.

One module per family of formats; readers.py picks. Nothing of Django or of the application is imported here, so
that it starts in a tenth of a second and holds nothing worth stealing.
"""

import re
import struct
import zlib
from collections.abc import Callable
from enum import StrEnum

STATUS_TROUBLE = 3
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
    EOFError,
    zlib.error,
    struct.error,
)

Tell = Callable[[int, int], None]  # (pages done, pages in all): cheap enough to be called for every page


class Trouble(StrEnum):
    """Why there is no text."""

    ENCRYPTED = "encrypted"
    BROKEN = "broken"
    SCANNED = "scanned"  # pages are pictures
    PICTURE = "picture"  # the file is one: nothing is wrong with it
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


def clean(text: str) -> str:
    """Return the text without control characters and lone surrogates, with "\\n" at line ends."""
    text = without_controls(text.replace("\r\n", "\n").replace("\r", "\n"))
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_controls(text: str) -> str:
    return _UNWANTED.sub("", text).replace("\f", "\n")


def one_line(text: str) -> str:
    """Return the text cleaned, every stretch of blank space in it a single blank."""
    return " ".join(clean(text).split())
