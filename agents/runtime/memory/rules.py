"""Extraction without a model: what people say of themselves, by rules over their own messages, English and Chinese.

Nothing is worded anew: a memory is the clause as it was typed, with the date behind what was relative ("tomorrow
(2027-01-01)"). Taken are names, work, home, people, traits, preferences, standing instructions, what is to be
remembered, dates of what happens, and what is to be forgotten. Not taken are questions, suppositions, quotations,
requests for once, irony, what is said of others, and secrets. Precision before recall.
"""

import re
from collections.abc import Sequence
from datetime import tzinfo
from typing import Final

from agents.runtime.excerpts import terms
from agents.runtime.memory import chinese, english
from agents.runtime.memory.dates import Mention, find
from agents.runtime.memory.forgetting import Forgetting, forgetting, named
from agents.runtime.memory.memories import Draft, Kind, Memory, Source
from agents.runtime.memory.policies import Operation, Verb
from agents.runtime.memory.sources import QUOTE, Said, own_words
from agents.runtime.memory.statements import Statement
from agents.runtime.memory.words import has_han, normalised, stem, tokens

LEAST_MEANT: Final = 0.75  # of the words by which a person names what to forget
_ABSOLUTE = re.compile(r"\d{4}")


def extract(said: Said, candidates: Sequence[Memory], zone: tzinfo) -> tuple[Operation, ...]:
    """Return what one message asks to be remembered, changed and forgotten, in order. For policies.decide.

    candidates: all that holds, of any kind; what is to be forgotten, and what has changed, is found among them.
    A message that asks to forget says nothing else: what else stands in it may be what is to be forgotten.
    """
    own = own_words(said.text)
    asked = forgetting([said])
    if asked is Forgetting.EVERYTHING:
        return (Operation(verb=Verb.CLEAR, said_at=said.at),)
    if asked is Forgetting.SOME:
        return tuple(Operation(verb=Verb.DELETE, memory_id=id, said_at=said.at) for id in _meant(said.text, candidates))
    stated = _stated(own)
    current = {statement.slot for statement in stated if statement.slot and not statement.ended}
    held = _held(candidates) if any(statement.slot for statement in stated) else []
    operations = []
    for statement in stated:
        if statement.ended and statement.slot in current:
            continue  # what holds instead was said too
        draft = _draft(statement, said, zone)
        if draft is None:
            continue
        before = _before(statement, held)
        if before:
            operations.append(Operation(verb=Verb.SUPERSEDE, draft=draft, memory_id=before, said_at=said.at))
        elif not statement.ended:
            operations.append(Operation(verb=Verb.ADD, draft=draft, said_at=said.at))
    return tuple(operations)


def _stated(own: str) -> list[Statement]:
    found = chinese.statements(own) if has_han(own) else english.statements(own)
    return [statement for statement in found if QUOTE not in statement.text]


def _draft(statement: Statement, said: Said, zone: tzinfo) -> Draft | None:
    """Return what is to be stored; None = an episode whose time is not said."""
    times = find(statement.text, said.at, zone, past=statement.past)
    if statement.kind is Kind.EPISODE and not times:
        return None
    return Draft(
        text=_dated(statement.text, times, zone),
        kind=statement.kind,
        event_time=times[0].period if times else None,
        source=Source.EXTRACTOR,
        origin=said.origin,
    )


def _dated(text: str, times: Sequence[Mention], zone: tzinfo) -> str:
    """Return the text with the date behind each time that counts from when it was said."""
    for time in reversed(times):
        if not _ABSOLUTE.search(text[time.start : time.end]):
            wide = has_han(text[time.start : time.end])
            date = time.period.words(zone)
            end = time.end + len("'s") * text.startswith(("'s", "’s"), time.end)
            text = text[:end] + (f"（{date}）" if wide else f" ({date})") + text[end:]
    return text


def _held(candidates: Sequence[Memory]) -> list[tuple[str, Statement]]:
    """Return what the candidates say of what can be true in one way only, with their ids."""
    return [
        (memory.id, statement)
        for memory in candidates
        if not memory.superseded_by
        for statement in _stated(memory.text)
        if statement.slot
    ]


def _before(statement: Statement, held: Sequence[tuple[str, Statement]]) -> str:
    """Return the id of what the statement takes the place of, "" = of nothing."""
    if not statement.slot:
        return ""
    for id, old in held:
        if old.slot != statement.slot or statement.ended != (old.value == statement.value):
            continue
        if not statement.was or statement.was in old.value or old.value in statement.was:
            return id
    return ""


def _meant(text: str, candidates: Sequence[Memory]) -> list[str]:
    """Return the ids of what the person wants forgotten: candidates that have the words by which they name it.

    Whole words, but for their endings: what is forgotten cannot come back, and Ana is no part of Havana.
    """
    found: dict[str, None] = {}
    for what in named(text):
        words, pairs = _words(what), [pair for pair in terms(normalised(what)) if has_han(pair)]
        most = len(words) + len(pairs)
        for memory in candidates:
            known = normalised(memory.text)
            same = len(words & _words(known)) + sum(pair in known for pair in pairs)
            if most and same >= LEAST_MEANT * most:
                found[memory.id] = None
    return list(found)


def _words(text: str) -> frozenset[str]:
    """Return the words that name something, without their endings; Chinese ones are left out."""
    words = (word for word in tokens(text) if not has_han(word))
    return frozenset(stem(word) for word in words if len(word) > 2 or word.isdecimal())
