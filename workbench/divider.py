"""The divider in a conversation: where earlier messages are summarised for the model, and the summary to read."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agents.protocols.agui import blocks
from agents.runtime.context.citing import Citing, Known
from agents.runtime.events import AssistantMessage, Stored, ToolReturned
from agents.runtime.session import Session
from agents.runtime.summaries import Summary
from agents.stores import covered, sessions
from workbench import citations, contextwords, wording
from workbench.transcript import Answer, Said

Entry = Said | Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Divider:
    """A summary as the page shows it. html: the text, sanitised; citations: those it links to, as
    citations.as_json writes them.

    partly: the first steps of the answer below are covered too. The other strings are sentences, "" = not known.
    """

    summary_id: str
    html: str
    citations: str
    lang: str
    coverage: str
    became: str
    cost: str
    made: str
    partly: bool = False


def among(
    history: sessions.History, entries: Sequence[Entry], shown: Sequence[Entry], *, run_id: str, newest: bool
) -> tuple[Divider | None, int]:
    """Return the divider, if it stands among the entries that are shown, and before which of them.

    history: what was read; entries: all that were built from it, of which `shown` are the last. run_id: the run going
    on, "" if none. newest: nothing comes after them. Of two pages that meet at the divider the newer one shows it.
    """
    session, summary = history.session, history.summary
    if summary is None or not history.stored:
        return (None, 0)
    position = summary.boundary.position
    at = place(entries, position) - (len(entries) - len(shown))
    if at < 0 or (at == len(shown) and not newest):
        return (None, 0)
    if at == 0 and len(shown) == len(entries) and history.truncated:
        # Whether it stands just above or further up, what was said last before these decides.
        above = sessions.read_history(
            session.owner_id, session.thread_id, limit=1, before=history.stored[0].position
        ).stored
        if above and above[-1].position > position:
            return (None, 0)
    inside = shown[at].run_id if at < len(shown) else run_id
    return (divider(session, summary, partly=bool(inside) and cuts(history.stored, position, inside)), at)


def divider(session: Session, summary: Summary, *, partly: bool = False) -> Divider:
    """Return what the page shows of a summary of this session."""
    citing = Citing(Known(citations={one.id: one for one in summary.citations}))
    pieces = citing.feed(summary.text) + citing.end()
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    above = covered.covered(session, summary.boundary.position)
    call = summary.report.get("call", {})
    return Divider(
        summary_id=summary.id,
        html=blocks.render(text),
        citations=citations.as_json(citing.cited, citations.gone(session.owner_id, summary.citations)),
        lang=wording.language(text),
        coverage=contextwords.coverage(above.messages, above.first, summary.boundary.at, more=above.more)
        if above
        else "",
        became=contextwords.became(summary.covered_tokens, summary.tokens) if summary.covered_tokens else "",
        cost=contextwords.cost(
            prompt=call.get("prompt_tokens", 0),
            cached=call.get("cached_tokens", 0),
            completion=call.get("completion_tokens", 0),
            mode=call.get("mode", ""),
        ),
        made=contextwords.made(summary.made_at, source=summary.source, by=summary.model),
        partly=partly,
    )


def place(entries: Sequence[Entry], position: int) -> int:
    """Return before which entry a boundary at this position stands: the first that it does not cover whole.

    len(entries) if it covers them all. entries: in order, of one visible line.
    """
    return next((at for at, entry in enumerate(entries) if entry.until > position), len(entries))


def cuts(stored: Collection[Stored], position: int, run_id: str) -> bool:
    """Return whether a boundary lies in the middle of what a run said and did."""
    said = [
        one.position
        for one in stored
        if one.origin.run_id == run_id and isinstance(one.record, AssistantMessage | ToolReturned)
    ]
    return any(at <= position for at in said) and any(at > position for at in said)
