"""What a ModelRequest holds for somebody who goes by rules: the question, the files, what tools found, read, saved."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.providers.offline.results import (
    Excerpt,
    Listed,
    Reading,
    Recalled,
    Remembered,
    Search,
    excerpts_of,
    listed_of,
    memories_of,
    name_of,
    reading_of,
    recalled_of,
    search_of,
)
from agents.runtime.context.words import CONTINUE, DATA_LEADS, FINISH, MEMORY_LEAD, SKILL_LEAD, SKILLS_LEAD
from agents.runtime.errors import ToolFailure
from agents.runtime.model import FilePart, Message, ModelRequest, Role, TextPart, ToolCall

READ = "read_artifact"
SAVE = "save_artifact"
EDIT = "edit_artifact"
SEARCH = "search_knowledge"
READ_DOCUMENT = "read_document"
LIST = "list_documents"
SEARCH_PAST = "session_search"
LOAD_PAST = "session_load"
SEARCH_MEMORIES = "memory_search"
LOAD_MEMORIES = "memory_load"
LOAD_SKILL = "skill_load"

_MEMORIES = re.compile(rf"{re.escape(MEMORY_LEAD)}\n<memory>\n(.*?)\n</memory>", re.DOTALL)
_SKILLS = re.compile(rf"{re.escape(SKILLS_LEAD)}\n<skills>\n(.*?)\n</skills>", re.DOTALL)
_LOADED = re.compile(rf"{re.escape(SKILL_LEAD)}\n<skill>\n# Skill: (\S+)\n(.*?)\n</skill>", re.DOTALL)
_NOTE = re.compile(r'\[Attached file "[^"\n]*" \([^)\n]*\): (artifact://[^\]\n]+)\]')
# the first and the last line of a result of read_artifact (agents/tools/artifacts.py)
_HEAD = re.compile(
    r"^artifact://(?P<name>.+)@\d+(?:, sheet [^\n]*?)?(?:, (?P<kind>page|line|row|character)s? (?P<first>\d+)"
    r"(?:-(?P<last>\d+))?(?: of (?P<pages>\d+))?)?.*:\n"
)
_MORE = re.compile(r'\n?\[More follows\. [^\n]*cursor="(?P<cursor>[^"\n]+)"\)\]\s*$')
_END = re.compile(r"\n?\[End of the file\.\]\s*$")
_SOURCES = re.compile(r"(\d+) sources? (?:is|are) listed")
_SAVED = re.compile(r"artifact://(\S+@\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A stretch of a file's text. first, last: of kind page, line, row or character, 0 = unknown. pages: of the whole
    file, 0 = none. excerpts: its passages, if it came with them.
    """

    text: str
    cursor: str
    next_cursor: str
    kind: str
    first: int
    last: int
    pages: int = 0
    excerpts: tuple[Excerpt, ...] = ()


@dataclass(slots=True, kw_only=True)
class Document:
    """A file, as far as it was read. failure: why it could not be, an errors.ToolFailure."""

    reference: str
    pages: list[Page] = field(default_factory=list)
    failure: str = ""

    @property
    def name(self) -> str:
        return name_of(self.reference)

    def next_cursor(self, start: str = "") -> str | None:
        """Return where to read on from `start`, or None if all is read from there or nothing can be."""
        if self.failure:
            return None
        by_cursor = {page.cursor: page for page in self.pages}
        cursor = start
        while cursor in by_cursor:
            cursor = by_cursor[cursor].next_cursor
            if not cursor:
                return None
        return cursor

    def from_cursor(self, start: str = "") -> list[Page]:
        """Return the pages that follow one another from `start`."""
        by_cursor = {page.cursor: page for page in self.pages}
        found: list[Page] = []
        while (page := by_cursor.get(start)) is not None and page not in found:
            found.append(page)
            start = page.next_cursor
            if not start:
                break
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a rule may look at. References are "artifact://name@version".

    question: the person's last message without its files; before: the one before that. attached: its files; earlier:
    those of messages before, the newest first. documents: read in the conversation, by reference. asked: reads of this
    turn as (reference, cursor). searches, readings, listed: what the tools for documents gave in this turn, listed with
    why it failed, None = not called. recalls, loads: what was found and read of the past in this turn. memories: of the
    person, before the model or read in this turn. memory_failure: why they could not be read, "" = they were, None = no
    tool was asked. saved: what
    saving and editing said in this turn, each with why it failed. listing: the same of the files of the conversation.
    kept: names and versions that were saved before, newest first. answered: our answer before the question. partial:
    what was said since, without calls. told: all we ever said. skills: (name, description) of those there are. loaded:
    texts of those that are loaded, by name. skills_failed: those that could not be loaded in this turn.
    """

    question: str
    before: str
    attached: tuple[str, ...]
    earlier: tuple[str, ...]
    documents: dict[str, Document]
    asked: frozenset[tuple[str, str]]
    searches: tuple[Search, ...]
    readings: tuple[Reading, ...]
    listed: tuple[tuple[Listed, ...], str] | None
    recalls: tuple[Recalled, ...]
    loads: tuple[Recalled, ...]
    memories: tuple[Remembered, ...]
    memory_failure: str | None
    saved: tuple[tuple[str, str], ...]
    listing: tuple[str, str] | None
    kept: tuple[str, ...]
    answered: str
    partial: str
    told: str
    tools: frozenset[str]
    skills: tuple[tuple[str, str], ...] = ()
    loaded: Mapping[str, str] = field(default_factory=dict)
    skills_failed: frozenset[str] = frozenset()


def situation(request: ModelRequest) -> Situation:
    """Return what the request holds."""
    messages = request.messages
    start = max((i for i, m in enumerate(messages) if m.role is Role.USER and _spoken(m)), default=0)
    turn = messages[start:]
    calls = {call.id: call for m in messages for call in m.tool_calls}
    results = [(calls[m.tool_call_id], m) for m in turn if m.role is Role.TOOL and m.tool_call_id in calls]
    last = messages[start] if messages else Message(role=Role.USER)
    before = [m for m in messages[:start] if m.role is Role.USER]
    earlier = [reference for m in reversed(before) for reference in references(m)]
    said = [m.text for m in messages[:start] if m.role is Role.ASSISTANT and m.text]
    listed = [m for call, m in results if call.name == LIST]
    remembered = [m for call, m in results if call.name == LOAD_MEMORIES]
    kept = [saved_name(m.text) for m in messages if m.role is Role.TOOL and m.name in (SAVE, EDIT) and not m.failure]
    return Situation(
        question=_NOTE.sub("", _own_text(last)).strip(),
        before=_NOTE.sub("", _own_text(before[-1])).strip() if before else "",
        attached=references(last),
        earlier=tuple(dict.fromkeys(r for r in earlier if r not in references(last))),
        documents=_documents(
            ((calls[m.tool_call_id], m) for m in messages if m.tool_call_id in calls), {c.id for c, _ in results}
        ),
        asked=frozenset(_read_of(call) for call, _ in results if call.name == READ),
        searches=tuple(
            search_of(str(a.get("query", "")), a.get("documents") or (), m.text, m.failure)
            for a, m in _given(results, SEARCH)
        ),
        readings=tuple(
            reading_of(str(a.get("document", "")), str(a.get("at", "")), m.text, m.failure)
            for a, m in _given(results, READ_DOCUMENT)
        ),
        listed=(listed_of(listed[0].text), listed[0].failure) if listed else None,
        recalls=tuple(recalled_of(m.text, m.failure) for _, m in _given(results, SEARCH_PAST)),
        loads=tuple(recalled_of(m.text, m.failure) for _, m in _given(results, LOAD_PAST)),
        memories=_memories(messages, remembered),
        memory_failure=remembered[-1].failure if remembered else None,
        saved=tuple((m.text, m.failure) for call, m in results if call.name in (SAVE, EDIT)),
        listing=next(((m.text, m.failure) for call, m in results if call.name == READ and not _read_of(call)[0]), None),
        kept=tuple(dict.fromkeys(filter(None, reversed(kept)))),
        answered=said[-1] if said else "",
        partial="".join(m.text for m in turn if m.role is Role.ASSISTANT and not m.tool_calls),
        told="\n".join(m.text for m in messages if m.role is Role.ASSISTANT),
        skills=_skills(messages),
        loaded={name: text for m in messages for name, text in _LOADED.findall(m.text)},
        skills_failed=frozenset(str(a.get("skill", "")) for a, m in _given(results, LOAD_SKILL) if m.failure),
        tools=frozenset() if request.tool_choice == "none" else frozenset(t.name for t in request.tools),
    )


def references(message: Message) -> tuple[str, ...]:
    """Return the files a message carries, as parts or as the note that stands for a part."""
    found: list[str] = []
    for part in message.parts:
        if isinstance(part, FilePart):
            found.append(f"artifact://{part.name}@{part.version}")
        else:
            found += _NOTE.findall(part.text)
    return tuple(dict.fromkeys(found))


def saved_name(result: str) -> str:
    """Return name@version out of what save_artifact said."""
    match = _SAVED.search(result)
    return match[1] if match else ""


def sources_listed(result: str) -> int:
    """Return how many sources a saved file lists, out of what the tool said."""
    match = _SOURCES.search(result)
    return int(match[1]) if match else 0


def _own_text(message: Message) -> str:
    """Return what the person wrote, without what was put in front of it: what they have open, memory, summaries."""
    texts = (part.text for part in message.parts if isinstance(part, TextPart))
    return "\n".join(text for text in texts if not text.startswith(DATA_LEADS))


def _memories(messages: Sequence[Message], read: Sequence[Message]) -> tuple[Remembered, ...]:
    """Return what is remembered of the person: what stands before their message, and what was read besides."""
    given = (m.text for m in messages if m.role in (Role.SYSTEM, Role.USER))
    blocks = [block for text in given for block in _MEMORIES.findall(text)]
    found = [one for text in (*blocks[-1:], *(m.text for m in read if not m.failure)) for one in memories_of(text)]
    return tuple({one.id: one for one in found}.values())


def _skills(messages: Sequence[Message]) -> tuple[tuple[str, str], ...]:
    """Return what the system text says of skills: names and descriptions, those without one left out."""
    listed = [found for m in messages if m.role is Role.SYSTEM for found in _SKILLS.findall(m.text)]
    lines = (line.partition(": ") for text in listed for line in text.splitlines())
    return tuple((name, description) for name, _, description in lines if description and " " not in name)


def _spoken(message: Message) -> bool:
    """Return whether a person sent it: the application's instructions for one call come in the same role."""
    return message.text not in (CONTINUE, FINISH) and bool(references(message) or _own_text(message).strip())


def _given(results: Iterable[tuple[ToolCall, Message]], name: str) -> list[tuple[dict[str, Any], Message]]:
    """Return the calls of one tool as (arguments, result)."""
    return [(_arguments(call), message) for call, message in results if call.name == name]


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _read_of(call: ToolCall) -> tuple[str, str]:
    arguments = _arguments(call)
    return str(arguments.get("name") or ""), str(arguments.get("cursor") or "")


def _documents(results: Iterable[tuple[ToolCall, Message]], of_turn: set[str]) -> dict[str, Document]:
    """Return what was read. Failures count in their own turn only: what failed before is tried again."""
    documents: dict[str, Document] = {}
    for call, message in results:
        reference, cursor = _read_of(call)
        if call.name != READ or not reference:
            continue
        page = _page(message.text, cursor, reference)
        if page is None and call.id not in of_turn:
            continue
        document = documents.setdefault(reference, Document(reference=reference))
        if page is not None:
            document.pages = [*(p for p in document.pages if p.cursor != cursor), page]
            document.failure = ""
        elif not document.pages:
            document.failure = message.failure or ToolFailure.TOOL_FAILED
    return documents


def _page(text: str, cursor: str, reference: str) -> Page | None:
    head = _HEAD.match(text)
    if head is None:
        return None  # a failure, or a placeholder for what was left out of a long conversation
    more, end = _MORE.search(text), _END.search(text)
    stop = more.start() if more else end.start() if end else len(text)
    first = int(head["first"] or 0)
    return Page(
        text=text[head.end() : stop],
        cursor=cursor,
        next_cursor=more["cursor"] if more else "",
        kind=head["kind"] or "",
        first=first,
        last=int(head["last"] or first),
        pages=int(head["pages"] or 0),
        excerpts=tuple(excerpts_of(text, reference=reference)),
    )
