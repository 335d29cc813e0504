"""What tools had shown of a memory goes with it, from the table and from what a process has at hand."""

from typing import Any

import pytest_asyncio
from django.contrib.auth import get_user_model

from agents.runtime.events import ToolReturned
from agents.runtime.memory.memories import Memory, Source
from agents.runtime.memorystores import MemoryArtifactStore
from agents.stores import histories, pool
from agents.stores.memories import PgMemories
from agents.stores.memorytraces import ERASED
from agents.stores.sessions import PgSessionStore
from agents.tools import memory as memory_tools
from tests.agents.records import FINISHED, answer, finished, new_id, planner, request, stamp, user
from tests.agents.toolcontext import tool_context
from tests.runtime.memory.samples import draft

LOAD = next(tool for tool in memory_tools.tools() if tool.spec.name == "memory_load")


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    return (await get_user_model().objects.acreate(username="alice")).pk


@pytest_asyncio.fixture
async def bob(hot_stores: None) -> int:
    return (await get_user_model().objects.acreate(username="bob")).pk


async def looked_up(owner_id: int) -> None:
    """A conversation, long enough to be kept at hand, in which the model has read what is remembered."""
    plan = planner(user("What do you know of me?"), run_id="r")
    run = await PgSessionStore().open_run(request(owner_id, "t", "r"), plan)
    shown = await LOAD.call({}, tool_context(MemoryArtifactStore(), memories=PgMemories(owner_id)))
    result = ToolReturned(id=new_id("t"), call_id="c", name="memory_load", content=shown.content, data=shown.data)
    lines = [stamp(answer(f"Line {n}.")) for n in range(histories.MIN_EVENTS)]
    await run.ledger.append([stamp(result), *lines, stamp(finished())], end=FINISHED)


async def told(owner_id: int, run_id: str) -> list[str]:
    """What the next run reads of the result."""
    plan = planner(user("And now?", id=f"u-{run_id}"), run_id=run_id)
    run = await PgSessionStore().open_run(request(owner_id, "t", run_id), plan)
    await run.ledger.append([stamp(finished())], end=FINISHED)
    results = [s.record for s in run.history if isinstance(s.record, ToolReturned)]
    return [line for result in results for line in result.content.splitlines() if line.startswith("[")]


async def remembered(owner_id: int, *words: str) -> list[Memory]:
    return [(await PgMemories(owner_id).add(draft(text))).memory for text in words]


async def everything(owner_id: int) -> str:
    rows: list[Any] = await pool.fetch("SELECT payload::text FROM agents_event WHERE owner_id = %s", (owner_id,))
    return " ".join(payload for (payload,) in rows)


async def test_what_a_tool_had_shown_of_a_memory_goes_with_it_and_the_rest_stays(alice: int, bob: int) -> None:
    tea, boat = await remembered(alice, "Drinks quillwort tea", "Has a boat, the Svea")
    await remembered(bob, "Drinks quillwort tea")
    for owner_id in (alice, bob):
        await looked_up(owner_id)
    theirs = await everything(bob)
    assert len(await told(alice, "r1")) == 2, "at hand in this process from here on"
    await PgMemories(alice).delete(tea.id, by=Source.PERSON)
    assert "quillwort" not in await everything(alice)
    kept = await told(alice, "r2")
    assert ERASED in kept
    assert [line for line in kept if boat.id in line and "the Svea" in line]
    assert await everything(bob) == theirs


async def test_forgetting_everything_leaves_no_line_of_any(alice: int) -> None:
    await remembered(alice, *(f"Has room quillwort-{n}" for n in range(5)))
    await looked_up(alice)
    await PgMemories(alice).clear(by=Source.PERSON)
    assert "quillwort" not in await everything(alice)
    assert set(await told(alice, "r1")) == {ERASED}
