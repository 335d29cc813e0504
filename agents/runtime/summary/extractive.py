"""Summaries without a model: the headings of the state-recovery template, filled with what stands in the conversation.

Nothing is worded anew. People are quoted word for word; of answers, those sentences are taken that carry numbers,
sources, decisions, corrections or open points; tools give files, failures and names. The same events give the same
text. The summary before is taken apart into its points again, and old points give way to new ones: it never nests.

Limit: policy.summary_words, a Chinese character counting as one word; without a limit DEFAULT_WORDS. It is kept, unless
a single heading with its first point is longer.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from agents.runtime.context.citing import marked
from agents.runtime.events import (
    AssistantMessage,
    Outcome,
    RunFailed,
    RunFinished,
    Stored,
    ToolReturned,
    UserMessage,
)
from agents.runtime.model import FilePart, FinishReason, ToolCall
from agents.runtime.summary import sentences as signs
from agents.runtime.summary import templates
from agents.runtime.summary.asking import Ask, SummaryFailed, Written
from agents.runtime.summary.report import CallReport, Mode, Reason
from agents.runtime.summary.templates import (
    ACTIVE,
    CURRENT,
    ERRORS,
    FACTS,
    FILES,
    GOAL,
    NEXT,
    OPEN,
    SOLVED,
    STATED,
)
from agents.runtime.summary.text import count_words, family_of, parts_text

NAME: Final = "extractive"
DEFAULT_WORDS: Final = 1_000
LEAST_WORDS: Final = {"en": 120, "zh": 200}
NEW_SHARE: Final = 0.35  # words that a word of new text may add
SECTION_SHARE: Final = 0.45  # of the limit, while other sections have something to say
STATEMENT_WORDS: Final = 60
POINT_WORDS: Final = 45
NAMED_FILES: Final = 12
_BRIEF: Final = (GOAL, FACTS, SOLVED, STATED, OPEN, NEXT)
_COUNTED = re.compile(r"^(?P<name>\S+) ×(?P<times>\d+)$")
_LABELS: Final = {
    "en": {
        "asked": "Last asked: ",
        "answered": "Last answered: ",
        "stopped": "The last run stopped early.",
        "ran": "Ran: ",
    },
    "zh": {"asked": "最近的请求：", "answered": "最近的答复：", "stopped": "最近一次运行提前停止。", "ran": "执行："},
}
_ALL_LABELS: Final = tuple(label for labels in _LABELS.values() for label in labels.values())


@dataclass(frozen=True, slots=True)
class Point:
    """One line under a heading. order: later ones are newer; below 0 it comes from the summary before."""

    section: int
    text: str
    weight: float
    order: float


@dataclass(slots=True)
class _Found:
    """What was taken out of events, before anything is chosen."""

    language: str = "en"
    points: list[Point] = field(default_factory=list)
    tools: Counter[str] = field(default_factory=Counter)
    files: dict[str, int] = field(default_factory=dict)
    asked: str = ""
    answered: str = ""
    stopped: bool = False

    def add(self, section: int, text: str, weight: float, order: float, most: int = POINT_WORDS) -> None:
        if text := shortened(text, most):
            self.points.append(Point(section, text, weight, order))


class ExtractiveSummarizer:
    """Writes summaries by rules, where no model is configured. Never waits, never fails for want of anything."""

    name = NAME

    async def write(self, ask: Ask) -> Written:
        text = extract(ask)
        call = CallReport(mode=Mode.EXTRACTIVE)
        if not text:
            raise SummaryFailed(Reason.EMPTY, "There is nothing to take out of the conversation.", call)
        return Written(text=text, covered=len(ask.events), call=call)


def extract(ask: Ask) -> str:
    """Return the summary, "" if nothing is worth a line."""
    found = _Found(language=ask.language)
    before = ask.base.text if ask.base else ""
    _from_summary(found, before)
    if ask.text is not None:
        for order, sentence in enumerate(signs.sentences(ask.text)):
            found.add(FACTS, sentence, 1 + signs.weight(sentence), order)
    else:
        for order, stored in enumerate(ask.events):
            _from_event(found, stored, order)
    _closing(found, len(ask.events))
    new = count_words(ask.text) if ask.text is not None else sum(count_words(line.text) for line in ask.lines)
    limit = ask.policy.summary_words or DEFAULT_WORDS
    least = LEAST_WORDS[ask.language]
    room = min(limit, max(least, count_words(before) + round(NEW_SHARE * new)))
    template = ask.policy.template if ask.policy.template in templates.HEADINGS else "materials"
    sections = _BRIEF if ask.policy.template == "brief" or room < least else tuple(range(10))
    headings = templates.headings(template, ask.language)
    return _render(_chosen(found.points, sections, headings, room), headings)


def shortened(text: str, most: int) -> str:
    """Return the text on one line; of a longer one its first sentences, or words, with a sign that more was said."""
    text = " ".join(text.split())
    if count_words(text) <= most:
        return text
    kept = ""
    for sentence in signs.sentences(text):
        if count_words(f"{kept} {sentence}") > most:
            break
        kept = f"{kept} {sentence}".strip()
    if not kept:
        tokens = re.findall(r"[\u3400-\u9fff]|[^\s\u3400-\u9fff]+\s*|\s+", text)
        while tokens and count_words("".join(tokens)) > most:
            tokens = tokens[: max(len(tokens) * most // max(count_words("".join(tokens)), 1), 0) or len(tokens) - 1]
        kept = "".join(tokens).strip()
    return f"{kept} [...]" if kept else ""


def _from_event(found: _Found, stored: Stored, order: int) -> None:
    match stored.record:
        case UserMessage() as message:
            _from_person(found, message, order)
        case AssistantMessage() as message:
            _from_answer(found, message, order)
        case ToolReturned() as returned:
            _from_result(found, returned, order)
        case RunFailed():
            found.stopped = True
        case RunFinished(outcome=outcome):
            found.stopped = outcome is Outcome.CANCELLED
        case _:
            pass


def _from_person(found: _Found, message: UserMessage, order: int) -> None:
    for part in message.parts:
        if isinstance(part, FilePart):
            found.files[part.name] = order
    text = parts_text(tuple(part for part in message.parts if not isinstance(part, FilePart)))
    _name_files(found, text, order)
    if not text or signs.empty_talk(text):
        return
    if not any(point.section == GOAL for point in found.points):
        found.add(GOAL, text, 9, order, 40)
    found.asked = text
    found.add(STATED, text, 3 + signs.weight(text), order, STATEMENT_WORDS)


def _from_answer(found: _Found, message: AssistantMessage, order: int) -> None:
    for call in message.tool_calls:
        _from_call(found, call, order)
    text = marked(message.text, message.citations)
    _name_files(found, text, order)
    if message.finish_reason in (FinishReason.CANCELLED, FinishReason.ERROR):
        found.stopped = True
    # a question asks, and what ends in a colon only leads to what follows
    said = [s for s in signs.sentences(text) if not signs.empty_talk(s) and not s.endswith(("?", "？", ":", "："))]
    if said:
        found.answered = max(said, key=lambda s: (signs.weight(s), -said.index(s)))
    for i, sentence in enumerate(said):
        weight = signs.weight(sentence) + (0.75 if i == 0 else 0)
        if weight >= 0.75 and count_words(sentence) > 2:
            found.add(_section(sentence), sentence, weight, order + i / 1_000)


def _section(sentence: str) -> int:
    if signs.OPEN.search(sentence):
        return OPEN
    if signs.CORRECTED.search(sentence) or signs.FAILED.search(sentence):
        return ERRORS
    if signs.DONE.search(sentence) or signs.SETTLED.search(sentence):
        return SOLVED
    return FACTS


def _from_call(found: _Found, call: ToolCall, order: int) -> None:
    if not call.name:
        return
    found.tools[call.name] += 1
    _name_files(found, call.arguments, order)
    if family_of(call.name) == "shell":
        command = re.search(r'"(?:command|cmd|script)"\s*:\s*"((?:[^"\\]|\\.)*)"', call.arguments)
        if command:
            found.add(FILES, _LABELS[found.language]["ran"] + command[1], 2, order, 25)


def _from_result(found: _Found, returned: ToolReturned, order: int) -> None:
    for ref in returned.artifacts:
        found.files[ref.name] = order
    first = next((line.strip() for line in returned.content.splitlines() if line.strip()), "")
    if returned.failure:
        found.add(ERRORS, f"{returned.name or 'tool'}: {first}", 2.5, order, 30)
    elif first and family_of(returned.name) not in ("files", "shell", "search"):  # its first line only counts hits
        found.add(FACTS, f"{returned.name or 'tool'}: {first}", 0.5 + 0.25 * signs.weight(first), order, 30)


def _name_files(found: _Found, text: str, order: int) -> None:
    for name in signs.FILES.findall(text):
        found.files[name.rstrip(".,;:)")] = order


def _from_summary(found: _Found, text: str) -> None:
    """Take the summary before apart. What was current then is not now; text without headings is facts."""
    by_name = {
        heading.casefold(): section
        for languages in templates.HEADINGS.values()
        for names in languages.values()
        for section, heading in enumerate(names)
    }
    section = FACTS
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    nothing = set(templates.NONE.values())
    for number, line in enumerate(lines):
        heading = re.sub(r"^[\s#*]+|[\s*:：]+$", "", line).casefold()
        if heading in by_name:
            section = by_name[heading]
            continue
        point = re.sub(r"^(?:[-*+•]|\d{1,3}[.)、])\s+", "", line)
        order = number - len(lines)
        if point in nothing or section in (CURRENT, NEXT):
            continue
        if section == ACTIVE:
            _count_tools(found, point)
        elif section == FILES and not point.startswith(tuple(label["ran"] for label in _LABELS.values())):
            found.files.update({name.strip(): order for name in re.split(r"[,，、]\s*", point) if name.strip()})
        else:
            weight = 9 if section == GOAL else (3 if section == STATED else 0.5) + signs.weight(point) - 0.5
            for piece in [point] if count_words(point) <= STATEMENT_WORDS else signs.sentences(point):
                found.points.append(Point(section, piece, weight, order))


def _count_tools(found: _Found, point: str) -> None:
    for item in re.split(r"[,，、]\s*", point):
        if counted := _COUNTED.match(item.strip()):
            found.tools[counted["name"]] += int(counted["times"])


def _closing(found: _Found, order: int) -> None:
    """Add what only the end of the events tells: files, tools, the work that was going on and the last request."""
    labels = _LABELS[found.language]
    comma = "、" if found.language == "zh" else ", "
    newest = sorted(found.files, key=lambda name: -found.files[name])[:NAMED_FILES]
    if newest:
        found.points.append(Point(FILES, comma.join(sorted(newest)), 4, order))
    if found.tools:
        used = comma.join(f"{name} ×{times}" for name, times in sorted(found.tools.items()))
        found.points.append(Point(ACTIVE, used, 1.5, order))
    if found.answered:
        found.add(CURRENT, labels["answered"] + found.answered, 3, order)
    if found.stopped:
        found.add(CURRENT, labels["stopped"], 3.5, order)
    if found.asked:
        found.add(NEXT, labels["asked"] + found.asked, 8.5, order, 30)


def _chosen(points: Sequence[Point], sections: Iterable[int], headings: Sequence[str], room: int) -> list[Point]:
    """Return the weightiest points that fit, newer ones first.

    First the best of each section, then no section takes most of the room while others wait.
    """
    wanted = set(sections)
    ranked = sorted((p for p in points if p.section in wanted), key=lambda p: (-p.weight, -p.order))
    chosen: list[Point] = []
    taken: Counter[int] = Counter()
    said: list[str] = []
    used = 0
    for share in (0.0, SECTION_SHARE, 1.0):
        for point in ranked:
            plain = re.sub(r"[\W_]+", "", _unlabelled(point.text).casefold())
            if point in chosen or _repeats(plain, said):
                continue
            words = count_words(point.text) + (0 if taken[point.section] else count_words(headings[point.section]))
            best = not share and not taken[point.section] and point.weight >= 1
            fits = best or taken[point.section] + words <= room * share
            if chosen and (used + words > room or not fits):
                continue
            chosen.append(point)
            used += words
            taken[point.section] += words
            said.append(plain)
    return chosen


def _repeats(plain: str, said: Iterable[str]) -> bool:
    return any(plain in other or (other in plain and len(other) > 0.8 * len(plain)) for other in said if other)


def _unlabelled(text: str) -> str:
    return next((text[len(label) :] for label in _ALL_LABELS if text.startswith(label)), text)


def _render(points: Sequence[Point], headings: Sequence[str]) -> str:
    blocks = []
    for section, heading in enumerate(headings):
        own = sorted((p for p in points if p.section == section), key=lambda p: p.order)
        if own:
            blocks.append("\n".join([f"## {heading}", *(f"- {point.text}" for point in own)]))
    return "\n\n".join(blocks)
