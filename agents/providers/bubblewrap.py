"""Full Python and a shell in a sandbox of bubblewrap: what the machine has, and nothing else of the machine.

The workspace is carried into a tmpfs of limited size and back (sandbox/carrying.py), so a command sees no directory of
ours, and cannot fill our disk. It has namespaces of its own for processes, network, users, IPC and names; no root, no
capabilities, no environment of ours, programs and libraries read-only; and a seccomp filter where the platform has one
(sandbox/filter.py). sandbox/inside.py is the first process in there.
"""

import asyncio
import contextlib
import logging
import math
import os
import secrets
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, Final

from agents.providers.sandbox import carrying, filter, walls
from agents.providers.sandbox.window import Recent, Window
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
    environment,
)

logger = logging.getLogger(__name__)

GRACE_S: Final = 5.0  # after its time, for killing everything and carrying the files back
SHELL: Final = "/bin/sh"
OPEN_FILES: Final = 256
WAITING_BYTES: Final = 1024 * 1024  # of input that nobody has read yet; more is dropped
_HERE: Final = Path(__file__).with_name("sandbox")
_GIVEN: Final = ".given"
_ENV: Final = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",  # threads would count as processes
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
    "MPLCONFIGDIR": "/tmp",
    "WORKSPACE_DIR": WORKSPACE,
    "SKILLS_DIR": f"{WORKSPACE}/skills",
    "WORK_DIR": f"{WORKSPACE}/work",
    "OUTPUT_DIR": f"{WORKSPACE}/out",
}
_GUIDE: Final = (
    "Code runs in full Python 3 and a POSIX shell with what is installed on the machine; there is no network and "
    "nothing can be installed. Functions that are there without import: read_table(path) returns the rows of a CSV, "
    "TSV or JSON file as dicts (values are text); write_text(path, text); chart(kind, data, title, path) draws a list "
    "of dicts as SVG, kind line, bar, scatter or pie, first column the label, the others numbers."
)


class Bubblewrap:
    """agents.runtime.code.Executor. hidden: directories of ours that must not be seen, wherever they lie."""

    def __init__(self, *, hidden: Sequence[Path] = (), env: Mapping[str, str] | None = None) -> None:
        self._hidden = tuple(hidden)
        self._env = dict(env or {})

    @property
    def info(self) -> ExecutorInfo:
        filtered = "with a seccomp filter" if filter.program() else "without a seccomp filter on this platform"
        return ExecutorInfo(
            name="bubblewrap",
            languages=frozenset(Language),
            isolation=f"full Python and shell in namespaces of their own, no network, {filtered}",
            guide=_GUIDE,
            interactive=True,
        )

    async def run(
        self, root: Path, command: Command, limits: CodeLimits, *, output: Callable[[str], None] = lambda text: None
    ) -> Executed:
        process = await self._begin(root, command, limits, output)
        try:
            await process.close_input(command.stdin)
            return await process.to_end()
        finally:
            await process.kill()

    async def start(self, root: Path, command: Command, limits: CodeLimits) -> "Boxed":
        process = await self._begin(root, command, limits, lambda text: None)
        try:
            await process.write(command.stdin)
        except BaseException:  # cancelled: nobody would know of it
            await process.kill()
            raise
        return process

    async def _begin(self, root: Path, command: Command, limits: CodeLimits, output: Callable[[str], None]) -> "Boxed":
        run_dir = f"runs/{secrets.token_hex(4)}"
        job, given = _job(command, limits, run_dir, self._env)
        process = Boxed(root=root, limits=limits, run_dir=run_dir, output=output)
        await process.spawn(self._arguments(limits), job, given)
        return process

    def _arguments(self, limits: CodeLimits) -> list[str]:
        return walls.arguments(limits.disk_bytes, self._hidden)


class Boxed:
    """agents.runtime.code.Process: one command in a sandbox, from our side."""

    def __init__(self, *, root: Path, limits: CodeLimits, run_dir: str, output: Callable[[str], None]) -> None:
        self._root, self._limits, self._run_dir, self._told = root, limits, run_dir, output
        self._windows = (Window(OUTPUT_BYTES), Window(OUTPUT_BYTES))
        self._recent = Recent()
        self._began = time.monotonic()
        self._child: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[Executed] | None = None

    async def spawn(self, arguments: Sequence[str], job: Mapping[str, Any], given: Sequence[carrying.Given]) -> None:
        """Start the sandbox and whatever serves it. Raises ExecutorFailed."""
        orders_in, orders_out = os.pipe()
        report_in, report_out = os.pipe()
        rules = walls.rules()
        fds = [orders_in, report_out, *([rules] if rules is not None else [])]
        words = [*arguments, *(["--seccomp", str(rules)] if rules is not None else []), "--"]
        words += [walls.PYTHON, "-I", "-S", "-c", _inside(), str(orders_in), str(report_out), str(max(fds))]
        try:
            self._child = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd="/",
                env={},
                pass_fds=fds,
                start_new_session=True,
            )
        except BaseException as error:
            os.close(orders_out)
            os.close(report_in)
            if isinstance(error, OSError):
                raise ExecutorFailed("The sandbox could not be started.") from error
            raise
        finally:
            for fd in fds:
                os.close(fd)
        pipes = os.fdopen(orders_out, "wb"), os.fdopen(report_in, "rb")
        self._task = asyncio.create_task(self._serve(self._child, *pipes, job, given))
        self._task.add_done_callback(lambda task: _close(*pipes))  # it may be cancelled before it begins

    async def _serve(
        self,
        child: asyncio.subprocess.Process,
        orders: IO[bytes],
        report: IO[bytes],
        job: Mapping[str, Any],
        given: Sequence[carrying.Given],
    ) -> Executed:
        assert child.stdout is not None and child.stderr is not None
        send = partial(carrying.send_orders, most_bytes=self._limits.disk_bytes)
        try:
            async with asyncio.timeout(self._limits.wall_s + GRACE_S):
                with contextlib.suppress(BrokenPipeError):  # it may be dead already; the report says so
                    await asyncio.to_thread(send, orders, self._root, job, given)
                # at once: bwrap holds its outputs open until the report is read
                _, _, came = await asyncio.gather(
                    self._read(child.stdout, 0), self._read(child.stderr, 1), self._receive(report)
                )
        except TimeoutError:
            came = carrying.Report(stopped="time")
        except carrying.NotTrusted as error:
            logger.warning("a sandbox ended without a report: %s", error)
            if self._windows[1].text().startswith(("bwrap: ", "setpriv: ")):
                raise ExecutorFailed("The sandbox could not be set up.") from error
            came = carrying.Report(stopped="memory")  # what kills it from outside is the kernel, out of memory
        except carrying.TooMuch as error:
            raise ExecutorFailed("The workspace holds more than a run may have.") from error
        except OSError as error:
            raise ExecutorFailed("The workspace cannot be read.") from error
        finally:
            await _ended(child)
        return self._executed(came)

    async def _receive(self, answers: IO[bytes]) -> carrying.Report:
        await _readable(answers.fileno())
        limits = self._limits
        return await asyncio.to_thread(
            carrying.receive, answers, self._root, most_bytes=limits.disk_bytes, most_files=limits.files
        )

    async def _read(self, stream: asyncio.StreamReader, which: int) -> None:
        while data := await stream.read(65_536):
            text = self._windows[which].take(data)
            self._recent.add(text)
            self._told(text)

    def _executed(self, came: carrying.Report) -> Executed:
        out, err = self._windows
        warnings = [f"{path} is a link and was not kept." for path in came.links[:5]]
        if came.left:
            warnings.append(f"{len(came.left)} files were too many and were not kept, among them {came.left[0]}.")
        return Executed(
            stdout=out.text(),
            stderr=err.text(),
            exit_code=EXIT_KILLED if came.stopped else came.exit_code,
            duration_ms=round((time.monotonic() - self._began) * 1000),
            cut=out.cut or err.cut,
            stopped=came.stopped,
            warnings=tuple(warnings),
            run_dir=self._run_dir,
        )

    async def to_end(self) -> Executed:
        """Wait for its end. Raises ExecutorFailed."""
        assert self._task is not None
        return await asyncio.shield(self._task)

    async def close_input(self, text: str) -> None:
        assert self._child is not None and self._child.stdin is not None
        if text:
            await self.write(text)
        self._child.stdin.close()

    # Process

    def output(self, offset: int) -> tuple[str, int]:
        return self._recent.since(offset)

    @property
    def end(self) -> int:
        return self._recent.end

    @property
    def over(self) -> bool:
        return self._task is not None and self._task.done()

    async def write(self, text: str) -> None:
        assert self._child is not None and self._child.stdin is not None
        if self._child.stdin.transport.get_write_buffer_size() > WAITING_BYTES:
            return  # it does not read
        self._child.stdin.write(text.encode("utf-8", "replace"))
        with contextlib.suppress(ConnectionError, TimeoutError):
            await asyncio.wait_for(self._child.stdin.drain(), 1.0)

    async def wait(self, seconds: float) -> Executed | None:
        assert self._task is not None
        await asyncio.wait({self._task}, timeout=seconds)
        if self._task.cancelled():
            raise ExecutorFailed("It was ended.")
        return self._task.result() if self._task.done() else None

    async def kill(self) -> None:
        if self._child is not None:
            _end(self._child)
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=GRACE_S)
        if self._child is not None:
            await _ended(self._child)


def _close(*files: IO[bytes]) -> None:
    for file in files:
        with contextlib.suppress(OSError):  # what nobody reads any more cannot be flushed
            file.close()


def _end(child: asyncio.subprocess.Process) -> None:
    """Kill bwrap with its session; the kernel then kills process 1 inside, and with it all others."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


async def _ended(child: asyncio.subprocess.Process) -> None:
    """Kill it if it runs, and let go of it. What dies inside may hold its outputs a moment longer, and no loop may be
    closed while it still reads them."""
    _end(child)
    await child.wait()
    transport: asyncio.SubprocessTransport = child._transport  # type: ignore[attr-defined]  # it has no close of its own
    transport.close()
    await asyncio.sleep(0)


async def _readable(fd: int) -> None:
    """Wait until there is something to read, or the other end is closed."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)


def _job(
    command: Command, limits: CodeLimits, run_dir: str, provided: Mapping[str, str]
) -> tuple[dict[str, Any], list[carrying.Given]]:
    python = command.language is Language.PYTHON
    program = f"{run_dir}/main.{'py' if python else 'sh'}"
    whole = f"{WORKSPACE}/{program}"
    argv = [walls.PYTHON, f"{WORKSPACE}/{_GIVEN}/given.py", whole] if python else [SHELL, whole]
    skill = command.cwd.split("/")[1] if command.cwd.startswith("skills/") else ""
    links = [(f"skills/{skill}/{name}", f"../../{target}") for name, target in _LINKS]
    job = {
        "root": WORKSPACE,
        "dirs": ["work", carrying.READ_ONLY, "out", "skills", run_dir, command.cwd],
        "links": [("inputs", carrying.READ_ONLY), *(links if skill else ())],
        "kept": list(carrying.KEPT),
        "returns": True,
        "cwd": command.cwd,
        "argv": argv,
        "env": environment({**_ENV, "RUN_DIR": f"{WORKSPACE}/{run_dir}"}, provided, command.env),
        "wall_s": limits.wall_s,
        "cpu_s": limits.cpu_s,
        "memory": limits.memory_bytes,
        "entries": limits.files + 5_000,
        "disks": [WORKSPACE, "/tmp", "/dev/shm"],
        "limits": {
            "RLIMIT_AS": limits.memory_bytes,
            "RLIMIT_CPU": max(1, math.ceil(limits.cpu_s)),
            "RLIMIT_NPROC": limits.processes,
            "RLIMIT_FSIZE": limits.disk_bytes,
            "RLIMIT_NOFILE": OPEN_FILES,
            "RLIMIT_CORE": 0,
            "RLIMIT_MEMLOCK": 0,
        },
    }
    given = [carrying.Given(path=program, data=command.code.encode("utf-8", "replace"))]
    if python:
        given += [carrying.Given(path=f"{_GIVEN}/{name}", data=data) for name, data in _helpers()]
    return job, given


_LINKS: Final = (("inputs", "work/inputs"), ("out", "out"), ("work", "work"))


@cache
def _inside() -> str:
    return (_HERE / "inside.py").read_text(encoding="utf-8")


@cache
def _helpers() -> tuple[tuple[str, bytes], ...]:
    return tuple((name, (_HERE / name).read_bytes()) for name in ("given.py", "tables.py", "charts.py"))
