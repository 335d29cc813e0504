"""What of a conversation may become a memory: what a person typed, in their own words, and nothing else.

Never a source: answers, results of tools, instructions, summaries, preloaded memories, what a person had open, history
that a client brought along; nor, within a message, what is quoted or pasted. So nothing that a tool read or a model
said can be taken for the person's, whatever else happened in that turn.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agents.runtime.events import Stored, UserMessage, UserMessageKind
from agents.runtime.memory.memories import Origin
from agents.runtime.model import TextPart

MOST_CHARS: Final = 12_000  # a longer message is a document
PASTED_CHARS: Final = 800  # nobody types a paragraph of that length
QUOTE: Final = "\ufffc"
"""Stands where a quotation stood."""

_TYPED: Final = (UserMessageKind.TURN, UserMessageKind.STEER)
_BLOCK = re.compile(
    r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)"
    r"|\"\"\".*?(?:\"\"\"|\Z)"
    r"|<(?P<tag>[A-Za-z][\w-]*)(?:\s[^<>]*)?>.*?</(?P=tag)\s*>"
    r"|^-{3,}[ \t]*$.*?(?:^-{3,}[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_LINE = re.compile(
    r"^[ \t]*(?:>|\|.*\||(?:From|To|Cc|Subject|Sent|Date|发件人|收件人|主题|日期)\s*[:：]).*$", re.MULTILINE
)
_QUOTED = re.compile(
    r"\"[^\"\n]*\"|“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》|«[^»]*»|(?<!\w)'[^'\n]{2,}'(?!\w)|"
    r"(?<!\w)‘[^’\n]{2,}’(?!\w)|`[^`\n]+`"
)
# "Here is the article:", "Translate the following text:" at the end of a line: all behind it is somebody else's.
_INTRODUCES = re.compile(
    r"(?:\b(?:here(?:'s| is| are)|following|below|attached|translate|summari[sz]e|proofread|correct|rewrite|review|"
    r"improve|edit|this (?:text|article|e-?mail|letter|review|message|paragraph|document)|(?:he|she|they|\w+) "
    r"(?:wrote|writes|said|says))\b[^\n]*|(?:以下|下面|如下|翻译|总结|润色|修改|改写|校对|原文|全文|写道|他说|她说|"
    r"回复这)"
    r"[^\n]*)[:：][ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_SAME_LINE = re.compile(
    r"\b(?:translate|summari[sz]e|proofread|rewrite|paraphrase|correct)\b[^\n:]{0,60}:|(?:翻译|总结|润色|改写|"
    r"校对)[^\n：:。]{0,30}[：:]",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"^[ \t]*(?:[A-Z][\w.-]*(?: [A-Z][\w.-]*)?|[\u4e00-\u9fff]{1,6}|[A-Z]{1,3}\d?)[ \t]*[:：][ \t]*\S.*$", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message that may be a source. text: as typed. at: when it was sent."""

    origin: Origin
    at: datetime
    text: str


def sources(delta: Iterable[Stored], thread_id: str) -> tuple[Said, ...]:
    """Return what of these events may be a source, in order: the text of what a person typed, if there is any.

    delta: the events of the visible chain behind the cursor, of this conversation.
    """
    found = []
    for stored in delta:
        record = stored.record
        if not isinstance(record, UserMessage) or record.kind not in _TYPED or stored.origin.parent_invocation_id:
            continue
        text = "\n".join(part.text for part in record.parts if isinstance(part, TextPart))
        if own_words(text).replace(QUOTE, "").strip():
            origin = Origin(thread_id=thread_id, event_id=stored.id, position=stored.position)
            found.append(Said(origin=origin, at=stored.at, text=text))
    return tuple(found)


def own_words(text: str) -> str:
    """Return the text without what is pasted, and with QUOTE in the place of each quotation."""
    if len(text) > MOST_CHARS:
        return ""
    text = _BLOCK.sub(f"\n{QUOTE}\n", text)
    if found := _INTRODUCES.search(text):
        text = text[: found.end()]
    text = _LINE.sub(QUOTE, text)
    if len(_SPEAKER.findall(text)) > 1:  # a transcript
        text = _SPEAKER.sub(QUOTE, text)
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if len(part) <= PASTED_CHARS]
    lines = [_cut(line) for line in _QUOTED.sub(QUOTE, "\n\n".join(paragraphs)).splitlines()]
    return "\n".join(lines)


def _cut(line: str) -> str:
    """Return a line up to what a request in it works on: "Translate: I live in Rome"."""
    found = _SAME_LINE.search(line)
    return line[: found.end()] + QUOTE if found else line
