"""How memories stand in a request."""

import logging
from typing import Any

import pytest

from agents.runtime.context.injection import Block
from agents.runtime.events import Emitted, Preloaded
from agents.runtime.llm import LLMAgent
from agents.runtime.memory.memories import Found, Memory, MemoryUnavailable, Query, Source
from agents.runtime.memory.memorystore import OwnMemories
from agents.runtime.memory.preloading import ALL, LEAD, OFF, line, preload, shown
from agents.runtime.memorystores import MemorySessionStore
from agents.runtime.model import FinishReason
from agents.runtime.policy import ContextPolicy
from agents.runtime.session import Action
from agents.runtime.testing import ScriptedModel, Step, collect, finish, memory_runner, text, turn
from agents.runtime.tokens import estimate
from tests.runtime.memory.samples import ZONE, House, day, draft, episode, memory
from tests.runtime.samples import of, request, texts


class Unsearchable(OwnMemories):
    """A store whose search is away."""

    async def search(self, query: Query) -> tuple[Found, ...]:
        raise MemoryUnavailable


class Away(Unsearchable):
    async def read(self, limit: int = 0, *, muted: bool = False) -> tuple[Memory, ...]:
        raise MemoryUnavailable


def ids(block: Block) -> tuple[str, ...]:
    return tuple(id for id, _ in block.memories)


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
    assert ids(five) == ("m1", "m2", "m3", "m4", "m5")
    await store.add(draft("Plays the oboe"))
    asked = await preload(store, "Who plays the oboe?", most=5, zone=ZONE)
    assert asked is not None
    assert ids(asked) == ("m6",)
    for question in ("", "unrelated"):
        latest = await preload(store, question, most=5, zone=ZONE)
        assert latest is not None
        assert ids(latest) == ("m2", "m3", "m4", "m5", "m6")
    failing = await preload(await filled(6, Unsearchable), "hive", most=5, zone=ZONE)
    assert failing is not None
    assert ids(failing) == ("m2", "m3", "m4", "m5", "m6")


async def test_memory_1_15_with_the_search_away_the_latest_are_shown_and_the_answer_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = await filled(5, Unsearchable)
    model = ScriptedModel(turn(text("Hive 5.")))
    agent = LLMAgent(name="assistant", instruction="Help.", policy=ContextPolicy(preload_memory=2))
    with caplog.at_level(logging.WARNING):
        emitted = await collect(memory_runner(model, agent=agent, memories=store, zone=ZONE), request("Which hive?"))
    assert texts(emitted) == ["Hive 5."]
    assert [message for message in caplog.messages if "cannot be searched" in message]
    (kept,) = of(emitted, Preloaded)
    assert kept == Preloaded(blocks=(), memories=(("m4", 1), ("m5", 1)))
    shown_lines = model.requests[0].messages[-1].text.splitlines()
    assert "[m4] Keeps a bee hive, number 4 (fact)" in shown_lines
    assert "[m5] Keeps a bee hive, number 5 (fact)" in shown_lines


class Talk:
    """A conversation with somebody who is remembered."""

    def __init__(self, store: OwnMemories, **policy: Any) -> None:
        self.remembered = store
        self.sessions = MemorySessionStore()
        self.agent = LLMAgent(name="assistant", instruction="Help.", policy=ContextPolicy(**policy))
        self.runs = 0

    async def say(
        self, words: str, *turns: list[Step], action: Action = Action.SEND
    ) -> tuple[ScriptedModel, list[Emitted]]:
        self.runs += 1
        model = ScriptedModel(*(turns or (turn(text("Yes.")),)))
        runner = memory_runner(model, agent=self.agent, store=self.sessions, memories=self.remembered)
        asked = {} if action is Action.SEND else {"message": None}
        return model, await collect(runner, request(words, run_id=f"r{self.runs}", action=action, **asked))


async def test_what_is_remembered_stands_before_the_message_and_its_text_in_no_record() -> None:
    talk = Talk(await filled(2))
    model, emitted = await talk.say("Which hive?")
    (sent,) = model.requests
    assert "[m1] Keeps a bee hive, number 1 (fact)" in sent.messages[-1].text
    assert sent.messages[-1].text.endswith("</memory>\n\nWhich hive?")
    assert of(emitted, Preloaded) == [Preloaded(blocks=(), memories=(("m1", 1), ("m2", 1)))]
    assert "bee hive" not in repr(talk.sessions.stored(owner_id=1, thread_id="t"))


async def test_a_retry_shows_what_is_remembered_by_then_and_nothing_that_was_deleted() -> None:
    talk = Talk(await filled(2))
    await talk.say("Which hive?", turn(text("Two"), finish(FinishReason.LENGTH)))
    await talk.remembered.delete("m1", by=Source.PERSON)
    for action in (Action.CONTINUE, Action.RETRY):
        model, emitted = await talk.say("", action=action)
        sent = repr(model.requests)
        assert "number 2" in sent and "number 1" not in sent
        assert of(emitted, Preloaded) == [Preloaded(blocks=(), memories=(("m2", 1),))]
    await talk.remembered.clear(by=Source.PERSON)
    model, emitted = await talk.say("", action=Action.RETRY)
    assert "bee hive" not in repr(model.requests) and of(emitted, Preloaded) == []


async def test_as_long_as_the_same_is_remembered_a_request_begins_as_the_one_before() -> None:
    talk = Talk(await filled(2))
    first, _ = await talk.say("Which hive?")
    second, _ = await talk.say("And then?")
    before = first.requests[0].messages
    assert second.requests[0].messages[: len(before)] == before
    await talk.remembered.add(draft("Plays the oboe"))
    third, _ = await talk.say("And now?")
    plays = [n for n, message in enumerate(third.requests[0].messages) if "oboe" in message.text]
    assert plays == [len(third.requests[0].messages) - 1]


async def test_nothing_is_preloaded_of_a_person_without_memories_or_where_the_policy_says_so() -> None:
    for talk in (Talk(await filled(0)), Talk(await filled(2), preload_memory=0)):
        model, emitted = await talk.say("Which hive?")
        assert of(emitted, Preloaded) == [] and "remembered" not in repr(model.requests)


async def test_nothing_is_preloaded_where_there_is_nothing_or_nothing_can_be_read() -> None:
    assert await preload(await filled(3), "hive", most=OFF, zone=ZONE) is None
    assert await preload(await filled(0), "hive", most=5, zone=ZONE) is None
    assert await preload(await filled(3, Away), "hive", most=ALL, zone=ZONE) is None


async def test_all_are_shown_as_far_as_they_fit_the_latest_first() -> None:
    store = await filled(200)
    found = await preload(store, "", most=ALL, zone=ZONE, tokens=200)
    assert found is not None
    assert estimate(found.text) <= 200
    assert ids(found) == tuple(f"m{n}" for n in range(201 - len(ids(found)), 201))
    assert len(ids(found)) > 5


def test_the_same_memories_are_the_same_bytes_in_whatever_order_they_were_found() -> None:
    some = [memory(f"m{n}", f"Has room {n}") for n in range(5)]
    assert shown(some, zone=ZONE) == shown(reversed(some), zone=ZONE)


def test_history_is_not_shown_and_a_memory_that_is_too_long_leaves_room_for_others() -> None:
    some = [memory("m1", "x " * 900), memory("m2", "Likes tea"), memory("m3", "Liked milk", superseded_by="m2")]
    found = shown(some, zone=ZONE, tokens=100)
    assert isinstance(found, Block)
    assert found.text == f"{LEAD}\n[m2] Likes tea (fact)"
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
