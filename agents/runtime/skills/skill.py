"""How to do things: skills as a run sees them, and the store they come from.

A skill is a directory with a SKILL.md in the public Agent Skills format: front matter with a name and a description,
then what to do, for the model. Beside it lie documents (.md, .txt), which are read on demand, and any other files,
which code may use. Knowing how (reading it) and doing it (running its files) are separate permissions.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from agents.runtime.errors import AgentError

NAME_CHARS: Final = 64
DESCRIPTION_CHARS: Final = 1_024
BODY_CHARS: Final = 64_000
SKILL_FILE: Final = "SKILL.md"


class SkillScope(StrEnum):
    """Whose it is. Of two with one name the later one in this order is the one that a person sees."""

    BUNDLED = "bundled"  # comes with the program
    EVERYONE = "everyone"  # of the installation, kept by staff
    MINE = "mine"  # of one person


class SkillMissing(AgentError):
    """There is no such skill for this person: unknown, switched off and foreign alike."""

    code = "skill_missing"


class SkillUnavailable(AgentError):
    """The skills cannot be read now."""

    code = "skill_unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doc:
    """A text beside SKILL.md. path: relative, with slashes; its id."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """Any file of a skill, SKILL.md and documents too. path: relative, with slashes, without a way out."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSummary:
    """What the overview says. name: unique in what one person sees; lower-case letters of any script, digits, hyphens.

    digest: SHA-256 over paths and contents of all files; another one means that something changed. docs: paths, sorted.
    runs: it has files that code can use.
    """

    name: str
    description: str
    scope: SkillScope
    digest: str
    docs: tuple[str, ...] = ()
    runs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill(SkillSummary):
    """A skill whole. body: SKILL.md without the front matter. texts: its documents, by path."""

    body: str
    texts: tuple[Doc, ...] = ()


class SkillStore(Protocol):
    """The skills of one run: what its person may see and has not switched off, as it was when the run began.

    Broken skills are not here; pages show them with their reason. Every method may raise SkillUnavailable.
    """

    async def summaries(self) -> tuple[SkillSummary, ...]:
        """Return all, by name."""
        ...

    async def skill(self, name: str) -> Skill:
        """Return one. Raises SkillMissing."""
        ...

    async def files(self, name: str) -> tuple[SkillFile, ...]:
        """Return all files of one, by path. Raises SkillMissing."""
        ...
