"""The reviewer that is no model: a way of working is what was done the same way more than once.

Either runs of different questions went the same way, or one run came to its way after failed tries. The steps are the
calls that were made, with what differs from question to question as a parameter; the name is what the questions have
in common.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agents.runtime.events import AssistantMessage, Stored, ToolReturned, UserMessage, UserMessageKind
from agents.runtime.evolution.evidence import arguments_of, by_run, ended_normally, failed, said, works_on_skills
from agents.runtime.evolution.likeness import runs, singular, words
from agents.runtime.evolution.proposals import Action, Known, Proposal, Review, Spec
from agents.runtime.evolution.redacting import Redactor
from agents.runtime.memory.sources import QUOTE, own_words
from agents.runtime.memory.words import HAN, has_han
from agents.runtime.skills.format import slug

LEAST_STEPS: Final = 2
LEAST_RUNS: Final = 2
MOST_NAME_WORDS: Final = 4
QUESTION_CHARS: Final = 1_000  # that are compared: finding Chinese words in common takes the square of it
LITERAL_CHARS: Final = 60  # of a value that is the same every time and is kept
_HAN_RUN = re.compile(f"[{HAN}]+")
_NOT_A_STEP: Final = ("memory_", "skill_", "session_")  # what the assistant does besides the task
_ASKING: Final = frozenset("write create prepare draft build search look need want like would could".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call. ok: the tool did it."""

    name: str
    arguments: Mapping[str, Any]
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What was asked in a run, and what was done for it, in order."""

    run_id: str
    question: str
    steps: tuple[Step, ...]

    @property
    def way(self) -> tuple[Step, ...]:
        """Return the calls that led there: those that worked, the last of neighbours with one name."""
        out: list[Step] = []
        for step in self.steps:
            if step.ok:
                out[-1:] = [step] if out and out[-1].name == step.name else [*out[-1:], step]
        return tuple(out)

    @property
    def tries(self) -> int:
        """Return how many calls failed."""
        return sum(not step.ok for step in self.steps)


def works(delta: Iterable[Stored]) -> tuple[Work, ...]:
    """Return what was done in each run that ended normally, in order."""
    out = []
    for run, events in by_run(delta).items():
        if ended_normally(events) and not works_on_skills(events):
            out.append(Work(run_id=run, question=_question(events), steps=_steps(events)))
    return tuple(out)


def review(done: Sequence[Work], known: Sequence[Known], redactor: Redactor) -> Review:
    """Return what is to be learned of what was done. At most one proposal."""
    alike = _alike(done)
    if not alike:
        return Review(skip_reason="nothing was done the same way twice")
    name = _name([work.question for work in alike])
    if not slug(name):
        return Review(skip_reason="the questions have no words in common to name it by")
    chinese = has_han(name)
    generalised = [_step(steps, [w.question for w in alike], redactor) for steps in _columns(alike)]
    say = _CHINESE if chinese else _ENGLISH
    spec = Spec(
        name=name,
        description=say.description.format(name=name, done=say.then.join(say.does(s.name) for s in alike[-1].way)),
        when_to_use=say.when.format(words=say.comma.join(_telling([w.question for w in alike])[:8])),
        steps=tuple((say.step if values else say.bare).format(does=_begun(say.does(tool)), tool=tool, values=values)
                    for tool, values in generalised),
        pitfalls=tuple(say.pitfall.format(tool=tool) for tool in _stumbled(alike)),
        rules=_rules(alike, name, chinese=chinese),
    )  # fmt: skip
    if held := next((one for one in known if one.name == slug(name)), None):
        reason = say.again.format(runs=len(alike))
        return Review(proposals=(Proposal(action=Action.UPDATE, target=held.name, spec=spec, reason=reason),))
    reason = say.repeated.format(runs=len(alike)) if len(alike) > 1 else say.tried.format(tries=alike[0].tries)
    return Review(proposals=(Proposal(action=Action.CREATE, spec=spec, reason=reason),))


def _alike(done: Sequence[Work]) -> Sequence[Work]:
    """Return the runs that went the same way, the longest way first; else the last one that had to be tried."""
    ways: dict[tuple[str, ...], list[Work]] = {}
    for work in done:
        if len(work.way) >= LEAST_STEPS:
            ways.setdefault(tuple(step.name for step in work.way), []).append(work)
    repeated = [group for group in ways.values() if len(group) >= LEAST_RUNS and _shared([w.question for w in group])]
    if repeated:
        return max(repeated, key=lambda group: (len(group[0].way), len(group)))
    return [work for work in done if work.tries and len(work.way) >= LEAST_STEPS][-1:]


def _shared(questions: Sequence[str]) -> list[str]:
    """Return the words that all questions hold, in the order of the first; of Chinese the longest runs in common."""
    if has_han(questions[0]):
        return _shared_runs(questions)
    others = [set(words(question)) for question in questions[1:]]
    every = dict.fromkeys(word for word in words(questions[0]) if all(word in other for other in others))
    return [word for word in every if not any(char.isdigit() for char in word)]


def _shared_runs(questions: Sequence[str]) -> list[str]:
    found: list[str] = []
    for run in _HAN_RUN.findall(questions[0]):
        at = 0
        while at < len(run) - 1:
            end = len(run)
            while end - at >= 2 and not all(run[at:end] in other for other in questions[1:]):
                end -= 1
            if end - at >= 2:
                found.append(run[at:end])
                at = end
            else:
                at += 1
    meaning = (re.sub(r"^[请帮给我写做把的一份个]+|[的了吧呢吗]+$", "", run) for run in found)
    return list(dict.fromkeys(run[:12] for run in meaning if len(run) >= 2))


def _name(questions: Sequence[str]) -> str:
    shared = _shared(questions)
    if not shared:
        return ""
    if has_han(shared[0]):
        return max(shared, key=len)
    return _phrase(questions) or " ".join(_telling(questions)[:MOST_NAME_WORDS])


def _telling(questions: Sequence[str]) -> list[str]:
    """Return the shared words that say what it is about, all of them if these are too few."""
    shared = _shared(questions)
    telling = [word for word in shared if word not in _ASKING]
    return telling if len(telling) > 1 else shared


def _phrase(questions: Sequence[str]) -> str:
    """Return the most words that stand side by side in all questions, "" for fewer than two: who asks for the like
    again says them so."""
    said = [f" {' | '.join(' '.join(map(singular, run)) for run in runs(q, _ASKING))} " for q in questions]
    best: tuple[str, ...] = ()
    for run in runs(questions[0], _ASKING):
        for first in range(len(run)):
            for last in range(first + 2, min(len(run), first + MOST_NAME_WORDS) + 1):
                part = run[first:last]
                alike = f" {' '.join(map(singular, part))} "
                if len(part) > len(best) and all(alike in one for one in said) and not any(map(str.isdigit, part)):
                    best = part
    return " ".join(best)


def _columns(alike: Sequence[Work]) -> list[list[Step]]:
    return [[work.way[n] for work in alike] for n in range(len(alike[0].way))]


def _step(steps: Sequence[Step], questions: Sequence[str], redactor: Redactor) -> tuple[str, str]:
    """Return a tool, and its parameters as text: what was the same every time as it was, else what it stands for."""
    values = []
    for key in steps[0].arguments:
        given = [step.arguments.get(key) for step in steps]
        values.append(f"{key}: {_general(key, given, questions, redactor)}")
    return steps[0].name, ", ".join(values)


def _general(key: str, given: Sequence[object], questions: Sequence[str], redactor: Redactor) -> str:
    first = given[0]
    same = len(given) > 1 and all(value == first for value in given)
    text = str(first)
    if same and len(text) <= LITERAL_CHARS and redactor.text(text) == text and not isinstance(first, dict | list):
        return text
    if isinstance(first, bool | int | float):
        return text
    asked = [set(words(question)) for question in questions]
    about = all(set(words(str(value))) <= own for value, own in zip(given, asked, strict=True) if value)
    return "{topic}" if about and words(text) else f"{{{slug(key) or 'value'}}}"


def _rules(alike: Sequence[Work], name: str, *, chinese: bool) -> tuple[str, ...]:
    """Return the same for the assistant that goes by rules, as far as it has words for it."""
    tools = {step.name for step in alike[-1].way}
    if "search_knowledge" not in tools:
        return ()
    lines = ["search: {topic}", "section: 概览" if chinese else "section: Overview"]
    if "save_artifact" in tools:
        lines.append(f"report: {name}：{{topic}}" if chinese else f"report: {name.capitalize()}: {{topic}}")
    return tuple(lines)


def _stumbled(alike: Sequence[Work]) -> list[str]:
    return list(dict.fromkeys(step.name for work in alike for step in work.steps if not step.ok))


def _steps(events: Sequence[Stored]) -> tuple[Step, ...]:
    calls = {
        call.id: call
        for stored in events
        if isinstance(stored.record, AssistantMessage)
        for call in stored.record.tool_calls
    }
    out = []
    for stored in events:
        result = stored.record
        if isinstance(result, ToolReturned) and not result.name.startswith(_NOT_A_STEP) and result.call_id in calls:
            arguments = arguments_of(calls[result.call_id].arguments)
            out.append(Step(name=result.name, arguments=arguments, ok=not result.failure and not failed(result)))
    return tuple(out)


def _question(events: Sequence[Stored]) -> str:
    messages = [stored.record for stored in events if isinstance(stored.record, UserMessage)]
    text = "\n".join(said(message) for message in messages if message.kind is not UserMessageKind.SEED)
    return own_words(text).replace(QUOTE, " ").strip()[:QUESTION_CHARS]


def _begun(deed: str) -> str:
    return deed[:1].upper() + deed[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    deeds: Mapping[str, str]  # what a tool does, by its name
    unknown: str
    then: str
    description: str
    when: str
    step: str
    bare: str
    pitfall: str
    repeated: str
    tried: str
    again: str
    comma: str

    def does(self, tool: str) -> str:
        return self.deeds.get(tool) or self.unknown.format(tool=tool)


_ENGLISH: Final = _Words(
    deeds={
        "search_knowledge": "search the documents",
        "list_documents": "list the documents",
        "read_document": "read on in a document",
        "read_artifact": "read a file",
        "save_artifact": "save a file",
        "edit_artifact": "change a file",
        "workspace_exec": "run code",
        "workspace_save_artifact": "keep a file that the code made",
    },
    unknown="use {tool}",
    then=", then ",
    description="Does a {name} the way it was done before: {done}",
    when='Use it for questions about "{words}".',
    step="{does} ({tool}): {values}.",
    bare="{does} ({tool}).",
    pitfall="{tool} failed before it worked: read why, and change what you give it.",
    repeated="It was done the same way in {runs} runs.",
    tried="It took {tries} failed tries to find this way.",
    again="It was done again, in {runs} runs.",
    comma=", ",
)
_CHINESE: Final = _Words(
    deeds={
        "search_knowledge": "搜索文档",
        "list_documents": "列出文档",
        "read_document": "继续阅读文档",
        "read_artifact": "读取文件",
        "save_artifact": "保存文件",
        "edit_artifact": "修改文件",
        "workspace_exec": "运行代码",
        "workspace_save_artifact": "保留代码生成的文件",
    },
    unknown="使用 {tool}",
    then="，然后",
    description="按以前的做法完成“{name}”：{done}",
    when="用于关于“{words}”的问题。",
    step="{does}（{tool}）：{values}。",
    bare="{does}（{tool}）。",
    pitfall="{tool} 曾先失败后成功：先看原因，再改变参数。",
    repeated="在 {runs} 次运行中都是这样做的。",
    tried="试了 {tries} 次才找到这个做法。",
    again="又在 {runs} 次运行中这样做了。",
    comma="、",
)
