"""Citations in a text: the model's markers `[[c:ID]]` become numbered links, piece by piece as the text streams.

Only what may still become a marker is held back, so what people see live and what is stored are the same bytes however
the text was cut. A marker of no known citation is dropped and counted; `[[c:none]]` is dropped and remembered. A link
to a citation that the model writes itself is no citation and is made plain text. Inside code nothing can be linked:
there a known marker is dropped, and what only looks like one stays, since it belongs to the code.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from agents.runtime.events import AssistantMessage, Preloaded, Stored, ToolReturned
from agents.runtime.knowledge import NOT_FOUND_ID, Citation, Cited

MARKER_START: Final = "[[c:"

_TOKEN = re.compile(r"( ?)\[\[c:([A-Za-z0-9_-]{1,8})\]\]|\](?=\([ \t\n]{0,3}<?#c-)")
_LONGEST = 16  # characters of a token that may be unfinished at the end of a piece
_UNFINISHED = r" ?\[(?:\[(?:c(?::(?:[A-Za-z0-9_-]{1,8}\]?)?)?)?)?|\](?:\([ \t\n]{0,3}<?(?:#c?)?)?"
_HELD = re.compile(rf"(?:{_UNFINISHED})\Z")
_HELD_OR_BLANK = re.compile(rf"(?:{_UNFINISHED}| )\Z")
_SPECIAL: Final = frozenset("[]`~\n")  # most pieces have none of them: nothing to look at, nothing to hold back
_APART = ("`", "~", "]")
_LINK = re.compile(r"\[(\d+)\]\(#c-([a-z0-9]+)\)")


@dataclass(slots=True, kw_only=True)
class Known:
    """What an answer may cite, by id, and the numbers it has given so far, by source."""

    citations: Mapping[str, Citation]
    numbers: dict[str, int] = field(default_factory=dict)

    def cited(self, citation: Citation) -> Cited:
        number = self.numbers.setdefault(citation.source, len(self.numbers) + 1)
        return Cited(number=number, citation=citation)


def known_citations(history: Iterable[Stored]) -> dict[str, Citation]:
    """Return the citations that tools and preloads gave in the history, by id."""
    return {c.id: c for s in history if isinstance(s.record, ToolReturned | Preloaded) for c in s.record.citations}


def known(history: Iterable[Stored], run_id: str, summarised: Iterable[Citation] = ()) -> Known:
    """Return what the next text of the run may cite; its numbers go on from those the run has given.

    summarised: citations that the summaries of the events before the history name.
    """
    history = tuple(history)
    numbers = {
        cited.citation.source: cited.number
        for s in history
        if isinstance(s.record, AssistantMessage) and s.origin.run_id == run_id
        for cited in s.record.citations
    }
    return Known(citations={c.id: c for c in summarised} | known_citations(history), numbers=numbers)


def link(cited: Cited) -> str:
    return f"[{cited.number}](#c-{cited.citation.id})"


def marker(citation_id: str) -> str:
    return f"{MARKER_START}{citation_id}]]"


def marked(text: str, citations: Iterable[Cited]) -> str:
    """Return a stored text with its citations as the model writes them."""
    return _relinked(text, citations, lambda cited: marker(cited.citation.id))


def numbered(text: str, citations: Iterable[Cited]) -> str:
    """Return a stored text with its citations as numbers only, `[1]`, for where nothing can be linked."""
    return _relinked(text, citations, lambda cited: f"[{cited.number}]")


def plain(text: str, citations: Iterable[Cited]) -> str:
    """Return a stored text without its citations."""
    return _relinked(text, citations, lambda cited: "")


def _relinked(text: str, citations: Iterable[Cited], show: Callable[[Cited], str]) -> str:
    by_id = {cited.citation.id: cited for cited in citations}
    if not by_id:
        return text

    def shown(found: re.Match[str]) -> str:
        cited = by_id.get(found[2])
        return show(cited) if cited and cited.number == int(found[1]) else found[0]

    return _LINK.sub(shown, text)


class Citing:
    """The citations of one text. cited: in order of first use. dropped: markers taken out that named nothing known."""

    def __init__(self, known: Known, show: Callable[[Cited], str] = link) -> None:
        self.cited: list[Cited] = []
        self.dropped = 0
        self.not_found = False
        self._known = known
        self._show = show
        # Without citations nobody writes markers, and no blank needs to wait for one.
        self._tidy = bool(known.citations)
        self._unfinished = _HELD_OR_BLANK if self._tidy else _HELD
        self._held = ""
        self._last = ""
        self._code = _Code()
        self._out: list[str | Cited] = []

    def feed(self, text: str) -> list[str | Cited]:
        """Take more of the text and return what can be shown: texts, each citation before the first that has it."""
        waits = self._tidy and text[-1:] == " "
        if text and not self._held and not waits and _SPECIAL.isdisjoint(text) and self._code.amid_a_line:
            self._last = text[-1]
            return [text]
        text = self._held + text
        at = 0
        for found in _TOKEN.finditer(text):
            self._put(text[at : found.start()])
            self._token(found)
            at = found.end()
        held = self._unfinished.search(text, max(at, len(text) - _LONGEST))
        until = held.start() if held else len(text)
        self._put(text[at:until])
        self._held = text[until:]
        return self._take()

    def end(self) -> list[str | Cited]:
        """Return what was held back: the text is over."""
        self._put(self._held)
        self._held = ""
        return self._take()

    def _token(self, found: re.Match[str]) -> None:
        inside = self._code.inside
        if found[2] is None:
            self._put("]" if inside else "] ")  # with a blank in between it is no link
            return
        blank, citation_id = found[1], found[2].lower()
        citation = self._known.citations.get(citation_id)
        if citation is not None and not inside:
            self._put(blank + (" " if not blank and self._last in ("!", "\\") else ""))  # else an image, or no link
            self._cite(citation)
        elif citation is None and inside:
            self._put(found[0])
        else:
            # what the marker held apart stays apart: it would be another fence or span, or a link
            self._put(" " if self._last in _APART else "" if self._tidy else blank)
            if citation_id == NOT_FOUND_ID:
                self.not_found = True
            else:
                self.dropped += 1

    def _cite(self, citation: Citation) -> None:
        cited = self._known.cited(citation)
        if cited not in self.cited:
            self.cited.append(cited)
            self._out.append(cited)
        self._put(self._show(cited))

    def _put(self, text: str) -> None:
        if text:
            self._code.take(text)
            self._last = text[-1]
            self._out.append(text)

    def _take(self) -> list[str | Cited]:
        """Return what is to go out, texts that follow each other joined."""
        out: list[str | Cited] = []
        for item in self._out:
            if isinstance(item, str) and out and isinstance(out[-1], str):
                out[-1] += item
            else:
                out.append(item)
        self._out = []
        return out


def settled(message: AssistantMessage, known: Known) -> AssistantMessage:
    """Return a whole message that did not stream with its markers as citations; those it has already stay."""
    citing = Citing(known)
    pieces = citing.feed(marked(message.text, message.citations)) + citing.end()
    return cited_message(message, "".join(piece for piece in pieces if isinstance(piece, str)), citing)


def cited_message(message: AssistantMessage, text: str, citing: Citing) -> AssistantMessage:
    """Return the message with the text that came out of its citing."""
    return replace(
        message,
        text=text,
        citations=tuple(citing.cited),
        citations_dropped=message.citations_dropped + citing.dropped,
        not_in_documents=message.not_in_documents or citing.not_found,
    )


_PIECE = re.compile(r"\n|`+|~+|[^\n`~]+")
_HEAD = r"[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+)*"  # of a line, before a fence
_FENCE_HEAD = re.compile(_HEAD)
_GROWING_HEAD = re.compile(_HEAD + r"(?:[-*+]|\d{1,9}[.)]?)?")
_HEAD_CHARS = 64


@dataclass(slots=True)
class _Code:
    """Whether a growing Markdown text stands inside a fence, or inside a code span of its line.

    A span ends at the latest with its line: whether it is one is only known at its end, and a text that forgets to
    close it should not lose the citations of all that follows.
    """

    _fence: str = ""  # what opened it
    _sure: bool = True  # its opening line is over
    _closing: bool = False  # what may close it was read, and nothing after it yet
    _span: int = 0  # backticks that opened the span
    _run: str = ""  # backticks or tildes that may go on
    _head: str | None = ""  # the line so far, while a fence may begin or end in it

    @property
    def inside(self) -> bool:
        self._settle()
        return bool(self._fence or self._span)

    @property
    def amid_a_line(self) -> bool:
        """Whether plain text changes nothing here."""
        return self._head is None and not self._run and not self._closing

    def take(self, text: str) -> None:
        for found in _PIECE.finditer(text):
            piece = found[0]
            if piece[0] in "`~":
                if self._run and self._run[0] != piece[0]:
                    self._settle()
                self._run += piece
            elif piece == "\n":
                self._settle()
                self._line_end()
            else:
                self._settle()
                self._plain(piece)

    def _plain(self, piece: str) -> None:
        if self._closing and piece.strip():
            self._closing = False
        if self._head is not None:
            self._head += piece
            if len(self._head) > _HEAD_CHARS or not _GROWING_HEAD.fullmatch(self._head):
                self._head = None

    def _line_end(self) -> None:
        if self._closing:
            self._fence = ""
        self._sure, self._closing, self._span, self._head = True, False, 0, ""

    def _settle(self) -> None:
        """Look at a run of backticks or tildes that is over."""
        run, self._run = self._run, ""
        if not run:
            return
        if self._fence and not self._sure and run[0] == self._fence[0] == "`":
            # backticks behind opening backticks: it was a span, not a fence
            self._span, self._fence, self._sure = len(self._fence), "", True
        if self._fence:
            same = run[0] == self._fence[0] and len(run) >= len(self._fence)
            self._closing = self._sure and same and self._head is not None and not self._head.strip(" \t>")
        elif len(run) >= 3 and self._head is not None and _FENCE_HEAD.fullmatch(self._head):
            self._fence, self._sure = run, False
        elif run[0] == "`":
            self._span = 0 if self._span == len(run) else self._span or len(run)
        self._head = None
