"""Skills that people bring: taken apart on a desk, then stored all together or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.models.skill import Skill
from agents.stores import skillcontent
from agents.stores.skillcontent import Content
from agents.stores.skillfiles import desk
from agents.stores.skilllibrary import Saved, SkillLibraryRows
from agents.stores.skillpacks import Brought, PackRefused, Refusal, unpack


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What came of what was brought. beside: paths of files that belong to no skill and were left out."""

    skills: tuple[Saved, ...]
    beside: tuple[str, ...] = ()


def bring(brought: Sequence[Brought], *, owner_id: int | None, actor_id: int) -> Import:
    """Store every skill in what was brought as the next revision of its name; owner_id None = for everyone.

    One that cannot be used is kept with its reason, and what held before goes on holding. Raises PackRefused; then,
    as after any other failure, nothing is left behind.
    """
    rows = SkillLibraryRows(owner_id, actor_id=actor_id)
    with desk() as on:
        packs = unpack(brought, on)
        contents = [skillcontent.of_files(pack.entries, pack.directory) for pack in packs.packs]
        _told_apart(contents)
        names = _names(owner_id, [content.slug for content in contents])
        skills = rows.bring([_named(content, names) for content in contents])
    return Import(skills=skills, beside=packs.beside)


def _told_apart(contents: Sequence[Content]) -> None:
    """Refuse two of one name: the second would be the next revision of the first, which nobody meant."""
    seen: set[str] = set()
    for content in contents:
        if content.slug in seen:
            raise PackRefused(Refusal.NAME, content.name)
        seen.add(content.slug)


def _names(owner_id: int | None, slugs: Sequence[str]) -> dict[str, str]:
    """Return what people call the skills that are there already."""
    known = Skill.objects.in_scope(owner_id).filter(slug__in=slugs, deleted_at=None, active__isnull=False)
    return dict(known.values_list("slug", "active__name"))


def _named(content: Content, names: dict[str, str]) -> Content:
    """A file cannot say all that people call a skill: a name that means the same stays."""
    name = names.get(content.slug, "")
    return replace(content, name=name) if name and skillcontent.slug_of(name) == content.slug else content
