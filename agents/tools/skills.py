"""Skills, as tools: read how something is done, and which documents belong to it. Knowing how only: nothing is run.

The text of a skill is in the result of the call that loaded it, once; loading it again says so and counts as use.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agents.runtime.context.guard import Family
from agents.runtime.context.injection import block_text
from agents.runtime.errors import ToolFailed, ToolFailure
from agents.runtime.model import ToolSpec
from agents.runtime.policy import SKILL_TOOLS
from agents.runtime.skills.loaded import BODY, ONCE, Loaded, RunSkills
from agents.runtime.skills.skill import NAME_CHARS, Skill, SkillMissing, SkillSummary, SkillUnavailable
from agents.runtime.skills.telling import content, documents
from agents.runtime.tools import FunctionTool, Tool, ToolContext, ToolResult, Traits
from agents.runtime.toolset import suggestions

RESULT_BYTES: Final = 1024 * 1024  # of a skill whole: it is limited where it is kept, and must not be cut
PATH_CHARS: Final = 1_024  # no path is longer; what is asked for is repeated to the model
ADD, REPLACE, CLEAR = "add", "replace", "clear"
HELD: Final = "it was loaded already; its text stands in this conversation"

_SKILL: Final = {"type": "string", "description": "Its name, as the list of skills gives it."}
_DOCS: Final = {"type": "array", "items": {"type": "string"}, "description": "Paths of documents of the skill."}
_ALL: Final = {"type": "boolean", "description": "All documents of the skill; then docs is not needed."}

LOAD = ToolSpec(
    name="skill_load",
    description=(
        "Read a skill: how a kind of task is done here, step by step. Load one before you begin a task that its "
        "description fits, and then follow it."
    ),
    parameters={
        "type": "object",
        "properties": {"skill": _SKILL, "docs": _DOCS, "include_all_docs": _ALL},
        "required": ["skill"],
    },
)
LIST_DOCS = ToolSpec(
    name="skill_list_docs",
    description="List the documents that belong to a skill. They hold details that its text refers to.",
    parameters={"type": "object", "properties": {"skill": _SKILL}, "required": ["skill"]},
)
SELECT_DOCS = ToolSpec(
    name="skill_select_docs",
    description="Read documents of a skill that is loaded, or say which of them are not needed any more.",
    parameters={
        "type": "object",
        "properties": {
            "skill": _SKILL,
            "docs": _DOCS,
            "include_all_docs": _ALL,
            "mode": {
                "type": "string",
                "description": "replace (default): these and no others. add: these too. clear: none any more.",
            },
        },
        "required": ["skill"],
    },
)


def tools() -> tuple[Tool, ...]:
    """Return those of SKILL_TOOLS, in that order. They reach the skills through the call's context."""
    reading = Traits(read_only=True, destructive=False, family=Family.FILES, result_bytes=RESULT_BYTES)
    made = {
        tool.spec.name: tool
        for tool in (
            FunctionTool(spec=LOAD, function=skill_load, traits=reading),
            FunctionTool(spec=LIST_DOCS, function=skill_list_docs, traits=reading),
            FunctionTool(spec=SELECT_DOCS, function=skill_select_docs, traits=reading),
        )
    }
    return tuple(made[name] for name in SKILL_TOOLS)


async def skill_load(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    skills, skill = await _read(arguments, context)
    # loaded for one request, its text is not there any more
    before = _current(skills, skill, context) if skills.mode != ONCE else None
    asked, unknown = _asked(arguments, skill)
    every = bool(arguments.get("include_all_docs")) or (before is not None and before.all)
    chosen = skill.docs if every else tuple(sorted({*asked, *(before.chosen(skill) if before else ())}))
    held = dict(before.held) if before else {}
    new = tuple(path for path in chosen if path not in held)
    if before is None:
        lines = [f"loaded: {skill.name}", block_text("skill", content(skill, chosen))]
    else:
        lines = [f"loaded: {skill.name} ({HELD})", *_texts(skill, new)]
    held |= dict.fromkeys((*(() if before else (BODY,)), *new), context.call_id)
    return ToolResult(
        content="\n".join([*lines, *_warnings(unknown, skill)]),
        summary=", ".join(chosen),
        data={"skill": skill.name, "docs": list(chosen), "skill_text": before is None or bool(new)},
        state=skills.load(context.state, skill, docs=chosen, every=every, held=held),
    )


async def skill_list_docs(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    summary = _find(arguments, context)[1]
    listed = "\n".join(f"- {path}" for path in summary.docs)
    return ToolResult(
        content=f"Documents of {summary.name}:\n{listed}" if listed else f"{summary.name} has no documents.",
        summary=", ".join(summary.docs),
        data={"skill": summary.name, "count": len(summary.docs)},
    )


async def skill_select_docs(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    skills, skill = await _read(arguments, context)
    before = _current(skills, skill, context)
    if before is None:
        message = f"{skill.name} is not loaded. Load it with skill_load first; documents can be named there too."
        raise ToolFailed(message, ToolFailure.SKILL_NOT_LOADED)
    mode = str(arguments.get("mode") or REPLACE)
    mode = mode if mode in (ADD, CLEAR) else REPLACE
    asked, unknown = _asked(arguments, skill) if mode != CLEAR else ((), ())
    # once all are chosen, only clearing makes them fewer
    every = mode != CLEAR and (bool(arguments.get("include_all_docs")) or before.all)
    kept = before.chosen(skill) if mode == ADD else ()
    chosen = skill.docs if every else tuple(sorted({*asked, *kept}))
    new = tuple(path for path in chosen if path not in before.held)
    lines = [
        f"skill: {skill.name}",
        f"selected_docs: {', '.join(chosen) or 'none'}",
        f"include_all_docs: {'true' if every else 'false'}",
        f"mode: {mode}",
        *_texts(skill, new),
        *_warnings(unknown, skill),
    ]
    return ToolResult(
        content="\n".join(lines),
        summary=", ".join(chosen),
        data={
            "skill": skill.name,
            "selected_docs": list(chosen),
            "include_all_docs": every,
            "mode": mode,
            "skill_text": bool(new),
        },
        state=skills.load(
            context.state,
            skill,
            docs=chosen,
            every=every,
            held={**before.held, **dict.fromkeys(new, context.call_id)},
        ),
    )


def _find(arguments: Mapping[str, Any], context: ToolContext) -> tuple[RunSkills, SkillSummary]:
    """Return the skill that is asked for. Raises ToolFailed."""
    skills, name = context.skills, str(arguments.get("skill", "")).strip()
    known = skills.summaries if skills is not None else {}
    if skills is None or name not in known:
        near = suggestions(name, known)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ToolFailed(f"unknown skill: {name[:NAME_CHARS]}{hint}", ToolFailure.SKILL_NOT_FOUND)
    return skills, known[name]


async def _read(arguments: Mapping[str, Any], context: ToolContext) -> tuple[RunSkills, Skill]:
    skills, summary = _find(arguments, context)
    try:
        return skills, await skills.skill(summary.name)
    except SkillMissing as error:
        raise ToolFailed(f"unknown skill: {summary.name}", ToolFailure.SKILL_NOT_FOUND) from error
    except SkillUnavailable as error:
        message = "The skills cannot be read just now. Go on without it, or try once more."
        raise ToolFailed(message, ToolFailure.SKILL_NOT_READ) from error


def _current(skills: RunSkills, skill: Skill, context: ToolContext) -> Loaded | None:
    """Return how the skill is loaded; None if it is not, or was changed since."""
    found = skills.find(context.state, skill.name)
    return found if found is not None and found.digest == skill.digest and BODY in found.held else None


def _asked(arguments: Mapping[str, Any], skill: Skill) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which of the documents asked for there are, and which not."""
    given = [str(path).strip()[:PATH_CHARS] for path in arguments.get("docs") or ()]
    return (
        tuple(dict.fromkeys(path for path in given if path in skill.docs)),
        tuple(dict.fromkeys(path for path in given if path and path not in skill.docs)),
    )


def _texts(skill: Skill, paths: Sequence[str]) -> Iterable[str]:
    """Return these documents as data of the skill; nothing without any."""
    shown = documents([doc for doc in skill.texts if doc.path in paths])
    return (block_text("skill", "\n\n".join(shown)),) if shown else ()


def _warnings(unknown: Sequence[str], skill: Skill) -> Iterable[str]:
    if unknown:
        there = f"It has: {', '.join(skill.docs)}." if skill.docs else "It has no documents."
        yield f"[Warning: no such document: {', '.join(unknown)}. {there}]"
