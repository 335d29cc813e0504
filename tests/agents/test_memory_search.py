"""What is found among the memories over the tables: by words, kind and time, and by vectors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agents import jobs
from agents.background import embed
from agents.models.job import Job
from agents.models.memory import Memory as Row
from agents.models.search_entry import Embedding, Kind, SearchEntry
from agents.runtime.embedding import EmbedderFailed, Vector, model_id
from agents.runtime.memory import memories
from agents.runtime.memory.dates import Between
from agents.runtime.memory.memories import (
    Memory,
    Query,
    Source,
    draft_of,
)
from agents.stores.memories import PgMemories
from agents.stores.memoryrows import MemoryRows
from tests.agents.test_embeddings import by_endpoint, do_all, endpoint  # noqa: F401 - fixtures
from tests.runtime.memory.samples import Clock, day, draft, episode

FACT, EPISODE = memories.Kind.FACT, memories.Kind.EPISODE
BOAT, CUP = (1.0, 0.0), (0.0, 1.0)


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
