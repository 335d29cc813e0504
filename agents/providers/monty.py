"""Python in an interpreter that can do nothing by itself: no files but those it is given, no network, no processes.

Each run has an interpreter process of a pool for itself. The workspace is mounted, `work`, `out` and `runs` to be
written, inputs and skills to be read; read_table, write_text and chart are functions of ours, bounded like all else.
"""

import asyncio
import contextlib
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final
from weakref import WeakKeyDictionary

from pydantic_monty import (
    NOT_HANDLED,
    AsyncMonty,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
    MontySyntaxError,
    MountDir,
)

from agents.providers.sandbox import charts, tables
from agents.providers.sandbox.carrying import MOST_DEEP, directories, inventory
from agents.providers.sandbox.window import Window
from agents.runtime.code import (
    EXIT_KILLED,
    OUTPUT_BYTES,
    WORKSPACE,
    CodeLimits,
    Command,
    Executed,
    ExecutorFailed,
    ExecutorInfo,
    Language,
    Process,
    environment,
)

PROCESSES: Final = 16
CHECKOUT_S: Final = 30.0  # how long a run waits for an interpreter that is free
GRACE_S: Final = 2.0  # after its time; then the interpreter is killed
RECURSION: Final = 1_000
SLEEP_S: Final = 10.0
MOST_WRITTEN: Final = 16 * 1024 * 1024  # bytes of one write_text
_WRITTEN: Final = ("work", "out", "runs")
_EXITED: Final = re.compile(r"the program ended with status (-?\d+)")
_ENV: Final = {
    "LANG": "C.UTF-8",
    "WORKSPACE_DIR": WORKSPACE,
    "SKILLS_DIR": f"{WORKSPACE}/skills",
    "WORK_DIR": f"{WORKSPACE}/work",
    "OUTPUT_DIR": f"{WORKSPACE}/out",
}
_GUIDE: Final = (
    "Code runs in a restricted Python interpreter, not in CPython: functions, closures, plain classes, dataclasses, "
    "comprehensions, f-strings, try, with and match work; there is no class inheritance, no yield, no del, and no "
    "third-party package. Modules: json, re, math, datetime, time, collections, itertools, functools, random, decimal, "
    "csv, base64, hashlib, typing, dataclasses, pathlib and os (files only). No shell, no input, no network. "
    "Functions that are there without import: read_table(path) returns the rows of a CSV, TSV or JSON file as dicts "
    "(values of CSV and TSV are text: convert them); write_text(path, text); chart(kind, data, title, path) draws a "
    "list of dicts as SVG, kind line, bar, scatter or pie, first column the label, the others numbers; exit(status)."
)
_pools: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool]" = WeakKeyDictionary()


class MontyExecutor:
    """agents.runtime.code.Executor."""

    def __init__(self, *, env: Mapping[str, str] | None = None) -> None:
        self._env = dict(env or {})

    @property
    def info(self) -> ExecutorInfo:
        return ExecutorInfo(
            name="monty",
            languages=frozenset({Language.PYTHON}),
            isolation="an interpreter of its own without network, processes and files but those of the workspace",
            guide=_GUIDE,
        )

    async def run(
        self, root: Path, command: Command, limits: CodeLimits, *, output: Callable[[str], None] = lambda text: None
    ) -> Executed:
        if command.language is not Language.PYTHON:
            raise ExecutorFailed("This executor runs Python only.")
        there = await asyncio.to_thread(inventory, root)
        held = len(there) + await asyncio.to_thread(directories, root)
        if held >= limits.files:
            raise ExecutorFailed(f"The workspace holds {held} files and directories, and may have {limits.files}.")
        room = limits.disk_bytes - sum(size for _path, size, _mode in there)
        # a suspension for each file that is opened, so it cannot make more than there is room for
        limits = replace(limits, files=limits.files - held)
        run = _Run(root, command, limits, room, output)
        began = time.monotonic()
        exit_code, stopped = await run.feed(environment(_ENV, self._env, command.env))
        out, err = run.windows
        return Executed(
            stdout=out.text(),
            stderr=err.text(),
            exit_code=exit_code,
            duration_ms=round((time.monotonic() - began) * 1000),
            cut=out.cut or err.cut,
            stopped=stopped,
            run_dir=run.run_dir,
        )

    async def start(self, root: Path, command: Command, limits: CodeLimits) -> Process:
        raise ExecutorFailed("This executor runs a command to its end; nothing goes on beside.")


class _Pool:
    """The interpreters of one event loop."""

    def __init__(self) -> None:
        self._opening = asyncio.Lock()
        self._pool: AsyncMonty | None = None

    async def get(self) -> AsyncMonty:
        async with self._opening:
            if self._pool is None:
                pool = AsyncMonty(
                    min_processes=1,
                    max_processes=PROCESSES,
                    checkout_timeout=CHECKOUT_S,
                    feed_duration_limit_grace=GRACE_S,
                )
                try:
                    self._pool = await pool.__aenter__()
                except (OSError, MontyError) as error:
                    raise ExecutorFailed("The interpreter could not be started.") from error
            return self._pool

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)


async def close() -> None:
    """End this event loop's interpreters."""
    pool = _pools.pop(asyncio.get_running_loop(), None)
    if pool is not None:
        await pool.close()


class _Run:
    """One run: its mounts, its functions and what it prints. room: bytes that it may still write, in all."""

    def __init__(
        self, root: Path, command: Command, limits: CodeLimits, room: int, output: Callable[[str], None]
    ) -> None:
        self._root, self._command, self._limits, self._output = root, command, limits, output
        self._room, self._directories = max(0, room), limits.files
        self._loop = asyncio.get_running_loop()
        self.windows = (Window(OUTPUT_BYTES), Window(OUTPUT_BYTES))
        self.run_dir = f"runs/{secrets.token_hex(4)}"
        self._places = _places(command.cwd)

    async def feed(self, env: Mapping[str, str]) -> tuple[int, str]:
        """Run the code. Returns exit status and what stopped it. Raises ExecutorFailed."""
        limits = self._limits
        pool = await _pools.setdefault(self._loop, _Pool()).get()
        (self._root / self.run_dir).mkdir(parents=True, exist_ok=True)
        env = {**env, "RUN_DIR": f"{WORKSPACE}/{self.run_dir}"}
        checkout = pool.checkout(
            limits={
                "max_feed_duration_secs": min(limits.cpu_s, limits.wall_s),
                "max_memory": limits.memory_bytes,
                "max_recursion_depth": RECURSION,
                "max_suspensions": limits.files,
                "max_total_sleep_secs": min(limits.wall_s, SLEEP_S),
            },
            print_flush_interval=0.05,
        )
        try:
            async with asyncio.timeout(limits.wall_s + GRACE_S):
                with contextlib.ExitStack() as mounts:
                    mounted = [mounts.enter_context(mount) for mount in self._mounts()]
                    async with checkout as session:
                        await session.feed_run(
                            self._command.code,
                            external_lookup={
                                "read_table": self._read_table,
                                "write_text": self._write_text,
                                "chart": self._chart,
                                "exit": _exit,
                                "quit": _exit,
                            },
                            print_callback=self._printed,
                            mount=mounted,
                            cwd=f"{WORKSPACE}/{self._command.cwd}".rstrip("/"),
                            os=lambda *, name, args, **_more: _answered(name, args, env),
                        )
            return 0, ""
        except TimeoutError:
            return EXIT_KILLED, "time"
        except MontyError as error:
            return self._failed(error)
        except OSError as error:
            raise ExecutorFailed("The workspace cannot be read.") from error
        finally:
            with contextlib.suppress(OSError):
                (self._root / self.run_dir).rmdir()  # unless it was used

    def _failed(self, error: MontyError) -> tuple[int, str]:
        if isinstance(error, MontyCrashedError):
            return EXIT_KILLED, "time" if getattr(error, "timed_out", False) else "memory"
        if not isinstance(error, MontyRuntimeError | MontySyntaxError):
            raise ExecutorFailed("The interpreter failed.") from error
        inner, said = error.exception(), error.display("traceback")
        if (status := _EXITED.search(said)) and isinstance(inner, SystemExit | RuntimeError):
            return int(status[1]) & 0xFF, ""
        self._printed("stderr", f"{said.rstrip()}\n")
        if isinstance(inner, TimeoutError) and "limit exceeded" in said:
            return EXIT_KILLED, "time"
        if isinstance(inner, MemoryError):
            return EXIT_KILLED, "memory"
        if "disk write limit" in said or "suspension limit" in said:
            return EXIT_KILLED, "disk"
        return 1, ""

    def _printed(self, stream: str, text: str) -> None:
        """Keep what was printed. Called in a thread of the pool."""
        self.windows[stream == "stderr"].take(text.encode("utf-8", "replace"))
        self._loop.call_soon_threadsafe(self._output, text)

    def _mounts(self) -> list[MountDir]:
        left = self._room
        mounts = []
        for shown, name in self._places.items():
            host = self._root / name
            host.mkdir(parents=True, exist_ok=True)
            write = name in _WRITTEN
            mounts.append(
                MountDir(
                    host_path=host,
                    virtual_path=f"{WORKSPACE}/{shown}",
                    mode="read-write" if write else "read-only",
                    write_bytes_limit=left // len(_WRITTEN) if write else None,
                )
            )
        return mounts

    # What code finds there. Called in a thread of the pool, so that it may take its time.

    def _read_table(self, path: str) -> list[dict[str, Any]]:
        host = self._host(path, write=False)
        if not host.is_file():
            raise FileNotFoundError(f"No such file: '{path}'")
        with host.open("rb") as file:
            return tables.table(file.read(tables.MOST_BYTES + 1), host.name)

    def _write_text(self, path: str, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"text must be str, not {type(text).__name__}")
        return self._write(path, text.encode("utf-8", "replace"))

    def _chart(self, kind: str, data: Any, title: str = "", path: str = "") -> str:
        path = path or charts.file_name(str(title))
        self._write(path, charts.svg(kind, data, title).encode("utf-8", "replace"))
        return path

    def _write(self, path: str, data: bytes) -> int:
        host = self._host(path, write=True)
        if len(data) > min(MOST_WRITTEN, self._room):
            raise OSError(f"disk write limit exceeded: {len(data)} bytes are too many")
        if len(host.relative_to(self._root).parts) > MOST_DEEP:
            raise OSError(f"File name too long: '{path}'")
        new = sum(1 for parent in host.parents if not parent.exists())
        if new > self._directories:
            raise OSError("disk write limit exceeded: there are too many directories")
        self._directories -= new
        self._room -= len(data)
        host.parent.mkdir(parents=True, exist_ok=True)
        return host.write_bytes(data)

    def _host(self, path: str, *, write: bool) -> Path:
        """Return where a path of the code lies here. There are no links in a workspace, and code can make none."""
        if not isinstance(path, str) or "\0" in path:
            raise ValueError("path must be text")
        parts: list[str] = []
        for part in PurePosixPath(WORKSPACE, self._command.cwd, path).parts[1:]:
            if part == "..":
                parts = parts[:-1]
            else:
                parts.append(part)
        inside = "/".join(parts[1:]) if parts[:1] == [WORKSPACE.strip("/")] else ""
        places = {"inputs": "inputs", **_places(""), **self._places}
        if self._command.cwd.startswith("skills/"):  # inputs are where they are, whichever way one comes to them
            places[f"{'/'.join(self._command.cwd.split('/')[:2])}/work/inputs"] = "inputs"
        for shown, name in sorted(places.items(), key=lambda place: -len(place[0])):
            if inside.startswith(f"{shown}/"):
                if write and name not in _WRITTEN:
                    raise PermissionError(f"Read-only file system: '{path}'")
                return self._root / name / inside.removeprefix(f"{shown}/")
        raise PermissionError(f"Permission denied: '{path}'")


def _places(cwd: str) -> dict[str, str]:
    """Return what is mounted: path inside -> directory here. No directory twice, so it depends on where one works."""
    home = "/".join(cwd.split("/")[:2])
    if home.startswith("skills/"):
        linked = {f"{home}/work": "work", f"{home}/out": "out", f"{home}/inputs": "inputs", home: home}
        return {**linked, "runs": "runs"}
    return {"work/inputs": "inputs", "work": "work", "out": "out", "runs": "runs", "skills": "skills"}


def _answered(name: str, args: tuple[Any, ...], env: Mapping[str, str]) -> Any:
    """Answer what the interpreter asks of the system, of which there is only the environment."""
    if name == "os.environ":
        return dict(env)
    if name == "os.getenv":
        return env.get(args[0], args[1] if len(args) > 1 else None)
    return NOT_HANDLED


def _exit(status: object = 0) -> None:
    number = status if isinstance(status, int) else 0 if status is None else 1
    raise SystemExit(f"the program ended with status {int(number)}")
