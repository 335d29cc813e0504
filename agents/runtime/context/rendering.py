"""From parts to the request a model gets. Whoever keeps the parts and what they refer to can make it again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from agents.runtime.context.citing import marked
from agents.runtime.context.injection import block_text, summary_text
from agents.runtime.context.placeholders import placeholder, short_arguments
from agents.runtime.context.sanitizing import sanitize
from agents.runtime.context.words import CONTEXT_LEAD, harmless
from agents.runtime.events import AssistantMessage, Stored, ToolReturned, UserMessage
from agents.runtime.jsonrepair import NotJson, parse_object
from agents.runtime.model import Message, ModelRequest, Part, Role, TextPart, ToolCall, ToolSpec, text_message
from agents.runtime.session import PartRef
from agents.runtime.summaries import Summary

NO_SUMMARIES: Final[Mapping[str, Summary]] = MappingProxyType({})
BLANK_LINE: Final = "\n\n"


def render(
    parts: Sequence[PartRef],
    events: Mapping[str, Stored],
    texts: Mapping[str, str],
    tools: Mapping[str, tuple[ToolSpec, ...]],
    summaries: Mapping[str, Summary] = NO_SUMMARIES,
) -> ModelRequest:
    """Return the request that the parts stand for.

    events and summaries by id; texts and tools by sha256. Summaries and blocks placed in the system message are joined
    to it; those placed in a user message, and context parts, go in front of the user message that follows them. Parts
    of one response become one message. Raises KeyError for what is no longer there.
    """
    rendering = _Rendering(events=events, texts=texts, summaries=summaries)
    request = ModelRequest(messages=())
    for at, part in enumerate(parts):
        match part.kind:
            case "tools":
                request = replace(request, tools=tools[part.ref])
            case "system":
                request = replace(request, **part.params)
                rendering.system.append(texts[part.ref])
            case "summary":
                if at == 0 or parts[at - 1].kind != "summary":
                    rendering.inject(part, rendering.summary(parts, at))
            case "block":
                rendering.inject(part, block_text(part.tag, texts[part.ref]))
            case "dropped":
                pass
            case _:
                rendering.history(part)
    return replace(request, messages=sanitize(rendering.all()))


@dataclass(slots=True, kw_only=True)
class _Rendering:
    """Messages as they grow. lead: what waits for the next user message. response: the one messages[-1] belongs to."""

    events: Mapping[str, Stored]
    texts: Mapping[str, str]
    summaries: Mapping[str, Summary]
    system: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    lead: list[Part] = field(default_factory=list)
    response: str = ""

    def all(self) -> list[Message]:
        system = BLANK_LINE.join(text for text in self.system if text)
        return [text_message(Role.SYSTEM, system), *self.messages] if system else self.messages

    def summary(self, parts: Sequence[PartRef], first: int) -> str:
        """Return the text of the summaries that stand in a row from here on."""
        last = first
        while last < len(parts) and parts[last].kind == "summary":
            last += 1
        shown = [self.summaries[part.ref].text for part in parts[first:last]]
        return summary_text(shown, parts[first].params["placement"])

    def inject(self, part: PartRef, text: str) -> None:
        if part.params["placement"] == "system":
            self.system.append(text)
        else:
            self.lead.append(TextPart(text=text + BLANK_LINE))
            if part.params.get("alone"):  # no person's message follows: one of its own, in front of the history
                parts, self.lead = (*(self.messages[0].parts if self.messages else ()), *self.lead), []
                self.messages = [Message(role=Role.USER, parts=parts)]

    def history(self, part: PartRef) -> None:
        if part.kind == "context":
            self.lead.append(TextPart(text=context_text(self.events[part.ref].record)))
        elif part.kind in ("event", "placeholder"):
            self.response = self._event(part, self.events[part.ref])
        else:
            if text := self.texts[part.ref]:
                self.messages.append(text_message(Role.USER, text))
            self.response = ""

    def _event(self, part: PartRef, stored: Stored) -> str:
        """Append what the event is to the model and return the response it belongs to, "" if none."""
        record, messages = stored.record, self.messages
        if part.params.get("foreign"):
            if told := told_text(stored, part):
                messages.append(text_message(Role.USER, told))
            return ""
        match record:
            case UserMessage():
                messages.append(Message(role=Role.USER, parts=(*self.lead, *record.parts)))
                self.lead.clear()
            case ToolReturned():
                messages.append(
                    Message(
                        role=Role.TOOL,
                        parts=(TextPart(text=result_text(stored, part)),),
                        tool_call_id=record.call_id,
                        name=record.name,
                        failure=record.failure,
                    )
                )
            case AssistantMessage():
                message = _assistant(record, part.params)
                if self.response == record.response_id:
                    messages[-1] = _joined(messages[-1], message)
                else:
                    messages.append(message)
                return record.response_id
            case _:
                pass
        return ""


def result_text(stored: Stored, part: PartRef) -> str:
    """Return what the model reads as the result."""
    assert isinstance(stored.record, ToolReturned)
    if part.kind == "placeholder":
        return placeholder(stored.id, stored.record, part.params)
    return stored.record.content


def told_text(stored: Stored, part: PartRef) -> str:
    """Return what another agent said or got, as text of a user message."""
    record, who, calls = stored.record, stored.origin.author, part.params.get("calls", ())
    if isinstance(record, ToolReturned):
        return f"For context: the tool {record.name} returned: {result_text(stored, part)}"
    if not isinstance(record, AssistantMessage):
        return ""
    said = record.text and not part.params.get("bare")
    lines = [f"For context: {who} said: {marked(record.text, record.citations)}"] if said else []
    lines += [
        f"For context: {who} called the tool {call.name} with {call.arguments}"
        for call in record.tool_calls
        if call.id in calls
    ]
    return "\n".join(lines)


def context_text(record: object) -> str:
    """Return what the person had open, as data in front of their message."""
    assert isinstance(record, UserMessage)
    items = [f'<item name="{_item(name)}">\n{_item(value)}\n</item>' for name, value in record.context]
    return "\n".join([CONTEXT_LEAD, "<context>", *items, "</context>", "", ""])


def _assistant(record: AssistantMessage, how: Mapping[str, Any]) -> Message:
    kept, short = how.get("calls", ()), how.get("short", ())
    text = "" if how.get("bare") else marked(record.text, record.citations)
    return Message(
        role=Role.ASSISTANT,
        parts=(TextPart(text=text),) if text else (),
        tool_calls=tuple(_sendable(call, short) for call in record.tool_calls if call.id in kept),
        reasoning=record.reasoning if how.get("reasoning") else "",
    )


def _joined(first: Message, more: Message) -> Message:
    text = first.text + more.text
    return replace(
        first,
        parts=(TextPart(text=text),) if text else (),
        tool_calls=first.tool_calls + more.tool_calls,
        reasoning="\n".join(r for r in (first.reasoning, more.reasoning) if r),
    )


def _sendable(call: ToolCall, short: Sequence[str]) -> ToolCall:
    """Return the call with arguments that are a JSON object: providers refuse anything else in a history."""
    if call.id in short:
        return replace(call, arguments=short_arguments(call.arguments))
    try:
        parsed = parse_object(call.arguments)
    except NotJson:
        return replace(call, arguments=json.dumps({"invalid_json": call.arguments}, ensure_ascii=False))
    return replace(call, arguments=parsed.text) if parsed.repaired else call


def _item(text: str) -> str:
    # one line may stand in an attribute, whose quotation marks it must not close
    return harmless(text) if "\n" in text else harmless(text).replace('"', "'")
