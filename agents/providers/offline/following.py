"""Skills, as far as rules can follow them: which one a wish calls for, and what its block for rules says to do.

    ```offline
    search: {topic} results
    section: Decisions | decid* agree* "to be done"
    section zh: 决定 | 决定 同意
    report: Minutes: {topic}
    ```
Sections quote what was read or found; a report is saved as a file. A skill without such a block is loaded and not
followed: it takes judgement.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agents.providers.offline import knowledge, quoting
from agents.providers.offline.asking import files_named
from agents.providers.offline.files import units_of_document
from agents.providers.offline.intent import file_name_for
from agents.providers.offline.judging import judge
from agents.providers.offline.moves import Call, Move, said
from agents.providers.offline.request import LIST, LOAD_SKILL, READ_DOCUMENT, SAVE, SEARCH, Situation
from agents.providers.offline.terms import is_wide, stem, subjects, terms
from agents.providers.offline.units import Unit
from agents.providers.offline.words import Words

MOST_SEARCHES: Final = 4
MOST_SECTIONS: Final = 12
MOST_QUOTED: Final = 8  # in one section
_BLOCK: Final = re.compile(r"^```offline[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_LINE: Final = re.compile(r"(?P<verb>search|section|report)(?P<zh>[ \t]+zh)?[ \t]*:[ \t]*(?P<value>.+)")
_WORD: Final = re.compile(r'"([^"]+)"|(\S+)')
_TRIGGERS: Final = re.compile(r"[、，。；,;.]|\bor\b|\band\b")
# only who wants something made calls for a skill: a question about minutes is answered from them
_WISH: Final = re.compile(
    r"\b(?:write|make|create|prepare|draft|produce|compile|generate|turn|compare|clean|tidy|translate|draw|plot|do|use"
    r"|follow|give|need|want|put together)\b"
    r"|写|做|整理|生成|起草|制作|准备|拟|编|出一?[份篇个张]|比较|对比|比对|清洗|翻译|画|按|用|给我|帮我",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(
    r"^\W*(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|has|have|had)\b"
    r"|谁|什么|哪|怎么|多少|何时|是否|[吗呢]\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """words: patterns of what belongs here; none = what answers the question."""

    heading: str
    words: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a skill's block says. report: title of the file to save, "" = the sections are the answer."""

    sections: tuple[Section, ...]
    searches: tuple[str, ...] = ()
    report: str = ""


def move(at: Situation, chosen: Sequence[str], reads: Callable[[], tuple[Call, ...]], say: Words) -> Move | None:
    """Return the next move by a skill that the wish calls for; None if there is none, or rules cannot follow it.

    chosen: the conversation's files that are meant; reads: what of them is still to be read.
    """
    name = called_for(at)
    if not name:
        return None
    if name not in at.loaded:
        if name in at.skills_failed or LOAD_SKILL not in at.tools:
            return None
        return Move(reasoning=say.thinking_skill.format(name=name), calls=((LOAD_SKILL, {"skill": name}),))
    plan = plan_of(at.loaded[name], wide=is_wide(at.question))
    if plan is None:
        return None
    if chosen:
        if calls := reads():
            return Move(reasoning=say.thinking_steps.format(name=name), calls=calls)
        units = [u for r in chosen if r in at.documents for u in units_of_document(at.documents[r])]
        return _written(at, name, plan, units, say)
    if calls := _looking(at, name, plan):
        return Move(reasoning=say.thinking_steps.format(name=name), calls=calls)
    return next((made for units in knowledge.tried(at) if (made := _written(at, name, plan, units, say))), None)


def called_for(at: Situation) -> str:
    """Return the name of the skill that a wish calls for: by its name, or by a phrase of its description; "" = none.

    The longest of what stands in the wish counts; of two as long neither.
    """
    question = " ".join(at.question.split())
    if not _WISH.search(question) or _ASKS.search(question):
        return ""
    asked = terms(question, keep_stop=True)
    found = [(size, name) for name, description in at.skills if (size := _fits(question, asked, name, description))]
    found.sort(reverse=True)
    return found[0][1] if found and (len(found) == 1 or found[0][0] > found[1][0]) else ""


def plan_of(body: str, *, wide: bool) -> Plan | None:
    """Return what the body's block says, None without one or if there is something in it that we do not know."""
    block = _BLOCK.search(body)
    found: dict[tuple[str, bool], list[str]] = {}
    for line in block[1].splitlines() if block else ():
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            return None
        found.setdefault((match["verb"], match["zh"] is not None), []).append(match["value"].strip())

    def values(verb: str) -> list[str]:
        return (found.get((verb, True)) if wide else None) or found.get((verb, False)) or []

    sections = tuple(map(_section, values("section")[:MOST_SECTIONS]))
    if not sections:
        return None
    # headings are in the language of the wish; what is read may be in the other one
    other = tuple(map(_section, (found.get(("section", not wide)) or [])[:MOST_SECTIONS]))
    if len(other) == len(sections):
        sections = tuple(replace(own, words=own.words + more.words) for own, more in zip(sections, other, strict=True))
    return Plan(
        sections=sections, searches=tuple(values("search")[:MOST_SEARCHES]), report=(values("report") or [""])[0]
    )


def _fits(question: str, asked: Sequence[str], name: str, description: str) -> int:
    """Return how many characters of name or description stand in the question as they are, 0 = nothing to go by."""
    words = terms(name.replace("-", " "), keep_stop=True)
    if name in question if is_wide(name) else _stands(words, asked):
        return len(name)
    best = 0
    for phrase in _TRIGGERS.split(description):
        phrase = phrase.strip()
        if is_wide(phrase):
            hit = len(phrase) > 2 and phrase in question
        else:
            # of an English phrase two words must say something by themselves
            hit = len(subjects(phrase)) > 1 and _stands(terms(phrase, keep_stop=True), asked)
        best = max(best, len(phrase) if hit else 0)
    return best


def _stands(words: Sequence[str], asked: Sequence[str]) -> bool:
    """Return whether the words stand side by side in what is asked."""
    size = len(words)
    return size > 0 and any(list(words) == list(asked[n : n + size]) for n in range(len(asked) - size + 1))


def _section(value: str) -> Section:
    heading, _, words = value.partition("|")
    return Section(heading=heading.strip(), words=tuple(_pattern(*found) for found in _WORD.findall(words)))


def _pattern(phrase: str, word: str) -> re.Pattern[str]:
    text = phrase or word
    stem_ = text.rstrip("*") if word else text
    pattern = re.escape(stem_)
    if not is_wide(stem_):
        before, after = (r"\b" if edge.isalnum() else "" for edge in (stem_[:1], stem_[-1:]))
        pattern = f"{before}{pattern}{'' if stem_ != text else after}"
    return re.compile(pattern, re.IGNORECASE)


def _looking(at: Situation, name: str, plan: Plan) -> tuple[Call, ...]:
    """Return what is still to be looked up: a document that is named is read, else the plan's searches are made.

    Where the plan has searches, only a file's whole name counts: a wish for a "cost report" does not mean
    cost-report.md, which was saved for the wish before it.
    """
    by_name = files_named(at.question) or not plan.searches
    if by_name and LIST in at.tools and READ_DOCUMENT in at.tools:
        if at.listed is None:
            return ((LIST, {}),)
        if meant := knowledge.meant(at.question, at.listed[0]):
            return knowledge.reading_on(at, meant)
    if SEARCH not in at.tools:
        return ()
    topic = _topic(at.question, name)
    queries = dict.fromkeys(query.replace("{topic}", topic).strip() for query in plan.searches or ("{topic}",))
    return knowledge.searches(at, [query for query in queries if query], many=True)


def _topic(question: str, name: str) -> str:
    """Return what the wish is about besides the skill's name."""
    own = {stem(word) for word in name.lower().split("-")}
    words = [word for word in subjects(_WISH.sub(" ", question)) if stem(word.lower()) not in own]
    return " ".join(words[:12]) or name.replace("-", " ")


def _written(at: Situation, name: str, plan: Plan, units: Sequence[Unit], say: Words) -> Move | None:
    """Return the move that says or saves the sections, None if nothing belongs into any."""
    quoted = _quoted(plan, [unit for unit in units if not unit.is_heading], _topic(at.question, name))
    if not any(quoted):
        return None
    several = len({unit.document for unit in units}) > 1
    following = say.following.format(name=name)
    parts = [following]
    for section, chosen in zip(plan.sections, quoted, strict=True):
        lines = [quoting.item(unit, say, several=several) for unit in chosen] or [f"- {say.nothing_found}"]
        parts.append("\n".join((f"## {section.heading}", "", *lines)))
    if not plan.report or SAVE not in at.tools:
        return said(at, "\n\n".join(parts), say)
    title = plan.report.replace("{topic}", _topic(at.question, name))
    content = "\n\n".join((f"# {title}", *parts))
    save: Call = (SAVE, {"name": file_name_for(title), "content": f"{content}\n"})
    return Move(reasoning=say.thinking_steps.format(name=name), text=following, calls=(save,))


def _quoted(plan: Plan, units: Sequence[Unit], topic: str) -> list[list[Unit]]:
    """Return what belongs into each section, in the order in which it stands; each unit once, where it fits best."""
    taken: list[list[Unit]] = [[] for _ in plan.sections]
    for unit in units:
        hits = [sum(bool(word.search(unit.text)) for word in section.words) for section in plan.sections]
        if (best := max(hits)) and len(taken[hits.index(best)]) < MOST_QUOTED:
            taken[hits.index(best)].append(unit)
    for section, chosen in zip(plan.sections, taken, strict=True):
        if not section.words:
            passages = judge(units, topic, count=MOST_QUOTED, whole=False).passages
            chosen += sorted((units[passage.place] for passage in passages), key=lambda unit: unit.place)
    return taken
