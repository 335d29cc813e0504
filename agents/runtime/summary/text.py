"""Events as the lines that a summarizer reads, tool results shortened by the family of their tool.

What people and models said is never cut: a boundary may only move over text that was given.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from agents.runtime.context.citing import marked
from agents.runtime.events import AssistantMessage, Stored, ToolReturned, UserMessage
from agents.runtime.model import FilePart, Part, ToolCall, file_note

RESULT_CHARS: Final = 1_500
ARGUMENT_CHARS: Final = 600
HIT_CHARS: Final = 300
UNKNOWN: Final = "unknown"
_WIDE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W_]+(?:['’.\-][^\W_]+)*")
_STATUS = re.compile(r"(?im)^.*(?:\b(?:exit (?:code|status)|exited with|return code)\b|退出码|退出状态).*$")
_TROUBLE = re.compile(r"(?m)^\s*(?:[\w.]*(?:Error|Exception)\b.*|FAILED\b.*|error:.*)$")

# The families of tools, by words in their names; the first that fits counts.
FAMILIES: Final = (
    ("shell", re.compile(r"shell|bash|terminal|command|exec(?!ute_code)|(?:^|_)sh(?:_|$)")),
    ("code", re.compile(r"python|code|notebook|repl|(?:^|_)sql(?:_|$)")),
    ("web", re.compile(r"web|http|url|brows|fetch|crawl")),
    ("search", re.compile(r"search|query|knowledge|lookup|retriev|recall")),
    ("files", re.compile(r"artifact|file|document|director|folder|read|write|edit|save|list")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one event is to a summarizer. position: of the event. person: somebody's own words."""

    position: int
    text: str
    person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatters:
    """How calls and results are told. A formatter that returns "" leaves its line out.

    results: by family (search, web, shell, code, files; anything else: general). family: of a tool's name.
    """

    call: Callable[[str, ToolCall], str] = lambda author, call: call_line(author, call)
    result: Callable[[str, ToolReturned], str] | None = None
    results: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    family: Callable[[str], str] = lambda name: family_of(name)

    def result_line(self, author: str, returned: ToolReturned) -> str:
        if self.result is not None:
            return self.result(author, returned)
        shorten = self.results.get(self.family(returned.name)) or SHORTENERS[self.family(returned.name)]
        content = shorten(returned.content.strip())
        return f"{author}: [{returned.name or 'tool'} returned: {content}]" if content else ""


def family_of(name: str) -> str:
    """Return the family of a tool: search, web, shell, code, files or general."""
    lowered = name.lower()
    return next((family for family, words in FAMILIES if words.search(lowered)), "general")


def lines(events: Iterable[Stored], formatters: Formatters | None = None) -> list[Line]:
    """Return what the events say, in order; events without words have no line. Reasoning is not told."""
    how = formatters or Formatters()
    out: list[Line] = []
    for stored in events:
        author = stored.origin.author or UNKNOWN
        record, texts, person = stored.record, [], False
        match record:
            case UserMessage():
                if said := parts_text(record.parts):
                    texts, person = [f"{author}: {said}"], True
            case AssistantMessage():
                if record.text.strip():
                    texts = [f"{author}: {marked(record.text, record.citations).strip()}"]
                texts += [line for call in record.tool_calls if call.name and (line := how.call(author, call))]
            case ToolReturned():
                if record.content.strip() and (line := how.result_line(author, record)):
                    texts = [line]
            case _:
                pass
        out += [Line(position=stored.position, text=text, person=person) for text in texts]
    return out


def parts_text(parts: tuple[Part, ...]) -> str:
    """Return a message's own words, files named."""
    return "\n".join(file_note(p) if isinstance(p, FilePart) else p.text for p in parts).strip()


def call_line(author: str, call: ToolCall) -> str:
    arguments = call.arguments.strip()
    if arguments in ("", "{}"):
        return f"{author}: [Called tool: {call.name}]"
    return f"{author}: [Called tool: {call.name} with args: {head_and_tail(arguments, ARGUMENT_CHARS)}]"


def head_and_tail(text: str, most: int = RESULT_CHARS, head_share: float = 0.7) -> str:
    """Return the text, or its beginning and end around a note of how much is left out."""
    if len(text) <= most + 40:
        return text
    head = int(most * head_share)
    return f"{text[:head].rstrip()} [... {len(text) - most} characters left out ...] {text[head - most :].lstrip()}"


def _search(text: str) -> str:
    """Keep the first lines of every hit: they hold title, place and the best sentence."""
    hits = re.split(r"\n\s*\n", text)
    short = [hit if len(hit) <= HIT_CHARS + 20 else hit[:HIT_CHARS].rstrip() + " ..." for hit in hits]
    return head_and_tail("\n".join(short), RESULT_CHARS * 2, 0.85)


def _web(text: str) -> str:
    return head_and_tail(text, RESULT_CHARS, 0.9)


def _shell(text: str) -> str:
    """Keep the command, head and tail, and the exit status wherever it stands."""
    short = head_and_tail(text, RESULT_CHARS, 0.4)
    status = [line for line in _STATUS.findall(text) if line not in short]
    return "\n".join([short, *status[-1:]])


def _code(text: str) -> str:
    """Keep head and tail, and the errors that stand between."""
    short = head_and_tail(text, RESULT_CHARS, 0.4)
    trouble = [line.strip() for line in _TROUBLE.findall(text) if line.strip() not in short]
    return "\n".join([short, *trouble[-3:]])


def _files(text: str) -> str:
    return head_and_tail(text, RESULT_CHARS, 0.75)


SHORTENERS: Final[Mapping[str, Callable[[str], str]]] = {
    "search": _search,
    "web": _web,
    "shell": _shell,
    "code": _code,
    "files": _files,
    "general": head_and_tail,
}


def count_words(text: str) -> int:
    """Return the words of a text; a Chinese character counts as one, as word processors count them."""
    wide = len(_WIDE.findall(text))
    return wide + len(_WORD.findall(_WIDE.sub(" ", text)))


def language_of(texts: Iterable[str]) -> str:
    """Return "zh" if a fifth of the letters are Chinese, else "en"."""
    letters = wide = 0
    for text in texts:
        letters += len(_LETTER.findall(text))
        wide += len(_WIDE.findall(text))
    return "zh" if letters and wide * 5 >= letters else "en"


def language(said: Iterable[Line], base: str = "") -> str:
    """Return the language of a conversation: of what people said, else of everything."""
    every = list(said)
    own = [line.text.partition(": ")[2] for line in every if line.person]
    return language_of(own or [*(line.text for line in every), base])
