"""Answers from what was said before: earlier messages of this conversation and of the person's others."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agents.providers.offline import quoting
from agents.providers.offline.intent import Note, file_name_for
from agents.providers.offline.judging import Judged, judge
from agents.providers.offline.moves import NONE, Move, delivered, said
from agents.providers.offline.request import LOAD_PAST, SEARCH_PAST, Situation
from agents.providers.offline.results import Excerpt
from agents.providers.offline.units import Unit, units_of_excerpts
from agents.providers.offline.words import Words
from agents.runtime.reminder import refers_back, without_frame

SCOPES = ("current_session", "other_sessions")
HITS = 10
AROUND = 0.3  # of the question's weight; what holds so much and does not answer is read whole
WHOLE_BYTES = 16_000  # of a record that is read from its beginning; of a longer one a stretch around what was found
BEFORE_BYTES = 4_000
_QUOTE = re.compile(r"(?m)^>.*(?:\n>.*)*")
_QUOTING = re.compile(r"(?m)^(?:>[ \t]*)+")
_LAST_MARKER = re.compile(r"\[\[c:(\w{1,16})\]\]\s{0,8}$")
_MARKER_CHARS = 32
_QUESTION = re.compile(r"(?:[?？]|[吗呢][。.]?)[\"”」』)）]*\s*$")


def is_asked(at: Situation) -> bool:
    """Return whether the question is about what was said before, and that can be looked up or was."""
    there = SEARCH_PAST in at.tools or bool(at.recalls)
    return there and not at.attached and refers_back(at.question)


def move(at: Situation, note: Note | None, say: Words) -> Move | None:
    """Return the next move; None if what was found does not answer."""
    if not at.recalls:
        calls = [(SEARCH_PAST, {"query": at.question, "scope": scope, "top_k": HITS}) for scope in SCOPES]
        return Move(reasoning=say.thinking_past, calls=tuple(calls))
    judged = _judged(at)
    if judged.answers:
        return _delivered(at, quoting.found(judged, say, several=False, lead=say.said_before), note, say)
    if (excerpt := _to_load(at, judged)) is not None:
        arguments: dict[str, object] = {"event_id": excerpt.id}
        if excerpt.bytes > WHOLE_BYTES:
            arguments["content_offset"] = max(0, excerpt.offset - BEFORE_BYTES)
        return Move(reasoning=say.thinking_whole, calls=((LOAD_PAST, arguments),))
    return None


def otherwise(at: Situation, of_documents: Move | None, note: Note | None, say: Words) -> Move:
    """Return what is said when the past does not answer: the documents' answer if they have one, else what is
    closest."""
    if of_documents is not None and (of_documents.calls or NONE not in of_documents.text):
        return of_documents
    judged = _judged(at)
    if judged.passages and judged.coverage >= quoting.CLOSE:
        return _delivered(at, quoting.found(judged, say, several=False, lead=say.closest_before), note, say)
    if of_documents is not None:
        return of_documents
    failure = at.recalls[-1].failure
    return said(at, say.past_not_read.format(complaint=say.complaint(failure)) if failure else say.not_said_before, say)


def _delivered(at: Situation, text: str, note: Note | None, say: Words) -> Move:
    return delivered(at, text, note, file_name_for(at.question)[:-3], say)


def _judged(at: Situation) -> Judged:
    """Return what answers the question, or what it asks without the words that only refer back."""
    units = _units(at)
    judged = judge(units, at.question)
    if judged.answers:
        return judged
    bare = judge(units, without_frame(at.question))
    return bare if bare.answers or bare.coverage > judged.coverage else judged


def _units(at: Situation) -> list[Unit]:
    """Return what was said, without questions: they share most words with another question, and answer none."""
    return [unit for unit in units_of_excerpts(_excerpts(at)) if not _QUESTION.search(unit.text)]


def _excerpts(at: Situation) -> Sequence[Excerpt]:
    """Return what was read whole, and what was found besides."""
    whole = _first_hand(excerpt for result in at.loads for excerpt in result.excerpts)
    found = _first_hand(excerpt for result in at.recalls for excerpt in result.excerpts)
    return [*whole, *(one for one in found if not any(one.text in other.text for other in whole))]


def _first_hand(excerpts: Iterable[Excerpt]) -> list[Excerpt]:
    """Return records, and in place of answers that quote with a citation what they quote, where it was said; each text
    once. Else each answer would quote the answers before it, and they their sources."""
    own: list[Excerpt] = []
    quoted: list[Excerpt] = []
    for excerpt in excerpts:
        quotes = _quotes(excerpt)
        quoted += quotes
        own += () if quotes else (excerpt,)
    for one in quoted:
        if not any(one.id == other.id or one.text in other.text for other in own):
            own.append(one)
    return own


def _quotes(excerpt: Excerpt) -> list[Excerpt]:
    found = []
    for quote in _QUOTE.finditer(excerpt.text):
        end, cite = len(quote[0]), ""
        while marker := _LAST_MARKER.search(quote[0], max(0, end - _MARKER_CHARS), end):
            end, cite = marker.start(), marker[1]  # of a quote in a quote the innermost stands first
        if cite:
            text = _QUOTING.sub("", quote[0][:end]).strip()
            found.append(replace(excerpt, id=cite, text=text, offset=0, bytes=0))
    return found


def _to_load(at: Situation, judged: Judged) -> Excerpt | None:
    """Return the record that is to be read whole, since its excerpt alone settles nothing."""
    if at.loads or LOAD_PAST not in at.tools or not judged.passages or judged.coverage < AROUND:
        return None
    best = judged.passages[0].cite
    return next((e for e in _excerpts(at) if e.id == best and e.bytes), None)
