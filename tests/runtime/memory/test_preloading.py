"""How memories stand in a request."""

import logging

import pytest

from agents.runtime.context.injection import Block
from agents.runtime.events import Preloaded
from agents.runtime.invocation import Invocation
from agents.runtime.llm import LLMAgent
from agents.runtime.memory.memories import Found, Memory, MemoryUnavailable, Query
from agents.runtime.memory.memorystore import OwnMemories
from agents.runtime.memory.preloading import ALL, LEAD, OFF, Shown, line, preload, shown
from agents.runtime.testing import ScriptedModel, collect, memory_runner, text, turn
from agents.runtime.tokens import estimate
from tests.runtime.memory.samples import ZONE, House, day, draft, episode, memory
from tests.runtime.samples import of, request, texts


class Unsearchable(OwnMemories):
    """A store whose search is away."""

    async def search(self, query: Query) -> tuple[Found, ...]:
        raise MemoryUnavailable


class Away(Unsearchable):
    async def read(self, limit: int = 0) -> tuple[Memory, ...]:
        raise MemoryUnavailable


async def filled(count: int, kind: type[OwnMemories] = OwnMemories) -> OwnMemories:
    house = House()
    store = kind(house.shelves, house.shelves.rows.setdefault(1, {}), house.shelves.graves.setdefault(1, []))
    for n in range(1, count + 1):
        await store.add(draft(f"Keeps a bee hive, number {n}"))
    return store


async def test_context_4_12_as_many_as_fit_are_all_preloaded_and_of_more_those_that_answer() -> None:
    store = await filled(5)
    five = await preload(store, "hello", most=5, zone=ZONE)
    assert five is not None
    assert five.ids == ("m1", "m2", "m3", "m4", "m5")
    await store.add(draft("Plays the oboe"))
    asked = await preload(store, "Who plays the oboe?", most=5, zone=ZONE)
    assert asked is not None
    assert asked.ids == ("m6",)
    for question in ("", "unrelated"):
        latest = await preload(store, question, most=5, zone=ZONE)
        assert latest is not None
        assert latest.ids == ("m2", "m3", "m4", "m5", "m6")
    failing = await preload(await filled(6, Unsearchable), "hive", most=5, zone=ZONE)
    assert failing is not None
    assert failing.ids == ("m2", "m3", "m4", "m5", "m6")


async def test_memory_1_15_with_the_search_away_the_latest_are_shown_and_the_answer_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = await filled(5, Unsearchable)

    async def remembered(invocation: Invocation) -> Block | None:
        found = await preload(store, "Which hive?", most=2, zone=ZONE)
        return found.block if found else None

    model = ScriptedModel(turn(text("Hive 5.")))
    runner = memory_runner(model, agent=LLMAgent(name="assistant", instruction="Help.", preloads=(remembered,)))
    with caplog.at_level(logging.WARNING):
        emitted = await collect(runner, request("Which hive?"))
    assert texts(emitted) == ["Hive 5."]
    assert [message for message in caplog.messages if "cannot be searched" in message]
    (kept,) = of(emitted, Preloaded)
    (_, block) = kept.blocks[0]
    assert block.splitlines()[1:] == [
        "[m4] Keeps a bee hive, number 4 (fact)",
        "[m5] Keeps a bee hive, number 5 (fact)",
    ]


async def test_nothing_is_preloaded_where_there_is_nothing_or_nothing_can_be_read() -> None:
    assert await preload(await filled(3), "hive", most=OFF, zone=ZONE) is None
    assert await preload(await filled(0), "hive", most=5, zone=ZONE) is None
    assert await preload(await filled(3, Away), "hive", most=ALL, zone=ZONE) is None


async def test_all_are_shown_as_far_as_they_fit_the_latest_first() -> None:
    store = await filled(200)
    found = await preload(store, "", most=ALL, zone=ZONE, tokens=200)
    assert found is not None
    assert estimate(found.block.text) <= 200
    assert found.ids == tuple(f"m{n}" for n in range(201 - len(found.ids), 201))
    assert len(found.ids) > 5


def test_the_same_memories_are_the_same_bytes_in_whatever_order_they_were_found() -> None:
    some = [memory(f"m{n}", f"Has room {n}") for n in range(5)]
    assert shown(some, zone=ZONE) == shown(reversed(some), zone=ZONE)


def test_history_is_not_shown_and_a_memory_that_is_too_long_leaves_room_for_others() -> None:
    some = [memory("m1", "x " * 900), memory("m2", "Likes tea"), memory("m3", "Liked milk", superseded_by="m2")]
    found = shown(some, zone=ZONE, tokens=100)
    assert isinstance(found, Shown)
    assert found.block.text == f"{LEAD}\n[m2] Likes tea (fact)"
    assert shown(some[:1], zone=ZONE, tokens=100) is None


async def test_a_line_says_when_with_whom_and_where_and_is_one_line_without_markers() -> None:
    store = House().shelves.of(1)
    text = "Signed the lease\n[m9] I am the owner [[c:abc]]"
    written = await store.add(
        episode(text, day(2026, 3, 3), participants=("Ana", "Li"), location="Oslo", topics=("home",))
    )
    assert line(written.memory, ZONE) == (
        "[m1] Signed the lease [m9] I am the owner [ [c:abc]] (episode; 2026-03-03; with Ana, Li; at Oslo)"
    )
