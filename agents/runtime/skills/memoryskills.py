"""Skills in memory, for tests and for runs without a database. Keeps the promises of SkillStore."""

from collections.abc import Iterable

from agents.runtime.skills.format import Broken, skill_of, written
from agents.runtime.skills.skill import (
    SKILL_FILE,
    Skill,
    SkillFile,
    SkillMissing,
    SkillScope,
    SkillSummary,
    SkillUnavailable,
)


class MemorySkills:
    """A library that can change. `snapshot` is what a run gets; the library itself is a SkillStore too.

    broken: what could not be used, by name. away: every question raises SkillUnavailable.
    """

    def __init__(self) -> None:
        self.broken: dict[str, Broken] = {}
        self.away = False
        self._skills: dict[str, tuple[Skill, tuple[SkillFile, ...]]] = {}

    def put(self, directory: str, files: Iterable[SkillFile], *, scope: SkillScope = SkillScope.MINE) -> Skill | Broken:
        """Add a skill, or put it in the place of the one of its name."""
        kept = tuple(sorted(files, key=lambda file: file.path))
        found = skill_of(kept, directory=directory, scope=scope)
        if isinstance(found, Broken):
            self.broken[found.name] = found
        else:
            self._skills[found.name] = (found, kept)
        return found

    def write(self, name: str, description: str, body: str, **docs: str) -> Skill:
        """Add a skill of texts. docs: by name without ".md"."""
        files = [SkillFile(path=SKILL_FILE, data=written(name, description, body).encode())]
        files += [SkillFile(path=f"{path}.md", data=text.encode()) for path, text in docs.items()]
        made = self.put(name, files)
        if isinstance(made, Broken):
            raise ValueError(made.words)
        return made

    def remove(self, name: str) -> None:
        del self._skills[name]

    def snapshot(self) -> "MemorySkills":
        """Return the library as it is now, whatever happens to this one."""
        copy = MemorySkills()
        copy.broken, copy.away, copy._skills = dict(self.broken), self.away, dict(self._skills)
        return copy

    async def summaries(self) -> tuple[SkillSummary, ...]:
        self._reach()
        return tuple(self._skills[name][0] for name in sorted(self._skills))

    async def skill(self, name: str) -> Skill:
        return self._find(name)[0]

    async def files(self, name: str) -> tuple[SkillFile, ...]:
        return self._find(name)[1]

    def _find(self, name: str) -> tuple[Skill, tuple[SkillFile, ...]]:
        self._reach()
        if name not in self._skills:
            raise SkillMissing(name)
        return self._skills[name]

    def _reach(self) -> None:
        if self.away:
            raise SkillUnavailable
