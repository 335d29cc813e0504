"""What one command can take from the server and from its other runs: ends that no limit of a process shows."""

import asyncio
from pathlib import Path

import pytest

from agents.providers import monty
from agents.providers.bubblewrap import WAITING_BYTES, Bubblewrap
from agents.providers.monty import MontyExecutor
from agents.runtime.code import CodeLimits, Command, ExecutorFailed, Language
from agents.workspaces.directory import prepare
from tests.agents.code.executors import ended, needs_bubblewrap

LIMITS = CodeLimits(wall_s=10.0, cpu_s=10.0, memory_bytes=64 * 1024 * 1024, processes=24, disk_bytes=32 * 1024 * 1024)
TALKATIVE = """
import socket
listening = socket.create_server(("127.0.0.1", 0))
held = []
while len(held) < 200:
    held += [socket.create_connection(listening.getsockname()), listening.accept()[0]]
    for end in held[-2:]:
        end.setblocking(False)
        try:
            while True:
                end.send(bytes(65536))
        except BlockingIOError:
            pass
print("it went on")
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    prepare(tmp_path)
    return tmp_path


@needs_bubblewrap
async def test_what_waits_in_connections_counts_as_memory(root: Path) -> None:
    done = await Bubblewrap().run(root, Command(language=Language.PYTHON, code=TALKATIVE), LIMITS)
    assert (done.stopped, done.stdout) == ("memory", "")


@needs_bubblewrap
async def test_a_run_that_is_cancelled_while_nobody_reads_its_input_is_killed(root: Path) -> None:
    began = asyncio.Event()
    command = Command(language=Language.SHELL, code="echo up; sleep 32.5", stdin="x" * 8_000_000)
    run = asyncio.create_task(Bubblewrap().run(root, command, LIMITS, output=lambda text: began.set()))
    await asyncio.wait_for(began.wait(), 10)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert ended("sleep 32.5")


@needs_bubblewrap
async def test_input_that_nobody_reads_does_not_pile_up(root: Path) -> None:
    process = await Bubblewrap().start(root, Command(language=Language.SHELL, code="sleep 30"), LIMITS)
    for _ in range(4):
        await process.write("x" * WAITING_BYTES)
    assert process._child is not None and process._child.stdin is not None
    assert process._child.stdin.transport.get_write_buffer_size() <= 2 * WAITING_BYTES
    await process.kill()


@needs_bubblewrap
async def test_runs_at_once_in_one_workspace_do_not_disturb_each_other(root: Path) -> None:
    async def churn(name: str) -> list[str]:
        code = f"rm -rf out/{name}; mkdir out/{name}; for n in 1 2 3 4 5 6; do date > out/{name}/$n.$(date +%N); done"
        command = Command(language=Language.SHELL, code=code)
        return [(await Bubblewrap().run(root, command, LIMITS)).stopped for _ in range(5)]

    assert await asyncio.gather(churn("a"), churn("b")) == [[""] * 5] * 2


@needs_bubblewrap
async def test_a_workspace_that_has_no_room_in_the_sandbox_is_said(root: Path) -> None:
    with (root / "inputs" / "large").open("wb") as file:
        file.truncate(LIMITS.disk_bytes + 1)
    with pytest.raises(ExecutorFailed, match="holds more"):
        await Bubblewrap().run(root, Command(language=Language.SHELL, code="true"), LIMITS)


@needs_bubblewrap
async def test_zeros_can_still_be_read(root: Path) -> None:
    done = await Bubblewrap().run(root, Command(language=Language.SHELL, code="head -c 99 /dev/zero | wc -c"), LIMITS)
    assert done.stdout.strip() == "99"


@pytest.mark.parametrize(("path", "said"), [("work/inputs/a.csv", "Read-only"), ("out/" + "d/" * 70 + "x", "too long")])
async def test_the_interpreter_writes_no_inputs_and_nothing_deep(path: str, said: str, root: Path) -> None:
    (root / "skills" / "demo").mkdir()
    command = Command(language=Language.PYTHON, code=f"write_text({path!r}, 'x')", cwd="skills/demo")
    done = await MontyExecutor().run(root, command, LIMITS)
    await monty.close()
    assert done.exit_code == 1 and said in done.stderr
    assert not list((root / "work").iterdir()) and not list((root / "out").iterdir())
