"""Citations in a file that is saved: the markers become footnotes, and the file ends with a list of its sources."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agents.runtime.context.citing import MARKER_START, Citing, Known
from agents.runtime.knowledge import Citation, Cited, Place, place_words

QUOTE_CHARS = 300
_MARKDOWN = (".md", ".markdown")
_TEXT = (".txt", ".text")
_MARKER = re.compile(r" ?\[\[c:([a-z0-9]{1,8})\]\]")
_NOTE = re.compile(r"\[\^(\d+)\]")
_LINE_NOTE = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
_HEADING = re.compile(r"^(?:#{1,6} )?(\S.*)$", re.MULTILINE)
_HAN = re.compile("[\u3400-\u9fff]")
_WORD = re.compile("[A-Za-z\u00c0-\u024f]+")
_SPECIAL = re.compile(r"([\\`*_\[\]<>|])")
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    """sources: how many are listed. dropped: markers of nothing known. left_out: markers the type cannot carry."""

    content: str
    sources: int = 0
    dropped: int = 0
    left_out: int = 0

    @property
    def words(self) -> str:
        """What the model should know of it, "" or sentences that begin with a blank."""
        said = ""
        if self.sources:
            said += f" {_sources(self.sources)} listed in it."
        if self.dropped:
            said += f" {_markers(self.dropped)} left out: they named no passage you were given."
        if self.left_out:
            said += f" {_markers(self.left_out)} left out: only .md and .txt files can list their sources."
        return said


def with_sources(name: str, content: str, citations: Mapping[str, Citation]) -> Sourced:
    """Return the content of a file of this name with its markers resolved: Markdown footnotes, or [1] in plain text.

    Numbers go on from those the content has, and an existing list of sources at its end grows. Other types cannot
    carry sources: known markers are taken out, anything else stays as it is.
    """
    if MARKER_START not in content:
        return Sourced(content=content)
    ending = name.lower()
    if ending.endswith(_MARKDOWN):
        return _listed(content, citations, "[^{n}]", _NOTE, _markdown_line)
    if ending.endswith(_TEXT):
        return _listed(content, citations, "[{n}]", _LINE_NOTE, _text_line)
    left = [found for found in _MARKER.finditer(content) if found[1] in citations]
    for found in reversed(left):
        content = content[: found.start()] + content[found.end() :]
    return Sourced(content=content, left_out=len(left))


def _listed(
    content: str,
    citations: Mapping[str, Citation],
    note: str,
    existing: re.Pattern[str],
    line: Callable[[int, Citation, bool], str],
) -> Sourced:
    first = 1 + max((int(n) for n in existing.findall(content)), default=0)
    numbers: dict[str, int] = {}

    def show(cited: Cited) -> str:
        return note.format(n=numbers.setdefault(cited.citation.id, first + len(numbers)))

    citing = Citing(Known(citations=citations), show)
    pieces = citing.feed(content) + citing.end()
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    if citing.cited:
        chinese = _is_chinese(text)
        lines = [line(numbers[c.citation.id], c.citation, chinese) for c in citing.cited]
        text = _append(text, lines, chinese, markdown=note.startswith("[^"))
    return Sourced(content=text, sources=len(citing.cited), dropped=citing.dropped)


def _append(text: str, lines: Sequence[str], chinese: bool, *, markdown: bool) -> str:
    title = "来源" if chinese else "Sources"
    heading = f"## {title}" if markdown else title
    last = [found[0] for found in _HEADING.finditer(text) if not markdown or found[0].startswith("#")]
    there = heading in (last[-1:] if markdown else last)
    return "\n\n".join((text.rstrip(), *([] if there else [heading]), *lines)) + "\n"


def message_path(citation: Citation) -> str:
    """Return where a cited message stands on the site (workbench/urls.py); "" for documents, and for ids that a path
    cannot carry as they are."""
    plain = _PLAIN_ID.fullmatch(citation.thread_id) and _PLAIN_ID.fullmatch(citation.message_id)
    return f"/c/{citation.thread_id}/?at={citation.message_id}" if plain else ""


def _markdown_line(number: int, citation: Citation, chinese: bool) -> str:
    name, rest = (_SPECIAL.sub(r"\\\1", words) for words in _said(citation, chinese))
    path = message_path(citation)
    return f"[^{number}]: [{name}]({path}){rest}" if path else f"[^{number}]: {name}{rest}"


def _text_line(number: int, citation: Citation, chinese: bool) -> str:
    return f"[{number}] {''.join(_said(citation, chinese))}"


def _said(citation: Citation, chinese: bool) -> tuple[str, str]:
    """Return what a source is called, and what follows: where in it, and the quote."""
    quote = " ".join(citation.quote.split())
    if len(quote) > QUOTE_CHARS:
        quote = quote[: QUOTE_CHARS - 1].rstrip() + "…"
    if citation.message_id:
        name = citation.name or ("对话" if chinese else "Conversation")
        where = [f"{citation.at:%Y-%m-%d}"] if citation.at else []
    else:
        name = citation.name
        place = _chinese_place(citation.place) if chinese else place_words(citation.place)
        where = [f"第 {citation.version} 版" if chinese else f"version {citation.version}", *filter(None, (place,))]
    comma, colon = ("，", "：") if chinese else (", ", ": ")
    return name, "".join(comma + one for one in where) + f"{colon}“{quote}”"


def _chinese_place(place: Place) -> str:
    where = []
    if place.page:
        where.append(f"第 {place.page} 页")
    if place.sheet:
        where.append(f"工作表 {place.sheet}")
    first, last = place.rows if place.rows[0] or place.page else place.lines
    if first:
        where.append(f"第 {first} 行" if last <= first else f"第 {first}–{last} 行")
    if place.heading:
        where.append(" > ".join(place.heading))
    return "，".join(where)


def _is_chinese(text: str) -> bool:
    return len(_HAN.findall(text)) > len(_WORD.findall(text))


def _sources(count: int) -> str:
    return "1 source is" if count == 1 else f"{count} sources are"


def _markers(count: int) -> str:
    return "1 marker was" if count == 1 else f"{count} markers were"
