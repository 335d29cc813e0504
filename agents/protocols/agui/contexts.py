"""What is told about the context of a run beside its messages: values of CUSTOM `workbench.context`.

`kind` says which: `window` (what the next request takes of the model's window), `summarising` (the run makes a summary
before it goes on), `compacted` (from here on, results of earlier requests are shown to the model in short form).
"""

from typing import Any

from agents.runtime.events import ContextCompacted, Summarising, WindowUsed

NAME = "context"

ContextEvent = ContextCompacted | Summarising | WindowUsed


def value(event: ContextEvent) -> dict[str, Any]:
    """Return the value of an event, members that say nothing left out. Tokens are estimates."""
    match event:
        case WindowUsed():
            parts = [{"tag": tag, "tokens": tokens} for tag, tokens in event.parts]
            whole = {"kind": "window", "tokens": event.tokens, "window": event.window, "source": event.source}
            return {**whole, "parts": parts} if parts else whole
        case ContextCompacted():
            return {"kind": "compacted", "upTo": event.up_to, "results": event.results, "tokens": event.tokens}
        case Summarising():
            made: dict[str, Any] = {"kind": "summarising", "state": event.state, "tokensBefore": event.tokens_before}
            if event.tokens_after:
                made["tokensAfter"] = event.tokens_after
            if event.summary_id:
                made |= {"summaryId": event.summary_id, "position": event.position}
            return made
