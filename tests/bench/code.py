"""What running code costs besides the code: `make bench ARGS="--only code"`.

Each run is one program of one line in a workspace with three small files. monty: the whole of a run. bubblewrap: a run
less the same program started bare, both warm. The parts before and after (files of the conversation, what was written)
are the same for both and not counted.
"""

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

RUNS, QUICK_RUNS = 200, 40
MONTY_MS, BUBBLEWRAP_MS = 2.0, 40.0


def at(times: list[float], share: float) -> float:
    """Return the value below which so many of the times lie, in ms."""
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1000


async def measured(run: Callable[[], Awaitable[object]], count: int) -> list[float]:
    """Return how long each run took, in seconds, after some to warm up."""
    times = []
    for number in range(count + 5):
        began = time.perf_counter()
        await run()
        if number >= 5:
            times.append(time.perf_counter() - began)
    return times


async def measure(say: Callable[[str, str, str], None], *, quick: bool) -> None:
    from agents.providers import bubblewrap, monty
    from agents.providers.sandbox import walls
    from agents.runtime.code import CodeLimits, Command, Language
    from agents.workspaces.directory import prepare

    count = QUICK_RUNS if quick else RUNS
    program = Command(language=Language.PYTHON, code="print(1)")
    with tempfile.TemporaryDirectory(prefix="wb") as folder:
        root = Path(folder)
        prepare(root)
        for name in ("inputs/a.csv", "work/b.txt", "out/c.svg"):
            (root / name).write_bytes(b"x" * 2_000)
        interpreter = monty.MontyExecutor()
        times = await measured(lambda: interpreter.run(root, program, CodeLimits()), count)
        bar = f"p95 {MONTY_MS:g}"
        say("monty, overhead of a run: p50 / p95 ms", f"{at(times, 0.5):.2f} / {at(times, 0.95):.2f}", bar)
        await monty.close()
        if missing := walls.unavailable():
            say("bubblewrap", missing, "")
            return
        box = bubblewrap.Bubblewrap()

        async def bare() -> None:
            words = [walls.PYTHON, "-c", "print(1)"]
            child = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            await child.communicate()

        times = await measured(lambda: box.run(root, program, CodeLimits()), count)
        plain = await measured(bare, count)
        whole, alone = (f"{at(found, 0.5):.1f} / {at(found, 0.95):.1f}" for found in (times, plain))
        say("Python in bubblewrap, and bare: p50 / p95 ms", f"{whole}, {alone}", "")
        over = f"{at(times, 0.5) - at(plain, 0.5):.1f} / {at(times, 0.95) - at(plain, 0.95):.1f}"
        say("bubblewrap, overhead of a run: p50 / p95 ms", over, f"p95 {BUBBLEWRAP_MS:g}")
