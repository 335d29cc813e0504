"""Two versions of a text compared: words in English, characters in Chinese. Pure, no rows and no files.

Lines are matched first, those that occur once before all others; between lines that match, the words are. So a moved
comma marks a comma, not a paragraph, and a long document costs little.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

CONTEXT = 2  # lines that stay open beside a change
TEXT_CHARS = 1_000_000  # of either text; longer ones are not compared
# Items of one side times those of the other, of all stretches that are matched: about 2 s. What would take longer is
# shown as removed and added.
PAIRS = 10_000_000

Code = tuple[str, int, int, int, int]  # "equal" or not; first and after-last of the old, and of the new
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|\s|[^\w\s]")
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")


class Sign(StrEnum):
    """What happened to a piece of text."""

    SAME = "same"
    OUT = "out"  # of the old text
    IN = "in"  # of the new one


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
    effort = _Effort()
    codes = _line_codes(before, after, effort)
    parts: list[Part] = []
    added = removed = changes = 0
    for at, (tag, i1, i2, j1, j2) in enumerate(codes):
        if tag == "equal":
            parts += _unchanged(before[i1:i2], first=at == 0, last=at == len(codes) - 1)
            continue
        pieces = _pieces("".join(before[i1:i2]), "".join(after[j1:j2]), effort)
        changes += 1
        removed += _words(pieces, Sign.OUT)
        added += _words(pieces, Sign.IN)
        parts.append(Part(pieces=pieces, number=changes))
    return Comparison(parts=tuple(parts), changes=changes, added=added, removed=removed)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


class _Effort:
    """What may still be spent on matching."""

    def __init__(self) -> None:
        self._left = PAIRS

    def codes(self, before: Sequence[str], after: Sequence[str]) -> list[Code]:
        """Return what of the one is what of the other, as difflib does, with both ends matched first."""
        head = _shared(before, after)
        tail = _shared(before[head:][::-1], after[head:][::-1])
        ends = len(before) - tail, len(after) - tail
        cost = (ends[0] - head) * (ends[1] - head)
        middle: list[Code] = [("replace", 0, ends[0] - head, 0, ends[1] - head)]
        if 0 < cost <= self._left:
            self._left -= cost
            matcher = SequenceMatcher(None, before[head : ends[0]], after[head : ends[1]], autojunk=False)
            middle = list(matcher.get_opcodes())
        found: list[Code] = [("equal", 0, head, 0, head), *_moved(middle, head, head)]
        return _joined([*found, ("equal", ends[0], len(before), ends[1], len(after))])


def _line_codes(before: Sequence[str], after: Sequence[str], effort: _Effort) -> list[Code]:
    """Return what of the old lines is what of the new. Between lines that occur once each stretch is matched alone."""
    found: list[Code] = []
    i = j = 0
    for next_i, next_j in (*_anchors(before, after), (len(before), len(after))):
        found += _moved(effort.codes(before[i:next_i], after[j:next_j]), i, j)
        i, j = next_i, next_j
        if i < len(before):
            found.append(("equal", i, i + 1, j, j + 1))
            i, j = i + 1, j + 1
    return _joined(found)


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest row of lines in the same order that occur once in either text, as positions in both."""
    old, new = Counter(before), Counter(after)
    place = {line: j for j, line in enumerate(after)}
    ends: list[int] = []  # of rows of each length, the smallest last position in `after`
    rows: list[tuple[int, int, int | None]] = []  # positions, and the row's element before
    tops: list[int] = []  # which element of `rows` each of `ends` is
    for i, line in enumerate(before):
        if old[line] != 1 or new[line] != 1:
            continue
        at = bisect_left(ends, place[line])
        rows.append((i, place[line], tops[at - 1] if at else None))
        ends[at : at + 1] = [place[line]]
        tops[at : at + 1] = [len(rows) - 1]
    found: list[tuple[int, int]] = []
    top = tops[-1] if tops else None
    while top is not None:
        i, j, top = rows[top]
        found.append((i, j))
    return found[::-1]


def _shared(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many items both begin with."""
    return next(
        (n for n, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), min(len(before), len(after))
    )


def _moved(codes: Iterable[Code], i: int, j: int) -> list[Code]:
    return [(tag, i + i1, i + i2, j + j1, j + j2) for tag, i1, i2, j1, j2 in codes]


def _joined(codes: Iterable[Code]) -> list[Code]:
    """Return codes without empty ones, neighbours that are both equal or both changed as one."""
    out: list[Code] = []
    for tag, i1, i2, j1, j2 in codes:
        if i1 == i2 and j1 == j2:
            continue
        if out and (out[-1][0] == "equal") == (tag == "equal"):
            out[-1] = (out[-1][0], out[-1][1], i2, out[-1][3], j2)
        else:
            out.append((tag, i1, i2, j1, j2))
    return out


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


def _pieces(old: str, new: str, effort: _Effort) -> tuple[Piece, ...]:
    """Return a changed stretch word by word."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    found: list[tuple[Sign, str]] = []
    gone, come = "", ""
    for tag, i1, i2, j1, j2 in effort.codes(before, after):
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
