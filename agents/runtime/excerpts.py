"""Records of the past as a model reads them: stretches of pieces, each with a line of its own, its marker first:

    [[c:k3f9ab]] 2026-01-03 user, hit 1, event_id: 5f0c…, content_offset: 1200 of 5000 bytes
    The text of the record.

Text of others does not issue markers: of those that stand in it, only what it really cites is left.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from agents.runtime.context.citing import MARKER_START, marker
from agents.runtime.knowledge import QUOTE_CHARS, Citation, Place, message_citation_id
from agents.runtime.pieces import stretch_of
from agents.runtime.recall import TURN_TOKENS, TURNS, Piece, RecallScope, Recollection, Role
from agents.runtime.tokens import estimate

SNIPPET_CHARS: Final = 280
CUT: Final = "…"
TITLE_CHARS: Final = 80
UNTITLED: Final = "untitled conversation"

_WORD: Final = re.compile(r"[\u3400-\u9fff]+|[^\W_\u3400-\u9fff]+")
_MARKER: Final = re.compile(r"\[\[c:([a-z0-9]+)\]\]")
_LEAD: Final = 40  # characters shown before the first match
_SLACK: Final = 24  # that a snippet may be shorter to begin and end at words
_PLACELESS: Final = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A stretch of a record. text: as it was written. offset, end: its bytes in the record's content. rank: of a hit,
    from 1; 0 for what stands around it. start: character of the content."""

    piece: Piece
    text: str
    offset: int
    end: int
    start: int
    rank: int = 0

    @property
    def is_whole(self) -> bool:
        return self.offset == 0 and self.end >= self.piece.content_bytes

    @property
    def citation(self) -> Citation:
        piece = self.piece
        return Citation(
            id=message_citation_id(piece.thread_id, piece.event_id, self.offset, self.end),
            artifact_id="",
            version=0,
            name=piece.title,
            start=self.start,
            end=self.start + len(self.text),
            place=_PLACELESS,
            quote=_MARKER.sub("", self.text).strip()[:QUOTE_CHARS],
            thread_id=piece.thread_id,
            message_id=piece.message_id,
            at=piece.at,
        )

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Return what the model may cite of it: itself, and what it cites in turn."""
        named = set(_MARKER.findall(self.text))
        return (self.citation, *(cited for cited in self.piece.citations if cited.id in named))

    @property
    def shown(self) -> str:
        """Return the text with the markers of what it cites, and no others."""
        cited = {citation.id for citation in self.piece.citations}
        pieces = []
        at = 0
        for found in _MARKER.finditer(self.text):
            if found[1] in cited:
                pieces += [_without_markers(self.text[at : found.start()]), found[0]]
                at = found.end()
        return "".join((*pieces, _without_markers(self.text[at:])))

    def block(self) -> str:
        """Return the record as a search shows it."""
        piece = self.piece
        who = f"{piece.role} {piece.tool_name}".strip() if piece.role is Role.TOOL else str(piece.role)
        facts = [f"{marker(self.citation.id)} {piece.at:%Y-%m-%d} {who}"]
        if self.rank:
            facts += [f"hit {self.rank}", f"event_id: {piece.event_id}"]
        if not self.is_whole:
            facts.append(f"content_offset: {self.offset} of {piece.content_bytes} bytes")
        before = CUT if self.start > piece.start else ""
        after = CUT if len(self.text) < len(piece.text) - (self.start - piece.start) else ""
        return f"{', '.join(facts)}\n{before}{self.shown.strip()}{after}"


def excerpts(found: Sequence[Recollection], query: str, *, tokens: int = TURN_TOKENS) -> list[Excerpt]:
    """Return the records as far as they fit into TURNS and so many tokens, the best first, each cut around what the
    query asks for."""
    words = terms(query)
    taken: list[Excerpt] = []
    for number, recollection in enumerate(found, 1):
        excerpt = cut_around(recollection.piece, words, rank=number if recollection.score > 0 else 0)
        cost = estimate(excerpt.block()) + 1
        if cost <= tokens:
            tokens -= cost
            taken.append(excerpt)
        if len(taken) == TURNS:
            break
    return taken


def told(taken: Sequence[Excerpt], scopes: Sequence[RecallScope]) -> list[str]:
    """Return the records by conversation, the one with the best hit first, in the order in which things were said.

    scopes: of each record.
    """
    threads: dict[str, list[Excerpt]] = {}
    own: dict[str, bool] = {}
    for excerpt, scope in zip(taken, scopes, strict=True):
        threads.setdefault(excerpt.piece.thread_id, []).append(excerpt)
        own[excerpt.piece.thread_id] = scope is not RecallScope.OTHER_SESSIONS
    parts = []
    for thread_id, of_thread in threads.items():
        title = title_of(of_thread[0].piece)
        parts.append("This conversation:" if own[thread_id] else f"{title} (session_id: {thread_id}):")
        parts += [e.block() for e in sorted(of_thread, key=lambda e: (e.piece.position, e.offset))]
    return parts


def title_of(piece: Piece) -> str:
    """Return the title of a record's conversation in quotation marks, on one line."""
    title = _without_markers(" ".join(piece.title.split()))[:TITLE_CHARS] or UNTITLED
    return f'"{title}"'


def cut_around(piece: Piece, words: Sequence[str], *, rank: int = 0, most: int = SNIPPET_CHARS) -> Excerpt:
    """Return at most so many characters of a piece, marks of a cut included, where most of these words stand."""
    text = piece.text
    start, end = (0, len(text)) if len(text) <= most else _densest(text, words, most - 2 * len(CUT))
    offset = piece.offset + len(text[:start].encode())
    return Excerpt(
        piece=piece,
        text=text[start:end],
        offset=offset,
        end=offset + len(text[start:end].encode()),
        start=piece.start + start,
        rank=rank,
    )


def page_of(piece: Piece, offset: int, limit: int) -> Excerpt:
    """Return a page of a whole record: at most `limit` bytes from this one on, on borders of characters."""
    data = piece.text.encode()
    start, end = stretch_of(piece.text, offset, limit)
    return Excerpt(piece=piece, text=data[start:end].decode(), offset=start, end=end, start=len(data[:start].decode()))


def terms(query: str) -> list[str]:
    """Return what to look for in a text: beginnings of words, so that endings do not matter; of Chinese, every two
    neighbouring characters."""
    found: list[str] = []
    for word in _WORD.findall(query):
        if "\u3400" <= word[0] <= "\u9fff":
            found += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        elif len(word) > 2 or word[0].isdigit():
            found.append(word.casefold()[: max(4, len(word) - 2)])
    return list(dict.fromkeys(found))


def _densest(text: str, words: Sequence[str], most: int) -> tuple[int, int]:
    """Return the stretch of `most` characters that holds most of the words, long ones more; else the beginning.

    One walk over the places: both a question and a text may consist of nothing but words of the other.
    """
    places = sorted(_places(text, words), key=lambda place: (place[0], len(place[1])))
    inside: Counter[str] = Counter()
    best = weight = start = behind = 0
    for at, word in places:
        left = max(0, min(at - _LEAD, len(text) - most))
        while behind < len(places) and places[behind][0] + len(places[behind][1]) <= left + most:
            coming = places[behind][1]
            weight += 0 if inside[coming] else len(coming)
            inside[coming] += 1
            behind += 1
        if weight > best:
            best, start = weight, left
        if inside[word]:  # it lies before the stretches that follow
            inside[word] -= 1
            weight -= 0 if inside[word] else len(word)
    end = min(len(text), start + most)
    return _to_words(text, start, end)


def _places(text: str, words: Iterable[str]) -> Iterable[tuple[int, str]]:
    """Yield where words of `terms` stand: each at the beginning of a word, Chinese anywhere."""
    wanted = set(words)
    sizes = sorted(set(map(len, wanted)))
    for found in _WORD.finditer(text):
        if "\u3400" <= found[0][0] <= "\u9fff":
            pieces = ((i, found[0][i : i + size]) for i in range(len(found[0])) for size in (1, 2))
        else:
            folded = found[0].casefold()
            pieces = ((0, folded[:size]) for size in sizes if size <= len(folded))
        yield from ((found.start() + at, piece) for at, piece in pieces if piece in wanted)


def _to_words(text: str, start: int, end: int) -> tuple[int, int]:
    if start and (blank := re.search(r"\s", text[start - 1 : start + _SLACK])):
        start += blank.end() - 1
    if end < len(text) and (blank := re.search(r"\s\S*$", text[end - _SLACK : end + 1])):
        end += blank.start() - _SLACK
    return start, end


def _without_markers(text: str) -> str:
    return text.replace(MARKER_START, "[ [c:")
