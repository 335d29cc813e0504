"""What the model may do next, and how what it says is put: with the notice once, and from where it stopped."""

from dataclasses import dataclass
from typing import Any

from agents.providers.offline.intent import Note
from agents.providers.offline.request import SAVE, Situation
from agents.providers.offline.words import CHINESE, ENGLISH, Words
from agents.runtime.context.citing import marker
from agents.runtime.knowledge import NOT_FOUND_ID

Call = tuple[str, dict[str, Any]]
NONE = marker(NOT_FOUND_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What the model does next: think, say, call. calls: (tool, arguments)."""

    reasoning: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()


def said(at: Situation, text: str, say: Words, *, reasoning: str = "") -> Move:
    """Return the move that says the text and is done."""
    return Move(reasoning=reasoning, text=rest(at, with_notice(at, text, say)))


def delivered(at: Situation, text: str, note: Note | None, stem: str, say: Words, *, reasoning: str = "") -> Move:
    """Return the move that says the text, and saves it if a note was asked for. stem: of what the note is about."""
    if note is None or SAVE not in at.tools:
        return said(at, text, say, reasoning=reasoning)
    name = note.name or say.note_name.format(stem=stem)
    return Move(reasoning=reasoning, text=text, calls=((SAVE, {"name": name, "content": f"{text}\n"}),))


def with_notice(at: Situation, text: str, say: Words) -> str:
    """Return the text with the notice, unless it was given in this conversation, in whatever language."""
    before = at.told.removesuffix(at.partial) if at.partial else at.told
    if any(language.notice in before for language in (ENGLISH, CHINESE)):
        return text
    return f"{text}\n\n{say.notice}"


def without_notice(text: str) -> str:
    for language in (ENGLISH, CHINESE):
        text = text.replace(language.notice, "")
    return text.strip()


def rest(at: Situation, text: str) -> str:
    """Return what is still to be said when an answer that was stopped goes on: the same answer, from there.

    What was said comes back without the mark of an answer that is not in the documents.
    """
    for whole in (text, text.replace(f" {NONE}", "")):
        if at.partial and whole.startswith(at.partial):
            return whole[len(at.partial) :]
    return text
