"""The person's documents, as tools: search them, read them, list them.

What comes back is English text of stable bytes. A passage begins with a line of its own, its marker first:

    [[c:k3f9ab]] report.pdf (artifact://report.pdf@2), page 3, Results > Costs
    The text of the passage.

and ends before the next such line, or before the lines in square brackets at the end. Inside a passage "[[c:" never
occurs. search_knowledge's first line counts ("3 passages from 2 of 12 documents, best first:", "Nothing in 12 documents
matches."), and ", written by the assistant" stands behind the reference of a document that no person wrote or changed;
in read_document the first line names the document, so that the passages' lines hold their place only.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agents.runtime.context.citing import MARKER_START, marker
from agents.runtime.context.guard import Family
from agents.runtime.errors import ToolFailed, ToolFailure
from agents.runtime.knowledge import (
    NOT_FOUND_ID,
    Citation,
    Document,
    DocumentMissing,
    DocumentState,
    DocumentUnread,
    Found,
    Hit,
    Reading,
    place_words,
    stretch_words,
)
from agents.runtime.model import ToolSpec
from agents.runtime.tools import FunctionTool, Tool, ToolContext, ToolResult, Traits

# What the text of one result may have in UTF-8: below the limit above which a result is cut at entry
# (Limits.tool_result_bytes), with room for the lines around it
RESULT_BYTES: Final = 14 * 1024
READ_CHARS: Final = 12_000
HITS: Final = 8
MOST_HITS: Final = 20
MOST_LISTED: Final = 100
MOST_UNREAD: Final = 20
SECOND_HAND: Final = "written by the assistant"
HOW_TO_CITE: Final = (
    "[After each claim put the marker of the passage that says it. "
    f"If the documents do not answer, write {marker(NOT_FOUND_ID)}.]"
)

SEARCH = ToolSpec(
    name="search_knowledge",
    description=(
        "Search the person's documents and get the passages that fit best, each with the marker to cite it by. Write "
        "the query in the words the documents would use, in their language; several searches with other words find "
        "more than one long query."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": 'What to find. A "quoted phrase" must occur.'},
            "documents": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Only these documents, by name or reference. Empty = all.",
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_HITS, "description": f"Default {HITS}."},
        },
        "required": ["query"],
    },
)
READ = ToolSpec(
    name="read_document",
    description=(
        "Read a document of the person, passage by passage with their markers: from its beginning, or around a place "
        "that a search found. The end of each result says how to read on."
    ),
    parameters={
        "type": "object",
        "properties": {
            "document": {
                "type": "string",
                "minLength": 1,
                "description": 'Its name, or a reference like "artifact://report.pdf@2".',
            },
            "at": {
                "type": "string",
                "description": (
                    'Where to start: "page:3", "line:120", "row:40", "heading:Results", "char:5000", or the id in a '
                    "passage's marker. Empty = the beginning."
                ),
            },
        },
        "required": ["document"],
    },
)
LIST = ToolSpec(
    name="list_documents",
    description="List the person's documents, newest first, with type, size and whether their text can be searched.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "Words of the name. Empty = all documents."}},
    },
)


def tools() -> tuple[Tool, ...]:
    """Return search_knowledge, read_document and list_documents. They reach documents through the call's context."""

    def traits(family: Family) -> Traits:
        return Traits(read_only=True, destructive=False, concurrency_safe=True, family=family)

    return (
        FunctionTool(spec=SEARCH, function=search_knowledge, traits=traits(Family.SEARCH)),
        FunctionTool(spec=READ, function=read_document, traits=traits(Family.FILES)),
        FunctionTool(spec=LIST, function=list_documents, traits=traits(Family.FILES)),
    )


async def search_knowledge(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """Return the best passages, whole, as many as fit into one result."""
    query = arguments["query"]
    try:
        found = await context.knowledge.search(
            query, documents=arguments.get("documents") or (), limit=arguments.get("limit") or HITS
        )
    except DocumentMissing as error:
        raise ToolFailed(str(error), ToolFailure.DOCUMENT_NOT_FOUND) from error
    hits = fitting(found.hits)
    documents = len({hit.citation.artifact_id for hit in hits})
    tail = [_unread(found.unread)] if found.unread else []
    body = "\n\n".join((_found_words(found, len(hits), documents), *_blocks(hits), "\n".join([*tail, HOW_TO_CITE])))
    return ToolResult(
        content=body,
        summary=f"{_count(len(hits), 'passage')} from {_count(documents, 'document')}" if hits else "nothing found",
        data={
            "query": query,
            "documents": documents,
            "searched": found.searched,
            "unread": list(found.unread),
            "hits": [_hit_data(hit) for hit in hits],
        },
        citations=tuple(hit.citation for hit in hits),
    )


async def read_document(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """Return the passages from a place on, as many as fit into one result."""
    try:
        reading = await context.knowledge.read(
            bare(arguments["document"]), at=bare(arguments.get("at") or ""), max_chars=READ_CHARS
        )
    except DocumentMissing as error:
        raise ToolFailed(str(error), ToolFailure.DOCUMENT_NOT_FOUND) from error
    except DocumentUnread as error:
        raise ToolFailed(str(error), ToolFailure.DOCUMENT_UNREAD) from error
    reference = f"artifact://{reading.document.name}@{reading.version}"
    part = Stretch.of(reading)
    more = f'[More follows. Read on with read_document(document="{reference}", at="{part.next_at}")]'
    return ToolResult(
        content=part.shown(f"{more if part.next_at else '[End of the document.]'}\n{HOW_TO_CITE}"),
        summary=part.summary,
        data={
            "name": reading.document.name,
            "documentId": reading.document.artifact_id,
            "version": reading.version,
            "anchor": part.anchor,
            "next_at": part.next_at,
            "total_chars": reading.document.total_chars,
        },
        citations=part.citations,
    )


async def list_documents(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """Return the documents, a line each."""
    query = (arguments.get("query") or "").strip()
    documents = await context.knowledge.list(query)
    if not documents:
        there = len(await context.knowledge.list()) if query else 0
        said = f'No document\'s name matches "{query}". There are {_count(there, "document")}.'
        return ToolResult(content=said if there else "There are no documents.", summary="no documents")
    names = Counter(document.name for document in documents)
    lines = [_listed(document, names[document.name] > 1) for document in documents[:MOST_LISTED]]
    if len(documents) > MOST_LISTED:
        lines.append(f"... and {len(documents) - MOST_LISTED} more; narrow them with a query")
    count = _count(len(documents), "document")
    return ToolResult(content="\n".join((f"{count}:", *lines)), summary=count, data={"documents": len(documents)})


def fitting(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the first hits that fit into one result together, at least one."""
    room, taken = RESULT_BYTES, 0
    for block in _blocks(hits):
        room -= len(block.encode()) + 2
        if room < 0 and taken:
            break
        taken += 1
    return tuple(hits[:taken])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The passages of a reading that fit into one result. anchor: where they are. next_at: where to read on."""

    reading: Reading
    hits: tuple[Hit, ...]
    anchor: str
    next_at: str

    @classmethod
    def of(cls, reading: Reading) -> "Stretch":
        hits = fitting(reading.passages)
        left = reading.passages[len(hits) :]
        places = [hit.citation.place for hit in hits]
        return cls(
            reading=reading,
            hits=hits,
            anchor=stretch_words(places[0], places[-1]) if places else "",
            next_at=f"char:{left[0].citation.start}" if left else reading.next_at,
        )

    def shown(self, tail: str) -> str:
        """Return the stretch as a model reads it. tail: the last lines."""
        document = self.reading.document
        of_all = f" of {document.pages}" if document.pages else ""
        where = f", {self.anchor}{of_all}" if self.anchor else ""
        size = f", {document.total_chars} characters in all" if document.total_chars else ""
        head = f"artifact://{document.name}@{self.reading.version}{where}{size}:"
        blocks = [_block(hit, place_words(hit.citation.place)) for hit in self.hits]
        return "\n\n".join((head, *blocks, tail))

    @property
    def summary(self) -> str:
        return ", ".join(filter(None, (self.reading.document.name, self.anchor)))

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(hit.citation for hit in self.hits)


def bare(reference: str) -> str:
    """Return a reference as it was meant, without quotes or brackets that a model puts around it."""
    found = re.fullmatch(r"\[\[c:(\w+)\]\]", reference.strip())
    return found[1] if found else reference.strip().strip("\"'`<>[]").strip()


def size_words(size_bytes: int) -> str:
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    return f"{size_bytes / 1024:.1f} KB" if size_bytes < 1024**2 else f"{size_bytes / 1024**2:.1f} MB"


def _blocks(hits: Sequence[Hit]) -> list[str]:
    """Return each hit with its line, the document named so that it is told from others of its name."""
    ids: dict[str, set[str]] = {}
    for hit in hits:
        ids.setdefault(hit.citation.name, set()).add(hit.citation.artifact_id)
    blocks = []
    for hit in hits:
        cited = hit.citation
        named = cited.artifact_id if len(ids[cited.name]) > 1 else cited.name
        place = place_words(cited.place)
        whose = f", {SECOND_HAND}" if hit.second_hand else ""
        line = f"{cited.name} (artifact://{named}@{cited.version}{whose})"
        blocks.append(_block(hit, f"{line}, {place}" if place else line))
    return blocks


def _block(hit: Hit, line: str) -> str:
    text = hit.text.strip("\n").replace(MARKER_START, "[ [c:")  # a document does not issue markers
    return f"{marker(hit.citation.id)} {line}".rstrip() + f"\n{text}"


def _found_words(found: Found, shown: int, documents: int) -> str:
    if not found.searched:
        return "There are no documents to search."
    of_all = _count(found.searched, "document")
    if not shown:
        return f"Nothing in {of_all} matches."
    left = len(found.hits) - shown
    more = f" ({left} more left out; ask for less at once)" if left else ""
    return f"{_count(shown, 'passage')} from {documents} of {of_all}, best first{more}:"


def _unread(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_UNREAD} more" if len(names) > MOST_UNREAD else ""
    return f"[Not readable yet, so not searched: {', '.join(names[:MOST_UNREAD])}{more}]"


def _hit_data(hit: Hit) -> dict[str, Any]:
    cited = hit.citation
    return {
        "id": cited.id,
        "documentId": cited.artifact_id,
        "version": cited.version,
        "name": cited.name,
        "place": place_words(cited.place),
    }


def _listed(document: Document, named_twice: bool) -> str:
    reference = f"artifact://{document.artifact_id if named_twice else document.name}@{document.version}"
    details = [document.mime, size_words(document.size_bytes)]
    if document.pages:
        details.append(_count(document.pages, "page"))
    named = f"{document.name}, {reference}" if named_twice else reference
    line = f"- {named} ({', '.join(filter(None, details))})"
    match document.state:
        case DocumentState.WAITING | DocumentState.READING:
            line += ", being read, not searchable yet"
        case DocumentState.FAILED:
            line += f", not readable: {document.reason}"
        case _:
            pass
    return f"{line}, in this conversation" if document.here else line


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
