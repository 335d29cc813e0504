"""What a ModelRequest holds for somebody who goes by rules: the question, the files, what was read and saved."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from agents.runtime.context.assemble import CONTEXT_LEAD, CONTINUE, FINISH
from agents.runtime.model import FilePart, Message, ModelRequest, Role, TextPart, ToolCall

READ = "read_artifact"
SAVE = "save_artifact"

_NOTE = re.compile(r'\[Attached file "[^"\n]*" \([^)\n]*\): (artifact://[^\]\n]+)\]')
_REFERENCE = re.compile(r"^artifact://(?P<name>.+)@(?P<version>\d+)$")
# the first and the last line of a result of read_artifact (agents/tools/artifacts.py)
_HEAD = re.compile(
    r"^artifact://(?P<name>.+)@\d+, (?P<kind>page|line|character)s? (?P<first>\d+)(?:-(?P<last>\d+))?"
    r"(?: of (?P<pages>\d+))?.*:\n"
)
_MORE = re.compile(r'\n?\[More follows\. [^\n]*cursor="(?P<cursor>[^"\n]+)"\)\]\s*$')
_END = re.compile(r"\n?\[End of the file\.\]\s*$")
_SAVED = re.compile(r"artifact://(\S+@\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A stretch of a file's text. first, last: of kind page, line or character. pages: of the whole file, 0 = none."""

    text: str
    cursor: str
    next_cursor: str
    kind: str
    first: int
    last: int
    pages: int = 0


@dataclass(slots=True, kw_only=True)
class Document:
    """A file, as far as it was read. complaint: why it could not be; the tool's own words."""

    reference: str
    pages: list[Page] = field(default_factory=list)
    complaint: str = ""

    @property
    def name(self) -> str:
        return name_of(self.reference)

    def next_cursor(self, start: str = "") -> str | None:
        """Return where to read on from `start`, or None if all is read from there or nothing can be."""
        if self.complaint:
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

    question: the person's last message without its files. attached: its files; earlier: those of messages before, the
    newest first. documents: read in the conversation, by reference. asked: reads of this turn as (reference, cursor).
    saved: what save_artifact said in this turn. listing: what read_artifact said without a name in this turn.
    answered: our answer before the question. partial: what was said since, without calls. told: all we ever said.
    """

    question: str
    attached: tuple[str, ...]
    earlier: tuple[str, ...]
    documents: dict[str, Document]
    asked: frozenset[tuple[str, str]]
    saved: tuple[str, ...]
    listing: str | None
    answered: str
    partial: str
    told: str
    tools: frozenset[str]


def situation(request: ModelRequest) -> Situation:
    """Return what the request holds."""
    messages = request.messages
    start = max((i for i, m in enumerate(messages) if m.role is Role.USER and _spoken(m)), default=0)
    turn = messages[start:]
    calls = {call.id: call for m in messages for call in m.tool_calls}
    results = [(calls[m.tool_call_id], m.text) for m in turn if m.role is Role.TOOL and m.tool_call_id in calls]
    last = messages[start] if messages else Message(role=Role.USER)
    before = [m for m in messages[:start] if m.role is Role.USER]
    earlier = [reference for m in reversed(before) for reference in references(m)]
    said = [m.text for m in messages[:start] if m.role is Role.ASSISTANT and m.text]
    return Situation(
        question=_NOTE.sub("", _own_text(last)).strip(),
        attached=references(last),
        earlier=tuple(dict.fromkeys(r for r in earlier if r not in references(last))),
        documents=_documents(
            ((calls[m.tool_call_id], m.text) for m in messages if m.tool_call_id in calls), {c.id for c, _ in results}
        ),
        asked=frozenset(_read_of(call) for call, _ in results if call.name == READ),
        saved=tuple(text for call, text in results if call.name == SAVE),
        listing=next((text for call, text in results if call.name == READ and not _read_of(call)[0]), None),
        answered=said[-1] if said else "",
        partial="".join(m.text for m in turn if m.role is Role.ASSISTANT and not m.tool_calls),
        told="\n".join(m.text for m in messages if m.role is Role.ASSISTANT),
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


def name_of(reference: str) -> str:
    match = _REFERENCE.match(reference)
    return match["name"] if match else reference


def saved_name(result: str) -> str:
    """Return name@version out of what save_artifact said; "" if it did not save."""
    match = _SAVED.search(result)
    return match[1] if match and result.startswith("Saved") else ""


def _own_text(message: Message) -> str:
    """Return what the person wrote, without what they have open."""
    texts = (part.text for part in message.parts if isinstance(part, TextPart))
    return "\n".join(text for text in texts if not text.startswith(CONTEXT_LEAD))


def _spoken(message: Message) -> bool:
    """Return whether a person sent it: the application's instructions for one call come in the same role."""
    return message.text not in (CONTINUE, FINISH) and bool(references(message) or _own_text(message).strip())


def _read_of(call: ToolCall) -> tuple[str, str]:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        return "", ""
    if not isinstance(arguments, dict):
        return "", ""
    return str(arguments.get("name") or ""), str(arguments.get("cursor") or "")


def _documents(results: Iterable[tuple[ToolCall, str]], of_turn: set[str]) -> dict[str, Document]:
    """Return what was read. Complaints count in their own turn only: what failed before is tried again."""
    documents: dict[str, Document] = {}
    for call, text in results:
        reference, cursor = _read_of(call)
        if call.name != READ or not reference:
            continue
        page = _page(text, cursor)
        if page is None and call.id not in of_turn:
            continue
        document = documents.setdefault(reference, Document(reference=reference))
        if page is not None:
            document.pages = [*(p for p in document.pages if p.cursor != cursor), page]
            document.complaint = ""
        elif not document.pages:
            document.complaint = text.strip().removeprefix("Error: ").partition("\n")[0]
    return documents


def _page(text: str, cursor: str) -> Page | None:
    head = _HEAD.match(text)
    if head is None:
        return None  # a complaint, or a placeholder for what was left out of a long conversation
    more, end = _MORE.search(text), _END.search(text)
    stop = more.start() if more else end.start() if end else len(text)
    first = int(head["first"])
    return Page(
        text=text[head.end() : stop],
        cursor=cursor,
        next_cursor=more["cursor"] if more else "",
        kind=head["kind"],
        first=first,
        last=int(head["last"] or first),
        pages=int(head["pages"] or 0),
    )
