"""What a MemoryStore promises: of the one in memory here, of the one over the tables in tests/agents."""

from dataclasses import replace
from typing import Protocol

import pytest

from agents.runtime.memory.dates import Between
from agents.runtime.memory.memories import (
    Draft,
    Kind,
    MemoryDuplicate,
    MemoryInvalid,
    MemoryMissing,
    MemoryStore,
    Query,
    Source,
    VersionConflict,
    checked,
    content_hash,
    draft_of,
)
from agents.runtime.memory.words import words_hash
from tests.runtime.memory.samples import ZONE, House, day, draft, episode


class StoreHouse(Protocol):
    """Two people's memories."""

    @property
    def alice(self) -> MemoryStore: ...

    @property
    def bob(self) -> MemoryStore: ...

    def limit(self, most: int) -> None:
        """Let nobody have more memories than this."""
        ...


@pytest.fixture
def house() -> StoreHouse:
    return House()


async def test_memory_1_1_the_same_text_twice_is_one_memory_with_the_topics_of_the_second(house: StoreHouse) -> None:
    store = house.alice
    first = (await store.add(draft("Likes tea", topics=("drinks",)))).memory
    second = await store.add(draft("likes  tea.", topics=("taste",)))
    assert not second.created
    assert second.memory.id == first.id
    assert second.memory.topics == ("taste",)
    assert second.memory.created_at == first.created_at
    assert second.memory.updated_at > first.updated_at
    assert await store.read() == (second.memory,)


async def test_memory_1_2_another_time_is_another_memory_and_the_order_and_case_of_people_are_not(
    house: StoreHouse,
) -> None:
    store = house.alice
    await store.add(episode("Visited Berlin", day(2024, 5, 7), participants=("Ana", "Li Wei")))
    again = await store.add(episode("Visited Berlin", day(2024, 5, 7), participants=("li wei", " ANA ", "Ana")))
    assert not again.created
    assert (await store.add(episode("Visited Berlin", day(2025, 5, 7), participants=("Ana", "Li Wei")))).created
    assert len(await store.read()) == 2


async def test_memory_1_3_nobody_reaches_the_memories_of_another_by_any_way(house: StoreHouse) -> None:
    a, b = house.alice, house.bob
    own = (await a.add(draft("Likes tea"))).memory
    assert await b.read() == await b.export() == ()
    assert await b.search(Query(text="tea")) == ()
    assert await b.buried([words_hash("Likes tea")]) == ()
    assert not await b.delete(own.id, by=Source.PERSON)
    assert await b.clear(by=Source.PERSON) == 0
    await b.used([own.id])
    for way in (b.update(own.id, draft("x")), b.supersede(own.id, draft("x")), b.history(own.id)):
        with pytest.raises(MemoryMissing):
            await way
    assert await a.export() == (own,)
    await a.delete(own.id, by=Source.PERSON)
    assert await b.buried([words_hash("Likes tea")]) == ()


async def test_memory_1_4_clearing_leaves_everything_of_everybody_else(house: StoreHouse) -> None:
    a, b = house.alice, house.bob
    for store in (a, b):
        old = (await store.add(draft("Lives in Rome"))).memory
        await store.supersede(old.id, draft("Lives in Oslo"))
    before = await b.export()
    assert await a.clear(by=Source.PERSON) == 2
    assert await a.export() == ()
    assert await b.export() == before
    assert {t.by for t in await a.buried([words_hash("Lives in Rome"), words_hash("Lives in Oslo")])} == {Source.PERSON}


async def test_memory_1_5_an_update_to_the_text_of_another_is_refused_and_of_two_updates_one_wins(
    house: StoreHouse,
) -> None:
    store = house.alice
    tea, coffee = (await store.add(draft("Likes tea"))).memory, (await store.add(draft("Likes coffee"))).memory
    with pytest.raises(MemoryDuplicate) as refused:
        await store.update(tea.id, draft("likes coffee"))
    assert refused.value.other == coffee.id
    assert set(await store.read()) == {tea, coffee}
    written = await store.update(tea.id, draft("Likes green tea"), version=tea.version)
    with pytest.raises(VersionConflict):
        await store.update(tea.id, draft("Likes black tea"), version=tea.version)
    assert (written.id, written.version, written.created_at) == (tea.id, 2, tea.created_at)
    assert set(await store.read()) == {written, coffee}


async def test_memory_1_6_at_the_limit_the_least_valuable_goes_and_is_named(house: StoreHouse) -> None:
    house.limit(3)
    store = house.alice
    one, two, three = [(await store.add(draft(f"Has room {n}"))).memory for n in range(3)]
    assert not (await store.add(draft("Has room 1"))).evicted, "it is there already"
    await store.used([one.id])
    fourth = await store.add(draft("Has room 4"))
    assert fourth.evicted == (two.id,), "the longest unused"
    assert {m.id for m in await store.read()} == {one.id, three.id, fourth.memory.id}
    assert await store.buried([words_hash(two.text)]) == (), "nobody deleted it"


async def test_history_goes_first_at_the_limit(house: StoreHouse) -> None:
    house.limit(2)
    store = house.alice
    tea, rome = [(await store.add(draft(text))).memory for text in ("Likes tea", "Lives in Rome")]
    oslo = await store.supersede(rome.id, draft("Lives in Oslo"))
    assert oslo.evicted == (rome.id,)
    assert await store.read() == (oslo.memory, tea)


async def test_what_goes_takes_along_what_could_not_be_reached_without_it(house: StoreHouse) -> None:
    house.limit(3)
    store = house.alice
    rome = (await store.add(draft("Lives in Rome"))).memory
    oslo = (await store.supersede(rome.id, draft("Lives in Oslo"))).memory
    kyiv = (await store.supersede(oslo.id, draft("Lives in Kyiv"))).memory
    await store.used([rome.id])
    tea = await store.add(draft("Likes tea"))
    assert tea.evicted == (oslo.id, rome.id)
    assert await store.export() == (kyiv, tea.memory)


async def test_memory_1_7_few_hits_of_one_kind_are_followed_by_the_other_kind(house: StoreHouse) -> None:
    store = house.alice
    await store.add(episode("Drank tea in Kyoto", day(2024, 5, 7)))
    await store.add(draft("Likes tea"))
    found = await store.search(Query(text="tea", kind=Kind.EPISODE, fallback=True))
    assert [hit.memory.kind for hit in found] == [Kind.EPISODE, Kind.FACT]
    assert len({hit.memory.id for hit in found}) == 2
    for n in (1, 2):
        await store.add(episode(f"Bought tea number {n}", day(2024, 6, n)))
    found = await store.search(Query(text="tea", kind=Kind.EPISODE, fallback=True))
    assert [hit.memory.kind for hit in found] == [Kind.EPISODE] * 3
    assert len(await store.search(Query(text="tea", kind=Kind.EPISODE))) == 3


async def test_memory_1_8_a_filter_reaches_to_the_end_of_its_period_and_lets_pass_what_has_no_time(
    house: StoreHouse,
) -> None:
    store = house.alice
    late = (await store.add(episode("Tea on 31 May", day(2024, 5, 31)))).memory
    june = (await store.add(episode("Tea on 1 June", day(2024, 6, 1)))).memory
    dateless = (await store.add(draft("Likes tea"))).memory

    async def found(after: str, before: str) -> set[str]:
        hits = await store.search(Query(text="tea", between=Between.of(after, before, ZONE)))
        return {hit.memory.id for hit in hits}

    assert await found("", "2024-05") == {late.id, dateless.id}
    assert await found("2024-06-01", "") == {june.id, dateless.id}
    assert await found("", "not a date") == {late.id, june.id, dateless.id}


async def test_what_was_superseded_is_history_and_nothing_else(house: StoreHouse) -> None:
    store = house.alice
    five = (await store.add(draft("Has 5 years of Go"))).memory
    six = (await store.supersede(five.id, draft("Has 6 years of Go"), version=1)).memory
    assert await store.read() == (six,)
    assert [hit.memory.id for hit in await store.search(Query(text="years of Go"))] == [six.id]
    assert [m.text for m in await store.history(six.id)] == ["Has 6 years of Go", "Has 5 years of Go"]
    assert len(await store.export()) == 2
    with pytest.raises(MemoryMissing):
        await store.update(five.id, draft("Has 7 years of Go"))
    with pytest.raises(MemoryMissing):
        await store.supersede(five.id, draft("Has 7 years of Go"))
    again = await store.add(draft("Has 5 years of Go"))
    assert again.created, "what no longer holds may be said anew"


async def test_superseding_by_what_holds_already_makes_no_second_memory(house: StoreHouse) -> None:
    store = house.alice
    rome, oslo = (await store.add(draft("Lives in Rome"))).memory, (await store.add(draft("Lives in Oslo"))).memory
    written = await store.supersede(rome.id, draft("lives in Oslo"))
    assert (written.created, written.memory.id) == (False, oslo.id)
    assert [m.id for m in await store.read()] == [oslo.id]
    itself = await store.supersede(oslo.id, draft("Lives in Oslo", topics=("home",)))
    assert (itself.created, itself.memory.topics, itself.memory.superseded_by) == (False, ("home",), "")
    with pytest.raises(VersionConflict):
        await store.supersede(oslo.id, draft("Lives in Kyiv"), version=1)


async def test_what_is_deleted_is_gone_with_its_history_and_leaves_only_that_it_was(house: StoreHouse) -> None:
    store = house.alice
    rome = (await store.add(draft("Lives in Rome"))).memory
    oslo = (await store.supersede(rome.id, draft("Lives in Oslo", topics=("home",), participants=("Ana",)))).memory
    assert await store.delete(oslo.id, by=Source.PERSON)
    assert not await store.delete(oslo.id, by=Source.PERSON)
    assert await store.export() == ()
    assert await store.search(Query(text="lives Oslo Rome home")) == ()
    graves = await store.buried([words_hash("LIVES in Oslo!"), words_hash("Lives in Rome"), words_hash("Likes tea")])
    assert {grave.id for grave in graves} == {rome.id, oslo.id}
    assert not any(word in repr(graves) for word in ("Oslo", "Rome", "Ana", "home"))


async def test_what_is_withdrawn_lets_hold_again_what_it_superseded_last(house: StoreHouse) -> None:
    store = house.alice
    rome = (await store.add(draft("Lives in Rome"))).memory
    oslo = (await store.supersede(rome.id, draft("Lives in Oslo"))).memory
    kyiv = (await store.supersede(oslo.id, draft("Lives in Kyiv"))).memory
    with pytest.raises(MemoryMissing):
        await store.withdraw(oslo.id, by=Source.PERSON)
    again = await store.withdraw(kyiv.id, by=Source.PERSON)
    assert again is not None and (again.id, again.superseded_by) == (oslo.id, "")
    assert await store.read() == (again,)
    assert [m.id for m in await store.history(oslo.id)] == [oslo.id, rome.id]
    assert [grave.id for grave in await store.buried([words_hash("Lives in Kyiv")])] == [kyiv.id]
    tea = (await store.add(draft("Likes tea"))).memory
    assert await store.withdraw(tea.id, by=Source.EXTRACTOR) is None
    assert await store.read() == (again,)


async def test_what_another_says_by_now_does_not_hold_again(house: StoreHouse) -> None:
    store = house.alice
    rome = (await store.add(draft("Lives in Rome"))).memory
    oslo = (await store.supersede(rome.id, draft("Lives in Oslo"))).memory
    other = (await store.add(draft("lives in Rome"))).memory
    assert await store.withdraw(oslo.id, by=Source.PERSON) is None
    assert [m.id for m in await store.read()] == [other.id]
    assert [m.id for m in await store.history(other.id)] == [other.id, rome.id]


async def test_what_was_deleted_can_be_put_back_as_it_was(house: StoreHouse) -> None:
    store = house.alice
    rome = (await store.add(draft("Lives in Rome", topics=("home",)))).memory
    oslo = (await store.supersede(rome.id, draft("Lives in Oslo"))).memory
    before = await store.export()
    chain = await store.history(oslo.id)
    await store.delete(oslo.id, by=Source.PERSON)
    await store.restore(chain)
    await store.restore(chain)
    assert await store.export() == before
    assert await store.buried([words_hash("Lives in Rome"), words_hash("Lives in Oslo")]) == ()
    await store.delete(oslo.id, by=Source.PERSON)
    other = (await store.add(draft("Lives in Oslo"))).memory
    with pytest.raises(MemoryDuplicate):
        await store.restore(chain)
    assert await store.export() == (other,)


async def test_what_is_muted_is_kept_and_shown_to_no_model(house: StoreHouse) -> None:
    store = house.alice
    tea, coffee = [(await store.add(draft(text))).memory for text in ("Likes tea", "Likes coffee")]
    muted = await store.mute(tea.id, True)
    assert muted == replace(tea, muted=True)
    assert await store.read() == (coffee,)
    assert await store.read(muted=True) == (coffee, muted)
    assert await store.search(Query(text="tea")) == ()
    assert not (await store.add(draft("Likes tea"))).created, "it is known all the same"
    assert not (await store.mute(tea.id, False)).muted
    assert [hit.memory.id for hit in await store.search(Query(text="tea"))] == [tea.id]
    with pytest.raises(MemoryMissing):
        await store.mute("unknown", True)


async def test_reading_gives_the_latest_first_and_searching_a_blank_nothing(house: StoreHouse) -> None:
    store = house.alice
    one, two, three = [(await store.add(draft(f"Has room {n}"))).memory for n in range(3)]
    one = await store.update(one.id, replace(draft_of(one), topics=("home",)))
    assert await store.read() == (one, three, two)
    assert await store.read(2) == (one, three)
    assert await store.search(Query(text="  \n")) == ()
    assert [hit.memory.id for hit in await store.search(Query(text="home"))] == [one.id], "topics are searched too"


async def test_use_is_noted_and_changes_nothing_else(house: StoreHouse) -> None:
    store = house.alice
    tea = (await store.add(draft("Likes tea"))).memory
    await store.used([tea.id, "unknown"])
    (used,) = await store.read()
    assert used.used_at is not None
    assert replace(used, used_at=None) == tea


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (draft("  \n"), "text"),
        (draft("..."), "text"),
        (draft("x" * 2_001), "text"),
        (draft(topics=tuple(map(str, range(21)))), "topics"),
        (draft(participants=("x" * 101,)), "participants"),
        (draft(location="x" * 201), "location"),
    ],
)
async def test_what_cannot_be_stored_is_refused_with_the_name_of_the_field(
    house: StoreHouse, wrong: Draft, field: str
) -> None:
    store = house.alice
    for way in (store.add(wrong), store.update("m1", wrong), store.supersede("m1", wrong)):
        with pytest.raises(MemoryInvalid) as refused:
            await way
        assert refused.value.field == field
    assert await store.export() == ()


def test_a_stored_text_is_one_line_of_sound_characters() -> None:
    found = checked(draft("Likes\x00 tea\n[m9] and \ud83d coffee", topics=(" a ", "A", "")))
    assert found.text == "Likes tea [m9] and \ufffd coffee"
    assert found.topics == ("a",)


def test_a_plain_fact_is_the_same_however_it_is_written_and_an_episode_is_another() -> None:
    assert content_hash(draft("Ｌikes  TEA。")) == content_hash(draft("likes tea"))
    assert content_hash(draft("Likes tea")) != content_hash(draft("Likes tea", kind=Kind.EPISODE))
    assert content_hash(draft("Likes tea")) != content_hash(draft("Likes tea", location="Kyoto"))
