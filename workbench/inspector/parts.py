"""One part of a request as the inspector shows it: what it was, what it said, and where it came from."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from agents.runtime.context.citing import marked
from agents.runtime.context.injection import block_text, summary_text
from agents.runtime.context.placeholders import short_arguments
from agents.runtime.context.rendering import context_text, result_text, told_text
from agents.runtime.events import AssistantMessage, Stored, ToolReturned, UserMessage
from agents.runtime.knowledge import Citation
from agents.runtime.model import FilePart, ToolCall, ToolSpec, file_note
from agents.runtime.session import PartRef
from agents.runtime.summaries import Summary
from workbench.contextwords import number
from workbench.inspector import words as inspectorwords

SNIPPET_CHARS = 90
EVENTS = frozenset({"event", "placeholder", "context"})
UNREADABLE = "unreadable"
COVERED = "covered"  # tag of what a summary was made of


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What parts refer to, as far as it is there: events and summaries by id, texts and tools by sha256."""

    events: Mapping[str, Stored] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, tuple[ToolSpec, ...]] = field(default_factory=dict)
    summaries: Mapping[str, Summary] = field(default_factory=dict)

    def has(self, part: PartRef) -> bool:
        """Return whether what the part refers to is there."""
        kind = kind_of(part)
        if kind in EVENTS:
            return part.ref in self.events
        if kind == "tools":
            return part.ref in self.tools
        if kind == "summary":
            return part.ref in self.summaries
        return kind != UNREADABLE and part.ref in self.texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a part says in the request. role: of the message it stands in, or "tools"."""

    role: str
    text: str


def kind_of(part: PartRef) -> str:
    """Return what the part refers to, also of one that was left out."""
    return str(part.params.get("was", "event")) if part.kind == "dropped" else part.kind


def tag_of(part: PartRef) -> str:
    """Return how the inspector tags the part: a key of inspectorwords.tags()."""
    match part.kind:
        case "dropped" | "system" | "tools" | "summary" | "placeholder":
            return part.kind
        case "instruction":
            return "system"
        case "block":
            return {"recall": "recall", "skill": "skills", "skills": "skills"}.get(part.tag, "memory")
        case "context":
            return "open"
    if part.params.get("restored"):
        return "restored"
    return "results" if part.tag == "tool" else "history"


def missing(part: PartRef, known: Known) -> str:
    """Return the sentence that says what is not there any more, "" if all is."""
    if known.has(part):
        return ""
    kind = kind_of(part) if "memories" not in part.params else "memory"
    kind = part.tag if kind == "block" and part.tag in ("skill", "skills") else kind
    words = inspectorwords.missing()
    return words["event"] if kind in EVENTS else words.get(kind, words[UNREADABLE])


def told(part: PartRef, known: Known) -> Told:
    """Return what the part says. Raises LookupError if what it refers to is not there."""
    kind = kind_of(part)
    match kind:
        case "tools":
            return Told(role="tools", text="\n\n".join(_declared(tool) for tool in known.tools[part.ref]))
        case "system":
            return Told(role="system", text=known.texts[part.ref])
        case "instruction":
            return Told(role="user", text=known.texts[part.ref])
        case "summary":
            placement = str(part.params.get("placement", "user"))
            return Told(role=_place(placement), text=summary_text([known.summaries[part.ref].text], placement))
        case "block":
            place = _place(str(part.params.get("placement", "user")))
            return Told(role=place, text=block_text(part.tag, known.texts[part.ref]))
        case "context":
            return Told(role="user", text=context_text(known.events[part.ref].record))
        case _:
            return _event(part, known.events[part.ref])


def name(part: PartRef, known: Known) -> str:
    """Return what the part is, in a few words."""
    kind = kind_of(part)
    match kind:
        case "system":
            return _("Instructions of the agent")
        case "tools":
            specs = known.tools.get(part.ref)
            return inspectorwords.tools_count(len(specs)) if specs is not None else _("Declarations of tools")
        case "instruction":
            return inspectorwords.instructions().get(part.tag, _("Instruction of the application"))
        case "summary":
            return _("Summary of earlier messages")
        case "block":
            return _block_name(part)
        case "context":
            return _("What the person had open")
        case _:
            stored = known.events.get(part.ref)
            return _event_name(stored) if stored is not None else _("A message")


def detail(part: PartRef, known: Known, text: str) -> str:
    """Return the line below the name: why it is here in this form, else its first words."""
    stored = known.events.get(part.ref)
    if part.kind == "dropped":
        return _("Left out, so that the rest fits the model's window.")
    if part.kind == "placeholder":
        why = inspectorwords.shortened().get(str(part.params.get("why", "")), "")
        if stored is not None and stored.tokens > part.tokens:
            return f"{why} {inspectorwords.became(stored.tokens, part.tokens)}".strip()
        return why
    if "restored" in part.params:
        return inspectorwords.restored().get(str(part.params["restored"]), "")
    if part.kind == "tools":
        return ", ".join(tool.name for tool in known.tools.get(part.ref, ()))
    if part.kind == "summary" and part.ref in known.summaries:
        summary = known.summaries[part.ref]
        return _("Of all up to {when}, written {made}; the originals are kept.").format(
            when=inspectorwords.clock(summary.boundary.at), made=inspectorwords.clock(summary.made_at)
        )
    return snippet(text)


def snippet(text: str) -> str:
    """Return the first words of a text as one line."""
    words = " ".join(text[: SNIPPET_CHARS * 4].split())
    return words if len(words) <= SNIPPET_CHARS else words[: SNIPPET_CHARS - 1].rstrip() + "…"


def files_of(part: PartRef, known: Known) -> tuple[FilePart, ...]:
    """Return the files that a message of a person names."""
    stored = known.events.get(part.ref)
    if part.kind != "event" or stored is None or not isinstance(stored.record, UserMessage):
        return ()
    return tuple(item for item in stored.record.parts if isinstance(item, FilePart))


def messages_of(part: PartRef, known: Known) -> tuple[Citation, ...]:
    """Return the messages of conversations that the part quotes, each once, in order."""
    kind, stored = kind_of(part), known.events.get(part.ref)
    found: Iterable[Citation] = ()
    if kind == "summary" and part.ref in known.summaries:
        found = known.summaries[part.ref].citations
    elif kind in EVENTS and stored is not None and isinstance(stored.record, ToolReturned):
        found = stored.record.citations
    elif kind in EVENTS and stored is not None and isinstance(stored.record, AssistantMessage):
        found = (cited.citation for cited in stored.record.citations)
    return tuple({one.source: one for one in found if one.message_id}.values())


def _block_name(part: PartRef) -> str:
    if part.tag == "skill":
        return _("Skill {name}").format(name=part.params.get("skill", ""))
    if part.tag == "skills":
        return _("Skills that can be loaded")
    return _("Found in other conversations") if part.tag == "recall" else _("What is remembered")


def _place(placement: str) -> str:
    return "system" if placement == "system" else "user"


def _declared(tool: ToolSpec) -> str:
    parameters = json.dumps(tool.parameters, ensure_ascii=False, indent=1, sort_keys=True)
    return f"{tool.name}\n{tool.description}\n{parameters}"


def _event(part: PartRef, stored: Stored) -> Told:
    record = stored.record
    if part.params.get("foreign"):
        return Told(role="user", text=told_text(stored, part))
    if isinstance(record, UserMessage):
        lines = [file_note(item) if isinstance(item, FilePart) else item.text for item in record.parts]
        return Told(role="user", text="\n".join(lines)[: part.params.get("chars")])
    if isinstance(record, ToolReturned):
        return Told(role="user" if part.tag == COVERED else "tool", text=result_text(stored, part))
    if isinstance(record, AssistantMessage):
        if part.tag == COVERED or "chars" in part.params:  # told by a job, inside a message of its own
            return Told(role="user", text=record.text[: part.params.get("chars")])
        return Told(role="assistant", text=_answer(part, record))
    raise KeyError(part.ref)


def _answer(part: PartRef, record: AssistantMessage) -> str:
    how = part.params
    kept, short = how.get("calls", ()), how.get("short", ())
    lines = [record.reasoning] if how.get("reasoning") and record.reasoning else []
    if record.text and not how.get("bare"):
        lines.append(marked(record.text, record.citations))
    lines += [_call(call, short=call.id in short) for call in record.tool_calls if call.id in kept]
    return "\n".join(lines)


def _call(call: ToolCall, *, short: bool) -> str:
    return f"{call.name}({short_arguments(call.arguments) if short else call.arguments})"


def _event_name(stored: Stored) -> str:
    record, time = stored.record, inspectorwords.clock(stored.at)
    if isinstance(record, UserMessage):
        return _("Message of the person, {time}").format(time=time)
    if isinstance(record, ToolReturned):
        return _("Result of {tool}, {time}").format(tool=record.name or "?", time=time)
    if isinstance(record, AssistantMessage):
        if record.tool_calls and not record.text:
            tools = ", ".join(dict.fromkeys(call.name for call in record.tool_calls))
            return _("Call of {tool}, {time}").format(tool=tools, time=time)
        return _("Answer, {time}").format(time=time)
    return _("Event {n}").format(n=number(stored.position))
