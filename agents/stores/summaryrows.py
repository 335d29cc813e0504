"""Summaries as rows and back: the JSON that the statements of sql.py take and give."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from agents.runtime import codec
from agents.runtime.events import AssistantMessage
from agents.runtime.knowledge import Citation, Cited
from agents.runtime.summaries import Boundary, Source, Summary
from agents.stores import events


def dump(summary: Summary) -> tuple[str, Summary]:
    """Return the summary as JSON that PostgreSQL takes, and as it will be read: without characters it cannot keep."""
    boundary = summary.boundary
    text, values, changed = events.dump_json(
        {
            "id": summary.id,
            "text": summary.text,
            "filter_key": summary.filter_key,
            "position": boundary.position,
            "fork": boundary.fork,
            "event_id": boundary.event_id,
            "at": boundary.at.isoformat(),
            "read_from": summary.read_from,
            "made_at": summary.made_at.isoformat(),
            "base": summary.base,
            "summarizer": summary.summarizer,
            "model": summary.model,
            "source": summary.source.value,
            "citations": _dump_citations(summary.citations),
            "tokens": summary.tokens,
            "covered_tokens": summary.covered_tokens,
            "covered_events": summary.covered_events,
            "report": dict(summary.report),
        }
    )
    return text.decode(), load(values) if changed else summary


def load(values: Mapping[str, Any] | str) -> Summary:
    """Return the summary of a row, as JSON or, from Django's connections, as its text."""
    if isinstance(values, str):
        values = orjson.loads(values)
    assert isinstance(values, Mapping)
    return Summary(
        id=values["id"],
        text=values["text"],
        filter_key=values["filter_key"],
        boundary=Boundary(
            position=values["position"],
            fork=values["fork"],
            event_id=values["event_id"],
            at=datetime.fromisoformat(values["at"]),
        ),
        read_from=values["read_from"],
        made_at=datetime.fromisoformat(values["made_at"]),
        base=values["base"] or "",
        summarizer=values["summarizer"],
        model=values["model"],
        source=Source(values["source"]),
        citations=_load_citations(values["citations"]),
        tokens=values["tokens"],
        covered_tokens=values["covered_tokens"],
        covered_events=values["covered_events"],
        report=values["report"],
    )


# Citations have the shape that they have in an answer, so that one reader knows what older versions wrote.
def _dump_citations(citations: tuple[Citation, ...]) -> list[Any]:
    cited = tuple(Cited(number=n, citation=citation) for n, citation in enumerate(citations, 1))
    found: list[Any] = codec.dump(AssistantMessage(id="", response_id="", citations=cited)).get("citations", [])
    return found


def _load_citations(values: list[Any]) -> tuple[Citation, ...]:
    if not values:
        return ()
    answer = codec.load("assistant_message", {"id": "", "response_id": "", "citations": values})
    assert isinstance(answer, AssistantMessage)
    return tuple(cited.citation for cited in answer.citations)
