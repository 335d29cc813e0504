"""What of a conversation is reason enough to look for something to learn.

Counted are runs that ended normally, what their tools returned by its status, and what a person said right after an
answer, by marks that are scored and kept with the reason. Runs in which somebody works on skills by hand are passed
over.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from agents.runtime.events import (
    AssistantMessage,
    Outcome,
    RunFinished,
    Stored,
    ToolReturned,
    ToolStatus,
    UserMessage,
    UserMessageKind,
)
from agents.runtime.memory.sources import own_words
from agents.runtime.model import TextPart
from agents.runtime.skills.skill import SKILL_FILE

MAINTENANCE, NOT_ENDED = "maintenance", "not ended normally"  # why a run is passed over
ENOUGH: Final = 0.6  # score from which a message is a correction


class Sign(StrEnum):
    EFFORT = "effort"  # many calls of tools
    CORRECTION = "correction"  # a person set an answer right
    RECOVERED = "recovered"  # a tool failed, and worked when it was tried otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """What counts. calls: so many calls of tools are an effort, below 0 = never. declined: what was too little is
    kept and weighed again with what follows, up to so many events, and so many days."""

    calls: int = 4
    corrections: bool = True
    recovered: bool = True
    declined_events: int = 400
    declined_days: int = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One sign. position: of the event that shows it. score: 0 to 1. words: what it was told by, nothing else of what
    was said: they are kept as they are."""

    sign: Sign
    run_id: str
    position: int
    score: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What some events show. runs: names of those that ended normally, in order. passed_over: (run, why)."""

    runs: tuple[str, ...]
    calls: int
    found: tuple[Found, ...]
    passed_over: tuple[tuple[str, str], ...] = ()

    @property
    def enough(self) -> bool:
        """Return whether a reviewer is to look at it."""
        return bool(self.found)

    def as_json(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return {
            "runs": list(self.runs),
            "calls": self.calls,
            "signs": [
                {"sign": f.sign.value, "run": f.run_id, "position": f.position, "score": f.score, "words": f.words}
                for f in self.found
            ],
            "passed_over": [list(one) for one in self.passed_over],
        }


# (mark, score): how surely words right after an answer set it right. Where a mark has groups, they alone are kept: what
# stands between them is the person's.
_MARKS: Final[tuple[tuple[re.Pattern[str], float], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), score)
    for pattern, score in (
        (r"\A\W*(?:no|nope)\b[,.!: ]", 0.4),
        (r"\b(?:that|this|it|which|you)(?:'s| is|'re| are| was)? (?:all |still |just |completely )?"
         r"(?:wrong|incorrect|mistaken|not right|not correct)\b", 1.0),
        (r"\bwrong\b", 0.5),
        (r"\bnot what i\b", 1.0),
        (r"\b(?:please )?(?:fix|correct) (?:it|this|that|the)\b", 0.7),
        (r"\b(?:try|do (?:it|this|that)) again\b", 0.7),
        (r"\bi (?:asked|said|meant|wanted)\b", 0.5),
        (r"\binstead\b", 0.5),
        (r"\bshould (?:have|be|not|come|stand|go)\b|\bshouldn't\b", 0.4),
        (r"\b(not|don't|never) .{1,60}\b(but)\b", 0.4),
        (r"\bactually\b", 0.3),
        (r"不对|不是这样|弄错|错了|搞错|有误", 1.0),
        (r"请(?:修正|修改|改正|更正)|重新(?:来|做|写|生成)|重来|再试", 0.7),
        (r"改成|改为|换成", 0.6),
        (r"(不是)[^，。]{1,30}[,，]?\s*(而是)|(不要)[^，。]{1,30}[,，]\s*(要|用|改)", 0.7),
        (r"应该(?:是|用|先|放)|我(?:要|问|说)的是", 0.5),
    )
)  # fmt: skip
_THANKS: Final = re.compile(
    r"\b(?:thanks?|thank you|perfect|great|good job|well done|never ?mind|looks good|that's right|no problem)\b"
    r"|谢谢|多谢|没问题|很好|不错|算了|没关系",
    re.IGNORECASE,
)
_FROM_NOW_ON: Final = re.compile(
    r"\b(?:going forward|from now on|in (?:the )?future|next time|every time|always|each time)\b"
    r"|以后|今后|下次|每次|从现在起",
    re.IGNORECASE,
)
_WORKFLOW: Final = re.compile(
    r"\b(?:steps?|format|order|workflow|process|procedure|template|first|layout|structure|checklist)\b"
    r"|步骤|格式|顺序|流程|模板|先|结构|清单",
    re.IGNORECASE,
)
_WRITES: Final = re.compile(r"save|write|edit|patch|apply|create|exec|run|shell|delete|upload", re.IGNORECASE)
_FAILED: Final = (ToolStatus.ERROR, ToolStatus.TIMEOUT)


def weigh(delta: Iterable[Stored], weighing: Weighing) -> Evidence:
    """Return what the events show. delta: of the chain that a person sees, in order, of ended runs."""
    runs = by_run(delta)
    why = {run: _left_out(events) for run, events in runs.items()}
    counted = {run: events for run, events in runs.items() if not why[run]}
    found: list[Found] = []
    calls = sum(len(returned(events)) for events in counted.values())
    if 0 <= weighing.calls <= calls and counted and calls:
        run, events = next(reversed(counted.items()))
        words = f"{calls} calls of tools"
        found.append(Found(sign=Sign.EFFORT, run_id=run, position=events[-1].position, score=1.0, words=words))
    every = [stored for events in runs.values() for stored in events]
    if weighing.corrections:
        found += _corrections(sorted(every, key=lambda stored: stored.position), counted)
    if weighing.recovered:
        found += [one for run, events in counted.items() for one in _recovered(run, events)]
    return Evidence(
        runs=tuple(counted),
        calls=calls,
        found=tuple(found),
        passed_over=tuple((run, words) for run, words in why.items() if words),
    )


def _left_out(events: Sequence[Stored]) -> str:
    """Return why a run does not count, "" if it does."""
    if not ended_normally(events):
        return NOT_ENDED
    return MAINTENANCE if works_on_skills(events) else ""


def by_run(delta: Iterable[Stored]) -> dict[str, list[Stored]]:
    """Return the events of each run, runs in the order of their first."""
    runs: dict[str, list[Stored]] = {}
    for stored in delta:
        runs.setdefault(stored.origin.run_id, []).append(stored)
    return runs


def ended_normally(events: Iterable[Stored]) -> bool:
    """Return whether a run came to its end and nobody stopped it."""
    return any(isinstance(s.record, RunFinished) and s.record.outcome is Outcome.SUCCESS for s in events)


def returned(events: Iterable[Stored]) -> list[ToolReturned]:
    """Return the results of a run's tools, in order."""
    return [stored.record for stored in events if isinstance(stored.record, ToolReturned)]


def failed(result: ToolReturned) -> bool:
    """Return whether a tool did not do it: by its status, or by the exit code of what it ran."""
    code = result.data.get("exit_code")
    return result.status in _FAILED or (isinstance(code, int) and code != 0) or bool(result.data.get("timed_out"))


def works_on_skills(events: Sequence[Stored]) -> bool:
    """Return whether somebody maintains skills by hand in a run: a tool that writes has SKILL.md in its arguments, or
    the person speaks of that file."""
    main = SKILL_FILE.casefold()
    for stored in events:
        record = stored.record
        if isinstance(record, UserMessage) and main in said(record).casefold():
            return True
        if isinstance(record, AssistantMessage):
            calls = record.tool_calls
            if any(_WRITES.search(call.name) and main in call.arguments.casefold() for call in calls):
                return True
    return False


def correction(text: str) -> tuple[float, str]:
    """Return how surely words after an answer set it right, 0 to 1, and the marks it was told by."""
    words = own_words(text)
    marks = [
        (" … ".join(filter(None, found.groups())) or found[0], score)
        for pattern, score in _MARKS
        if (found := pattern.search(words))
    ]
    score = sum(score for _, score in marks)
    if (later := _FROM_NOW_ON.search(words)) and (how := _WORKFLOW.search(words)):
        marks.append((f"{later[0]} … {how[0]}", 1.0))
        score += 1.0
    if marks and (thanks := _THANKS.search(words)):
        marks.append((f"but {thanks[0]}", -0.5))
        score -= 0.5
    told = "; ".join(f"{' '.join(mark.split())[:40]} ({value:+.1f})" for mark, value in marks)
    return round(min(max(score, 0.0), 1.0), 2), told


def arguments_of(text: str) -> Mapping[str, Any]:
    """Return the arguments of a call, {} if they cannot be read."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _corrections(events: Sequence[Stored], counted: Mapping[str, object]) -> list[Found]:
    found = []
    answered = False
    for stored in events:
        record = stored.record
        if isinstance(record, AssistantMessage) and record.text:
            answered = True
        elif isinstance(record, UserMessage) and record.kind is not UserMessageKind.SEED:
            score, words = correction(said(record)) if answered and stored.origin.run_id in counted else (0.0, "")
            answered = False
            if score >= ENOUGH:
                run, at = stored.origin.run_id, stored.position
                found.append(Found(sign=Sign.CORRECTION, run_id=run, position=at, score=score, words=words))
    return found


def _recovered(run: str, events: Sequence[Stored]) -> list[Found]:
    broken: dict[str, int] = {}
    for stored in events:
        if not isinstance(record := stored.record, ToolReturned):
            continue
        if failed(record):
            broken[record.name] = broken.get(record.name, 0) + 1
        elif record.status is ToolStatus.OK and (tries := broken.pop(record.name, 0)):
            words = f"{record.name} worked after {tries} failed {'try' if tries == 1 else 'tries'}"
            return [Found(sign=Sign.RECOVERED, run_id=run, position=stored.position, score=1.0, words=words)]
    return []


def said(message: UserMessage) -> str:
    """Return the text of what a person said."""
    return "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
