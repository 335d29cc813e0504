"""Which words of a text a search means: marked in titles, and in the part of a text that is shown.

In texts the words that the index takes for the same: English stems, and of Chinese, Japanese and Korean each pair of
neighbours. In names what is typed, wherever it stands in a word, without regard to accents and case.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from django.db import connection

Span: TypeAlias = tuple[int, int]
Marked: TypeAlias = tuple[tuple[str, bool], ...]  # pieces of a text, in order; True: it is meant

SNIPPET_CHARS: Final = 160
LEAD_CHARS: Final = 48  # shown before the first word that is meant
WORD_CHARS: Final = 200
# as in agents/migrations/0002_search.py
_CJK = r"\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
_RUN = re.compile(rf"[{_CJK}]+")
_LETTERS = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*")  # accents may stand as characters of their own
_BINDERS = frozenset("-‐–_./'’&+:")
_NOISE = (
    (re.compile(r"\[\[c:[a-z2-7]+\]\]"), ""),  # what a model writes to cite
    (re.compile(r'\[Attached file "([^"\n]+)"\]'), r"\1"),  # what pieces.content_of writes of a file
    (re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)"), r"\1"),
    (re.compile(r"(?m)^\s{0,3}(?:#{1,6}|>|[-+*]|\d+\.)\s+"), " "),
    (re.compile(r"[*`|]+|~~|__|:?-{3,}:?"), " "),
    (re.compile(r"\s+"), " "),
)


class Tokens:
    """A text taken apart, once: words in lower case with their places, and runs of characters that need no blanks."""

    __slots__ = ("runs", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[tuple[int, int, str]] = []
        self.runs: list[tuple[int, str]] = []
        for match in _LETTERS.finditer(text):
            if match[0].isascii():
                self.words.append((match.start(), match.end(), match[0].lower()))
            else:
                self._mixed(match.start(), match[0])

    def _mixed(self, at: int, letters: str) -> None:
        done = 0
        for run in _RUN.finditer(letters):
            self._word(at + done, letters[done : run.start()])
            self.runs.append((at + run.start(), run[0]))
            done = run.end()
        self._word(at + done, letters[done:])

    def _word(self, at: int, letters: str) -> None:
        if letters:
            word = unicodedata.normalize("NFKC", letters).lower()  # as in the index
            self.words.append((at, at + len(letters), word))


class Marker:
    """What a query means. stems: of the words of the query and of the texts, as `stems_of` returns them."""

    def __init__(self, query: str, stems: Mapping[str, str]) -> None:
        asked = Tokens(unicodedata.normalize("NFKC", query))
        self._stems = stems
        self._words = {stem for _, _, word in asked.words if (stem := stems.get(word, ""))}
        self._pairs = {run[i : i + 2] for _, run in asked.runs for i in range(max(1, len(run) - 1))}

    def spans(self, tokens: Tokens) -> list[Span]:
        """Return where words stand that are meant, in order, none touching the next."""
        stems, meant = self._stems, self._words
        found = [(start, end) for start, end, word in tokens.words if stems.get(word, "") in meant]
        found += [(at + i, at + i + len(pair)) for at, run in tokens.runs for i, pair in self._in(run)]
        return _joined(sorted(found), tokens.text)

    def covered(self, tokens: Tokens) -> int:
        """Return how many of the query's words the text has."""
        words = {self._stems.get(word, "") for _, _, word in tokens.words} & self._words
        return len(words) + len({pair for _, run in tokens.runs for _, pair in self._in(run)})

    def _in(self, run: str) -> Iterator[tuple[int, str]]:
        if self._pairs:
            for i in range(len(run)):
                yield from ((i, pair) for pair in (run[i], run[i : i + 2]) if pair in self._pairs)


def words_of(*texts: Tokens) -> set[str]:
    """Return the words that have a stem."""
    return {word for tokens in texts for _, _, word in tokens.words if len(word) <= WORD_CHARS}


def stems_of(words: Iterable[str]) -> dict[str, str]:
    """Return the stem of each word as the index has it, "" for a stop word. One statement."""
    asked = sorted(words)
    if not asked:
        return {}
    with connection.cursor() as cursor:
        cursor.execute("select w, (ts_lexize('english_stem', w))[1] from unnest(%s::text[]) w", (asked,))
        return {word: stem or "" for word, stem in cursor.fetchall()}


def window(text: str, spans: Sequence[Span]) -> Span:
    """Return the part of a text to show: where most of what is meant stands together, from the beginning of a word."""
    if not spans:
        return (0, min(len(text), SNIPPET_CHARS))
    reach = SNIPPET_CHARS - LEAD_CHARS
    first = max(spans, key=lambda span: (sum(span[0] <= start < span[0] + reach for start, _ in spans), -span[0]))[0]
    start = max(0, min(first - LEAD_CHARS, len(text) - SNIPPET_CHARS))
    if start:
        start = next((m.end() for m in re.finditer(r"[\s，。；：、]+", text[start:first])), 0) + start
    return (start, min(len(text), start + SNIPPET_CHARS))


def snippet(text: str, marker: Marker, shown: Span) -> Marked:
    """Return a part of a text as it is shown: without marks of Markdown, on one line."""
    plain = text[shown[0] : shown[1]]
    for pattern, instead in _NOISE:
        plain = pattern.sub(instead, plain)
    before, after = "…" if shown[0] else "", "…" if shown[1] < len(text) else ""
    plain = f"{before}{plain.strip()}{after}"
    return marked(plain, marker.spans(Tokens(plain)))


def name(text: str, query: str) -> Marked:
    """Return a name with what was typed marked in it."""
    folded, index = "", []
    for at, char in enumerate(text):
        piece = fold(char)
        folded += piece
        index += [at] * len(piece)
    spans = []
    for word in fold(query).split():
        spans += [(index[m.start()], index[m.end() - 1] + 1) for m in re.finditer(re.escape(word), folded)]
    return marked(text, _joined(sorted(spans)))


def marked(text: str, spans: Sequence[Span]) -> Marked:
    """Return the text in pieces."""
    out: list[tuple[str, bool]] = []
    at = 0
    for start, end in spans:
        out += [(text[at:start], False), (text[start:end], True)]
        at = end
    out.append((text[at:], False))
    return tuple(piece for piece in out if piece[0])


def fold(text: str) -> str:
    """Return a text without accents and case; workbench/finding.py has the same in SQL."""
    decomposed = unicodedata.normalize("NFKD", text.lower())
    return "".join(char for char in decomposed if not "\u0300" <= char <= "\u036f")


def _joined(spans: Sequence[Span], text: str = "") -> list[Span]:
    """Return spans with those made one that touch, or that a single sign holds together, as in R-404A."""
    out: list[Span] = []
    for start, end in spans:
        if out and (start <= out[-1][1] or text[out[-1][1] : start] in _BINDERS):
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out
