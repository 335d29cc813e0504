"""Two versions of a text compared: words in English, characters in Chinese. Pure, no rows and no files.

Lines are matched first; between lines that match, the words are. So a moved comma marks a comma, not a paragraph, and
a long document costs little.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

CONTEXT = 2  # lines that stay open beside a change
WORDS = 4_000  # of a changed stretch on either side; a longer one is shown as removed and added
TEXT_CHARS = 1_000_000  # of either text; longer ones are not compared

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|\s|[^\w\s]")
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")


class Sign(StrEnum):
    """What happened to a piece of text."""

    SAME = "same"
    OUT = "out"
    IN = "in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of text with one sign. In reading order; what is taken out stands before what comes in."""

    sign: Sign
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Whole lines. number: of the change, from 1; 0 = nothing changed here. folded: so many lines may stay hidden."""

    pieces: tuple[Piece, ...]
    number: int = 0
    folded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything of both texts, in order. added, removed: words (a Chinese character counts as one)."""

    parts: tuple[Part, ...]
    changes: int
    added: int
    removed: int


class TooLong(ValueError):
    """One of the texts is too long to be compared."""


def compare(old: str, new: str) -> Comparison:
    """Return how `new` came from `old`. Joined without OUT the pieces give `new`, without IN they give `old`.

    Raises TooLong above TEXT_CHARS.
    """
    if max(len(old), len(new)) > TEXT_CHARS:
        raise TooLong(f"Texts above {TEXT_CHARS:,} characters are not compared.")
    before, after = _lines(old), _lines(new)
    codes = SequenceMatcher(None, before, after).get_opcodes()
    parts: list[Part] = []
    added = removed = changes = 0
    for at, (tag, i1, i2, j1, j2) in enumerate(codes):
        if tag == "equal":
            parts += _unchanged(before[i1:i2], first=at == 0, last=at == len(codes) - 1)
            continue
        pieces = _pieces("".join(before[i1:i2]), "".join(after[j1:j2]))
        changes += 1
        removed += _words(pieces, Sign.OUT)
        added += _words(pieces, Sign.IN)
        parts.append(Part(pieces=pieces, number=changes))
    return Comparison(parts=tuple(parts), changes=changes, added=added, removed=removed)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _words(pieces: Sequence[Piece], sign: Sign) -> int:
    return sum(len(_WORD.findall(piece.text)) for piece in pieces if piece.sign is sign)


def _unchanged(lines: Sequence[str], *, first: bool, last: bool) -> Iterator[Part]:
    """Yield lines that match: open beside a change, folded further away."""
    head = 0 if first else CONTEXT
    tail = 0 if last else CONTEXT
    hidden = len(lines) - head - tail
    cuts = (0, head, len(lines) - tail, len(lines)) if hidden > 1 else (0, len(lines), len(lines), len(lines))
    for at in range(3):
        if text := "".join(lines[cuts[at] : cuts[at + 1]]):
            folded = hidden if at == 1 and hidden > 1 else 0
            yield Part(pieces=(Piece(sign=Sign.SAME, text=text),), folded=folded)


def _pieces(old: str, new: str) -> tuple[Piece, ...]:
    """Return a changed stretch word by word."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    if not before or not after or max(len(before), len(after)) > WORDS:
        return _signed((Sign.OUT, old), (Sign.IN, new))
    found: list[tuple[Sign, str]] = []
    gone, come = "", ""
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        was, now = "".join(before[i1:i2]), "".join(after[j1:j2])
        if tag != "equal":
            gone, come = gone + was, come + now
        elif (gone or come) and now.isspace() and "\n" not in now and i2 < len(before):
            gone, come = gone + was, come + now  # a lone blank between two changes only makes them hard to read
        else:
            found += [*_trimmed(gone, come), (Sign.SAME, now)]
            gone, come = "", ""
    return _signed(*found, *_trimmed(gone, come))


def _trimmed(gone: str, come: str) -> list[tuple[Sign, str]]:
    """Return both sides of a change with the blanks they end on alike taken out of it."""
    keep = 0
    while keep < min(len(gone), len(come)) and gone[-1 - keep] == come[-1 - keep] and gone[-1 - keep].isspace():
        keep += 1
    cut = len(gone) - keep, len(come) - keep
    return [(Sign.OUT, gone[: cut[0]]), (Sign.IN, come[: cut[1]]), (Sign.SAME, gone[cut[0] :])]


def _signed(*found: tuple[Sign, str]) -> tuple[Piece, ...]:
    """Return pieces without empty ones; neighbours of one sign are one."""
    out: list[Piece] = []
    for sign, text in found:
        if out and out[-1].sign is sign:
            out[-1] = Piece(sign=sign, text=out[-1].text + text)
        elif text:
            out.append(Piece(sign=sign, text=text))
    return tuple(out)
