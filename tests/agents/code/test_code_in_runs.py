"""Code in a whole run: only a tool runs it, it is told while it runs, and stopping the run ends it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from agents.providers import monty
from agents.providers.bubblewrap import Bubblewrap
from agents.providers.monty import MontyExecutor
from agents.runtime.code import CodeLimits, Executor
from agents.runtime.events import Outcome, RunFinished, ToolProgress, ToolReturned, ToolStarted, ToolStatus
from agents.runtime.memorystores import MemoryArtifactStore
from agents.runtime.session import CancelReason, CancelToken
from agents.runtime.testing import ScriptedModel, call, collect, memory_runner, text, turn
from agents.tools import workspace
from agents.workspaces.directory import DirectoryWorkspace, place
from tests.agents.code.executors import needs_bubblewrap
from tests.runtime.samples import of, request

BOTH = [pytest.param("monty"), pytest.param("bubblewrap", marks=needs_bubblewrap)]


@pytest_asyncio.fixture(params=BOTH)
async def executor(request: pytest.FixtureRequest) -> AsyncIterator[Executor]:
    yield MontyExecutor() if request.param == "monty" else Bubblewrap()
    await monty.close()


@pytest.fixture
def here(executor: Executor, tmp_path: Path) -> DirectoryWorkspace:
    return DirectoryWorkspace(top=tmp_path, owner_id=1, session_id=1, executor=executor, limits=CodeLimits())


@pytest.mark.parametrize(
    "reply",
    ["```python\nopen('out/x', 'w')\n```", "Run this:\n```python\nopen('out/x', 'w')\n```", "```yaml\na: 1\n```"],
    ids=["nothing but code", "code with words", "no code"],
)
async def test_code_3_7_a_reply_with_a_block_of_code_is_shown_and_not_run(
    here: DirectoryWorkspace, tmp_path: Path, reply: str
) -> None:
    model = ScriptedModel(turn(text(reply)))
    emitted = await collect(memory_runner(model, tools=workspace.tools(here.info), workspace=here), request())
    assert len(model.requests) == 1
    assert not of(emitted, ToolStarted) and not of(emitted, ToolReturned)
    assert not place(tmp_path, 1, 1).exists()


async def test_code_3_1_blocks_of_any_language_in_a_reply_are_not_run(here: DirectoryWorkspace, tmp_path: Path) -> None:
    model = ScriptedModel(turn(text("```brainf\n+\n```\n\n```python\nopen('out/x', 'w')\n```")))
    emitted = await collect(memory_runner(model, tools=workspace.tools(here.info), workspace=here), request())
    assert not of(emitted, ToolStarted)
    assert not place(tmp_path, 1, 1).exists()


async def test_code_runs_as_a_tool_and_its_chart_becomes_a_file(here: DirectoryWorkspace) -> None:
    files = MemoryArtifactStore()
    await files.save(name="sales.csv", data=b"Region,Amount\nNorth,10\nSouth,32\n")
    code = (
        "rows = read_table('work/inputs/sales.csv')\nprint('drawing')\n"
        "chart('bar', [{'Region': r['Region'], 'Amount': int(r['Amount'])} for r in rows], 'Sales', 'out/sales.svg')"
    )
    model = ScriptedModel(
        turn(call("c1", "workspace_exec", {"code": code})),
        turn(call("c2", "workspace_save_artifact", {"path": "out/sales.svg"})),
        turn(text("Here it is.")),
    )
    runner = memory_runner(model, tools=workspace.tools(here.info), artifacts=files, workspace=here)
    emitted = await collect(runner, request())
    ran, saved = of(emitted, ToolReturned)
    assert ran.status is ToolStatus.OK and ran.data["exit_code"] == 0
    assert [progress.text for progress in of(emitted, ToolProgress)] == ["drawing"]
    assert [ref.name for ref in saved.artifacts] == ["sales.svg"]
    assert (await files.load(saved.artifacts[0])).startswith(b"<svg")


async def test_code_3_10_stopping_the_run_kills_the_code_and_nothing_comes_later(
    here: DirectoryWorkspace, tmp_path: Path
) -> None:
    files, cancel = MemoryArtifactStore(), CancelToken()
    code = "print('begun')\nwhile True:\n    pass"
    model = ScriptedModel(turn(call("c1", "workspace_exec", {"code": code})), turn(text("never")))
    runner = memory_runner(model, tools=workspace.tools(here.info), artifacts=files, workspace=here)
    opened = await runner.open(request())
    emitted = []
    async with asyncio.timeout(20):
        async for one in runner.run(opened, cancel):
            emitted.append(one)
            if of([one], ToolProgress):
                cancel.cancel(CancelReason.USER)
    (returned,) = of(emitted, ToolReturned)
    assert returned.status is ToolStatus.CANCELLED
    (finished,) = of(emitted, RunFinished)
    assert finished.outcome is Outcome.CANCELLED
    assert await files.list() == ()
    assert list((place(tmp_path, 1, 1) / "out").iterdir()) == []
