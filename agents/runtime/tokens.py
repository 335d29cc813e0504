"""How many tokens a text costs, estimated from its script.

No tokenizer: the runtime knows no engine. English is about 4 characters a token, Chinese and Japanese about 1.5 tokens
for 2 characters, other alphabets about 2 characters a token. Good to some 20 % on ordinary text; who needs better
scales by what the provider reports.
"""

import re

from agents.runtime.events import AssistantMessage, Record, ToolReturned, UserMessage
from agents.runtime.model import FilePart, Part, TextPart, file_note

MESSAGE_TOKENS = 4  # role and separators around each message
IMAGE_TOKENS = 800
_ASCII = re.compile(r"[\x00-\x7f]+")
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+")


def estimate(text: str) -> int:
    """Return about how many tokens the text costs; 0 for an empty text, else at least 1."""
    if not text:
        return 0
    if text.isascii():
        return max(1, round(len(text) / 4))
    plain = sum(len(m) for m in _ASCII.findall(text))
    wide = sum(len(m) for m in _WIDE.findall(text))
    other = len(text) - plain - wide
    return max(1, round(plain / 4 + wide * 0.75 + other / 2))


def estimate_parts(parts: tuple[Part, ...]) -> int:
    """Return about how many tokens the parts of a message cost."""
    total = 0
    for part in parts:
        if isinstance(part, TextPart):
            total += estimate(part.text)
        elif isinstance(part, FilePart):
            total += IMAGE_TOKENS if part.media == "image" else estimate(file_note(part))
    return total


def estimate_record(record: Record) -> int:
    """Return about how many tokens a record costs in a prompt; 0 for one that a model never sees."""
    match record:
        case UserMessage():
            return MESSAGE_TOKENS + estimate_parts(record.parts)
        case AssistantMessage():
            calls = sum(MESSAGE_TOKENS + estimate(c.name) + estimate(c.arguments) for c in record.tool_calls)
            return MESSAGE_TOKENS + estimate(record.text) + calls
        case ToolReturned():
            return MESSAGE_TOKENS + estimate(record.content)
        case _:
            return 0
