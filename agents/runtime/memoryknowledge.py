"""Knowledge in memory, for tests: paragraphs are passages, and what shares most words with the query is found."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from agents.runtime.artifacts import reference_candidates
from agents.runtime.knowledge import (
    QUOTE_CHARS,
    Citation,
    Document,
    DocumentMissing,
    DocumentState,
    DocumentUnread,
    Found,
    Hit,
    Place,
    Reading,
    citation_id,
)

_PARAGRAPH = re.compile(r"(?:[^\n\f]+\n?)+")
_WORD = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+")
_PLACES = ("page", "line", "row", "char", "heading")


@dataclass(slots=True)
class _Shelf:
    """versions: of each document by id, oldest first, with their texts. second_hand: names of those written in runs."""

    versions: dict[str, list[tuple[Document, str]]] = field(default_factory=dict)
    second_hand: set[str] = field(default_factory=set)


class MemoryKnowledge:
    """Knowledge over texts that `add` took. A form feed begins a page, "# " lines are headings."""

    def __init__(self, *, shelf: _Shelf | None = None, sources: tuple[str, ...] | None = None) -> None:
        self._shelf = shelf or _Shelf()
        self._sources = sources

    def add(
        self,
        name: str,
        text: str,
        *,
        mime: str = "text/markdown",
        state: DocumentState = DocumentState.READY,
        second_hand: bool = False,
    ) -> Document:
        """Add a document, or the next version of the one of this name."""
        known = next((v for v in self._shelf.versions.values() if v[-1][0].name == name), [])
        document = Document(
            artifact_id=known[0][0].artifact_id if known else f"document-{len(self._shelf.versions) + 1}",
            name=name,
            version=len(known) + 1,
            mime=mime,
            size_bytes=len(text.encode()),
            state=state,
            reason="It cannot be read." if state is DocumentState.FAILED else "",
            pages=text.count("\f") + 1 if "\f" in text else 0,
            total_chars=len(text),
        )
        self._shelf.versions.setdefault(document.artifact_id, []).append((document, text))
        if second_hand:
            self._shelf.second_hand.add(name)
        return document

    def narrowed(self, sources: tuple[str, ...] | None) -> "MemoryKnowledge":
        """Return the same documents as a run sees them whose person chose these. None = all."""
        return MemoryKnowledge(shelf=self._shelf, sources=sources)

    async def search(self, query: str, *, documents: Sequence[str] = (), limit: int = 8) -> Found:
        wanted = {self._find(name)[0].artifact_id for name in documents}
        scope = [v[-1] for v in self._visible() if not wanted or v[-1][0].artifact_id in wanted]
        terms = _terms(query)
        hits = []
        for document, text in scope:
            if document.state is DocumentState.READY:
                for hit in _passages(document, text):
                    score = len(terms & _terms(" ".join((hit.text, *hit.citation.place.heading))))
                    second_hand = document.name in self._shelf.second_hand
                    hits += [replace(hit, score=float(score), second_hand=second_hand)] if score else []
        hits.sort(key=lambda hit: -hit.score)
        unread = tuple(d.name for d, _ in scope if d.state in (DocumentState.WAITING, DocumentState.READING))
        return Found(hits=tuple(hits[:limit]), searched=len(scope) - len(unread), unread=unread)

    async def read(self, document: str, *, at: str = "", max_chars: int = 12_000) -> Reading:
        found, text = self._find(document)
        if found.state is not DocumentState.READY:
            raise DocumentUnread(found.reason or f"{found.name} is not read yet.")
        passages = list(_passages(found, text))
        first = next((n for n, hit in enumerate(passages) if _is_at(hit, at)), None)
        if first is None:
            raise DocumentUnread(f"{found.name} has no place {at!r}.")
        taken: list[Hit] = []
        for hit in passages[first:]:
            if taken and hit.citation.end - taken[0].citation.start > max_chars:
                break
            taken.append(hit)
        following = passages[first + len(taken) :]
        return Reading(
            document=found,
            version=found.version,
            passages=tuple(taken),
            next_at=f"char:{following[0].citation.start}" if following else "",
        )

    async def list(self, query: str = "") -> tuple[Document, ...]:
        words = query.lower().split()
        newest = [v[-1][0] for v in reversed(list(self._visible()))]
        return tuple(d for d in newest if all(word in d.name.lower() for word in words))

    def _visible(self) -> Iterator[Sequence[tuple[Document, str]]]:
        for artifact_id, versions in self._shelf.versions.items():
            if self._sources is None or artifact_id in self._sources:
                yield versions

    def _find(self, reference: str) -> tuple[Document, str]:
        for name, number in reference_candidates(reference):
            for versions in self._visible():
                for document, text in reversed(versions):
                    if name in (document.name, document.artifact_id) and number in (None, document.version):
                        return document, text
        raise DocumentMissing(f'There is no document "{reference}".')


def _passages(document: Document, text: str) -> Iterator[Hit]:
    heading: tuple[str, ...] = ()
    for found in _PARAGRAPH.finditer(text):
        start, passage = found.start(), found[0].rstrip("\n")
        if title := re.match(r"(#+) (.+)", passage):
            heading = (*heading[: len(title[1]) - 1], title[2])
        line = text.count("\n", 0, start) + 1
        place = Place(
            page=text.count("\f", 0, start) + 1 if document.pages else 0,
            heading=heading,
            lines=(line, line + passage.count("\n")),
        )
        citation = Citation(
            id=citation_id(document.artifact_id, document.version, start, start + len(passage)),
            artifact_id=document.artifact_id,
            version=document.version,
            name=document.name,
            start=start,
            end=start + len(passage),
            place=place,
            quote=passage[:QUOTE_CHARS],
        )
        yield Hit(citation=citation, text=passage, score=0.0)


def _is_at(hit: Hit, at: str) -> bool:
    """Return whether the passage is the place, or the first one behind its beginning."""
    kind, _, value = at.partition(":")
    citation, place = hit.citation, hit.citation.place
    if kind not in _PLACES or not value:
        return at in ("", citation.id)
    if kind == "heading":
        return value in place.heading
    reached = {"page": place.page, "line": place.lines[1], "row": place.lines[1], "char": citation.end - 1}[kind]
    return value.isdecimal() and reached >= int(value)


def _terms(text: str) -> set[str]:
    """Return the words of a text; of Chinese, every two neighbouring characters."""
    out: set[str] = set()
    for word in _WORD.findall(text.lower()):
        if word.isascii() or len(word) == 1:
            out.add(word)
        else:
            out.update(word[i : i + 2] for i in range(len(word) - 1))
    return out
