"""The supervisor with small programs of its own: starts, restarts, gates, stops."""

import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.processes import CannotStart, Command
from workbench.supervisor import Interrupted, Part, State, Supervisor


class Said(list[str]):
    def __call__(self, part: Part, words: str) -> None:
        self.append(f"{part.name} {words.split(':')[0]}")


@pytest.fixture
def said() -> Said:
    return Said()


def part(tmp_path: Path, program: str, *, once: bool = False, patience_s: float = 2.0) -> Part:
    """A part that runs a few lines of Python; it is ready when those have made the file `ready`."""
    ready = tmp_path / "ready"
    return Part(
        name="part",
        prepare=lambda: ready.unlink(missing_ok=True),
        command=lambda: Command(
            argv=(sys.executable, "-c", program),
            env={"READY": str(ready)},
            cwd=tmp_path,
            stop=((signal.SIGTERM, patience_s),),
            death=signal.SIGKILL,
            log=tmp_path / "log",
        ),
        ready=lambda pid: ready.exists(),
        says=lambda: "here",
        once=once,
        timeout_s=20,
    )


READY = "import os, time, signal, pathlib; pathlib.Path(os.environ['READY']).touch(); "


def ticking(supervisor: Supervisor, truth: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not truth():
        supervisor.tick()
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_part_that_dies_comes_back_later_each_time(tmp_path: Path, said: Said) -> None:
    supervisor, one = Supervisor(report=said), part(tmp_path, READY + "time.sleep(60)")
    supervisor.start(one)
    supervisor.wait(one)
    for _ in range(2):
        assert one.process is not None
        one.process.kill()
        ticking(supervisor, lambda: one.state is State.WAITING)
        ticking(supervisor, lambda: one.state is State.READY)
    supervisor.shut_all()
    assert [line for line in said if "again" in line] == [
        "part ended (signal SIGKILL), starting again in 0.1 s",
        "part starting again",
        "part ended (signal SIGKILL), starting again in 0.5 s",
        "part starting again",
    ]


def test_a_first_start_that_fails_is_told_with_its_last_words(tmp_path: Path, said: Said) -> None:
    supervisor = Supervisor(report=said)
    one = part(tmp_path, "import sys; sys.exit('no room on the disk')")
    supervisor.start(one)
    with pytest.raises(CannotStart, match=r"(?s)exit code 1.*no room on the disk"):
        supervisor.wait(one)


def test_work_that_is_done_once_is_ready_when_it_has_ended(tmp_path: Path, said: Said) -> None:
    supervisor, one = Supervisor(report=said), part(tmp_path, "pass", once=True)
    supervisor.start(one)
    supervisor.wait(one)
    supervisor.tick()
    assert said[-1].startswith("part ready in")
    assert one.process is None


def test_a_part_behind_a_gate_is_not_asked(tmp_path: Path, said: Said) -> None:
    supervisor, one = Supervisor(report=said), part(tmp_path, READY + "time.sleep(60)")
    one.asked = False
    supervisor.start(one)
    ticking(supervisor, (tmp_path / "ready").exists)
    supervisor.tick()
    assert one.state is State.STARTING
    one.asked = True
    supervisor.wait(one)
    supervisor.shut_all()


def test_who_does_not_stop_when_asked_is_killed_with_its_children(tmp_path: Path, said: Said) -> None:
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork(); pathlib.Path(os.environ['READY']).touch(); "
    program = "import os, time, signal, pathlib; " + deaf + "time.sleep(60)"
    supervisor, one = Supervisor(report=said), part(tmp_path, program, patience_s=0.2)
    supervisor.start(one)
    supervisor.wait(one)
    assert one.process is not None
    pid, began = one.process.pid, time.monotonic()
    supervisor.shut_all()
    assert 0.2 <= time.monotonic() - began < 20
    end = time.monotonic() + 20
    while any(group(p) == pid for p in Path("/proc").iterdir() if p.name.isdigit()):
        assert time.monotonic() < end
        time.sleep(0.01)


def group(place: Path) -> int:
    """Return the process group, 0 for one that is gone or only waits to be reaped."""
    try:
        words = (place / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if words[0] == "Z" else int(words[2])


def test_asked_twice_to_stop_nobody_waits_for_anybody(tmp_path: Path, said: Said) -> None:
    program = READY + "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    supervisor, one = Supervisor(report=said), part(tmp_path, program, patience_s=30)
    supervisor.start(one)
    supervisor.wait(one)
    threading.Timer(0.1, lambda: setattr(supervisor, "stops", 2)).start()
    began = time.monotonic()
    supervisor.shut_all()
    assert time.monotonic() - began < 20


def test_being_asked_to_stop_ends_the_waiting_for_a_start(tmp_path: Path, said: Said) -> None:
    supervisor, one = Supervisor(report=said), part(tmp_path, "import time; time.sleep(60)")
    supervisor.start(one)
    supervisor.stops = 1
    with pytest.raises(Interrupted):
        supervisor.wait(one)
    supervisor.shut_all()


def test_a_part_that_cannot_start_again_is_tried_until_it_can(tmp_path: Path, said: Said) -> None:
    supervisor, one = Supervisor(report=said), part(tmp_path, READY + "time.sleep(60)")
    supervisor.start(one)
    supervisor.wait(one)
    before, one.prepare = one.prepare, refuse
    assert one.process is not None
    one.process.kill()
    ticking(supervisor, lambda: "part cannot start" in said)
    one.prepare, one.retry_at = before, 0.0
    ticking(supervisor, lambda: one.state is State.READY)
    supervisor.shut_all()


def refuse() -> None:
    raise CannotStart("the disk is full")
