"""What the tools for documents, for the past and for memories said, taken apart again by the beginnings of its lines
(agents/tools/knowledge.py, session.py, memory.py)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_MARKER = re.compile(r"^\[\[c:(?P<id>[a-z2-7]{6})\]\](?: (?P<rest>.*))?$", re.MULTILINE)
_NAMED = re.compile(
    r"^(?P<name>.+?) \((?P<reference>artifact://.+?@\d+)"
    r"(?P<second_hand>, written by the assistant)?\)(?:, (?P<place>.*))?$"
)
_TAIL = re.compile(r"\n\n(?:\[[^\n]*\]\n?)+\s*$")
_SEARCHED = re.compile(r"^(?:\d+ passages? from \d+ of|Nothing in) (\d+) documents?\b")
_UNREAD = re.compile(r"^\[Not readable yet, so not searched: (.*)\]$", re.MULTILINE)
_MORE = re.compile(r'^\[More follows\. Read on with .*"(?P<at>[^"\n]+)"\)\]$', re.MULTILINE)
_READ_HEAD = re.compile(r"^(?P<reference>artifact://.+@\d+)(?:, .*)?:$", re.MULTILINE)
_LISTED = re.compile(
    r"^- (?:(?P<name>.+), )?(?P<reference>artifact://.+?@\d+) \((?P<details>[^()]*)\)(?P<state>.*)$", re.MULTILINE
)
_PAGES = re.compile(r"(\d+) pages?$")
_RECORD = re.compile(
    r"^\[\[c:(?P<id>[a-z2-7]{6})\]\] \d{4}-\d\d-\d\d(?: \d\d:\d\d)? (?:user|assistant|tool)\b"
    r"(?P<facts>.*)$",
    re.MULTILINE,
)
# what documents hold is theirs to say, and was not said in a conversation
_OF_DOCUMENTS = re.compile(r" (?:search_knowledge|read_document|list_documents|(?:read|save|edit)_artifact)\b")
_PART = re.compile(r"content_offset: (?P<offset>\d+) of (?P<bytes>\d+) bytes|bytes (?P<first>\d+)-\d+ of (?P<all>\d+)")
_CONVERSATION = re.compile(r"^(?:This conversation|\".*\" \(session_id: .*\)):$", re.MULTILINE)
_MEMORY = re.compile(r"^\[(?P<id>[^\]\s]+)\] (?P<text>.+) \((?:fact|episode)(?:; (?P<about>.*))?\)$", re.MULTILINE)
_PLACE = re.compile(r"^(?:page (?P<page>\d+)|sheet [^,]+|(?P<kind>row|line)s? (?P<first>\d+)(?:-\d+)?)(?:, |$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A passage of a document. reference: "artifact://…@n". page, row, line: where it begins, 0 = not of that kind.

    heading: path, outermost first; in a table its last item is the header row. Of the past: offset, bytes: where it
    begins in a record that is longer, and how long that is; 0 = it is the whole. second_hand: its document was written
    by an assistant.
    """

    id: str
    name: str
    reference: str
    text: str
    page: int = 0
    row: int = 0
    line: int = 0
    heading: tuple[str, ...] = ()
    offset: int = 0
    bytes: int = 0
    second_hand: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A memory of the person. about: when, with whom and where, "" = that is not known."""

    id: str
    text: str
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What was found or read of the past. failure: errors.ToolFailure."""

    excerpts: tuple[Excerpt, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One search. documents: those it was narrowed to. searched: how many there were. failure: errors.ToolFailure."""

    query: str
    documents: tuple[str, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    searched: int = 0
    unread: tuple[str, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One stretch of a document. next_at: where it goes on, "" = it does not."""

    document: str
    at: str
    excerpts: tuple[Excerpt, ...] = ()
    next_at: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A document in a list. state: "", "unread" or "failed". pages: 0 = unknown."""

    name: str
    reference: str
    state: str = ""
    pages: int = 0


def search_of(query: str, documents: Sequence[str], text: str, failure: str) -> Search:
    if failure:
        return Search(query=query, documents=tuple(documents), failure=failure)
    count, unread = _SEARCHED.match(text), _UNREAD.search(text)
    return Search(
        query=query,
        documents=tuple(documents),
        excerpts=tuple(excerpts_of(text)),
        searched=int(count[1]) if count else 0,
        unread=tuple(unread[1].split(", ")) if unread else (),
    )


def reading_of(document: str, at: str, text: str, failure: str) -> Reading:
    head = _READ_HEAD.match(text)
    if failure or head is None:
        return Reading(document=document, at=at, failure=failure or "tool_failed")
    more = _MORE.search(text)
    return Reading(
        document=document,
        at=at,
        excerpts=tuple(excerpts_of(text, reference=head["reference"])),
        next_at=more["at"] if more else "",
    )


def listed_of(text: str) -> tuple[Listed, ...]:
    found = []
    for line in _LISTED.finditer(text):
        pages = _PAGES.search(line["details"])
        state = "unread" if ", being read" in line["state"] else "failed" if ", not readable" in line["state"] else ""
        name = line["name"] or name_of(line["reference"])
        found.append(Listed(name=name, reference=line["reference"], state=state, pages=int(pages[1]) if pages else 0))
    return tuple(found)


def excerpts_of(text: str, *, reference: str = "") -> Iterable[Excerpt]:
    """Give the passages of a result. reference: of the document, where the passages' own lines do not say it."""
    marks = list(_MARKER.finditer(text))
    ends = [mark.start() for mark in marks[1:]]
    if marks:
        tail = _TAIL.search(text, marks[-1].end())
        ends.append(tail.start() if tail else len(text))
    for mark, end in zip(marks, ends, strict=True):
        place, name, whose, second_hand = mark["rest"] or "", name_of(reference), reference, False
        if not reference and (named := _NAMED.match(place)):
            name, whose, place = named["name"], named["reference"], named["place"] or ""
            second_hand = bool(named["second_hand"])
        found = _excerpt(mark["id"], name, whose, place, text[mark.end() : end].strip("\n"))
        yield replace(found, second_hand=second_hand)


def recalled_of(text: str, failure: str) -> Recalled:
    """Return the records in a result of session_search or session_load, without what tools told of documents."""
    if failure:
        return Recalled(failure=failure)
    marks = list(_RECORD.finditer(text))
    headings = list(_CONVERSATION.finditer(text))
    tail = _TAIL.search(text, marks[-1].end()) if marks else None
    ends = [*(mark.start() for mark in marks[1:]), tail.start() if tail else len(text)]
    found = []
    for mark, end in zip(marks, ends, strict=False):
        if _OF_DOCUMENTS.match(mark["facts"]):
            continue
        part = _PART.search(mark["facts"])
        end = next((h.start() for h in headings if mark.end() < h.start() < end), end)
        above = [h[0] for h in headings if h.start() < mark.start()]
        found.append(
            Excerpt(
                id=mark["id"],
                name="",
                reference=above[-1] if above else "",
                text=text[mark.end() : end].strip().strip("…").strip(),
                offset=int(part["offset"] or part["first"]) if part else 0,
                bytes=int(part["bytes"] or part["all"]) if part else 0,
            )
        )
    return Recalled(excerpts=tuple(found))


def name_of(reference: str) -> str:
    """Return the name in "artifact://name@version"."""
    found = re.match(r"^artifact://(.+)@\d+$", reference)
    return found[1] if found else reference


def _excerpt(marked: str, name: str, reference: str, place: str, text: str) -> Excerpt:
    numbers = {"page": 0, "row": 0, "line": 0}
    while found := _PLACE.match(place):
        if found["page"]:
            numbers["page"] = int(found["page"])
        elif found["kind"]:
            numbers[found["kind"]] = int(found["first"])
        place = place[found.end() :]
    heading = tuple(place.split(" > ")) if place else ()
    return Excerpt(
        id=marked,
        name=name,
        reference=reference,
        text=text,
        page=numbers["page"],
        row=numbers["row"],
        line=numbers["line"],
        heading=heading,
    )


def memories_of(text: str) -> list[Remembered]:
    """Return the memories in a block or a result, each a line (agents/runtime/memory/preloading.py)."""
    return [
        Remembered(id=found["id"], text=found["text"], about=found["about"] or "") for found in _MEMORY.finditer(text)
    ]
