"""agents.runtime.code.Workspace over a directory of this machine."""

import asyncio
import contextlib
import errno
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, ParamSpec, TypeVar

from agents.runtime.code import (
    CodeLimits,
    Collected,
    Collection,
    CollectLimits,
    Command,
    Executed,
    Executor,
    ExecutorFailed,
    ExecutorInfo,
    FileInfo,
    PathInvalid,
    Process,
)
from agents.runtime.skills.skill import SkillFile
from agents.workspaces.names import fit, inside, mime_of, pattern, taken_apart

P = ParamSpec("P")
R = TypeVar("R")

INPUTS: Final = "work/inputs"
KEPT: Final = ("work", "out", "runs")
MOST_FILES: Final = 20_000  # looked at in one directory tree
MOST_WARNINGS: Final = 20
_ABOUT: Final = "about.json"
_VERSION: Final = 1


class DirectoryWorkspace:
    """The workspace of one conversation of one owner, for one run. Another run of it has its own object.

    top: of all workspaces. Nothing is made before something is put there or run.
    """

    def __init__(self, *, top: Path, owner_id: int, session_id: int, executor: Executor, limits: CodeLimits) -> None:
        self._root = place(top, owner_id, session_id)
        self._executor, self._limits = executor, limits
        self._changing = asyncio.Lock()  # calls of one run; a conversation has one run at a time

    @property
    def info(self) -> ExecutorInfo:
        return self._executor.info

    async def put_input(self, name: str, data: bytes, *, key: str) -> str:
        async with self._changing:
            return await _in_thread(self._put_input, name, data, key)

    async def input_path(self, key: str) -> str:
        about = await _in_thread(_about, self._root)
        path = str(about["inputs"].get(key, ""))
        return path if path and (self._root / "inputs" / PurePosixPath(path).name).is_file() else ""

    async def pinned(self, name: str) -> int:
        about = await _in_thread(_about, self._root)
        return int(about["pins"].get(name, 0))

    async def stage_skill(self, name: str, digest: str, files: Sequence[SkillFile]) -> str:
        async with self._changing:
            return await _in_thread(self._stage_skill, name, digest, files)

    async def skill_digest(self, name: str) -> str:
        about = await _in_thread(_about, self._root)
        return str(about["skills"].get(name, "")) if (self._root / "skills" / name).is_dir() else ""

    async def run(self, command: Command, *, output: Callable[[str], None], wall_s: float | None = None) -> Executed:
        await self._ready(command)
        return await self._executor.run(self._root, command, self._within(wall_s), output=output)

    async def start(self, command: Command, *, wall_s: float | None = None) -> Process:
        await self._ready(command)
        return await self._executor.start(self._root, command, self._within(wall_s))

    async def files(self) -> Mapping[str, FileInfo]:
        return await _in_thread(lambda: {info.path: info for info, _whole in _walk(self._root, [])})

    async def collect(self, globs: Sequence[str], limits: CollectLimits) -> Collection:
        return await _in_thread(self._collect, globs, limits)

    async def read(self, path: str, *, most_bytes: int) -> Collected:
        return await _in_thread(self._read, path, most_bytes)

    # in a thread

    def _put_input(self, name: str, data: bytes, key: str) -> str:
        prepare(self._root)
        about = _about(self._root)
        known = str(about["inputs"].get(key, ""))
        if known and (self._root / "inputs" / PurePosixPath(known).name).is_file():
            return known
        free, number = fit(name), 1
        while (self._root / "inputs" / free).exists():
            number += 1
            free = taken_apart(fit(name), number)
        _write(self._root / "inputs" / free, data)
        about["inputs"][key] = f"{INPUTS}/{free}"
        artifact, _, version = key.removeprefix("artifact://").rpartition("@")
        if artifact and version.isdigit():
            about["pins"].setdefault(artifact, int(version))
        _keep(self._root, about)
        return f"{INPUTS}/{free}"

    def _stage_skill(self, name: str, digest: str, files: Sequence[SkillFile]) -> str:
        if not name or name.startswith(".") or inside(name) != name or "/" in name:
            raise PathInvalid(f'"{name[:100]}" is no name of a skill.')
        prepare(self._root)
        about, target = _about(self._root), self._root / "skills" / name
        if about["skills"].get(name) == digest and target.is_dir():
            return f"skills/{name}"
        fresh = self._root / "skills" / f".{name}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        for file in files:
            path = fresh / inside(file.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, file.data)
        fresh.mkdir(exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
        about["skills"][name] = digest
        _keep(self._root, about)
        return f"skills/{name}"

    def _collect(self, globs: Sequence[str], limits: CollectLimits) -> Collection:
        warnings, patterns = [], []
        for glob in globs:
            try:
                patterns.append(pattern(inside(glob)))
            except PathInvalid as error:
                warnings.append(str(error))
        found: list[Collected] = []
        hit, room = False, limits.total_bytes
        for info, whole in sorted(_walk(self._root, warnings), key=lambda one: one[0].path):
            if not any(p.fullmatch(info.path) for p in patterns):
                continue
            if len(found) >= limits.files or room <= 0:
                hit = True
                break
            try:
                data = _head(whole, min(limits.file_bytes, room))
            except FileNotFoundError:
                continue  # as in _walk
            room -= len(data)
            found.append(_collected(info, data))
        hit = hit or any(file.truncated for file in found)
        return Collection(files=tuple(found), limits_hit=hit, warnings=tuple(warnings[:MOST_WARNINGS]))

    def _read(self, path: str, most_bytes: int) -> Collected:
        cleaned = inside(path)
        whole = self._root / cleaned
        if cleaned.split("/")[0] not in KEPT:
            raise PathInvalid(f'Only files below {", ".join(KEPT)} can be taken, not "{path[:200]}".')
        if f"{cleaned}/".startswith(f"{INPUTS}/"):
            whole = self._root / "inputs" / cleaned.removeprefix(f"{INPUTS}/")
        for part in [whole, *whole.parents]:
            if part == self._root:
                break
            if part.is_symlink():
                raise PathInvalid(f'"{path[:200]}" is a link.')
        about = os.lstat(whole)
        if not stat.S_ISREG(about.st_mode):
            raise PathInvalid(f'"{path[:200]}" is no file.')
        return _collected(
            FileInfo(path=cleaned, size_bytes=about.st_size, changed_ns=about.st_mtime_ns), _head(whole, most_bytes)
        )

    def _within(self, wall_s: float | None) -> CodeLimits:
        wall_s = self._limits.wall_s if wall_s is None else wall_s
        return replace(self._limits, wall_s=wall_s, cpu_s=min(self._limits.cpu_s, wall_s))

    async def _ready(self, command: Command) -> None:
        inside(command.cwd)
        await _in_thread(prepare, self._root)


def place(top: Path, owner_id: int, session_id: int) -> Path:
    return top / str(int(owner_id)) / str(int(session_id))


def prepare(root: Path) -> None:
    """Make the directories, and say that they are used now. For the server's user alone."""
    for name in ("inputs", *KEPT, "skills"):
        (root / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    about = root / _ABOUT
    if about.exists():
        os.utime(about)
    else:
        _keep(root, _about(root))


def _about(root: Path) -> dict[str, Any]:
    """Return what is known of a workspace; an unreadable note is none, for all of it can be made again."""
    kept: Any = {}
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads((root / _ABOUT).read_text(encoding="utf-8"))
    kept = kept if isinstance(kept, dict) else {}
    maps = {name: kept[name] if isinstance(kept.get(name), dict) else {} for name in ("inputs", "pins", "skills")}
    return {"version": _VERSION, "made": kept.get("made") or round(time.time()), **maps}


def _keep(root: Path, about: Mapping[str, Any]) -> None:
    fresh = root / f"{_ABOUT}.new"
    fresh.write_text(json.dumps(about, ensure_ascii=False, indent=1), encoding="utf-8")
    fresh.replace(root / _ABOUT)


def _walk(root: Path, warnings: list[str]) -> Iterator[tuple[FileInfo, Path]]:
    """Yield the regular files below the kept directories. Links are passed over, each with a warning."""
    seen = 0
    for top in KEPT:
        for folder, folders, names in os.walk(root / top):
            for name in [*folders, *names]:
                whole = Path(folder, name)
                try:
                    about = os.lstat(whole)
                except FileNotFoundError:
                    continue  # taken away by a command that ended just now
                path = whole.relative_to(root).as_posix()
                if stat.S_ISLNK(about.st_mode):
                    warnings.append(f"{path} is a link and was passed over.")
                elif stat.S_ISREG(about.st_mode):
                    yield FileInfo(path=path, size_bytes=about.st_size, changed_ns=about.st_mtime_ns), whole
                seen += 1
                if seen > MOST_FILES:
                    return


def _collected(info: FileInfo, data: bytes) -> Collected:
    return Collected(
        path=info.path,
        data=data,
        size_bytes=info.size_bytes,
        mime=mime_of(info.path, data),
        truncated=len(data) < info.size_bytes,
    )


def _head(path: Path, size: int) -> bytes:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        return file.read(size)


def _write(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(data)


async def _in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call it in a thread. Raises ExecutorFailed when the directory cannot be read or written."""
    try:
        return await asyncio.to_thread(function, *args, **kwargs)
    except FileNotFoundError:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        said = "The server's disk is full." if full else "The workspace cannot be read or written."
        raise ExecutorFailed(said) from error
