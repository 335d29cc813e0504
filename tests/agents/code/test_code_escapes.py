"""Attempts to get out: each succeeds outside a sandbox, none succeeds inside, with either executor."""

import asyncio
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.providers import monty
from agents.providers.bubblewrap import Bubblewrap
from agents.providers.monty import MontyExecutor
from agents.providers.sandbox import given
from agents.providers.sandbox.carrying import inventory
from agents.runtime.code import CodeLimits, Command, Executor, Language
from agents.workspaces.directory import prepare
from tests.agents.code.attempts import ATTEMPTS, KINDS, Attempt
from tests.agents.code.executors import needs_bubblewrap

LIMITS = CodeLimits(
    wall_s=5.0, cpu_s=5.0, memory_bytes=128 * 1024 * 1024, processes=24, disk_bytes=16 * 1024 * 1024, files=300
)
HURRIED = CodeLimits(
    wall_s=0.7, cpu_s=0.7, memory_bytes=128 * 1024 * 1024, processes=24, disk_bytes=16 * 1024 * 1024, files=300
)
# where success is a trace on the machine, not what the code prints
TRACES = ("write", "processes", "disk", "time")
LATER_S = {"a child that stays": 0.8, "a child that outlives its parent": 1.8}


@dataclass(slots=True)
class Scene:
    """What an attempt may reach for: files, sockets and a process of ours, and a workspace it works in."""

    folder: Path
    other: "subprocess.Popen[bytes]"
    port: int
    udp: int
    root: Path

    @property
    def target(self) -> Path:
        return self.folder / "open" / "target"

    @property
    def victim(self) -> Path:
        return self.folder / "open" / "victim"

    def names(self) -> str:
        values = {
            "SECRET": str(self.folder / "open" / "secret.csv"),
            "TARGET": str(self.target),
            "VICTIM": str(self.victim),
            "UNIX": str(self.folder / "s"),
            "ABSTRACT": f"workbench-{self.port}",
            "PORT": self.port,
            "UDP": self.udp,
            "OTHER": self.other.pid,
            "SERVER": os.getpid(),
            "NODE": platform.node(),
            "COMMAND": Path("/proc/self/cmdline").read_text(),
            "INTERFACES": len(socket.if_nameindex()),
        }
        return "".join(f"{name} = {value!r}\n" for name, value in values.items())

    def touched(self, root: Path) -> bool:
        """Return whether the attempt left a trace where it may not."""
        files = inventory(root)
        sizes = sum(size for _path, size, _mode in files)
        return (
            self.target.exists()
            or not self.victim.exists()
            or self.victim.read_text() != "whole"
            or self.other.poll() is not None
            or (root / "inputs" / "given.csv").read_text() != "a,b\n1,2\n"
            or len(files) > LIMITS.files
            or sizes > LIMITS.disk_bytes
        )


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setenv("WORKBENCH_TEST_SECRET", "hidden")
    folder = Path("/tmp", f"wb-{tmp_path.name[-12:]}-{os.getpid()}")  # short, for the socket; open to everybody
    (folder / "open").mkdir(parents=True)
    for path in (folder, folder / "open"):
        path.chmod(0o777)
    (folder / "open" / "secret.csv").write_text("a\nhidden\n")
    (folder / "open" / "secret.csv").chmod(0o666)
    (folder / "open" / "victim").write_text("whole")
    (folder / "open" / "victim").chmod(0o666)
    root = tmp_path / "workspace"
    prepare(root)
    (root / "inputs" / "given.csv").write_text("a,b\n1,2\n")
    with (
        socket.socket() as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        _listening(folder / "s") as unix,
    ):
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        udp.bind(("127.0.0.1", 0))
        port = tcp.getsockname()[1]
        with _listening(f"\0workbench-{port}") as abstract:
            threads = [threading.Thread(target=_answer, args=(s,), daemon=True) for s in (tcp, unix, abstract)]
            threads.append(threading.Thread(target=_echo, args=(udp,), daemon=True))
            for thread in threads:
                thread.start()
            with subprocess.Popen(["sleep", "60"]) as other:
                yield Scene(folder, other, port, udp.getsockname()[1], root)
                other.kill()
            for listening in (tcp, unix, abstract, udp):
                with suppress(OSError):
                    listening.shutdown(socket.SHUT_RDWR)
    shutil.rmtree(folder)


def _listening(address: Path | str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(address))
    if isinstance(address, Path):
        address.chmod(0o777)
    made.listen()
    return made


def _answer(listening: socket.socket) -> None:
    with suppress(OSError):
        while True:
            link = listening.accept()[0]
            link.settimeout(0.05)
            with link, suppress(OSError):
                link.recv(4096)
                link.sendall(b"HTTP/1.0 200 OK\r\n\r\nhello")


def _echo(udp: socket.socket) -> None:
    with suppress(OSError):
        while True:
            data, whom = udp.recvfrom(64)
            if whom is None:  # it was shut down
                return
            udp.sendto(data, whom)


def outside(attempt: Attempt, scene: Scene, tmp_path: Path) -> bool:
    """Run the attempt as a program of the machine, in a directory that looks like a workspace."""
    home = tmp_path / "outside"
    for name in ("work", "out", "runs", "skills"):
        (home / name).mkdir(parents=True)
    (home / "inputs").mkdir()
    (home / "work" / "inputs").symlink_to(home / "inputs")
    (home / "inputs" / "given.csv").write_text("a,b\n1,2\n")
    program = tmp_path / "main.py"
    program.write_text(scene.names() + attempt.code)
    with subprocess.Popen(
        [sys.executable, given.__file__, str(program)],
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        try:
            said, complaint = child.communicate(timeout=30)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    time.sleep(LATER_S.get(attempt.name, 0))  # the attempt itself is about what happens later
    done = b"ESCAPED" in said or (attempt.kind in TRACES and scene.touched(home))
    if not done:
        print(complaint.decode())
    return done


async def inside(attempt: Attempt, scene: Scene, executor: Executor) -> bool:
    limits = HURRIED if attempt.kind == "time" else LIMITS
    command = Command(language=Language.PYTHON, code=scene.names() + attempt.code)
    done = await executor.run(scene.root, command, limits)
    await asyncio.sleep(LATER_S.get(attempt.name, 0))
    print(done)
    return "ESCAPED" in done.stdout or scene.touched(scene.root)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: f"{a.kind}: {a.name}")
def test_an_attempt_succeeds_where_nothing_holds_it(attempt: Attempt, scene: Scene, tmp_path: Path) -> None:
    if attempt.name == "the machine's interfaces" and len(socket.if_nameindex()) < 2:
        pytest.skip("this machine has no network besides itself")
    assert outside(attempt, scene, tmp_path)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: f"{a.kind}: {a.name}")
async def test_no_attempt_gets_out_of_the_interpreter(attempt: Attempt, scene: Scene) -> None:
    try:
        assert not await inside(attempt, scene, MontyExecutor())
    finally:
        await monty.close()


@needs_bubblewrap
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: f"{a.kind}: {a.name}")
async def test_no_attempt_gets_out_of_the_sandbox(attempt: Attempt, scene: Scene) -> None:
    assert not await inside(attempt, scene, Bubblewrap())


def test_there_are_forty_attempts_and_more_five_of_each_kind() -> None:
    assert len(ATTEMPTS) >= 40
    assert len(KINDS) == 8
    assert min(len(named) for named in KINDS.values()) >= 5
