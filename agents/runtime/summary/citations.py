"""Citations in a summary: the markers that it keeps, and what they lead to."""

import re
from collections.abc import Iterable

from agents.runtime.context.citing import known_citations
from agents.runtime.events import AssistantMessage, Stored
from agents.runtime.knowledge import Citation
from agents.runtime.summaries import Summary

_MARKER = re.compile(r" ?\[\[c:([A-Za-z0-9_-]{1,8})\]\]")


def kept(text: str, history: Iterable[Stored], base: Summary | None) -> tuple[str, tuple[Citation, ...]]:
    """Return the text without markers of unknown citations, and the citations of the others in order of first use.

    Known is what tools gave and answers cite in the history, and what the summary before cites.
    """
    if not _MARKER.search(text):
        return text, ()
    history = tuple(history)
    known = {citation.id: citation for citation in base.citations} if base else {}
    known |= known_citations(history)
    for stored in history:
        if isinstance(stored.record, AssistantMessage):
            known |= {cited.citation.id: cited.citation for cited in stored.record.citations}
    used: dict[str, Citation] = {}

    def checked(found: re.Match[str]) -> str:
        citation = known.get(found[1].lower())
        if citation is None:
            return ""
        used[citation.id] = citation
        return found[0]

    return _MARKER.sub(checked, text).strip(), tuple(used.values())
