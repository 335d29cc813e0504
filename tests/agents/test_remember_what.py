"""What the job that reads for memories may read, by whose leave, and what it makes of what changes."""

import asyncio
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio
from django.contrib.auth import get_user_model
from django.utils import timezone

from agents import jobs, wiring
from agents.background import work
from agents.models.memory import Memory as Row
from agents.models.memory import MemoryCursor, MemorySetting
from agents.models.session import Session
from agents.runtime.events import Preloaded, RunStarted, ToolReturned, UserMessageKind
from agents.runtime.memory.dates import Precision
from agents.runtime.memory.memories import Kind, Source
from agents.runtime.session import CancelToken, Plan, RunRequest
from agents.stores import db
from agents.stores.memories import PgMemories
from agents.stores.sessions import PgSessionStore
from tests.agents.records import AT, FINISHED, finished, request, stamp, user
from tests.agents.rememberings import (
    add,
    calls,
    changes,
    cursor,
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
from tests.modelserver import Gate, ModelServer, Reply, finish, text

pytestmark = pytest.mark.usefixtures("hot_stores")

LIKES = "I prefer reports in Chinese, tables first."


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    return int((await db.in_thread(get_user_model().objects.create_user)("alice")).pk)


@pytest_asyncio.fixture
async def bob(hot_stores: None) -> int:
    return int((await db.in_thread(get_user_model().objects.create_user)("bob")).pk)


async def switch(owner_id: int, **values: Any) -> None:
    await db.in_thread(MemorySetting.objects.of(owner_id).update_or_create)(defaults=values, owner_id=owner_id)


# By whose leave


async def test_switched_off_nothing_is_read_and_what_was_said_meanwhile_stays_unread(alice: int) -> None:
    await switch(alice, enabled=False)
    await told(alice, "I live in Rome.")
    assert (await texts(alice), await changes(alice), await cursor(alice)) == ([], [], 4)
    await say(alice, "I work at Acme.")
    await switch(alice, enabled=True, since=AT + timedelta(hours=1))
    await say(alice, "I prefer tea.", at=AT + timedelta(hours=2))
    await work_off()
    assert (await texts(alice), await cursor(alice)) == (["I prefer tea"], 12)


async def test_switched_off_while_a_model_reads_nothing_is_kept(alice: int, server: ModelServer) -> None:
    await say(alice, LIKES, model="test")
    gate = threading.Event()
    server.script(Reply(steps=(Gate(gate), *calls(add("Prefers Chinese")).steps)))
    working = asyncio.ensure_future(work_off())
    await asyncio.to_thread(server.wait_for, 1)
    await switch(alice, enabled=False)
    gate.set()
    await working
    assert (await texts(alice), await statuses()) == ([], ["queued"])
    await work_off()
    assert (await texts(alice), len(server.chats), await cursor(alice)) == ([], 1, 4)


async def test_an_agent_that_does_not_remember_passes_over_what_is_said(alice: int) -> None:
    await policy(remember=False)
    await told(alice, LIKES)
    assert (await texts(alice), await cursor(alice)) == ([], 4)


@pytest.mark.parametrize("how", ["deleted", "foreign"])
async def test_a_conversation_that_is_gone_or_another_persons_is_left_alone(alice: int, bob: int, how: str) -> None:
    opened = await say(alice, LIKES)
    claim = await taken(alice, int(opened.session.id))
    if how == "deleted":
        await db.in_thread(Session.objects.of(alice).update)(deleted_at=timezone.now())
    else:
        claim = replace(claim, owner_id=bob)
    assert await asyncio.to_thread(work.do, claim) == "gone"
    assert (await texts(alice), await texts(bob), await cursor(alice)) == ([], [], 0)


# What is a source


OTHERS = (
    ToolReturned(id="t1", call_id="c1", name="web_fetch", content="I live in Rome. I prefer wine."),
    Preloaded(blocks=(("memory", "I live in Rome."), ("recall", "I prefer wine."))),
)


@pytest.mark.parametrize("model", ["offline", "test"])
async def test_what_tools_pages_files_and_memories_say_is_never_remembered(
    alice: int, server: ModelServer, settings: Any, model: str
) -> None:
    if model == "offline":
        settings.OPENAI_BASE_URL = settings.OPENAI_MODEL = ""
    page = user("Read this page, please.\n> I live in Rome.", id="m1", context=(("page", "I prefer wine."),))
    seed = user("I live in Rome.", id="m2", kind=UserMessageKind.SEED)
    server.script(calls())
    await say(alice, page, seed, *OTHERS, model=model)
    await work_off()
    assert (await texts(alice), await cursor(alice)) == ([], 7)
    asked = [sent(chat.body) for chat in server.chats]
    assert ["Read this page" in one for one in asked] == ([True] if model == "test" else [])
    assert not any("Rome" in one or "wine" in one for one in asked)


async def test_what_was_put_before_a_model_is_marked_as_used_and_not_read_again(alice: int) -> None:
    await told(alice, "I live in Rome.")
    memory = await only(alice)
    assert memory.used_at is None
    await say(alice, "Hello?", Preloaded(blocks=(), memories=((memory.id, 1), ("unknown", 3))))
    await work_off()
    again = await only(alice)
    assert again.used_at is not None and (again.text, again.version) == (memory.text, 1)


async def test_memory_1_14_what_a_person_deleted_does_not_come_back_from_old_messages(
    alice: int, server: ModelServer
) -> None:
    await say(alice, "I live in Rome.", model="test")
    server.script(calls(add("I live in Rome", message=1)))
    await work_off()
    assert await PgMemories(alice).delete((await only(alice)).id, by=Source.PERSON)
    # the same message read again, as after a cursor that was lost
    await db.in_thread(MemoryCursor.objects.of(alice).update)(position=0)
    await say(alice, "Thanks.", Preloaded(blocks=(("memory", "I live in Rome."),)), model="test")
    server.script(calls(add("I live in Rome", message=1), add("I live in Rome")))
    await work_off()
    assert await texts(alice) == []
    assert (await changes(alice))[-2:] == [("add", "", "buried"), ("add", "", "buried")]
    # said once more, it is
    await say(alice, "I live in Rome.", model="test", at=timezone.now() + timedelta(minutes=1))
    server.script(calls(add("I live in Rome", message=1)))
    await work_off()
    assert await texts(alice) == ["I live in Rome"]


# What changes


@pytest.mark.parametrize("model", ["offline", "test"])
async def test_memory_1_13_five_years_then_six_is_six_and_five_is_history(
    alice: int, server: ModelServer, settings: Any, model: str
) -> None:
    five, six = "I have worked at Acme for 5 years.", "I have worked at Acme for 6 years."
    if model == "offline":
        settings.OPENAI_BASE_URL = settings.OPENAI_MODEL = ""
    server.script(calls(add(five.rstrip("."))))
    await told(alice, five, model=model)
    old = await only(alice)
    server.script(calls(("supersede", {"memory_id": f"[{old.id}]", "memory": six.rstrip(".")})))
    await told(alice, six, model=model)
    new = await only(alice)
    assert new.text == six.rstrip(".")
    assert [memory.text for memory in await PgMemories(alice).history(new.id)] == [six.rstrip("."), five.rstrip(".")]
    assert (await changes(alice))[-1] == ("supersede", "supersede", "changed")


async def test_memory_1_13_what_is_liked_too_stands_beside_and_a_move_takes_the_place(alice: int) -> None:
    await told(alice, "I prefer tea.")
    await told(alice, "I also like coffee.")
    await told(alice, "I live in Rome.")
    await told(alice, "I moved from Rome to Oslo.")
    assert await texts(alice) == ["I prefer tea", "I also like coffee", "I moved from Rome to Oslo"]


async def test_two_values_in_one_part_are_one_after_the_other(alice: int) -> None:
    await say(alice, "I live in Rome.")
    await say(alice, "I live in Oslo now.")
    await work_off()
    new = await only(alice)
    assert "Oslo" in new.text and len(await PgMemories(alice).history(new.id)) == 2


async def test_what_is_asked_to_be_forgotten_goes_and_what_is_said_after_it_stays(alice: int) -> None:
    await told(alice, "I live in Rome. I prefer tea.")
    await say(alice, "Forget everything you know about me.")
    await say(alice, "I prefer tea.")
    await work_off()
    assert await texts(alice) == ["I prefer tea"]
    assert (await changes(alice))[-2:] == [("clear", "clear", "asked"), ("add", "add", "new")]


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York"])
async def test_tomorrow_is_that_of_when_and_where_it_was_said(alice: int, zone: str) -> None:
    here = ZoneInfo(zone)
    written = datetime(2026, 12, 31, 23, 58, tzinfo=here)
    await say(alice, "I have a dentist appointment tomorrow.", zone=zone, at=written.astimezone(UTC))
    await say(alice, "Thanks.", zone="Europe/Paris", at=written.astimezone(UTC) + timedelta(days=2))
    await work_off()
    memory = await only(alice)
    assert memory.kind is Kind.EPISODE and memory.event_time is not None
    assert memory.event_time.precision is Precision.DAY
    assert memory.event_time.start.astimezone(here) == datetime(2027, 1, 1, tzinfo=here)
    assert "2027-01-01" in memory.text


async def test_a_message_steered_into_a_run_whose_beginning_was_read_has_its_zone(alice: int) -> None:
    opened = await PgSessionStore().open_run(
        request(alice, message=user("Hello", id="m1")),
        lambda _: _plan("Asia/Shanghai"),
    )
    session_id = int(opened.session.id)
    await db.in_thread(jobs.plant)(jobs.MEMORY, owner_id=alice, scope="", session_id=session_id)
    await work_off()
    assert await cursor(alice) == 2
    late = datetime(2026, 12, 31, 15, 58, tzinfo=UTC)  # two minutes before midnight there
    words = user("I have a dentist appointment tomorrow.", id="m2", kind=UserMessageKind.STEER)
    await opened.ledger.append([stamp(words, at=late), stamp(finished())], end=FINISHED)
    await work_off()
    assert "2027-01-01" in (await only(alice)).text


def _plan(zone: str) -> Plan:
    started = RunStarted(agent="assistant", model="offline", zone=zone)
    return Plan(records=(stamp(started), stamp(user("Hello", id="m1"))))


# Whose it is


async def test_what_one_person_says_changes_nothing_of_anothers(alice: int, bob: int) -> None:
    await told(bob, "I live in Paris.", thread="t")
    theirs = await only(bob)
    await told(alice, "I live in Rome. Forget everything you know about me.", thread="t")
    await told(alice, "I live in Oslo.", thread="t")
    assert await only(bob) == theirs
    assert await db.in_thread(lambda: Row.objects.of(bob).count())() == 1


# With real runs


async def ask(owner_id: int, words: str, run_id: str) -> None:
    """Run the assistant as the site does."""
    runner = wiring.build().runner
    asked = RunRequest(
        owner_id=owner_id,
        thread_id="t",
        run_id=run_id,
        model="test",
        message=user(words, id=f"m-{run_id}"),
        zone="Asia/Shanghai",
    )
    async for _ in runner.run(await runner.open(asked), CancelToken()):
        pass


async def test_after_a_real_run_only_what_the_person_said_is_read_in_their_zone(
    alice: int, server: ModelServer
) -> None:
    server.script(Reply(steps=(*text("You live in Paris, I am sure."), *finish())))
    await ask(alice, "I have a dentist appointment tomorrow.", "r1")
    server.script(calls(add("Has a dentist appointment", event_time="tomorrow", memory_kind="episode", message=1)))
    await work_off()
    asked = sent(server.chats[-1].body)
    assert "dentist" in asked and "Paris" not in asked
    memory = await only(alice)
    assert memory.event_time is not None
    said_on = timezone.now().astimezone(ZoneInfo("Asia/Shanghai")).date()
    start = memory.event_time.start.astimezone(ZoneInfo("Asia/Shanghai"))
    # a test at midnight may see the day before or after
    assert abs((start.date() - said_on).days - 1) <= 1 and (start.hour, start.minute) == (0, 0)
    await wiring.close_clients()
