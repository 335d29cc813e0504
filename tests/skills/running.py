"""The code of a bundled skill, run as a run does it: a workspace, the skill's directory, a few lines of Python.

Once in plain Python with what a sandbox gives it, and once by the restricted executor: both find read_table, write_text
and chart, and the workspace's directories in that of the skill.
"""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from agents.providers.monty import MontyExecutor, close
from agents.providers.sandbox import given
from agents.runtime.code import CodeLimits, Command, Language

SKILLS: Final = Path(__file__).resolve().parents[2] / "agents" / "presets" / "skills"
CASES: Final = Path(__file__).resolve().parent
NAMES: Final = sorted(path.name for path in SKILLS.iterdir() if path.is_dir())
INTERPRETERS: Final = ("python", "monty")


def cases(skill: str) -> list[Path]:
    """Return the directories of the graded cases of a skill, by name."""
    return sorted(path for path in (CASES / skill).iterdir() if path.is_dir())


def graded(skill: str) -> pytest.MarkDecorator:
    """Return a mark that runs a test for every case of a skill, in both interpreters."""
    found = [(case, interpreter) for case in cases(skill) for interpreter in INTERPRETERS]
    names = [f"{case.name}-{interpreter}" for case, interpreter in found]
    return pytest.mark.parametrize(("case", "interpreter"), found, ids=names)


def expected(case: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    return found


def load(*files: str) -> list[str]:
    """Return the lines that a skill's text gives for loading its code."""
    return [f'exec(open("{file}", encoding="utf-8").read())' for file in files]


class Workshop:
    """A workspace with one skill in it, and the files of a case as its inputs."""

    def __init__(self, root: Path, skill: str, case: Path, interpreter: str) -> None:
        self._root = root
        self._interpreter = interpreter
        self._home = f"skills/{skill}"
        shutil.copytree(SKILLS / skill, root / self._home)
        shutil.copytree(case, root / "inputs")
        (root / "out").mkdir()

    def run(self, *lines: str) -> str:
        """Run the lines in the skill's directory and return what they print. Fails if they do."""
        code = "\n".join(lines)
        return asyncio.run(self._in_monty(code)) if self._interpreter == "monty" else self._in_python(code)

    def out(self, name: str) -> str:
        """Return a file that the code wrote."""
        return (self._root / "out" / name).read_text(encoding="utf-8")

    async def _in_monty(self, code: str) -> str:
        try:
            command = Command(language=Language.PYTHON, code=code, cwd=self._home)
            done = await MontyExecutor().run(self._root, command, CodeLimits())
        finally:
            await close()
        assert done.exit_code == 0, done.stderr
        return done.stdout

    def _in_python(self, code: str) -> str:
        for name in ("inputs", "out"):
            if not (link := self._root / self._home / name).exists():
                link.symlink_to(self._root / name)
        program = self._root / "program.py"
        program.write_text(code, encoding="utf-8")
        command = [sys.executable, "-E", "-s", "-X", "utf8", str(given.__file__), str(program)]
        done = subprocess.run(
            command, cwd=self._root / self._home, capture_output=True, encoding="utf-8", timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
