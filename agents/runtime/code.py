"""Code that a model writes, run where it can do no harm: what executors and workspaces promise.

A workspace belongs to one conversation: `work` (with `work/inputs`), `out`, `runs` and `skills`. An executor runs one
command in it and can reach nothing else: no other file, no network, no process, nothing of the server's environment.
Seen from inside it lies at WORKSPACE, whichever executor it is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

from agents.runtime.skills.skill import SkillFile

OUTPUT_BYTES: Final = 64 * 1024  # of stdout and stderr each: beginning and end stay
EXIT_KILLED: Final = -1  # of what was stopped by a limit
WORKSPACE: Final = "/workspace"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# what would make another program, or another beginning of one, out of what is run
_LOADERS: Final = re.compile(
    r"LD_.*|DYLD_.*|BASH_FUNC_.*|OPENSSL_CONF|PATH|ENV|BASH_ENV|PROMPT_COMMAND|PS4|SHELL|SHELLOPTS|BASHOPTS|IFS|CDPATH"
    r"|GLOBIGNORE|PYTHONPATH|PYTHONHOME|PYTHONSTARTUP|PYTHONINSPECT|PYTHONUSERBASE|PYTHONBREAKPOINT|PERL5LIB|PERL5OPT"
    r"|PERL5DB|RUBYLIB|RUBYOPT|NODE_OPTIONS|JAVA_TOOL_OPTIONS|GCONV_PATH|LOCPATH|TAR_OPTIONS|LESSOPEN|LESSCLOSE|GIT_.*"
)


class Language(StrEnum):
    PYTHON = "python"
    SHELL = "shell"


class ExecutorFailed(Exception):
    """The command could not be run: not its fault. The message is safe to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLimits:
    """What one command may use. disk_bytes: of all that it writes; files: how many it may leave behind."""

    wall_s: float = 60.0
    cpu_s: float = 60.0
    memory_bytes: int = 512 * 1024 * 1024
    processes: int = 64
    disk_bytes: int = 256 * 1024 * 1024
    files: int = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run. cwd: relative to the workspace, "" = its top, where nothing can be written beside its directories;
    a skill's directory also has `inputs`, `out` and `work` in it.

    env: added to what the executor gives; nothing of the server's.
    """

    language: Language
    code: str
    cwd: str = ""
    stdin: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """What came of it. A non-zero exit_code is a result, no failure. cut: output was shortened in the middle.

    stopped: "" = it ended by itself; else what ended it: time, memory, disk. warnings: what stayed behind, in English.
    run_dir: the directory that only this run had, relative to the workspace.
    """

    stdout: str
    stderr: str
    exit_code: int
    duration_ms: int
    cut: bool = False
    stopped: str = ""
    warnings: tuple[str, ...] = ()
    run_dir: str = ""

    @property
    def timed_out(self) -> bool:
        return self.stopped == "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorInfo:
    """Which executor it is. isolation: one line for people. guide: for the model: what it has and has not."""

    name: str
    languages: frozenset[Language]
    isolation: str
    guide: str
    interactive: bool = False


class Process(Protocol):
    """A command that runs while its caller does other things. It ends at its limits whatever the caller does."""

    def output(self, offset: int) -> tuple[str, int]:
        """Return what it printed since the offset (in characters), and how much of that is not kept any more."""
        ...

    @property
    def end(self) -> int:
        """How many characters it has printed."""
        ...

    @property
    def over(self) -> bool: ...

    async def write(self, text: str) -> None:
        """Give it input. What nobody reads is dropped."""
        ...

    async def wait(self, seconds: float) -> Executed | None:
        """Wait for its end, at most so long, and return what came of it; None = it goes on. Raises ExecutorFailed."""
        ...

    async def kill(self) -> None:
        """End it with all it started. Files that it changed are not kept."""
        ...


class Executor(Protocol):
    """Runs commands in a workspace. One instance serves many at once. Cancelling the task kills all it started."""

    @property
    def info(self) -> ExecutorInfo: ...

    async def run(
        self, root: Path, command: Command, limits: CodeLimits, *, output: Callable[[str], None] = lambda text: None
    ) -> Executed:
        """Run to the end, or to a limit. root: of the workspace. output: told what it prints while it runs, never
        waits. Raises ExecutorFailed."""
        ...

    async def start(self, root: Path, command: Command, limits: CodeLimits) -> Process:
        """Begin a command that goes on by itself; only an interactive executor can. Raises ExecutorFailed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A file of a workspace. path: relative to it, as seen from inside. changed_ns: when it was written last."""

    path: str
    size_bytes: int
    changed_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """A file's content as it is collected. truncated: data is only its beginning."""

    path: str
    data: bytes
    size_bytes: int
    mime: str
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What globs found, by path. limits_hit: there was more than may be taken. warnings: what was passed over."""

    files: tuple[Collected, ...] = ()
    limits_hit: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectLimits:
    files: int = 100
    file_bytes: int = 4 * 1024 * 1024
    total_bytes: int = 64 * 1024 * 1024


class PathInvalid(ValueError):
    """A path leads out of the workspace, or is none. The message is safe to show."""


class Workspace(Protocol):
    """The directory of one conversation, with what runs code in it. Nothing here takes an owner or a conversation.

    Paths are relative to the workspace, as seen from inside, with slashes. Any method may raise ExecutorFailed when the
    directory cannot be read or written.
    """

    @property
    def info(self) -> ExecutorInfo: ...

    async def put_input(self, name: str, data: bytes, *, key: str) -> str:
        """Keep data as an input and return its path. The name is made fit, "_2" put behind it if it is taken.

        key: what it is, like "artifact://a.csv@2"; one that is there already is not written again.
        """
        ...

    async def input_path(self, key: str) -> str:
        """Return the path of the input with this key, "" if there is none."""
        ...

    async def pinned(self, name: str) -> int:
        """Return which version of an artifact was first taken as an input, 0 if none was."""
        ...

    async def stage_skill(self, name: str, digest: str, files: Sequence[SkillFile]) -> str:
        """Put a skill's files into skills/NAME, anew if the digest is another than before, and return that path."""
        ...

    async def skill_digest(self, name: str) -> str:
        """Return the digest of the skill as it is staged, "" if it is not."""
        ...

    async def run(self, command: Command, *, output: Callable[[str], None], wall_s: float | None = None) -> Executed:
        """Run a command. wall_s: at most so long; None = what is set for the installation."""
        ...

    async def start(self, command: Command, *, wall_s: float | None = None) -> Process: ...

    async def files(self) -> Mapping[str, FileInfo]:
        """Return every regular file of work, out and runs, by path, inputs not among them."""
        ...

    async def collect(self, globs: Sequence[str], limits: CollectLimits) -> Collection: ...

    async def read(self, path: str, *, most_bytes: int) -> Collected:
        """Return one file. Raises PathInvalid, FileNotFoundError."""
        ...


def _can_be_given(value: str) -> bool:
    """Return whether a program can be given this text: no zero in it, and no half of a pair of surrogates."""
    return "\0" not in value and value == value.encode("utf-8", "replace").decode()


def environment(base: Mapping[str, str], *layers: Mapping[str, str]) -> dict[str, str]:
    """Return base with the layers over it, later ones counting more: what staff provide, then what a call asks for.

    Names that are none, and those that would change what program runs (PATH, LD_PRELOAD, BASH_ENV, ...), are passed
    over, wherever they come from; so is what says where the workspace is.
    """
    fixed = {name for name in base if name.endswith("_DIR")}
    added = {name: value for layer in layers for name, value in layer.items()}
    allowed = {
        name: value
        for name, value in added.items()
        if _NAME.fullmatch(name) and not _LOADERS.fullmatch(name) and name not in fixed and _can_be_given(value)
    }
    return {**base, **allowed}
