"""What every executor promises of a run: its result, its limits, its end; and what only one of them can do."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
import uvloop

from agents.providers import monty
from agents.providers.bubblewrap import Bubblewrap
from agents.providers.monty import MontyExecutor
from agents.providers.sandbox import filter, walls
from agents.runtime.code import CodeLimits, Command, Executed, Executor, ExecutorFailed, Language, environment
from agents.workspaces.directory import prepare
from tests.agents.code.executors import needs_bubblewrap

LIMITS = CodeLimits(
    wall_s=10.0, cpu_s=10.0, memory_bytes=256 * 1024 * 1024, processes=24, disk_bytes=32 * 1024 * 1024, files=500
)
BOTH = [pytest.param("monty"), pytest.param("bubblewrap", marks=needs_bubblewrap)]


@pytest_asyncio.fixture(params=BOTH)
async def executor(request: pytest.FixtureRequest) -> AsyncIterator[Executor]:
    yield MontyExecutor() if request.param == "monty" else Bubblewrap()
    await monty.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    prepare(tmp_path)
    return tmp_path


async def python(executor: Executor, root: Path, code: str, **limits: float) -> Executed:
    within = replace(LIMITS, **limits)  # type: ignore[arg-type]  # all of them are numbers
    return await executor.run(root, Command(language=Language.PYTHON, code=code), within)


async def shell(root: Path, code: str, **more: str) -> Executed:
    command = Command(language=Language.SHELL, code=code, stdin=more.pop("stdin", ""), env=more)
    return await Bubblewrap().run(root, command, LIMITS)


async def test_a_program_prints_and_writes(executor: Executor, root: Path) -> None:
    (root / "inputs" / "sales.csv").write_text("Region,Amount\nNorth,10\nSouth,32\n")
    done = await python(
        executor,
        root,
        "rows = read_table('work/inputs/sales.csv')\ntotal = sum(int(row['Amount']) for row in rows)\nprint(total)\n"
        "write_text('out/total.txt', f'{total}')\nopen('work/notes.txt', 'w').write('中文')\n",
    )
    assert (done.stdout, done.stderr, done.exit_code, done.stopped) == ("42\n", "", 0, "")
    assert (root / "out" / "total.txt").read_text() == "42"
    assert (root / "work" / "notes.txt").read_text(encoding="utf-8") == "中文"


@pytest.mark.parametrize("path", ["", ", 'out/sales.svg'"])
async def test_a_chart_is_drawn(executor: Executor, root: Path, path: str) -> None:
    done = await python(executor, root, f"chart('bar', [{{'Region': 'North', 'Amount': 10}}], 'Sales'{path})")
    assert done.exit_code == 0, done.stderr
    drawn = (root / "out" / "sales.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg") and ">Sales</title>" in drawn and 'class="bar"' in drawn


async def test_what_was_written_is_there_for_the_next_run_and_variables_are_not(executor: Executor, root: Path) -> None:
    await python(executor, root, "kept = 1\nopen('work/a.txt', 'w').write('first')")
    done = await python(executor, root, "print(open('work/a.txt').read())\nprint(kept)")
    assert done.stdout == "first\n"
    assert "NameError" in done.stderr
    assert done.exit_code == 1


async def test_code_3_2_a_program_past_its_time_is_ended_with_its_children_and_the_workspace_can_be_used(
    executor: Executor, root: Path
) -> None:
    forked = "import os\nif os.fork() == 0:\n    os.setsid()\n" if executor.info.name == "bubblewrap" else ""
    done = await python(
        executor,
        root,
        f"open('work/before.txt', 'w').write('x')\n{forked}\nwhile True:\n    pass",
        wall_s=0.6,
        cpu_s=0.6,
    )
    assert done.timed_out and done.exit_code == -1
    assert 500 <= done.duration_ms < 5_000
    assert (root / "work" / "before.txt").read_text() == "x"
    assert (await python(executor, root, "print(1)")).stdout == "1\n"
    assert not spinning()


def spinning() -> list[str]:
    """Return our own sandboxes that are still there."""
    listed = subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True, check=True).stdout
    ours = [line for line in listed.splitlines() if line.split()[0] == str(os.getpid()) and "bwrap" in line]
    return ours


async def test_code_3_3_a_program_that_fails_is_a_result(executor: Executor, root: Path) -> None:
    done = await python(executor, root, "print('so far')\n1 / 0")
    assert (done.exit_code, done.stdout, done.stopped) == (1, "so far\n", "")
    assert "ZeroDivisionError" in done.stderr and "given" not in done.stderr
    assert (await python(executor, root, "exit(3)")).exit_code == 3


@needs_bubblewrap
async def test_code_3_3_a_command_that_is_not_there_is_a_result_and_a_broken_sandbox_is_none(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = await shell(root, "no-such-program")
    assert done.exit_code == 127 and "not found" in done.stderr
    monkeypatch.setattr(walls, "PYTHON", "/usr/bin/no-such-python")
    with pytest.raises(ExecutorFailed):
        await shell(root, "true")


async def test_code_3_6_memory_is_bounded_and_the_server_goes_on(executor: Executor, root: Path) -> None:
    done = await python(executor, root, "held = [b'x' * 1_000_000 + str(n).encode() for n in range(400)]\nprint('all')")
    assert "all" not in done.stdout
    assert done.exit_code != 0
    assert done.stopped == "memory" or "MemoryError" in done.stderr


@needs_bubblewrap
async def test_code_3_6_there_is_no_network_and_that_is_known_at_once(root: Path) -> None:
    done = await python(
        Bubblewrap(),
        root,
        "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 5)\nexcept OSError as e:\n    print(e)",
    )
    assert "unreachable" in done.stdout
    assert done.duration_ms < 3_000


@needs_bubblewrap
async def test_code_3_6_memory_of_several_processes_is_counted_together(root: Path) -> None:
    code = (
        "import os, time\nfor n in range(6):\n    if os.fork() == 0:\n        held = bytearray(80_000_000)\n"
        "        for at in range(0, len(held), 4096):\n            held[at] = 1\n        time.sleep(5)\n"
        "        os._exit(0)\ntime.sleep(5)\nprint('all')"
    )
    done = await python(Bubblewrap(), root, code)
    assert (done.stopped, done.stdout) == ("memory", "")


async def test_code_3_9_two_runs_at_once_have_directories_and_outputs_of_their_own(
    executor: Executor, root: Path
) -> None:
    code = (
        "import os\nhome = os.environ['RUN_DIR']\nopen(home + '/own.txt', 'w').write('{0}')\n"
        "for n in range(200):\n    print('{0}')\nprint(home)"
    )
    one, two = await asyncio.gather(*(python(executor, root, code.format(word)) for word in ("one", "two")))
    assert set(one.stdout.split()[:-1]) == {"one"} and set(two.stdout.split()[:-1]) == {"two"}
    assert one.run_dir != two.run_dir
    assert (root / one.run_dir / "own.txt").read_text() == "one"
    assert (root / two.run_dir / "own.txt").read_text() == "two"


async def test_code_3_10_a_cancelled_run_is_killed_and_leaves_nothing_later(executor: Executor, root: Path) -> None:
    begun = asyncio.Event()
    code = "open('work/early.txt', 'w').write('x')\nprint('begun')\nwhile True:\n    pass"
    task = asyncio.create_task(
        executor.run(root, Command(language=Language.PYTHON, code=code), LIMITS, output=lambda text: begun.set())
    )
    await asyncio.wait_for(begun.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 2)
    assert not spinning()
    assert not (root / "out").exists() or not list((root / "out").iterdir())


async def test_output_is_told_while_the_program_runs(executor: Executor, root: Path) -> None:
    told: list[str] = []
    heard = asyncio.Event()

    def tell(text: str) -> None:
        told.append(text)
        heard.set()

    code = "import time\nprint('first')\nfor n in range(20):\n    time.sleep(0.1)\nprint('last')"
    task = asyncio.create_task(executor.run(root, Command(language=Language.PYTHON, code=code), LIMITS, output=tell))
    await asyncio.wait_for(heard.wait(), 5)
    assert not task.done()
    assert "first" in "".join(told) and "last" not in "".join(told)
    assert (await task).stdout == "first\nlast\n"


async def test_long_output_keeps_beginning_and_end(executor: Executor, root: Path) -> None:
    done = await python(executor, root, "print('BEGIN')\nfor n in range(40_000):\n    print(n, '中')\nprint('END')")
    assert done.cut
    assert done.stdout.startswith("BEGIN\n") and done.stdout.endswith("END\n")
    assert "bytes left out" in done.stdout and len(done.stdout.encode()) < 70_000
    assert "\ufffd" not in done.stdout


async def test_skills_2_12_variables_of_the_server_are_not_seen(
    executor: Executor, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")
    monkeypatch.setenv("SECRET_KEY", "hidden")
    done = await python(executor, root, "import os\nprint(sorted(os.environ))\nprint(dict(os.environ))")
    assert done.exit_code == 0 and "WORK_DIR" in done.stdout
    assert "hidden" not in done.stdout and "SECRET_KEY" not in done.stdout


@needs_bubblewrap
async def test_skills_2_12_nobody_overrides_the_path_or_the_loader(root: Path) -> None:
    provider = Bubblewrap(env={"PATH": "/evil", "LD_PRELOAD": "/evil.so", "REGION": "north"})
    command = Command(
        language=Language.SHELL, code='echo "$PATH|$LD_PRELOAD|$REGION|$TEAM"', env={"PATH": "/worse", "TEAM": "blue"}
    )
    done = await provider.run(root, command, LIMITS)
    assert done.stdout == "/usr/local/bin:/usr/bin:/bin||north|blue\n"


def test_code_3_8_what_a_call_asks_for_counts_more_than_what_staff_provide_and_that_more_than_the_base() -> None:
    made = environment(
        {"LANG": "C.UTF-8", "A": "base", "PATH": "/usr/bin", "WORK_DIR": "/workspace/work"},
        {"A": "provided", "B": "provided", "PATH": "/evil", "WORK_DIR": "/"},
        {
            "B": "asked",
            "no name": "x",
            "BASH_ENV": "/evil",
            "C": "a\0b",
            "D": "\ud800",
            "GIT_PAGER": "sh",
            "GCONV_PATH": "/",
        },
    )
    assert made == {
        "LANG": "C.UTF-8",
        "A": "provided",
        "B": "asked",
        "PATH": "/usr/bin",
        "WORK_DIR": "/workspace/work",
    }


async def test_inputs_and_skills_are_read_and_not_written(executor: Executor, root: Path) -> None:
    (root / "inputs" / "a.csv").write_text("a\n1\n")
    done = await python(executor, root, "open('work/inputs/a.csv', 'w').write('spoilt')")
    assert done.exit_code == 1 and "ermission" in done.stderr
    assert (root / "inputs" / "a.csv").read_text() == "a\n1\n"


async def test_a_skill_has_inputs_and_results_beside_it(executor: Executor, root: Path) -> None:
    (root / "inputs" / "a.csv").write_text("a\n7\n")
    (root / "skills" / "demo").mkdir()
    (root / "skills" / "demo" / "tool.py").write_text("def double(n):\n    return n * 2\n")
    command = Command(
        language=Language.PYTHON,
        cwd="skills/demo",
        code=(
            "exec(open('tool.py').read())\nfound = int(read_table('inputs/a.csv')[0]['a'])\n"
            "write_text('out/result.txt', str(double(found)))\nopen('out/open.txt', 'w').write('x')"
        ),
    )
    done = await executor.run(root, command, LIMITS)
    assert done.exit_code == 0, done.stderr
    assert (root / "out" / "result.txt").read_text() == "14"
    assert (root / "out" / "open.txt").exists()


async def test_a_link_that_code_makes_is_not_kept(executor: Executor, root: Path) -> None:
    await python(executor, root, "import os\nos.symlink('/etc/passwd', 'out/link')")
    assert [path for path in (root / "out").iterdir() if path.is_symlink()] == []


@needs_bubblewrap
async def test_a_shell_reads_its_input_and_removes_files(root: Path) -> None:
    (root / "work" / "old.txt").write_text("x")
    done = await shell(
        root, "read word; echo got $word; rm work/old.txt; mkdir work/d; echo y > work/d/new.txt", stdin="it\n"
    )
    assert done.stdout == "got it\n"
    assert sorted(p.name for p in (root / "work").rglob("*") if p.is_file()) == ["new.txt"]


@needs_bubblewrap
async def test_a_file_becomes_a_directory_and_back(root: Path) -> None:
    await shell(root, "echo x > out/thing")
    await shell(root, "rm out/thing; mkdir out/thing; echo y > out/thing/inner")
    assert (root / "out" / "thing" / "inner").read_text() == "y\n"
    await shell(root, "rm -r out/thing; echo z > out/thing")
    assert (root / "out" / "thing").read_text() == "z\n"


@pytest.mark.parametrize("name", BOTH)
def test_it_runs_on_the_event_loop_of_the_web_server_too(name: str, root: Path) -> None:
    async def run() -> tuple[Executed, str]:
        executor = MontyExecutor() if name == "monty" else Bubblewrap()
        told: list[str] = []
        command = Command(language=Language.PYTHON, code="write_text('out/a.txt', 'x')\nprint('here')")
        done = await executor.run(root, command, LIMITS, output=told.append)
        await asyncio.sleep(0)
        await monty.close()
        return done, "".join(told)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        done, told = runner.run(run())
    assert (done.stdout, done.exit_code, told) == ("here\n", 0, "here\n")
    assert (root / "out" / "a.txt").read_text() == "x"


@needs_bubblewrap
async def test_a_command_goes_on_while_its_caller_does_other_things(root: Path) -> None:
    code = "import sys\nprint('name?')\nname = input()\nprint('hello', name)\nopen('out/n.txt', 'w').write(name)"
    process = await Bubblewrap().start(root, Command(language=Language.PYTHON, code=code), LIMITS)
    assert await process.wait(0.8) is None
    assert process.output(0) == ("name?\n", 0)
    await process.write("Ada\n")
    done = await process.wait(10)
    assert done is not None and done.exit_code == 0
    assert process.output(6) == ("hello Ada\n", 0)
    assert process.output(6) == ("hello Ada\n", 0)
    assert (root / "out" / "n.txt").read_text() == "Ada"


@needs_bubblewrap
async def test_a_command_that_goes_on_can_be_ended(root: Path) -> None:
    process = await Bubblewrap().start(root, Command(language=Language.SHELL, code="sleep 100"), LIMITS)
    await process.kill()
    assert process.over
    assert not spinning()


@needs_bubblewrap
async def test_a_directory_of_ours_that_lies_among_programs_is_not_seen(root: Path) -> None:
    ours = Path("/usr/share/doc")
    before = await shell(root, f"ls {ours} | wc -l")
    done = await Bubblewrap(hidden=[ours]).run(
        root, Command(language=Language.SHELL, code=f"ls {ours} | wc -l"), LIMITS
    )
    assert int(before.stdout) > 0
    assert done.stdout == "0\n"


@needs_bubblewrap
async def test_nothing_can_be_written_beside_the_workspace(root: Path) -> None:
    done = await shell(
        root, "for d in / /dev /usr /etc /proc/sys /workspace; do touch $d/x 2>/dev/null && echo $d; done; true"
    )
    assert done.stdout == ""


@pytest.mark.skipif(sys.platform != "linux", reason="a filter of Linux")
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_made_for_both_platforms_and_its_steps_lead_nowhere_else(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    rules = filter.program()
    assert rules is not None and len(rules) % 8 == 0
    steps = [rules[at : at + 8] for at in range(0, len(rules), 8)]
    for at, step in enumerate(steps):
        code = int.from_bytes(step[:2], "little")
        if code & 0x07 == 0x05:  # a jump
            assert at + 1 + max(step[2], step[3]) < len(steps)
    assert int.from_bytes(steps[-1][:2], "little") == 0x06


def test_elsewhere_there_is_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert filter.program() is None


async def test_the_interpreter_has_no_shell(root: Path) -> None:
    with pytest.raises(ExecutorFailed):
        await MontyExecutor().run(root, Command(language=Language.SHELL, code="ls"), LIMITS)


def test_a_machine_without_bubblewrap_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    walls.unavailable.cache_clear()
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "not installed" in walls.unavailable()
    walls.unavailable.cache_clear()
