"""Keeps the parts of an installation running: starts them, sees when they are ready, restarts what dies, stops all.

One thread, one loop: the kernel ties "die when the launcher dies" to the thread that started the process.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from workbench.processes import CannotStart, Command, spawn

TICK_S = 0.02
BACKOFF_S = (0.1, 0.5, 1.0, 2.0, 5.0)  # before the 1st, 2nd, … restart in a row; the last stays
STEADY_S = 30.0  # a part that ran this long has its failures forgotten


class State(StrEnum):
    """Where a part is."""

    WAITING = "waiting"  # not started yet, or between two restarts
    STARTING = "starting"  # runs, and is not ready
    READY = "ready"
    STOPPED = "stopped"


Report = Callable[["Part", str], None]


class Interrupted(Exception):
    """A person or the system asked to stop while parts were still starting."""


@dataclass(slots=True, kw_only=True, eq=False)
class Part:
    """One process of the installation.

    command: made anew for each start, after `prepare` has cleared what the last one left.
    ready: asked until it says yes, with the process id.
    asked: `ready` is asked at all; False while the part waits behind a gate.
    once: it does its work and ends with 0; "ready" is that end. Any other end is CannotStart.
    """

    name: str
    command: Callable[[], Command]
    ready: Callable[[int], bool]
    says: Callable[[], str]
    prepare: Callable[[], None] = lambda: None
    asked: bool = True
    once: bool = False
    timeout_s: float = 60.0
    state: State = State.WAITING
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    retry_at: float = 0.0
    stop: Sequence[tuple[signal.Signals, float]] = ()

    def start(self) -> None:
        self.prepare()
        command = self.command()
        self.stop = command.stop
        self.process = spawn(command)
        self.started = time.monotonic()
        self.state = State.STARTING


@dataclass(slots=True, kw_only=True)
class Supervisor:
    """Runs parts. `report` is told each change of state, with words for people."""

    report: Report
    parts: list[Part] = field(default_factory=list)
    stops: int = 0  # how often it was asked to stop; the second time nobody waits for anybody

    def start(self, part: Part) -> None:
        """Start a part. Raises CannotStart when it may not run here."""
        self.parts.append(part)
        part.start()
        self.report(part, "starting")

    def wait(self, *parts: Part) -> None:
        """Return when all these parts are ready. Raises CannotStart if one ends, or does not get ready in time."""
        while not all(part.state is State.READY for part in parts):
            if self.stops:
                raise Interrupted
            self.tick(patient=False)
            for part in parts:
                if part.state is State.STARTING and time.monotonic() - part.started > part.timeout_s:
                    raise CannotStart(f"{part.name} is not ready after {part.timeout_s:.0f} s.")
            time.sleep(TICK_S)

    def tick(self, *, patient: bool = True) -> None:
        """Look at every part once: ready now? dead? due for a restart?

        patient: a part that ended is restarted; without it, and before it was ever ready, its end is CannotStart.
        """
        now = time.monotonic()
        for part in self.parts:
            if part.state is State.WAITING and part.retry_at <= now:
                self._again(part)
            elif part.state in (State.STARTING, State.READY) and part.process is not None:
                code = part.process.poll()
                if code is not None:
                    self._ended(part, code, patient)
                elif part.state is State.STARTING and part.asked and part.ready(part.process.pid):
                    part.state = State.READY
                    self.report(part, f"ready in {now - part.started:.2f} s: {part.says()}")
                elif part.failures and now - part.started > STEADY_S:
                    part.failures = 0

    def _ended(self, part: Part, code: int, patient: bool) -> None:
        if part.once and code == 0:
            part.state = State.READY
            part.process = None
            self.report(part, f"ready in {time.monotonic() - part.started:.2f} s: {part.says()}")
            return
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if part.once or not (patient or part.failures):
            raise CannotStart(f"{part.name} ended ({how}) before it was ready.{_last_words(part)}")
        self._sweep_group(part)
        delay = BACKOFF_S[min(part.failures, len(BACKOFF_S) - 1)]
        part.failures += 1
        part.retry_at = time.monotonic() + delay
        part.state = State.WAITING
        self.report(part, f"ended ({how}), starting again in {delay:g} s")

    def _again(self, part: Part) -> None:
        try:
            part.start()
        except (CannotStart, OSError) as e:
            part.failures += 1
            part.retry_at = time.monotonic() + BACKOFF_S[-1]
            self.report(part, f"cannot start: {e}")
        else:
            self.report(part, "starting again")

    @staticmethod
    def _sweep_group(part: Part) -> None:
        """Kill what a dead leader left in its group: workers of a worker, helpers of the web process."""
        if part.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(part.process.pid, signal.SIGKILL)

    def shut(self, parts: Iterable[Part]) -> None:
        """Stop these parts side by side, gently first; kill what is left of each group in the end."""
        stopping = [self._insist(part, part.process) for part in parts if part.process and part.state != State.STOPPED]
        while stopping := [steps for steps in stopping if next(steps, False)]:
            time.sleep(TICK_S)

    def _insist(self, part: Part, process: subprocess.Popen[bytes]) -> Iterator[bool]:
        """Step by step send the part's stop signals; ends when the process is gone."""
        part.state = State.STOPPED
        for number, patience_s in part.stop:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
            until = time.monotonic() + patience_s
            while process.poll() is None and time.monotonic() < until and self.stops < 2:
                yield True
        if process.poll() is None:
            process.kill()
        self._sweep_group(part)
        process.wait()

    def shut_all(self) -> None:
        """Stop everything, last started first: first those who use servers, then the servers."""
        servers = [part for part in self.parts if part.name in ("postgres", "valkey")]
        self.shut([part for part in self.parts if part not in servers])
        self.shut(servers)


def _last_words(part: Part) -> str:
    log = part.command().log
    if log is None or not log.exists():
        return ""
    with log.open("rb") as f:
        f.seek(max(0, log.stat().st_size - 600))
        return "\nIts last words:\n" + f.read().decode(errors="replace").strip()
