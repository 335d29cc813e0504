"""What a person edited away is not remembered, whether the job came before the edit or after it."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from django.contrib.auth import get_user_model
from django.utils import timezone

from agents.models.memory import Memory as Row
from agents.models.memory import MemoryChange, MemoryCursor, MemoryTombstone
from agents.models.search_entry import SearchEntry
from agents.runtime.memory.memories import Draft, Query, Source, draft_of
from agents.stores import db, lines
from agents.stores.memories import PgMemories
from tests.agents.rememberings import calls, changes, cursor, edit, only, say, sent, texts, told, work
from tests.modelserver import Gate, ModelServer, Reply

pytestmark = pytest.mark.usefixtures("hot_stores")


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    return int((await db.in_thread(get_user_model().objects.create_user)("alice")).pk)


async def history(owner_id: int) -> list[str]:
    """Return all that is kept, history too."""
    return [memory.text for memory in await PgMemories(owner_id).export()]


async def test_what_was_edited_away_before_the_job_is_never_read_and_that_is_noted(
    alice: int, server: ModelServer
) -> None:
    first = await say(alice, "I live in Rome.", model="test")
    await say(alice, "I live in Oslo.", model="test", fork_after=0)
    server.script(calls(("add", {"memory": "Lives in Oslo", "message": 1})))
    await work()
    assert "Oslo" in sent(server.chats[0].body) and "Rome" not in sent(server.chats[0].body)
    assert (await history(alice), await cursor(alice)) == (["Lives in Oslo"], 8)
    assert await changes(alice) == [("add", "add", "new"), ("", "", "abandoned")]
    passed = await db.in_thread(lambda: MemoryChange.objects.of(alice).get(reason="abandoned"))()
    assert (passed.run, passed.position) == (first.request.run_id, 2)


async def test_what_is_edited_away_after_the_job_is_withdrawn(alice: int) -> None:
    await told(alice, "I live in Rome.")
    gone = await only(alice)
    await told(alice, "Hello.", fork_after=0)
    assert (await history(alice), await PgMemories(alice).search(Query(text="Rome"))) == ([], ())
    assert await db.in_thread(lambda: SearchEntry.objects.of(alice).filter(kind="memory").count())() == 0
    (change,) = await db.in_thread(lambda: list(MemoryChange.objects.of(alice).filter(reason="abandoned")))()
    assert (change.verb, change.memory_id, change.position, change.before) == ("delete", gone.id, 2, None)
    await told(alice, "Thanks.")
    assert len(await changes(alice)) == 2  # once


async def test_what_is_edited_away_while_a_model_reads_it_is_not_kept(alice: int, server: ModelServer) -> None:
    await say(alice, "I live in Rome.", model="test")
    gate = threading.Event()
    server.script(
        Reply(steps=(Gate(gate), *calls(("add", {"memory": "Lives in Rome"})).steps)),
        calls(("add", {"memory": "Lives in Oslo"})),
    )
    working = asyncio.ensure_future(work())
    await asyncio.to_thread(server.wait_for, 1)
    await say(alice, "I live in Oslo.", model="test", fork_after=0)
    gate.set()
    await working
    assert await history(alice) == []
    await work()
    assert await history(alice) == ["Lives in Oslo"]


async def test_what_still_stands_in_the_edited_message_is_remembered_from_there(alice: int) -> None:
    await told(alice, "I live in Rome. I prefer tea.")
    await told(alice, "I live in Rome. I prefer coffee.", fork_after=0)
    assert await texts(alice) == ["I live in Rome", "I prefer coffee"]
    rows = await PgMemories(alice).read()
    assert {memory.origin.position for memory in rows if memory.origin} == {6}


async def test_what_an_edited_away_message_replaced_holds_again(alice: int) -> None:
    await told(alice, "I live in Berlin.")
    await told(alice, "I moved to Rome.")
    assert await texts(alice) == ["I moved to Rome"]
    await told(alice, "I work at Acme.", fork_after=4)
    assert await texts(alice) == ["I live in Berlin", "I work at Acme"]
    assert await history(alice) == ["I live in Berlin", "I work at Acme"]


async def test_two_moves_that_are_edited_away_are_both_forgotten(alice: int) -> None:
    await told(alice, "I live in Berlin.")
    await told(alice, "I moved to Rome.")
    await told(alice, "I moved to Oslo.")
    await told(alice, "Hello.", fork_after=4)
    assert await history(alice) == ["I live in Berlin"]


async def test_history_that_is_edited_away_is_forgotten_too_and_what_holds_stays(alice: int) -> None:
    await told(alice, "I live in Berlin.", thread="one")
    await told(alice, "I moved to Rome.", thread="two")
    await told(alice, "I moved to Oslo.", thread="three")
    await told(alice, "Hello.", thread="two", fork_after=0)
    assert await history(alice) == ["I live in Berlin", "I moved to Oslo"]
    new = await only(alice)
    assert [memory.text for memory in await PgMemories(alice).history(new.id)] == [
        "I moved to Oslo",
        "I live in Berlin",
    ]


async def test_what_was_only_completed_says_again_what_it_said_before(alice: int, server: ModelServer) -> None:
    server.script(calls(("add", {"memory": "Likes green tea in the morning"})))
    await told(alice, "I like green tea in the morning.", model="test")
    old = await only(alice)
    for words, text in (("I add milk.", "with milk"), ("And sugar.", "with milk and sugar")):
        fuller = {"memory_id": old.id, "memory": f"Likes green tea in the morning, {text}"}
        server.script(calls(("update", fuller)))
        await told(alice, words, model="test")
    assert (await only(alice)).text.endswith("with milk and sugar")
    server.script(calls())
    await told(alice, "Hello.", model="test", fork_after=4)
    now = await only(alice)
    assert (now.id, now.text, now.origin) == (old.id, old.text, old.origin)
    server.script(calls())
    await told(alice, "Hello.", model="test", fork_after=0)
    assert await history(alice) == []


async def test_what_a_person_changed_since_is_theirs(alice: int) -> None:
    await told(alice, "I live in Rome.")
    memory = await only(alice)
    store = PgMemories(alice)
    await store.update(memory.id, Draft(text="I live in Rome, near the river", source=Source.PERSON))
    await told(alice, "I prefer tea.", fork_after=0)
    assert await texts(alice) == ["I live in Rome, near the river", "I prefer tea"]
    # also where a change of topics left it the extractor's
    tea = (await store.read())[0]
    await store.update(tea.id, Draft(**{**_fields(tea), "topics": ("drinks",)}))
    await told(alice, "Hello.", fork_after=0)
    assert await texts(alice) == ["I live in Rome, near the river", "I prefer tea"]


def _fields(memory: Any) -> dict[str, Any]:
    draft = draft_of(memory)
    return {name: getattr(draft, name) for name in Draft.__dataclass_fields__}


async def test_what_was_said_elsewhere_too_stays_and_comes_from_there(alice: int) -> None:
    await told(alice, "I live in Rome.", thread="one")
    await told(alice, "I live in Rome.", thread="two")
    await told(alice, "Hello.", thread="one", fork_after=0)
    memory = await only(alice)
    assert memory.origin is not None and memory.origin.thread_id == "two"
    await told(alice, "Hello.", thread="two", fork_after=0)
    assert await history(alice) == []


async def test_going_back_to_the_old_line_withdraws_what_the_new_one_said(alice: int) -> None:
    await say(alice, "Hello.")
    await told(alice, "I live in Rome.", fork_after=0)
    await db.in_thread(lines.choose)(owner_id=alice, thread_id="t", fork=0)
    await told(alice, "Thanks.")
    assert await history(alice) == []


async def test_memories_of_a_conversation_of_the_same_name_before_are_left_alone(alice: int) -> None:
    await told(alice, "I live in Rome.")
    await edit(alice, origin_event="of-long-ago")
    await told(alice, "Hello.", fork_after=0)
    assert await texts(alice) == ["I live in Rome"]


async def test_what_was_withdrawn_leaves_no_tombstone_and_what_a_person_deleted_keeps_its(alice: int) -> None:
    await told(alice, "I live in Rome. I prefer tea.")
    tea = next(memory for memory in await PgMemories(alice).read() if "tea" in memory.text)
    await PgMemories(alice).delete(tea.id, by=Source.PERSON)
    await told(alice, "Hello.", fork_after=0)
    graves = await db.in_thread(lambda: list(MemoryTombstone.objects.of(alice).values_list("memory_id", flat=True)))()
    assert (graves, await history(alice)) == ([tea.id], [])


async def test_a_memory_of_another_person_in_a_conversation_of_the_same_name_stays(alice: int) -> None:
    bob = int((await db.in_thread(get_user_model().objects.create_user)("bob")).pk)
    await told(bob, "I live in Rome.")
    await told(alice, "I live in Rome.")
    await told(alice, "Hello.", fork_after=0)
    assert (await history(alice), await history(bob)) == ([], ["I live in Rome"])
    assert await db.in_thread(lambda: Row.objects.of(alice).count())() == 0


async def test_nobody_reads_what_was_edited_away_after_a_cursor_is_lost(alice: int) -> None:
    await told(alice, "I live in Rome.")
    await told(alice, "Hello.", fork_after=0)
    await db.in_thread(MemoryCursor.objects.of(alice).delete)()
    await told(alice, "Thanks.", at=timezone.now())
    assert await history(alice) == []


async def test_what_was_deleted_does_not_come_back_when_another_word_of_its_message_is_edited(alice: int) -> None:
    await told(alice, "I live in Rome. Wat is two and two?")
    await PgMemories(alice).delete((await only(alice)).id, by=Source.PERSON)
    later = timezone.now() + timedelta(minutes=1)
    await told(alice, "I live in Rome. What is two and two?", fork_after=0, at=later)
    assert (await texts(alice), (await changes(alice))[-1]) == ([], ("add", "", "buried"))
    await told(alice, "I live in Rome.", at=later)
    assert await texts(alice) == ["I live in Rome"], "said in a message of its own, it is said again"
