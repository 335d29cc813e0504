"""The job that reads what a person said for what is to be remembered: when it is owed, how far it reads, and once."""

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from channels.layers import get_channel_layer
from django.contrib.auth import get_user_model
from django.utils import timezone

from agents import hints, jobs
from agents.background import remember, work
from agents.models.job import Job
from agents.models.memory import Memory as Row
from agents.models.memory import MemoryChange, MemoryCursor
from agents.models.model_call import ModelCall
from agents.runtime.memory.memories import MOST_MEMORIES, Draft, Kind, Source
from agents.stores import db, memorycursors
from agents.stores.memories import PgMemories
from agents.stores.sessions import PgSessionStore
from tests.agents.counting import counted
from tests.agents.records import FINISHED, finished, planner, request, stamp
from tests.agents.rememberings import (
    add,
    calls,
    changes,
    cursor,
    due_again,
    only,
    policy,
    say,
    sent,
    statuses,
    taken,
    texts,
    told,
)
from tests.agents.rememberings import work as work_off
from tests.modelserver import WAIT_S, Cut, Gate, ModelServer, Reply, error, finish, text, usage

pytestmark = pytest.mark.usefixtures("hot_stores")

LIKES = "I prefer reports in Chinese, tables first."


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    return int((await db.in_thread(get_user_model().objects.create_user)("alice")).pk)


# When it is owed


async def test_a_runs_end_owes_the_job_once_in_the_same_statement(alice: int) -> None:
    opened = await PgSessionStore().open_run(request(alice), planner())
    with counted() as statements:
        await opened.ledger.append([stamp(finished())], end=FINISHED)
    assert statements.total == 1
    await say(alice, "Thanks.")
    (job,) = await db.in_thread(lambda: list(Job.objects.filter(kind=jobs.MEMORY)))()
    assert (job.owner_id, job.session_id, job.scope) == (alice, int(opened.session.id), "")
    assert jobs.MEMORY not in jobs.HEAVY


# What it does


async def test_what_a_person_says_of_themselves_is_remembered_and_open_pages_hear_of_it(alice: int) -> None:
    layer = get_channel_layer()
    channel = await layer.new_channel()
    opened = await say(alice, LIKES)
    await layer.group_add(hints.group(alice), channel)
    await work_off()
    async with asyncio.timeout(WAIT_S):
        (heard,) = (await layer.receive(channel))["hints"]
    await layer.flush()
    assert heard == {"thread_id": "t", "changed": "memory"}
    memory = await only(alice)
    assert (memory.text, memory.kind, memory.source) == (LIKES.rstrip("."), Kind.FACT, Source.EXTRACTOR)
    assert memory.origin is not None and (memory.origin.thread_id, memory.origin.position) == ("t", 2)
    (change,) = await db.in_thread(lambda: list(MemoryChange.objects.of(alice)))()
    assert (change.run, change.position, change.verb, change.reason) == (opened.request.run_id, 2, "add", "new")
    assert (change.memory_id, change.version, change.before) == (memory.id, 1, None)
    assert (await cursor(alice), await statuses()) == (4, ["done"])


async def test_a_model_reads_where_there_is_one_and_its_call_is_booked(alice: int, server: ModelServer) -> None:
    opened = await say(alice, LIKES, model="test")
    server.script(
        Reply(steps=(*calls(add("Prefers reports in Chinese", message=1)).steps[:-2], *finish(counts=usage(70, 9))))
    )
    await work_off()
    assert await texts(alice) == ["Prefers reports in Chinese"]
    asked = server.chats[0].body
    assert LIKES in sent(asked) and "Understood." not in sent(asked)
    assert next(tool["function"]["name"] for tool in asked["tools"]) == "memory_add"
    (booked,) = await db.in_thread(lambda: list(ModelCall.objects.of(alice)))()
    assert (booked.purpose, booked.prompt_tokens, booked.completion_tokens) == ("memory", 70, 9)
    assert booked.run_id == opened.run_key and LIKES not in str(booked.parts)


async def test_the_policys_model_reads_though_another_answered(alice: int, server: ModelServer, settings: Any) -> None:
    settings.MODELS = [{"name": "reader"}]
    await policy(memory_model="reader")
    await say(alice, LIKES, model="test")
    server.script(calls(add("Prefers Chinese")))
    await work_off()
    assert server.chats[0].body["model"] == "reader"


async def test_a_model_is_shown_what_is_known_and_what_fits(alice: int, server: ModelServer) -> None:
    store = PgMemories(alice)
    for n in range(12):
        await store.add(Draft(text=f"Number {n} of the harbour", source=Source.PERSON))
    hidden = (await store.add(Draft(text="Never tell a model about reports", source=Source.PERSON))).memory
    await store.mute(hidden.id, True)
    await say(alice, "I prefer reports about number 0 of the harbour.", model="test")
    server.script(calls())
    await work_off()
    asked = sent(server.chats[0].body)
    assert "Number 11 of the harbour" in asked and "Number 0 of the harbour" in asked
    assert "Never tell" not in asked


async def test_what_is_long_is_read_part_by_part_and_nothing_is_left_out(
    alice: int, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remember, "MOST_MESSAGES", 2)
    for n in range(5):
        await say(alice, f"My number {n} is {n}{n}.", model="test", zone="Asia/Shanghai" if n else "")
    server.script(*(calls(add(f"Part {n}")) for n in range(3)))
    await work_off()
    asked = [sent(chat.body) for chat in server.chats]
    assert [[n for n in range(5) if f"My number {n} is" in one] for one in asked] == [[0], [1, 2], [3, 4]]
    assert (await texts(alice), await cursor(alice)) == (["Part 0", "Part 1", "Part 2"], 20)


# Once


async def test_memory_1_9_an_extractor_that_fails_moves_nothing_and_the_next_job_reads_both(
    alice: int, server: ModelServer
) -> None:
    await say(alice, "I live in Rome.", model="test")
    server.script(error(400, "no"))
    await work_off()
    assert (await texts(alice), await changes(alice), await cursor(alice)) == ([], [], 0)
    assert await statuses() == ["queued"]
    await say(alice, "I work at Acme.", model="test")
    server.script(calls(add("Lives in Rome", message=1), add("Works at Acme", message=2)))
    await due_again()
    await work_off()
    assert "I live in Rome." in sent(server.chats[1].body) and "I work at Acme." in sent(server.chats[1].body)
    assert (await texts(alice), await cursor(alice)) == (["Lives in Rome", "Works at Acme"], 8)


async def test_memory_1_9_an_answer_without_calls_moves_the_cursor(alice: int, server: ModelServer) -> None:
    await say(alice, "What is the time in Rome?", model="test")
    server.script(Reply(steps=(*text("Nothing."), *finish())))
    await work_off()
    assert (await texts(alice), await cursor(alice), await statuses()) == ([], 4, ["done"])


@pytest.mark.parametrize("how", ["length", "content_filter", "cut"])
async def test_memory_1_9_an_answer_that_is_not_whole_is_as_good_as_none(
    alice: int, server: ModelServer, how: str
) -> None:
    await say(alice, LIKES, model="test")
    reply = calls(add("Half"), reason=how)
    server.script(Reply(steps=(*reply.steps[:-2], Cut())) if how == "cut" else reply)
    await work_off()
    assert (await texts(alice), await changes(alice), await cursor(alice)) == ([], [], 0)
    server.script(calls(add("Whole")))
    await due_again()
    await work_off()
    assert (await texts(alice), await cursor(alice)) == (["Whole"], 4)


async def test_memory_1_10_of_three_operations_one_fails_and_two_are_done(alice: int, server: ModelServer) -> None:
    opened = await say(alice, "I live in Rome. Forget my age. I work at Acme.", model="test")
    server.script(
        calls(add("Lives in Rome"), ("delete", {"memory_id": "nobody"}), add("Works at Acme"), ("add", "nonsense"))
    )
    await work_off()
    assert await texts(alice) == ["Lives in Rome", "Works at Acme"]
    assert await changes(alice) == [
        ("add", "add", "new"),
        ("delete", "", "unknown_id"),
        ("add", "add", "new"),
        ("add", "", "unreadable"),
    ]
    runs = await db.in_thread(lambda: set(MemoryChange.objects.of(alice).values_list("run", flat=True)))()
    assert (runs, await cursor(alice)) == ({opened.request.run_id}, 4)


async def test_memory_1_10_an_operation_that_the_store_refuses_is_noted_and_the_others_are_done(
    alice: int, server: ModelServer
) -> None:
    oldest = (await PgMemories(alice).add(Draft(text="Lives in the old town of Rome", source=Source.PERSON))).memory
    now = timezone.now()
    rest = [
        Row(
            owner_id=alice,
            memory_id=f"x{n}",
            text=f"Fact {n}",
            kind="fact",
            source="person",
            content_hash=f"x{n}",
            created_at=now,
            updated_at=now,
        )
        for n in range(MOST_MEMORIES - 1)
    ]
    await db.in_thread(Row.objects.of(alice).bulk_create)(rest)
    await say(alice, "I live in Rome.", model="test")
    fuller = {"memory_id": oldest.id, "memory": "Lives in the old town of Rome, with cats"}
    server.script(calls(add("Likes tea"), ("update", fuller), add("Likes jam")))  # the first evicts the oldest
    await work_off()
    assert await changes(alice) == [("add", "add", "new"), ("update", "", "memory_missing"), ("add", "add", "new")]
    kept = await texts(alice)
    assert (kept[-2:], len(kept), await cursor(alice)) == (["Likes tea", "Likes jam"], MOST_MEMORIES, 4)


async def test_what_cannot_be_stored_is_noted_with_its_reason(alice: int, server: ModelServer) -> None:
    await say(alice, "I live in Rome.", model="test")
    server.script(calls(add("Likes tea"), add("x" * 2_001), add("Likes tea"), add("Likes jam")))
    await work_off()
    assert await texts(alice) == ["Likes tea", "Likes jam"]
    assert [reason for _, _, reason in await changes(alice)] == ["new", "invalid", "duplicate", "new"]


async def test_memory_1_11_what_is_not_due_waits_and_is_read_together(alice: int, server: ModelServer) -> None:
    await policy(memory_messages=5)
    for n in range(3):
        await say(alice, f"I like number {n}.", model="test")
    await work_off()
    assert (server.chats, await cursor(alice), await statuses()) == ([], 0, ["done"])
    for n in range(3, 6):
        await say(alice, f"I like number {n}.", model="test")
    server.script(calls(add("Likes numbers")))
    await work_off()
    assert [f"I like number {n}." in sent(server.chats[0].body) for n in range(6)] == [True] * 6
    assert (await texts(alice), await cursor(alice)) == (["Likes numbers"], 24)


async def test_memory_1_11_within_the_pause_nothing_is_read_except_the_first_time(alice: int) -> None:
    await policy(memory_pause_s=3_600.0)
    await told(alice, "I live in Rome.")
    assert await texts(alice) == ["I live in Rome"]
    await told(alice, "I prefer tea.")
    assert (await texts(alice), await cursor(alice)) == (["I live in Rome"], 4)
    long_ago = timezone.now() - timedelta(hours=2)
    await db.in_thread(MemoryCursor.objects.of(alice).update)(extracted_at=long_ago)
    await told(alice, "Thanks.")
    assert await texts(alice) == ["I live in Rome", "I prefer tea"]


async def test_memory_1_12_the_same_job_delivered_twice_reads_once(alice: int, server: ModelServer) -> None:
    opened = await say(alice, LIKES, model="test")
    claim = await taken(alice, int(opened.session.id))
    server.script(calls(add("Prefers Chinese")))
    assert await asyncio.to_thread(work.do, claim) == "changed"
    await db.in_thread(jobs.done)(claim)
    assert await db.in_thread(jobs.claim)(claim.id) is None
    assert await asyncio.to_thread(work.do, replace(claim, attempt=2)) == "nothing"
    assert (len(server.chats), await texts(alice), len(await changes(alice))) == (1, ["Prefers Chinese"], 1)


async def test_memory_1_12_five_jobs_of_one_conversation_at_once_read_it_once(alice: int, server: ModelServer) -> None:
    opened = await say(alice, LIKES, model="test")
    gate = threading.Event()
    reply = calls(add("Prefers Chinese"))
    server.script(Reply(steps=(Gate(gate), *reply.steps)), calls(add("Again")))
    base = await taken(alice, int(opened.session.id))
    first = asyncio.ensure_future(asyncio.to_thread(work.do, base))
    await asyncio.to_thread(server.wait_for, 1)
    others = [asyncio.to_thread(work.do, replace(base, id=base.id + 1_000 + n)) for n in range(4)]
    put_back = await asyncio.gather(*others, return_exceptions=True)
    gate.set()
    assert (await first, [type(one) for one in put_back]) == ("changed", [jobs.NotYet] * 4)
    assert (len(server.chats), await texts(alice)) == (1, ["Prefers Chinese"])


async def test_memory_1_12_two_conversations_of_one_person_at_once_make_no_duplicate(alice: int) -> None:
    one = await say(alice, f"{LIKES} I live in Rome.", thread="one")
    two = await say(alice, f"I work at Acme. {LIKES}", thread="two")
    claims = [await taken(alice, int(opened.session.id)) for opened in (one, two)]
    results = await asyncio.gather(*(asyncio.to_thread(work.do, claim) for claim in claims))
    assert results == ["changed", "changed"]
    assert sorted(await texts(alice)) == ["I live in Rome", LIKES.rstrip("."), "I work at Acme"]
    assert [reason for *_, reason in await changes(alice)].count("duplicate") == 1


async def test_what_a_lost_worker_claimed_is_its_jobs_next_attempt_and_it_writes_nothing_itself(
    alice: int, server: ModelServer
) -> None:
    opened = await say(alice, LIKES, model="test")
    base = await taken(alice, int(opened.session.id))
    gate = threading.Event()
    slow = calls(add("Slow"))
    server.script(Reply(steps=(Gate(gate), *slow.steps)), calls(add("Quick")))
    first = asyncio.ensure_future(asyncio.to_thread(work.do, base))
    await asyncio.to_thread(server.wait_for, 1)
    assert await asyncio.to_thread(work.do, replace(base, attempt=2)) == "changed"
    gate.set()
    with pytest.raises(jobs.NotYet):
        await first
    assert (await texts(alice), len(await changes(alice))) == (["Quick"], 1)


async def test_a_worker_that_dies_between_reading_and_writing_leaves_nothing_half_written(
    alice: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(alice, "I live in Rome. I prefer tea.")

    def dies(*_: Any, **__: Any) -> None:
        raise ConnectionError("gone")

    with monkeypatch.context() as broken:
        broken.setattr(memorycursors, "move", dies)  # the last thing that the transaction does
        await work_off()
    assert (await texts(alice), await changes(alice), await cursor(alice)) == ([], [], 0)
    assert await statuses() == ["queued"]
    await due_again()
    await work_off()
    assert (await texts(alice), await cursor(alice)) == (["I live in Rome", "I prefer tea"], 4)


async def test_a_job_that_fails_too_often_is_kept_dead_and_a_later_run_asks_again(
    alice: int, server: ModelServer
) -> None:
    await say(alice, LIKES, model="test")
    for _ in range(jobs.MAX_ATTEMPTS):
        server.script(error(400, "no"))
        await due_again()
        await work_off()
    assert (await statuses(), await cursor(alice)) == (["dead"], 0)
    await say(alice, "Thanks.", model="test")
    server.script(calls(add("Prefers Chinese")))
    await work_off()
    assert (await statuses(), await texts(alice)) == (["dead", "done"], ["Prefers Chinese"])
