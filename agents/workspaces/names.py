"""Names and patterns of files in a workspace."""

import mimetypes
import re
import unicodedata
from functools import cache
from pathlib import PurePosixPath
from typing import Final

from agents.runtime.code import WORKSPACE, PathInvalid

NAME_CHARS: Final = 120
UNKNOWN: Final = "application/octet-stream"
# what Python's table does not know, or calls something else from machine to machine
_MIMES: Final = {
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".svg": "image/svg+xml",
}
_TEXTS: Final = ("application/json", "application/xml", "application/javascript", "image/svg+xml")


def fit(name: str) -> str:
    """Return a file name that every shell and script takes: the last part of a path, no blanks, no leading dot."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(c if c.isalnum() or c in "._-" else "_" for c in last).strip("_").lstrip(".-")
    suffix = PurePosixPath(kept).suffix[:20]
    stem = kept.removesuffix(suffix)
    while len(f"{stem}{suffix}".encode()) > NAME_CHARS:
        stem = stem[:-1]
    return f"{stem}{suffix}" if stem else f"file{suffix}"


def taken_apart(name: str, number: int) -> str:
    """Return the name with a number behind its stem: a.csv, 2 -> a_2.csv."""
    suffix = PurePosixPath(name).suffix
    return f"{name.removesuffix(suffix)}_{number}{suffix}"


def inside(path: str) -> str:
    """Return a path relative to the workspace, cleaned. Raises PathInvalid for one that leads out of it."""
    whole = path.strip()
    if "\0" in whole or len(whole) > 1_024 or not all(_can_be_a_name(part) for part in whole.split("/")):
        raise PathInvalid("This is no path.")
    if whole == WORKSPACE or whole.startswith(f"{WORKSPACE}/"):
        whole = whole[len(WORKSPACE) :].lstrip("/") or "."
    whole = whole.removeprefix("workspace://")
    pure = PurePosixPath(whole)
    if pure.is_absolute() or ".." in pure.parts:
        raise PathInvalid(f'"{path[:200]}" leads out of the workspace.')
    return "" if pure == PurePosixPath() else pure.as_posix()


def _can_be_a_name(part: str) -> bool:
    try:
        return len(part.encode()) <= 255
    except UnicodeEncodeError:  # half of a pair of surrogates, which JSON can hold
        return False


@cache
def pattern(glob: str) -> re.Pattern[str]:
    """Return a glob as an expression for whole paths: "**" for any directories, "*" and "?" within one name."""
    parts: list[str] = []
    at = 0
    while at < len(glob):
        if glob.startswith("**/", at):
            parts.append("(?:[^/]+/)*")
            at += 3
        elif glob.startswith("**", at):
            parts.append(".*")
            at += 2
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(glob[at], re.escape(glob[at])))
            at += 1
    return re.compile("".join(parts), re.DOTALL)


def mime_of(path: str, head: bytes) -> str:
    """Return a type by the name's ending, and by the bytes where it says nothing: text is what is UTF-8."""
    suffix = PurePosixPath(path).suffix.lower()
    guessed = _MIMES.get(suffix) or mimetypes.guess_type(path)[0] or ""
    if guessed and (not is_text(guessed) or _utf8(head)):
        return guessed
    return "text/plain" if _utf8(head) else UNKNOWN


def is_text(mime: str) -> bool:
    return mime.startswith("text/") or mime in _TEXTS or mime.endswith(("+json", "+xml"))


def _utf8(data: bytes) -> bool:
    try:
        data[:65_536].decode()
    except UnicodeDecodeError as error:
        return error.start >= min(len(data), 65_536) - 3 and b"\0" not in data
    return b"\0" not in data
