"""The texts of skills that a request showed, made again: its parts keep which skill and revision, never the text."""

from collections.abc import Iterable, Sequence
from typing import Any

from agents.models.skill import SkillRevision
from agents.runtime.context.digests import sha256
from agents.runtime.session import PartRef
from agents.runtime.skills.skill import Doc, Skill, SkillScope
from agents.runtime.skills.telling import content, overview
from agents.stores import bundledskills
from agents.stores.skills import visible
from workbench.inspector.parts import kind_of


def texts(owner_id: int, parts: Sequence[PartRef]) -> dict[str, str]:
    """Return the texts of the parts that show skills, by their hash, as far as they can be made again.

    No statement if the parts show none, one for loaded skills and those of `visible` for the overview.
    """
    blocks = [part for part in parts if kind_of(part) == "block"]
    listed = {
        int(part.params["most"]) for part in blocks if part.tag == "skills" and _is_count(part.params.get("most"))
    }
    loaded = [part for part in blocks if part.tag == "skill"]
    found: list[str] = []
    if listed:
        every = [known.summary for known in visible(owner_id).values()]
        found += [overview(every, most) for most in listed]
    if loaded:
        skills = list(_skills(owner_id, {str(part.params.get("digest", "")) for part in loaded}))
        found += [
            content(skill, tuple(map(str, part.params.get("docs", ()))))
            for part in loaded
            for skill in skills
            if skill.digest == part.params.get("digest")
        ]
    return {sha256(text): text for text in found}


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _skills(owner_id: int, digests: set[str]) -> Iterable[Skill]:
    """Return the skills of these digests, as they were: revisions never change."""
    yield from (one for one in bundledskills.bundled() if isinstance(one, Skill) and one.digest in digests)
    rows = SkillRevision.objects.of(owner_id).filter(digest__in=digests).select_related("skill")
    for row in rows:
        docs = tuple(Doc(path=doc["path"], text=doc["text"]) for doc in row.docs)
        yield Skill(
            name=row.skill.slug,
            description=row.description,
            scope=SkillScope.MINE,
            digest=row.digest,
            docs=tuple(sorted(doc.path for doc in docs)),
            body=row.body,
            texts=docs,
        )
