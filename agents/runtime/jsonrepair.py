"""JSON as models write it, read with patience.

Repairs what is only sloppy: code fences, text around the object, single quotes, bare keys, trailing commas, Python's
True/False/None, raw line breaks in strings, an object written as a string, an empty text (no arguments). It also closes
what is left open, and says so: whoever runs a tool must know that the end is missing.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from agents.runtime.surrogates import mended

MAX_DEPTH = 100
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None, "undefined": None}
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$.-]*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class NotJson(ValueError):
    """The text is no JSON object, and could not be made one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """arguments: the object. text: JSON text for it, the original if that was valid. cut: its end was missing."""

    arguments: dict[str, Any]
    text: str
    repaired: bool = False
    cut: bool = False


def parse_object(text: str) -> Parsed:
    """Return the JSON object in `text`, repaired if need be. Raises NotJson."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return Parsed(arguments=value, text=text)
    if not text.strip():
        return Parsed(arguments={}, text="{}", repaired=True)
    if isinstance(value, str):  # the object was written as a string
        inner = parse_object(value)
        return Parsed(arguments=inner.arguments, text=inner.text, repaired=True, cut=inner.cut)
    start = text.find("{")
    if start < 0:
        if value is None and text.strip() in _WORDS:
            return Parsed(arguments={}, text="{}", repaired=True)
        raise NotJson("The arguments are not a JSON object.")
    reader = _Reader(text, start)
    found = reader.value(0)
    if not isinstance(found, dict):
        raise NotJson("The arguments are not a JSON object.")
    if not found and (later := text.find("{", reader.at)) >= 0:  # an empty object first, then the real one
        reader = _Reader(text, later)
        second = reader.value(0)
        found = second if isinstance(second, dict) else found
    return Parsed(arguments=found, text=json.dumps(found, ensure_ascii=False), repaired=True, cut=reader.cut)


def is_complete(text: str) -> bool:
    """Return whether text is one whole JSON object."""
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


class _Reader:
    """A recursive descent over one value that forgives. `cut` is set when the text ended too early."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.cut = False

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotJson("The arguments are nested too deeply.")
        self._blank()
        char = self._peek()
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._array(depth)
        if char in "\"'" and char:
            return self._string(char)
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            return self._number(number.group())
        if word := _WORD.match(self.text, self.at):
            self.at = word.end()
            return _WORDS.get(word.group(), word.group())
        if not char or not self.text[self.at :].strip("+-."):  # nothing more, or the sign of a number that never came
            self.cut = True
            self.at = len(self.text)
            return None
        raise NotJson(f"Unexpected {char!r} at character {self.at + 1} of the arguments.")

    def _object(self, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        self.at += 1
        while True:
            self._blank(",")
            char = self._peek()
            if not char:
                self.cut = True
                return out
            if char == "}":
                self.at += 1
                return out
            key = self._key(char)
            self._blank()
            if self._peek() not in (":", "="):
                if not self._peek():
                    self.cut = True
                    return out
                raise NotJson(f'No value for "{key}" in the arguments.')
            self.at += 1
            self._blank()
            if not self._peek():
                self.cut = True
                return out
            out[key] = self.value(depth + 1)

    def _key(self, char: str) -> str:
        if char in "\"'":
            return self._string(char)
        if word := _WORD.match(self.text, self.at):
            self.at = word.end()
            return word.group()
        raise NotJson(f"Unexpected {char!r} at character {self.at + 1} of the arguments.")

    def _array(self, depth: int) -> list[Any]:
        out: list[Any] = []
        self.at += 1
        while True:
            self._blank(",")
            char = self._peek()
            if not char:
                self.cut = True
                return out
            if char == "]":
                self.at += 1
                return out
            if char == "}":
                raise NotJson("A list in the arguments is not closed.")
            out.append(self.value(depth + 1))

    def _string(self, quote: str) -> str:
        out: list[str] = []
        self.at += 1
        while True:
            char = self._peek()
            if not char:
                self.cut = True
                break
            self.at += 1
            if char == quote:
                break
            out.append(self._escape() if char == "\\" else char)
        return mended("".join(out))

    def _escape(self) -> str:
        char = self._peek()
        self.at += 1
        if char == "u":
            digits = self.text[self.at : self.at + 4]
            if re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                self.at += 4
                return chr(int(digits, 16))
            return "\\u"
        return _ESCAPES.get(char, char)

    def _number(self, digits: str) -> int | float:
        try:
            return int(digits)
        except ValueError:
            return float(digits)

    def _blank(self, also: str = "") -> None:
        while self.at < len(self.text):
            if self.text[self.at].isspace() or self.text[self.at] in also:
                self.at += 1
            elif self.text.startswith("//", self.at):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]
