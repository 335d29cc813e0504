"""The memories over the tables: what a deletion leaves, several writers at once, the switch, vectors, what it costs."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction

from agents import jobs
from agents.background import embed
from agents.models.job import Job
from agents.models.memory import Memory as Row
from agents.models.memory import MemoryChange, MemorySetting, MemoryTombstone
from agents.models.search_entry import Embedding, Kind, SearchEntry
from agents.runtime.embedding import EmbedderFailed, Vector, model_id
from agents.runtime.memory import encoding, memories
from agents.runtime.memory.dates import Between
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
BOAT, CUP = (1.0, 0.0), (0.0, 1.0)


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


# Searching


@pytest.mark.parametrize(
    ("first", "second", "asked"),
    [
        ("李明喜欢喝绿茶", "李萍喜欢喝绿茶", "谁喜欢喝绿茶？"),
        ("我的儿子在上海读书", "我的女儿在上海读书", "谁在上海读书？"),
        ("Ana's birthday is on 3 May", "Anna's birthday is on 3 May", "When is the birthday?"),
    ],
)
def test_what_differs_in_its_subject_alone_is_kept_and_found_twice(
    alice: Any, first: str, second: str, asked: str
) -> None:
    rows = MemoryRows(alice.pk)
    assert rows.add(draft(first)).created and rows.add(draft(second)).created
    for n in range(20):
        rows.add(draft(f"Room {n} is blue"))
    assert {hit.memory.text for hit in rows.search(Query(text=asked, limit=2))} == {first, second}
    assert rows.search(Query(text=second))[0].memory.text == second


def test_a_search_knows_words_topics_people_and_places_and_says_how_well_each_fits(alice: Any) -> None:
    rows = MemoryRows(alice.pk)
    for n in range(30):
        rows.add(draft(f"Room {n} is blue"))
    told = rows.add(
        episode("Signed the lease", day(2026, 3, 3), topics=("housing",), participants=("Ana",), location="Oslo")
    ).memory
    rows.add(draft("Ana has a cat"))
    for word in ("lease", "signing a lease", "housing", "ana in oslo"):
        found = rows.search(Query(text=word))
        assert found[0].memory == told, word
        assert 1 == found[0].score >= found[-1].score > 0
    assert [hit.memory.text for hit in rows.search(Query(text='"has a cat"'))] == ["Ana has a cat"]
    assert rows.search(Query(text='"a has cat"')) == ()
    assert len(rows.search(Query(text="room", limit=3))) == 3


def test_memory_1_7_a_filter_finds_the_one_that_fits_among_hundreds_that_do_not(alice: Any) -> None:
    rows = MemoryRows(alice.pk)
    for n in range(150):
        rows.add(draft(f"Likes tea number {n}"))
    drunk = rows.add(episode("In the far away mountains of Kyoto they all drank some tea", day(2024, 5, 7))).memory
    assert [hit.memory for hit in rows.search(Query(text="tea number", kind=EPISODE))] == [drunk]
    behind = rows.search(Query(text="tea number", kind=EPISODE, fallback=True, limit=5))
    assert behind[0].memory == drunk and [hit.memory.kind for hit in behind[1:]] == [FACT] * 4
    rows.update(drunk.id, replace(draft_of(drunk), event_time=day(2020, 1, 1)))
    within = Between(after=day(2024, 1, 1).start, before=day(2025, 1, 1).start)
    assert rows.search(Query(text="tea number", kind=EPISODE, between=within)) == ()


def test_what_stands_behind_as_of_another_kind_may_have_the_better_score(alice: Any) -> None:
    rows = MemoryRows(alice.pk)
    drunk = rows.add(episode("In the far away mountains of Kyoto they all drank some tea", day(2024, 5, 7))).memory
    tea = rows.add(draft("Tea ceremonies are liked")).memory
    found = rows.search(Query(text="tea ceremonies", kind=EPISODE, fallback=True))
    assert [hit.memory for hit in found] == [drunk, tea]
    assert 0 < found[0].score < found[1].score == 1


def test_of_equals_the_one_that_happened_later_comes_first(alice: Any) -> None:
    rows = MemoryRows(alice.pk, now=Clock())
    drafts = (
        episode("Drank tea", day(2024, 5, 7)),
        draft("Drank tea", kind=EPISODE),
        episode("Drank tea", day(2025, 5, 7)),
        draft("Drank tea"),
    )
    one, two, three, four = (rows.add(each).memory for each in drafts)
    assert [hit.memory for hit in rows.search(Query(text="tea"))] == [three, one, four, two]


class Directions:
    """An embedder for which a text that holds one of two words means that direction, and others mean nothing."""

    name, model, query_s = "directions", "1", 5.0

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        return [BOAT if "boat" in text else CUP if "cup" in text else None for text in texts]


def give_vector(owner_id: int, memory: Memory, vector: Vector) -> None:
    entry = SearchEntry.objects.of(owner_id).get(ref=Row.objects.of(owner_id).get(memory_id=memory.id).pk)
    Embedding.objects.of(owner_id).create(
        owner_id=owner_id,
        entry=entry,
        kind=Kind.MEMORY,
        group_id=entry.group_id,
        model=model_id(Directions()),
        vector=list(vector),
    )


async def test_what_means_the_same_is_found_and_without_vectors_words_answer(
    transactional_db: None, alice: Any
) -> None:
    class Away(Directions):
        def embed(self, texts: Sequence[str]) -> list[Vector | None]:
            raise EmbedderFailed("away")

    class Longer(Directions):
        def embed(self, texts: Sequence[str]) -> list[Vector | None]:
            return [(1.0, 0.0, 0.0) for _ in texts]

    store = PgMemories(alice.pk, embedder=Directions())
    vessel = (await store.add(draft("Sails a vessel"))).memory
    mug = (await store.add(draft("Drinks from a mug"))).memory
    await sync_to_async(give_vector)(alice.pk, vessel, BOAT)
    await sync_to_async(give_vector)(alice.pk, mug, CUP)
    assert [hit.memory for hit in await store.search(Query(text="boat"))] == [vessel]
    assert [hit.memory for hit in await store.search(Query(text="cup", kind=FACT))] == [mug]
    assert await store.search(Query(text="cup", kind=EPISODE)) == ()
    for without in (PgMemories(alice.pk, embedder=Away()), PgMemories(alice.pk, embedder=Longer())):
        assert [hit.memory for hit in await without.search(Query(text="vessel"))] == [vessel]
    await store.mute(vessel.id, True)
    assert await store.search(Query(text="boat")) == ()


@pytest.mark.usefixtures("by_endpoint")
def test_memories_get_vectors_from_a_job_of_their_owner_and_with_all_others(alice: Any, bob: Any) -> None:
    rows = MemoryRows(alice.pk)
    tea = rows.add(draft("Likes tea", topics=("drinks",))).memory
    coffee = rows.add(draft("Likes coffee")).memory
    MemoryRows(bob.pk).add(draft("Likes cake"))
    waiting = Job.objects.filter(kind=jobs.EMBED, status=Job.Status.QUEUED)
    assert sorted(waiting.values_list("owner_id", "scope")) == sorted(
        (owner.pk, f"memory:{owner.pk}") for owner in (alice, bob)
    )
    assert do_all() == 2
    assert Embedding.objects.of(alice.pk).count() == 2 and Embedding.objects.of(bob.pk).count() == 1
    rows.update(tea.id, draft("Likes green tea"))
    assert Embedding.objects.of(alice.pk).count() == 1, "the old vector went with the old entry"
    waiting.delete()
    jobs.plant(jobs.EMBED, owner_id=None, scope=embed.ALL)
    assert do_all() == 1
    assert Embedding.objects.of(alice.pk).count() == 2
    rows.mute(coffee.id, True)
    assert Embedding.objects.of(alice.pk).count() == SearchEntry.objects.of(alice.pk).count() == 1


def test_without_an_embedder_no_vector_is_owed(alice: Any, settings: Any) -> None:
    settings.EMBEDDER = "none"
    MemoryRows(alice.pk).add(draft())
    assert not Job.objects.filter(kind=jobs.EMBED).exists()


@pytest.mark.usefixtures("by_endpoint")
def test_a_memory_that_went_while_its_vector_was_owed_is_passed_over(alice: Any) -> None:
    rows = MemoryRows(alice.pk)
    tea = rows.add(draft("Likes tea")).memory
    rows.add(draft("Likes coffee"))
    rows.delete(tea.id, by=Source.PERSON)
    do_all()
    assert Embedding.objects.of(alice.pk).count() == 1


def test_the_entries_are_those_that_hold_and_are_shown(alice: Any) -> None:
    rows = MemoryRows(alice.pk)

    def entered() -> set[str]:
        refs = SearchEntry.objects.of(alice.pk).filter(kind=Kind.MEMORY).values_list("ref", flat=True)
        assert len(refs) == len(set(refs))
        return set(Row.objects.of(alice.pk).filter(pk__in=refs).values_list("text", flat=True))

    rome = rows.add(draft("Lives in Rome")).memory
    rows.add(draft("Lives in Rome", topics=("home",)))
    oslo = rows.supersede(rome.id, draft("Lives in Oslo")).memory
    assert entered() == {"Lives in Oslo"}
    rows.withdraw(oslo.id, by=Source.PERSON)
    assert entered() == {"Lives in Rome"}
    rows.mute(rome.id, True)
    rows.add(draft("Lives in Rome", topics=("flat",)))
    assert entered() == set(), "what is said again stays muted"
    rows.mute(rome.id, False)
    kyiv = rows.supersede(rome.id, draft("Lives in Kyiv")).memory
    chain = rows.history(kyiv.id)
    rows.delete(kyiv.id, by=Source.PERSON)
    assert entered() == set()
    rows.restore(chain)
    assert entered() == {"Lives in Kyiv"}


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
