"""The memories over the tables: what a deletion leaves, several writers at once, the switch, what it costs."""

import asyncio
from typing import Any

import pytest
from django.db import connection, transaction

from agents import jobs
from agents.models.job import Job
from agents.models.memory import Memory as Row
from agents.models.memory import MemoryChange, MemorySetting, MemoryTombstone
from agents.models.search_entry import Embedding, SearchEntry
from agents.runtime.memory import encoding, memories
from agents.runtime.memory.memories import (
    Memory,
    MemoryMissing,
    MemoryOff,
    MemoryUnavailable,
    Query,
    Source,
    VersionConflict,
    Written,
    draft_of,
)
from agents.runtime.memory.words import words_hash
from agents.stores import memoryrows
from agents.stores.db import in_thread
from agents.stores.memories import PgMemories
from agents.stores.memoryrows import MemoryRows
from tests.agents.counting import counted
from tests.agents.test_embeddings import by_endpoint, do_all, endpoint  # noqa: F401 - fixtures
from tests.runtime.memory.samples import Clock, day, draft, episode

FACT, EPISODE = memories.Kind.FACT, memories.Kind.EPISODE
CANARY, CHINESE = "qwxzkva", "璆鏖"  # the index keeps both as they are
TABLES = "select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'"
OWNED = "select table_name from information_schema.columns where table_schema = 'public' and column_name = 'owner_id'"


def holding(words: str) -> dict[str, int]:
    """Return how many rows of each table hold these words anywhere."""
    found = {}
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        for (table,) in cursor.fetchall():
            cursor.execute(f'select count(*) from "{table}" t where t::text ilike %s', [f"%{words}%"])
            if count := cursor.fetchone()[0]:
                found[table] = count
    return found


def belongings(owner_id: int) -> dict[str, list[str]]:
    """Return every row of every table that has this owner, byte by byte."""
    found = {}
    with connection.cursor() as cursor:
        cursor.execute(OWNED)
        for (table,) in cursor.fetchall():
            cursor.execute(f'select t::text from "{table}" t where t.owner_id = %s order by 1', [owner_id])
            found[table] = [row for (row,) in cursor.fetchall()]
    return found


def changed(owner_id: int, memory: Memory) -> None:
    """Note what an update of the memory overwrote, as a run does."""
    MemoryChange.objects.of(owner_id).create(
        owner_id=owner_id,
        proposed="update",
        verb="update",
        reason="completes",
        memory_id=memory.id,
        before=encoding.as_json(draft_of(memory)),
        source=Source.EXTRACTOR,
        at=memory.updated_at,
    )


def life(owner_id: int) -> Memory:
    """Give a person memories with all that belongs to them: history, a change, a vector, a tombstone; return one."""
    rows = MemoryRows(owner_id)
    old = rows.add(draft(f"Lives in {CANARY}", topics=(CANARY,), participants=(CANARY,), location=CANARY)).memory
    changed(owner_id, old)
    now = rows.supersede(old.id, draft(f"Lives in {CHINESE} and {CANARY}")).memory
    changed(owner_id, now)
    gone = rows.add(draft("Likes tea")).memory
    rows.delete(gone.id, by=Source.PERSON)
    rows.add(draft("Likes coffee"))
    while do_all():
        pass
    return now


@pytest.mark.usefixtures("by_endpoint")
def test_after_a_deletion_no_table_holds_a_word_of_it(alice: Any) -> None:
    now = life(alice.pk)
    assert holding(CANARY).keys() == holding(CHINESE).keys() | {"agents_memorychange"}
    assert holding(CANARY).keys() == {"agents_memory", "agents_memorychange", "agents_searchentry"}
    assert Embedding.objects.of(alice.pk).count() == 2
    assert MemoryRows(alice.pk).delete(now.id, by=Source.PERSON)
    assert holding(CANARY) == holding(CHINESE) == {}
    assert MemoryRows(alice.pk).search(Query(text=CANARY)) == MemoryRows(alice.pk).search(Query(text=CHINESE)) == ()
    assert Embedding.objects.of(alice.pk).count() == SearchEntry.objects.of(alice.pk).count() == 1
    assert MemoryChange.objects.of(alice.pk).filter(before__isnull=True).count() == 2, (
        "that something changed is still known"
    )
    graves = MemoryRows(alice.pk).buried([words_hash(f"Lives in {CANARY}"), words_hash("Lives in Rome")])
    assert [grave.by for grave in graves] == [Source.PERSON]


@pytest.mark.usefixtures("by_endpoint")
def test_memory_1_4_clearing_leaves_nothing_of_one_and_every_byte_of_the_other(alice: Any, bob: Any) -> None:
    life(alice.pk)
    life(bob.pk)
    before = belongings(bob.pk)
    kinds = {f"agents_{name}" for name in ("memory", "memorychange", "memorytombstone", "searchentry", "embedding")}
    assert kinds <= {name for name, rows in before.items() if rows}
    assert MemoryRows(alice.pk).clear(by=Source.PERSON) == 3
    assert belongings(bob.pk) == before
    left = {name for name, rows in belongings(alice.pk).items() if rows and name.removeprefix("agents_") != "job"}
    assert left == {"agents_memorychange", "agents_memorytombstone"}
    MemoryRows(bob.pk).clear(by=Source.PERSON)
    assert holding(CANARY) == holding(CHINESE) == holding("coffee") == {}


def test_what_an_update_overwrote_cannot_be_found_nor_read(alice: Any) -> None:
    rows = MemoryRows(alice.pk)
    told = rows.add(draft(f"Likes {CANARY}")).memory
    rows.update(told.id, draft("Likes tea"))
    assert holding(CANARY) == {}
    assert rows.search(Query(text=CANARY)) == ()
    assert [hit.memory.text for hit in rows.search(Query(text="tea"))] == ["Likes tea"]


@pytest.mark.usefixtures("by_endpoint")
def test_with_a_person_goes_all_that_is_remembered_of_them(alice: Any, bob: Any) -> None:
    life(alice.pk)
    life(bob.pk)
    MemorySetting.objects.of(alice.pk).create(owner=alice, enabled=False)
    before = belongings(bob.pk)
    number = alice.pk
    alice.delete()
    assert not any(belongings(number).values())
    assert belongings(bob.pk) == before


def test_memory_1_3_nobody_reaches_a_row_of_another_by_any_method(alice: Any, bob: Any) -> None:
    own = MemoryRows(alice.pk).add(draft("Likes tea")).memory
    gone = MemoryRows(alice.pk).add(draft("Likes coffee")).memory
    MemoryRows(alice.pk).delete(gone.id, by=Source.PERSON)
    before, b = belongings(alice.pk), MemoryRows(bob.pk)
    refused = (
        lambda: b.update(own.id, draft("x")),
        lambda: b.supersede(own.id, draft("x")),
        lambda: b.withdraw(own.id, by=Source.PERSON),
        lambda: b.mute(own.id, True),
        lambda: b.history(own.id),
    )
    for way in refused:
        with pytest.raises(MemoryMissing):
            way()
    assert not b.delete(own.id, by=Source.PERSON)
    assert b.clear(by=Source.PERSON) == 0
    b.used([own.id])
    assert (
        b.read(muted=True) == b.export() == b.search(Query(text="tea")) == b.buried([words_hash("Likes coffee")]) == ()
    )
    b.restore([own, gone])  # what somebody hands in becomes theirs, and nobody else's
    assert [m.id for m in b.export()] == [own.id, gone.id]
    assert belongings(alice.pk) == before


@pytest.mark.parametrize("id", ["", "no\0thing", "\ud83d", "a' or true --", "x" * 5_000, "李明"])
def test_what_cannot_be_an_id_is_an_unknown_one(alice: Any, id: str) -> None:
    rows = MemoryRows(alice.pk)
    kept = rows.add(draft()).memory
    rows.used([id])
    assert not rows.delete(id, by=Source.TOOL)
    for way in (rows.history, lambda id: rows.update(id, draft("x")), lambda id: rows.mute(id, True)):
        with pytest.raises(MemoryMissing):
            way(id)
    assert rows.export() == (kept,)


def test_ids_are_short_and_hold_nothing_that_is_taken_for_another() -> None:
    made = {memoryrows.new_id() for _ in range(2_000)}
    assert len(made) == 2_000
    assert all(len(id) == 8 and set(id) <= set(memoryrows.ID_LETTERS) for id in made)
    assert len(memoryrows.ID_LETTERS) == 32 and not set("lo01") & set(memoryrows.ID_LETTERS)


# Several at once


async def test_memory_1_5_of_two_updates_at_once_one_wins(transactional_db: None, alice: Any) -> None:
    store = PgMemories(alice.pk)
    tea = (await store.add(draft("Likes tea"))).memory
    for texts in (("Likes green tea", "Likes black tea"), ("Likes coffee", "Likes coffee")):
        now = (await store.history(tea.id))[0]
        ways = (store.update(tea.id, draft(text), version=now.version) for text in texts)
        done = await asyncio.gather(*ways, return_exceptions=True)
        (won,) = [one for one in done if isinstance(one, Memory)]
        (lost,) = [one for one in done if not isinstance(one, Memory)]
        assert isinstance(lost, VersionConflict)
        assert await store.read() == (won,)
        assert won.version == now.version + 1


async def test_five_who_add_the_same_at_once_make_one_memory(transactional_db: None, alice: Any) -> None:
    done = await asyncio.gather(*(PgMemories(alice.pk).add(draft("Likes tea")) for _ in range(5)))
    assert sum(one.created for one in done) == 1
    assert len({one.memory.id for one in done}) == 1
    (only,) = await PgMemories(alice.pk).export()
    assert only.version == 5
    assert await in_thread(SearchEntry.objects.of(alice.pk).count)() == 1


async def test_those_who_write_at_once_never_pass_the_limit(transactional_db: None, alice: Any) -> None:
    store = PgMemories(alice.pk, most=3)
    done: list[Written] = await asyncio.gather(*(store.add(draft(f"Has room {n}")) for n in range(8)))
    left = {memory.id for memory in await store.read()}
    gone = [id for one in done for id in one.evicted]
    assert len(left) == 3 and len(gone) == 5 and len({*left, *gone}) == 8
    entries = SearchEntry.objects.of(alice.pk)
    rows = Row.objects.of(alice.pk)
    assert await in_thread(lambda: {e.ref for e in entries} == {row.pk for row in rows})()


async def test_who_writes_waits_for_who_holds_the_lock_and_other_people_do_not(
    transactional_db: None, alice: Any, bob: Any
) -> None:
    waiting: list[asyncio.Task[Written]] = []

    def holds() -> Memory:
        with transaction.atomic():
            memoryrows.lock(alice.pk)
            memory = MemoryRows(alice.pk).add(draft("Likes tea")).memory
            loop.call_soon_threadsafe(lambda: waiting.append(loop.create_task(PgMemories(alice.pk).add(draft()))))
            with connection.cursor() as cursor:
                blocked = 0
                while not blocked:  # until the other one stands before the lock
                    cursor.execute("select count(*) from pg_locks where locktype = 'advisory' and not granted")
                    blocked = cursor.fetchone()[0]
            return memory

    loop = asyncio.get_running_loop()
    first = asyncio.ensure_future(in_thread(holds)())
    await PgMemories(bob.pk).add(draft())
    tea = await first
    assert (await waiting[0]).memory.id == tea.id, "it saw what was committed"
    assert not waiting[0].result().created


@pytest.mark.django_db
def test_within_a_transaction_what_fails_is_undone_alone_and_what_is_undone_leaves_nothing(alice: Any) -> None:
    rows = MemoryRows(alice.pk)
    try:
        with transaction.atomic():
            kept = rows.add(draft("Likes tea")).memory
            with pytest.raises(MemoryMissing):
                rows.update("unknown", draft("x"))
            assert rows.read() == (kept,)
            raise LookupError
    except LookupError:
        pass
    assert rows.read() == () and not SearchEntry.objects.of(alice.pk).exists()
    assert not Job.objects.filter(kind=jobs.EMBED).exists()


# The switch and the outage


async def test_what_is_switched_off_has_nothing_and_takes_nothing(transactional_db: None, alice: Any) -> None:
    plain, store = PgMemories(alice.pk), PgMemories(alice.pk, heeds_switch=True)
    tea, rome = [(await plain.add(draft(text))).memory for text in ("Likes tea", "Lives in Rome")]
    await plain.delete(rome.id, by=Source.PERSON)
    setting = MemorySetting.objects.of(alice.pk)
    assert await store.read() == (tea,), "without a row they are on"
    await in_thread(setting.create)(owner_id=alice.pk, enabled=False)
    before = await in_thread(belongings)(alice.pk)
    assert await store.read() == await store.read(3) == await store.export() == ()
    assert await store.search(Query(text="tea")) == await store.search(Query(text="tea", kind=FACT)) == ()
    assert await store.buried([words_hash("Lives in Rome")]) == ()
    with pytest.raises(MemoryMissing):
        await store.history(tea.id)
    for way in (
        store.add(draft()),
        store.update(tea.id, draft("x")),
        store.supersede(tea.id, draft("x")),
        store.delete(tea.id, by=Source.TOOL),
        store.withdraw(tea.id, by=Source.TOOL),
        store.restore([rome]),
        store.mute(tea.id, True),
        store.clear(by=Source.TOOL),
        store.used([tea.id]),
    ):
        with pytest.raises(MemoryOff):
            await way
    assert await in_thread(belongings)(alice.pk) == before
    assert await plain.read() == (tea,), "the page shows them all the same"
    await in_thread(setting.update)(enabled=True)
    assert await store.read() == (tea,)


async def test_an_outage_is_said_to_be_one(transactional_db: None, alice: Any) -> None:
    def dies() -> Any:
        with connection.cursor() as cursor:
            cursor.execute("select pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(MemoryUnavailable):
        await PgMemories(alice.pk, now=dies).add(draft())
    assert await PgMemories(alice.pk).read() == ()


# What is put back


def test_what_was_edited_into_what_it_superseded_can_be_withdrawn(alice: Any) -> None:
    rows = MemoryRows(alice.pk)
    rome = rows.add(draft("Lives in Rome")).memory
    oslo = rows.supersede(rome.id, draft("Lives in Oslo")).memory
    rows.update(oslo.id, draft("lives in Rome"))
    again = rows.withdraw(oslo.id, by=Source.PERSON)
    assert again is not None and again.id == rome.id
    assert rows.read() == (again,)


def test_what_is_put_back_keeps_every_field_and_what_lost_its_successor_stays_away(alice: Any) -> None:
    rows = MemoryRows(alice.pk, now=Clock())
    origin = memories.Origin(thread_id="t", event_id="e", position=3)
    full = episode("Met Ana", day(2026, 3, 3), topics=("a",), participants=("Ana",), location="Oslo", origin=origin)
    old = rows.add(full).memory
    new = rows.supersede(old.id, draft("Met Ana twice")).memory
    rows.used([old.id])
    chain = rows.history(new.id)
    assert chain[1].used_at is not None and chain[1].superseded_by == new.id
    rows.delete(new.id, by=Source.PERSON)
    rows.restore(chain[1:])
    assert rows.export() == ()
    assert len(rows.buried([words_hash("Met Ana")])) == 1
    rows.restore(tuple(encoding.memory_from(encoding.as_json(memory)) for memory in reversed(chain)))
    assert rows.history(new.id) == chain
    assert not MemoryTombstone.objects.of(alice.pk).exists()


# What it costs


async def test_reading_takes_one_statement_and_searching_two(transactional_db: None, alice: Any) -> None:
    store = PgMemories(alice.pk, heeds_switch=True)
    await store.add(draft("Likes tea"))

    async def statements(query: Query | None) -> int:
        with counted() as found:
            await (store.read() if query is None else store.search(query))
        return len([text for text in found.texts if text])  # "" asks whether the connection lives

    assert await statements(None) == 1
    assert await statements(Query(text="tea")) == 2
    assert await statements(Query(text="tea", kind=FACT)) == 2
    assert await statements(Query(text="nothing of it")) <= 2
