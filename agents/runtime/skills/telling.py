"""What a model reads of skills: the overview of all, and the text of one that is loaded.

The overview is made of the library alone, so that the same library gives the same bytes and a provider's cache holds:
nothing in it depends on what is asked.
"""

from collections.abc import Collection, Sequence
from typing import Final

from agents.runtime.context.injection import Block
from agents.runtime.skills.skill import Doc, Skill, SkillScope, SkillSummary

OVERVIEW_CHARS: Final = 24_000  # of all descriptions together
DOCS_CHARS: Final = 64_000  # of the documents of one skill together
_FIRST: Final = (
    SkillScope.MINE,
    SkillScope.EVERYONE,
    SkillScope.BUNDLED,
)  # who keeps a description when there is no room


def overview(summaries: Sequence[SkillSummary], most: int) -> str:
    """Return one line per skill, by name: `name: description`, as far as there is room; the others by name alone.

    most: descriptions. A person's own skills get theirs first, bundled ones last. "" without skills.
    """
    every = sorted(summaries, key=lambda one: one.name)
    described = _described(every, most)
    lines = [f"{one.name}: {one.description}" for one in every if one.name in described]
    others = [one.name for one in every if one.name not in described]
    if others:
        lines.append(
            f"Showing {len(described)} of {len(every)} descriptions. These have one too, which skill_load shows: "
            f"{', '.join(others)}"
        )
    return "\n".join(lines)


def overview_block(summaries: Sequence[SkillSummary], most: int) -> Block | None:
    """Return the overview as it is put into the system message, None without skills."""
    text = overview(summaries, most)
    return Block(kind="skills", text=text, params={"skills": len(summaries), "most": most}) if text else None


def _described(every: Sequence[SkillSummary], most: int) -> set[str]:
    room = OVERVIEW_CHARS
    found: set[str] = set()
    for one in sorted(every, key=lambda one: (_FIRST.index(one.scope), one.name)):
        if len(found) == most or len(one.description) > room:
            break  # no shorter one is let past: which are described must be easy to foresee
        room -= len(one.description)
        found.add(one.name)
    return found


def content(skill: Skill, docs: Collection[str] = ()) -> str:
    """Return the skill as it is read: its body, these of its documents, and which others there are."""
    others = [path for path in skill.docs if path not in docs]
    lines = [f"# Skill: {skill.name}\n{skill.description}\n\n{skill.body}"]
    lines += documents([doc for doc in skill.texts if doc.path in docs])
    if others:
        lines.append(f"[Documents of this skill, to be read with skill_select_docs if needed: {', '.join(others)}]")
    return "\n\n".join(lines)


def documents(docs: Sequence[Doc]) -> list[str]:
    """Return documents as they are read, each under its path. What is too long together is cut, and says so."""
    room, out = DOCS_CHARS, []
    for doc in docs:
        text = doc.text.strip()
        if len(text) > room:
            text = (
                f"{text[:room]}\n[Cut here: {len(text) - room} more characters are not shown. Select fewer documents.]"
            )
        room = max(0, room - len(text))
        out.append(f"## Document: {doc.path}\n{text}")
    return out
