"""The skills that come with the program, read from its own directory once per process."""

from functools import cache
from pathlib import Path
from typing import Final

from agents.runtime.skills.format import Broken, Problem, skill_of
from agents.runtime.skills.skill import Skill, SkillFile, SkillScope

DIRECTORY: Final = Path(__file__).resolve().parent.parent / "presets" / "skills"


@cache
def bundled(directory: Path = DIRECTORY) -> tuple[Skill | Broken, ...]:
    """Return all, by name; what cannot be read is among them, with its reason."""
    if not directory.is_dir():
        return ()
    return tuple(_read(name, directory) for name in _folders(directory))


def files(name: str, directory: Path = DIRECTORY) -> tuple[SkillFile, ...]:
    """Return all files of one, by path. name: of one of `bundled`."""
    root = directory / name
    paths = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    listed = (SkillFile(path=path.relative_to(root).as_posix(), data=path.read_bytes()) for path in paths)
    return tuple(sorted(listed, key=lambda file: file.path))


def _read(name: str, directory: Path) -> Skill | Broken:
    found = skill_of(files(name, directory), directory=name, scope=SkillScope.BUNDLED)
    if isinstance(found, Broken) or found.name == name:
        return found
    words = f'its name "{found.name}" is not that of its directory.'
    return Broken(name=name, scope=SkillScope.BUNDLED, problem=Problem.NAME, words=words)


def _folders(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.is_dir() and not path.name.startswith((".", "_")))
