"""Citations as the page gets them: those of the wire, and which of the conversations they quote are gone."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from django.urls import reverse

from agents.models.session import Session
from agents.protocols.agui import history
from agents.runtime.events import AssistantMessage, Stored, ToolReturned
from agents.runtime.knowledge import Citation, Cited, Place

_WHOLE = Citation(id="", artifact_id="", version=0, name="", start=0, end=0, place=Place(), quote="")


def named(stored: Iterable[Stored]) -> Iterator[Citation]:
    """Yield what the answers among the records cite, and what their tools found."""
    for one in stored:
        if isinstance(one.record, AssistantMessage):
            yield from (cited.citation for cited in one.record.citations)
        elif isinstance(one.record, ToolReturned):
            yield from one.record.citations


def gone(owner_id: int, citations: Iterable[Citation]) -> frozenset[str]:
    """Return the threads of cited messages that this person has not, or not any more.

    One statement; none if no message is cited.
    """
    threads = {citation.thread_id for citation in citations if citation.message_id}
    if not threads:
        return frozenset()
    there = Session.objects.of(owner_id).filter(thread_id__in=threads, deleted_at=None)
    return frozenset(threads.difference(there.values_list("thread_id", flat=True)))


def address(message: Citation) -> str:
    """Return where a cited message stands in its conversation. static/js/cite.js says it the same way."""
    return f"{reverse('session', args=[message.thread_id])}?{urlencode({'at': message.message_id}, quote_via=quote)}"


def as_json(cited: Iterable[Cited], gone: Collection[str]) -> str:
    """Return citations as the value of `data-citations`; a message whose thread is among those gone says so."""
    found = []
    for one in cited:
        value = history.citation(one)
        if one.citation.message_id and one.citation.thread_id in gone:
            value["message"]["gone"] = True
        found.append(value)
    return json.dumps(found, ensure_ascii=False)


def found(tool: str, data: Mapping[str, Any]) -> dict[str, Citation]:
    """Return the documents that a result of a search or a reading found, by source.

    What a search of conversations found is not told: it looks wherever it may help. tool, data: of the result.
    static/js/items.js does it the same way.
    """
    hits = data.get("hits", ())
    match tool:
        case "search_knowledge":
            every = [_document(hit) for hit in hits]
        case "read_document" if "documentId" in data:
            every = [_document(data)]
        case _:
            every = []
    return {one.source: one for one in every}


def unused_json(found: Mapping[str, Citation], cited: Collection[str]) -> str:
    """Return what was found and is not among the cited sources as the value of `data-unused`, "" for nothing."""
    left = [Cited(number=0, citation=one) for source, one in found.items() if source not in cited]
    return as_json(left, ()) if left else ""


def _document(told: Mapping[str, Any]) -> Citation:
    return replace(_WHOLE, artifact_id=told["documentId"], version=told["version"], name=told["name"])
