"""RUNS_PER_OWNER holds over processes: the database gives each running run of an owner a slot of its own."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from agents.live.registry import Started
from agents.models.run import Run
from agents.runtime.errors import Rejected
from agents.runtime.testing import ScriptedModel, text, turn
from agents.stores.db import in_thread
from tests.agents.house import Gate, ask, two_processes, until
from tests.conftest import make_user

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("hot_stores")]
MOST = 3


@pytest.fixture
def alice(transactional_db: Any) -> Any:
    return make_user("alice")


@pytest.fixture
def bob(transactional_db: Any) -> Any:
    return make_user("bob")


def slots(owner_id: int) -> list[int | None]:
    running = Run.objects.of(owner_id).filter(status="running")
    return sorted(running.values_list("slot", flat=True), key=lambda slot: -1 if slot is None else slot)


@pytest.mark.parametrize("round_", range(5))
async def test_racing_starts_in_two_processes_do_not_pass_the_limit(alice: Any, bob: Any, round_: int) -> None:
    gate = Gate()
    model = ScriptedModel(turn(gate.step, text("a")), repeat_last=True)
    async with two_processes(model, most=MOST) as both:
        asked = [
            both[n % 2].start(ask(owner.id, "港口" if n % 4 else "Harbour", thread=f"t{n}"))
            for n in range(10)
            for owner in (alice, bob)
        ]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        said = Counter(a.code if isinstance(a, Rejected) else type(a).__name__ for a in answers)
        assert said == {Started.__name__: 2 * MOST, "rate_limited": 2 * (10 - MOST)}
        for owner in (alice, bob):
            assert await in_thread(slots)(owner.id) == [0, 1, 2]
        gate.go.set()


async def test_a_slot_is_free_again_when_its_run_is_over(alice: Any) -> None:
    gate = Gate()
    model = ScriptedModel(turn(text("short")), turn(gate.step, text("a")), repeat_last=True)
    async with two_processes(model, most=2) as (first, second):
        await first.start(ask(alice.id, thread="over"))
        await until(lambda: not first.runs)
        await second.start(ask(alice.id, thread="one"))
        await first.start(ask(alice.id, thread="two"))
        assert await in_thread(slots)(alice.id) == [0, 1]
        with pytest.raises(Rejected, match="Too many"):
            await second.start(ask(alice.id, thread="three"))
        gate.go.set()


async def test_runs_from_before_there_were_slots_count_too(alice: Any) -> None:
    gate = Gate()
    async with two_processes(ScriptedModel(turn(gate.step, text("a")), repeat_last=True), most=2) as (first, second):
        await first.start(ask(alice.id, thread="old"))
        await in_thread(lambda: Run.objects.of(alice.id).update(slot=None))()
        await second.start(ask(alice.id, thread="new"))
        with pytest.raises(Rejected, match="Too many"):
            await first.start(ask(alice.id, thread="next"))
        gate.go.set()
