"""The characters of a text made fit to be kept."""

import re

_UNWANTED = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff]")


def clean(text: str) -> str:
    """Return the text without control characters and lone surrogates, with "\\n" at line ends."""
    text = without_controls(text.replace("\r\n", "\n").replace("\r", "\n"))
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_controls(text: str) -> str:
    return _UNWANTED.sub("", text).replace("\f", "\n")


def one_line(text: str) -> str:
    """Return the text cleaned, every stretch of blank space in it a single blank."""
    return " ".join(clean(text).split())
