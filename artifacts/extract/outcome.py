"""How the reading of a file ends, and how it tells how far it has come: the words of parent and child."""

import struct
import zlib
from collections.abc import Callable
from enum import StrEnum

STATUS_TROUBLE = 3

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
