"""Processes of the launcher's own: started, told to stop, and found again after a crash. Standard library only."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypedDict

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None
LOG_MAX_BYTES = 10_000_000
LOOK_S = 0.5  # between two looks whether the parent is there


class CannotStart(Exception):
    """A part of the installation cannot run here; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Whom a server runs as when the launcher is root."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A process to start.

    stop: signals with seconds to wait after each, gentlest first; a kill of the whole group follows.
    death: what the kernel sends it when the launcher dies, also from kill -9.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    stop: tuple[tuple[signal.Signals, float], ...]
    death: signal.Signals
    account: Account | None = None
    log: Path | None = None  # None = the launcher's own output
    mute: bool = False  # without a log: only standard error is shown
    pass_fds: tuple[int, ...] = ()


class RunAs(TypedDict, total=False):
    """The arguments of subprocess that change the user."""

    user: int
    group: int
    extra_groups: list[int]


def run_as(account: Account | None) -> RunAs:
    return {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}


def spawn(command: Command) -> subprocess.Popen[bytes]:
    """Start the process in a session of its own. Call it from the main thread: the kernel ties `death` to that."""
    parent = os.getpid()

    def before_exec() -> None:
        # runs after the change of user, so the setting sticks
        if _libc is not None:
            _libc.prctl(1, int(command.death))  # 1 = PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    with contextlib.ExitStack() as stack:
        out: IO[bytes] | int | None = subprocess.DEVNULL if command.mute else None
        err: IO[bytes] | None = None
        if command.log is not None:
            command.log.parent.mkdir(mode=0o700, exist_ok=True)
            out = err = stack.enter_context(command.log.open("ab"))
        return subprocess.Popen(
            command.argv,
            env=command.env,
            cwd=command.cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            pass_fds=command.pass_fds,
            preexec_fn=before_exec,  # the launcher has one thread
            **run_as(command.account),
        )


def end_after(parent: int, *, grace_s: float) -> None:
    """Wait until this process is no child of `parent` any more, and kill its whole group grace_s later.

    For programs that the kernel's signal asks to end, but which may wait for a server that died in the same moment.
    Call it in a thread of the leader of a group.
    """
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    time.sleep(grace_s)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > LOG_MAX_BYTES:
        log.replace(log.with_suffix(".log.1"))


def processes_in(directory: Path, program: str) -> list[int]:
    """Return the ids of processes of that program whose working directory this is.

    That, and not a number in a file, says whose process it is: after a crash or a restart of the machine the number
    may belong to anybody. A zombie has no working directory.
    """
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            exe = os.readlink(f"/proc/{entry.name}/exe").removesuffix(" (deleted)")
            if os.path.basename(exe) == program and os.readlink(f"/proc/{entry.name}/cwd") == str(directory):
                found.append(int(entry.name))
    return found


def clear_away(find: Callable[[], list[int]], signals: tuple[signal.Signals, ...], patience_s: float) -> None:
    """Wait until what a dead launcher left is gone. It is going already; from half the time on it is told again."""
    started = time.monotonic()
    told = 0
    while left := find():
        waited = time.monotonic() - started
        if waited > patience_s:
            raise CannotStart(f"Processes of an earlier start do not end: {' '.join(map(str, left))}.")
        if told < len(signals) and waited > patience_s * (told + 1) / (len(signals) + 2):
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signals[told])
            told += 1
        time.sleep(0.01)


def processes_marked(mark: str) -> list[int]:
    """Return the ids of processes that were started with this NAME=value in their environment, ours left out.

    Ours are this process and those above it. Only Python parts are found so: servers write over their environment.
    """
    above = set(_ancestors(os.getpid()))
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) in above:
            continue
        with contextlib.suppress(OSError):
            if mark.encode() in Path(f"/proc/{entry.name}/environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 0:
        yield pid
        try:
            # after the name in brackets, which may hold anything: state, parent
            pid = int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            return
