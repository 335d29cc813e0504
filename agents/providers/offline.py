"""A model that needs no key and no network: rules in place of a language model, and it says so.

It sees the ModelRequest and nothing else, as any model. It reads files only by calling read_artifact, page by page,
and answers with quotations and their places. The rules look at the question's words, its language, and what the tools
said; there is no knowledge of any subject in them.
"""

import asyncio
import json
import re
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from agents.providers.offline_answer import answer
from agents.providers.offline_intent import (
    Intent,
    Note,
    file_name_for,
    intent_of,
    is_only_a_wish,
    note_asked,
    page_asked,
)
from agents.providers.offline_request import READ, SAVE, Situation, name_of, saved_name, situation
from agents.providers.offline_terms import is_wide, subjects, terms
from agents.providers.offline_words import CHINESE, ENGLISH, Words, words
from agents.runtime.model import (
    Chunk,
    FinishChunk,
    FinishReason,
    ModelInfo,
    ModelRequest,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    Usage,
    UsageChunk,
)
from agents.runtime.tokens import MESSAGE_TOKENS, estimate, estimate_parts

NAME = "offline"
# Rules have no window. The number only keeps conversations from growing without bound.
INFO = ModelInfo(name=NAME, provider="offline", window_tokens=1_000_000, price_prompt=0.0, price_completion=0.0)

MOST_READS = 24  # of one turn
MOST_FILES = 6  # looked into for one question
_PIECE = re.compile(r"\s*[\u2e80-\u9fff\uff00-\uffef]{1,2}|\s*[^\s\u2e80-\u9fff\uff00-\uffef]+|\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What the model does next: think, say, call. calls: (tool, arguments)."""

    reasoning: str = ""
    text: str = ""
    calls: tuple[tuple[str, dict[str, str]], ...] = ()


class OfflineModel:
    """A `Model` (agents.runtime.model). pace_s: the wait after each piece of text, for demonstrations; 0 = none."""

    def __init__(self, *, pace_s: float = 0.0, new_id: Callable[[], str] = lambda: uuid.uuid4().hex) -> None:
        self._pace_s = pace_s
        self._new_id = new_id

    @property
    def info(self) -> ModelInfo:
        return INFO

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Yield reasoning, text and calls word by word, then an estimated usage. Never fails."""
        move = decide(situation(request))
        reasoning, said = 0, 0
        for piece in _PIECE.findall(move.reasoning):
            yield ReasoningChunk(piece)
            await asyncio.sleep(self._pace_s)
        reasoning = estimate(move.reasoning)
        finish = FinishReason.TOOL_CALLS if move.calls else FinishReason.STOP
        text = ""
        for piece in _PIECE.findall(move.text):
            if request.max_tokens is not None and estimate(text + piece) > request.max_tokens:
                finish = FinishReason.LENGTH
                break
            text += piece
            yield TextChunk(piece)
            await asyncio.sleep(self._pace_s)
        said = estimate(text)
        if finish is not FinishReason.LENGTH:
            for index, (name, arguments) in enumerate(move.calls):
                written = json.dumps(arguments, ensure_ascii=False)
                said += estimate(name) + estimate(written)
                yield ToolCallChunk(index=index, id=f"call_{self._new_id()}", name=name)
                yield ToolCallChunk(index=index, arguments=written)
                await asyncio.sleep(self._pace_s)
        yield UsageChunk(Usage(prompt=_prompt_tokens(request), completion=reasoning + said, reasoning=reasoning))
        yield FinishChunk(finish)


def decide(at: Situation) -> Move:
    """Return the next move: read what has to be read, then answer, save what is to be saved. Pure."""
    say = words(wide=is_wide(at.question or at.answered))
    note = note_asked(at.question, frozenset(map(name_of, (*at.attached, *at.earlier))))
    if at.saved:
        return _after_saving(at, say)
    intent = intent_of(at.question)
    if note is not None and SAVE in at.tools and (ready := _ready_content(at, note, intent)):
        return _save(ready, note, say)
    if intent in (Intent.GREETING, Intent.THANKS, Intent.ABOUT_US) and not at.attached:
        return _talk(at, intent, say)
    if intent is Intent.LIST_FILES and not at.attached:
        return _list_files(at, say)
    chosen = _chosen(at)
    if not chosen or (note is not None and not at.attached and is_only_a_wish(at.question)):
        return _without_files(at, note, say)
    calls = _reads(at, chosen)
    if calls:
        return Move(reasoning=_why_reading(at, chosen, calls, say), calls=calls)
    return _answer(at, chosen, note, say)


def _talk(at: Situation, intent: Intent, say: Words) -> Move:
    line = {Intent.GREETING: say.greeting, Intent.THANKS: say.thanks, Intent.ABOUT_US: say.about_us}[intent]
    return Move(reasoning=say.thinking_plain, text=_rest(at, _with_notice(at, line, say)))


def _list_files(at: Situation, say: Words) -> Move:
    if at.listing is None and READ in at.tools:
        return Move(calls=((READ, {}),))
    if at.listing is None:
        return Move(text=_rest(at, say.no_tool))
    lines = [line for line in at.listing.splitlines() if line.startswith("- ")]
    text = "\n".join((say.files_are, "", *lines)) if lines else at.listing
    return Move(text=_rest(at, _with_notice(at, text, say)))


def _without_files(at: Situation, note: Note | None, say: Words) -> Move:
    line = say.nothing_to_save if note is not None else say.no_files
    return Move(reasoning=say.thinking_plain, text=_rest(at, _with_notice(at, line, say)))


def _chosen(at: Situation) -> tuple[str, ...]:
    """Return the files to look into: those of the message, else those it names, else all from before, newest first."""
    if at.attached:
        return at.attached[:MOST_FILES]
    asked = set(terms(at.question, keep_stop=True))
    named = tuple(r for r in at.earlier if _is_named(name_of(r), at.question, asked))
    return (named or at.earlier)[:MOST_FILES]


def _is_named(name: str, question: str, asked: set[str]) -> bool:
    stem = name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    own = set(terms(stem, keep_stop=True))
    return name.lower() in question.lower() or (bool(own) and len(stem) > 2 and own <= asked)


def _reads(at: Situation, chosen: Sequence[str]) -> tuple[tuple[str, dict[str, str]], ...]:
    """Return the next page of each file that has one, () when all is read, or nothing more may be."""
    if READ not in at.tools:
        return ()
    room = MOST_READS - len(at.asked)
    page = page_asked(at.question)
    start = f"page:{page}" if page else ""
    calls = []
    for reference in chosen:
        document = at.documents.get(reference)
        if page and document and document.from_cursor(start):
            continue  # that page is there; what follows was not asked for
        cursor = start if document is None else document.next_cursor(start)
        if document is not None and document.complaint and start and (reference, "") not in at.asked:
            cursor = ""  # no such page: look at the file from its beginning
        if cursor is None or (reference, cursor) in at.asked:
            continue
        calls.append((READ, {"name": reference, "cursor": cursor} if cursor else {"name": reference}))
    return tuple(calls[: max(0, room)])


def _why_reading(
    at: Situation, chosen: Sequence[str], calls: tuple[tuple[str, dict[str, str]], ...], say: Words
) -> str:
    if not at.asked:
        return say.thinking_read.format(names=say.comma.join(map(name_of, chosen)))
    return say.thinking_on.format(name=say.comma.join(name_of(arguments["name"]) for _, arguments in calls))


def _answer(at: Situation, chosen: Sequence[str], note: Note | None, say: Words) -> Move:
    documents = [at.documents[r] for r in chosen if r in at.documents]
    if not documents:
        return Move(text=_rest(at, _with_notice(at, say.no_tool, say)))
    intent = intent_of(at.question)
    if not terms(at.question):  # a file and no word about it
        intent = Intent.SUMMARY
    text = answer(documents, at.question, intent, say)
    looked_for = say.comma.join(subjects(at.question)[:8])
    reasoning = say.thinking_search.format(terms=looked_for) if looked_for and intent is Intent.QUESTION else ""
    if note is not None and SAVE in at.tools:
        stem = documents[0].name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        name = note.name or say.note_name.format(stem=stem)
        return Move(reasoning=reasoning, text=text, calls=((SAVE, {"name": name, "content": f"{text}\n"}),))
    return Move(reasoning=reasoning, text=_rest(at, _with_notice(at, text, say)))


def _ready_content(at: Situation, note: Note, intent: Intent) -> str:
    """Return what is to be saved if it is known already; "" if it has to be read first."""
    if note.content is not None:
        return note.content
    if at.attached or intent is Intent.SUMMARY or not note.refers_back:
        return ""
    return _without_notice(at.answered)


def _save(content: str, note: Note, say: Words) -> Move:
    name = note.name or file_name_for(content)
    return Move(
        reasoning=say.thinking_save.format(name=name), calls=((SAVE, {"name": name, "content": f"{content}\n"}),)
    )


def _after_saving(at: Situation, say: Words) -> Move:
    lines = []
    for result in at.saved:
        name = saved_name(result)
        lines.append(say.saved.format(name=name) if name else say.not_saved.format(complaint=result.strip()))
    return Move(text=_with_notice(at, "\n".join(lines), say))


def _with_notice(at: Situation, text: str, say: Words) -> str:
    """Return the text with the notice, unless it was given in this conversation, in whatever language."""
    if any(language.notice in _before(at) for language in (ENGLISH, CHINESE)):
        return text
    return f"{text}\n\n{say.notice}"


def _before(at: Situation) -> str:
    """Return what we said in the conversation, without the answer that is being gone on with."""
    return at.told.removesuffix(at.partial) if at.partial else at.told


def _without_notice(text: str) -> str:
    for language in (ENGLISH, CHINESE):
        text = text.replace(language.notice, "")
    return text.strip()


def _rest(at: Situation, text: str) -> str:
    """Return what is still to be said when an answer that was stopped goes on: the same answer, from there."""
    return text[len(at.partial) :] if at.partial and text.startswith(at.partial) else text


def _prompt_tokens(request: ModelRequest) -> int:
    return sum(
        MESSAGE_TOKENS + estimate_parts(m.parts) + sum(estimate(c.arguments) for c in m.tool_calls)
        for m in request.messages
    )
