"""What came of a run for memory as its answer shows it, and how a person takes it back."""

import asyncio
from typing import Any

import pytest
import pytest_asyncio
from django.contrib.auth import get_user_model
from django.db import OperationalError, connection, connections

from agents.models.memory import MemoryChange
from agents.runtime.memory.memories import (
    Draft,
    Memory,
    MemoryConflict,
    MemoryDuplicate,
    MemoryMissing,
    MemoryUnavailable,
    Source,
    VersionConflict,
)
from agents.runtime.memory.policies import Verb
from agents.runtime.memory.words import words_hash
from agents.stores import db, remembering
from agents.stores.memories import PgMemories
from agents.stores.remembering import Change
from tests.agents.counting import counted
from tests.agents.rememberings import edit, only, texts, told

pytestmark = pytest.mark.usefixtures("hot_stores")

GREEN = "I like green tea in the morning"
FULL = "I like green tea in the morning, with milk"


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    return int((await db.in_thread(get_user_model().objects.create_user)("alice")).pk)


@pytest_asyncio.fixture
async def bob(hot_stores: None) -> int:
    return int((await db.in_thread(get_user_model().objects.create_user)("bob")).pk)


async def shown(owner_id: int, opened: Any) -> list[Change]:
    """Return the changes of a run as its answer shows them."""
    run_id = opened.request.run_id
    found = await db.in_thread(remembering.changes_of_runs)(owner_id, int(opened.session.id), [run_id, "unknown"])
    assert set(found) <= {run_id}
    return list(found.get(run_id, ()))


async def undo(owner_id: int, change: Change) -> None:
    await db.in_thread(remembering.undo)(owner_id, change.id)


async def history(owner_id: int) -> list[str]:
    return [memory.text for memory in await PgMemories(owner_id).export()]


async def update_by_person(owner_id: int, memory: Memory, text: str) -> None:
    await PgMemories(owner_id).update(memory.id, Draft(text=text, source=Source.PERSON))


async def test_what_was_added_is_shown_with_its_run_and_goes_when_it_is_undone(alice: int) -> None:
    await told(alice, "Hello.")
    opened = await told(alice, "I live in Rome. I prefer tea.")
    rome, tea = await shown(alice, opened)
    assert (rome.verb, rome.text, rome.before, rome.undone, rome.can_be_undone) == (
        Verb.ADD,
        "I live in Rome",
        "",
        False,
        True,
    )
    await undo(alice, rome)
    assert await texts(alice) == ["I prefer tea"]
    again, other = await shown(alice, opened)
    assert (again.undone, again.can_be_undone, again.text, other) == (True, False, "", tea)
    # what a person took back is deleted by them, so it does not come back
    (grave,) = await PgMemories(alice).buried([words_hash("I live in Rome")])
    assert grave.by is Source.PERSON


async def test_what_was_replaced_holds_again(alice: int) -> None:
    await told(alice, "I live in Rome.")
    opened = await told(alice, "I moved to Oslo.")
    (change,) = await shown(alice, opened)
    assert (change.verb, change.text, change.before) == (Verb.SUPERSEDE, "I moved to Oslo", "I live in Rome")
    await undo(alice, change)
    assert (await texts(alice), await history(alice)) == (["I live in Rome"], ["I live in Rome"])


async def test_what_was_completed_says_again_what_it_said(alice: int) -> None:
    await told(alice, f"{GREEN}.")
    before = await only(alice)
    opened = await told(alice, f"{FULL}.")
    (change,) = await shown(alice, opened)
    assert (change.verb, change.text, change.before) == (Verb.UPDATE, FULL, GREEN)
    await undo(alice, change)
    after = await only(alice)
    assert (after.id, after.text, after.version, after.origin) == (before.id, GREEN, 3, before.origin)
    kept = await db.in_thread(lambda: MemoryChange.objects.of(alice).get(pk=change.id))()
    assert kept.before is None


async def test_what_was_taken_back_goes_with_its_message_all_the_same(alice: int) -> None:
    await told(alice, f"{GREEN}.")
    opened = await told(alice, f"{FULL}.")
    (change,) = await shown(alice, opened)
    await undo(alice, change)
    await told(alice, "Hello.", fork_after=0)
    assert await history(alice) == []


@pytest.mark.parametrize("second", ["I moved to Oslo.", f"{FULL}."])
async def test_what_was_changed_since_is_not_overwritten(alice: int, second: str) -> None:
    await told(alice, "I live in Rome." if "Oslo" in second else f"{GREEN}.")
    opened = await told(alice, second)
    (change,) = await shown(alice, opened)
    await update_by_person(alice, await only(alice), "Mine")
    assert [one.can_be_undone for one in await shown(alice, opened)] == [False]
    with pytest.raises(VersionConflict):
        await undo(alice, change)
    assert await texts(alice) == ["Mine"]


async def test_what_another_memory_says_by_now_is_not_said_twice(alice: int) -> None:
    await told(alice, f"{GREEN}.")
    opened = await told(alice, f"{FULL}.")
    (change,) = await shown(alice, opened)
    await PgMemories(alice).add(Draft(text=GREEN, source=Source.PERSON))
    with pytest.raises(MemoryDuplicate):
        await undo(alice, change)
    assert await texts(alice) == [FULL, GREEN]
    assert [one.undone for one in await shown(alice, opened)] == [False]


async def test_what_was_forgotten_cannot_come_back_and_nothing_of_it_is_kept(alice: int) -> None:
    first = await told(alice, f"{GREEN}.")
    second = await told(alice, f"{FULL}.")
    opened = await told(alice, "Forget everything you know about me.")
    (change,) = await shown(alice, opened)
    assert (change.verb, change.text, change.can_be_undone) == (Verb.CLEAR, "", False)
    with pytest.raises(MemoryConflict):
        await undo(alice, change)
    left = [*await shown(alice, first), *await shown(alice, second)]
    assert [(one.text, one.before, one.can_be_undone) for one in left] == [("", "", False)] * 2
    # to undo what is gone anyway is done
    for one in left:
        await undo(alice, one)
    assert await texts(alice) == []


async def test_an_undo_pressed_twice_or_five_times_at_once_is_one(alice: int) -> None:
    opened = await told(alice, "I live in Rome.")
    (change,) = await shown(alice, opened)

    def press() -> None:
        try:
            remembering.undo(alice, change.id)
        finally:
            connections.close_all()

    await asyncio.gather(*(asyncio.to_thread(press) for _ in range(5)))
    assert await texts(alice) == []
    await PgMemories(alice).add(Draft(text="I live in Rome", source=Source.PERSON))
    await undo(alice, change)
    assert await texts(alice) == ["I live in Rome"]


async def test_what_was_not_done_and_what_was_withdrawn_is_neither_shown_nor_undone(alice: int) -> None:
    once = await told(alice, "I live in Rome.", thread="t")
    twice = await told(alice, "I live in Rome.", thread="t")
    assert await shown(alice, twice) == []
    await told(alice, "Hello.", thread="t", fork_after=0)
    assert [(one.verb, one.text, one.can_be_undone) for one in await shown(alice, once)] == [(Verb.ADD, "", False)]
    hidden = await db.in_thread(lambda: list(MemoryChange.objects.of(alice).exclude(verb="add", reason="new")))()
    assert {row.reason for row in hidden} == {"duplicate", "abandoned"}
    for row in hidden:
        with pytest.raises(MemoryMissing):
            await db.in_thread(remembering.undo)(alice, row.pk)


async def test_nobody_sees_or_undoes_what_is_anothers(alice: int, bob: int) -> None:
    opened = await told(alice, "I live in Rome.")
    (change,) = await shown(alice, opened)
    assert await shown(bob, opened) == []
    for change_id in (change.id, 10**9):
        with pytest.raises(MemoryMissing):
            await db.in_thread(remembering.undo)(bob, change_id)
    assert (await texts(alice), await shown(alice, opened)) == (["I live in Rome"], [change])


async def test_the_changes_of_a_long_conversation_take_two_statements(alice: int) -> None:
    words = ("I live in Rome.", "I moved to Oslo.", "I prefer tea.")
    opened = [await told(alice, one) for one in words]
    names = [one.request.run_id for one in opened]
    with counted() as statements:
        found = await db.in_thread(remembering.changes_of_runs)(alice, int(opened[0].session.id), names)
    asked = [text for text in statements.texts if text]  # the pool asks whether a connection lives
    assert (len(found), len(asked)) == (3, 2)


async def test_without_the_database_nothing_is_undone_and_that_is_said(alice: int) -> None:
    opened = await told(alice, "I live in Rome.")
    (change,) = await shown(alice, opened)

    def press() -> None:
        with connection.cursor() as cursor:
            cursor.execute("select pg_terminate_backend(pg_backend_pid())")

    def cut() -> None:
        try:
            with pytest.raises(OperationalError):
                press()
            with pytest.raises(MemoryUnavailable):
                remembering.undo(alice, change.id)
        finally:
            connections.close_all()

    await asyncio.to_thread(cut)
    assert await texts(alice) == ["I live in Rome"]
    await undo(alice, change)
    assert await texts(alice) == []


async def test_a_muted_memory_can_be_taken_back_too(alice: int) -> None:
    opened = await told(alice, "I live in Rome.")
    await edit(alice, muted=True)
    (change,) = await shown(alice, opened)
    await undo(alice, change)
    assert await history(alice) == []
