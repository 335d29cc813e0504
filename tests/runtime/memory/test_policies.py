"""What becomes of what was proposed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from agents.runtime.memory.forgetting import Forgetting
from agents.runtime.memory.memories import Draft, Kind, Memory, Query, Source, Tombstone
from agents.runtime.memory.memorystore import OwnMemories
from agents.runtime.memory.policies import Decision, Operation, Policy, Reason, Verb, completes, decide, hashes_of
from agents.runtime.memory.rules import extract
from agents.runtime.memory.words import words_hash
from tests.runtime.memory.samples import AT, ZONE, House, day, draft, episode, memory, said

LONG = "in the house behind the old station, which looks out on the river and the park, for the whole of every year"


def add(text: str, **more: object) -> Operation:
    return Operation(verb=Verb.ADD, draft=draft(text, **more), said_at=AT)


def about(verb: Verb, id: str, text: str = "", **more: object) -> Operation:
    return Operation(verb=verb, memory_id=id, draft=draft(text, **more) if text else None, said_at=AT)


def said_of(decisions: tuple[Decision, ...]) -> list[tuple[Verb | None, Reason]]:
    return [(decision.verb, decision.reason) for decision in decisions]


async def applied(store: OwnMemories, decisions: tuple[Decision, ...]) -> None:
    for one in decisions:
        match one.verb, one.draft:
            case Verb.ADD, Draft() as new:
                await store.add(new)
            case Verb.UPDATE, Draft() as new:
                await store.update(one.memory_id, new, version=one.version)
            case Verb.SUPERSEDE, Draft() as new:
                await store.supersede(one.memory_id, new, version=one.version)
            case Verb.DELETE, _:
                await store.delete(one.memory_id, by=Source.EXTRACTOR)


def test_a_repetition_is_dropped_also_within_one_batch() -> None:
    known = [memory("m1", "Likes tea.")]
    decisions = decide([add("likes  TEA"), add("Likes coffee"), add("Likes coffee!")], known, [])
    assert said_of(decisions) == [(None, Reason.DUPLICATE), (Verb.ADD, Reason.NEW), (None, Reason.DUPLICATE)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Works at Acme as an engineer in the data team", "Works at Acme as an engineer in the data team since May"),
        ("Prefers reports with tables first", "Prefers reports with tables first and charts"),
        ("我喜欢简短而且直接的回答", "我喜欢简短而且直接的回答，有表格"),
        ("张伟负责公司的采购工作", "张伟负责公司的采购工作和物流"),
    ],
)
def test_what_says_all_of_it_and_more_completes_a_memory(old: str, new: str) -> None:
    (decision,) = decide([about(Verb.UPDATE, "m1", new)], [memory("m1", old)], [])
    assert (decision.verb, decision.reason, decision.memory_id) == (Verb.UPDATE, Reason.COMPLETES, "m1")
    (added,) = decide([add(new)], [memory("m1", old)], [])
    assert (added.verb, added.memory_id, added.version) == (Verb.UPDATE, "m1", 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Likes tea", "Likes coffee"),
        ("Likes tea", "Also likes coffee"),
        ("Likes tea with milk in the morning", "Does not like tea with milk in the morning"),
        (f"Rents 12 rooms {LONG}", f"Rents rooms {LONG}"),
        (f"Meets with Ana {LONG}", f"Meets with {LONG}"),
        (f"Takes sugar in coffee {LONG}", f"Takes no sugar in coffee {LONG}"),
        ("Has 5 years of experience with Go", "Has 6 years of experience with Go"),
        ("Works at Acme in the data team", "Now works at Acme in the data team"),
        ("Works at Acme in the Berlin team today", "Works at Acme in the Munich team today"),
        ("Ana leads the design team in Oslo", "Ana Maria leads the design team in Oslo"),
        ("Meets Ana before Li every week", "Meets Li before Ana every week"),
        ("第二冷库的温度是零下十八度", "第三冷库的温度是零下十八度"),
        ("张伟负责公司的采购工作", "张伟明负责公司的采购工作"),
        ("我喜欢喝茶", "我不喜欢喝茶"),
        ("我喜欢喝茶", "我喜欢喝茶叶蛋汤"),
        ("我住在上海的浦东新区", "我现在住在上海的浦东新区"),
    ],
)
def test_what_might_mean_something_else_stands_beside_the_old_one(old: str, new: str) -> None:
    for policy in Policy:
        (added,) = decide([add(new)], [memory("m1", old)], [], policy=policy)
        assert (added.verb, added.reason) == (Verb.ADD, Reason.NEW), policy
    (updated,) = decide([about(Verb.UPDATE, "m1", new)], [memory("m1", old)], [])
    assert (updated.verb, updated.reason, updated.memory_id) == (Verb.ADD, Reason.UPDATE_UNSAFE, "")


def test_time_people_place_and_kind_must_be_kept() -> None:
    old = episode("Visited the factory with the auditors", day(2026, 3, 3), participants=("Ana",), location="Oslo")
    more = replace(old, text=f"{old.text} again", participants=("ana", "Li"))
    assert completes(old, more)
    at_ten = day(2026, 3, 3)
    hour = replace(at_ten, start=at_ten.start + timedelta(hours=10), end=at_ten.start + timedelta(hours=11))
    assert completes(old, replace(more, event_time=hour)), "a day may gain its hour"
    assert not completes(replace(old, event_time=hour), replace(more, event_time=at_ten))
    assert not completes(old, replace(more, event_time=day(2026, 3, 4)))
    assert not completes(old, replace(more, event_time=None))
    assert not completes(old, replace(more, participants=("Li",)))
    assert not completes(old, replace(more, location="Bergen"))
    assert not completes(old, replace(more, kind=Kind.FACT))


def test_an_id_that_was_not_among_the_candidates_is_never_used() -> None:
    known = [memory("m1", "Likes tea")]
    decisions = decide(
        [
            about(Verb.UPDATE, "m7", "Likes coffee"),
            about(Verb.SUPERSEDE, "m8", "likes tea"),
            about(Verb.DELETE, "m9"),
        ],
        known,
        [],
        asked=Forgetting.SOME,
    )
    assert said_of(decisions) == [
        (Verb.ADD, Reason.UNKNOWN_ID),
        (None, Reason.DUPLICATE),
        (None, Reason.UNKNOWN_ID),
    ]
    assert all(decision.memory_id == "" for decision in decisions)


def test_one_bad_operation_of_three_leaves_the_other_two() -> None:
    operations = [add("Likes tea"), add("x" * 3_000), about(Verb.SUPERSEDE, "m1", "Lives in Oslo")]
    decisions = decide(operations, [memory("m1", "Lives in Rome")], [])
    assert [decision.verb for decision in decisions] == [Verb.ADD, None, Verb.SUPERSEDE]
    assert decisions[1].reason is Reason.INVALID


def test_an_id_that_was_superseded_or_deleted_in_the_batch_is_gone_for_the_rest_of_it() -> None:
    known = [memory("m1", "Lives in Rome"), memory("m2", "Likes tea", superseded_by="m3")]
    decisions = decide(
        [
            about(Verb.SUPERSEDE, "m1", "Lives in Oslo"),
            about(Verb.SUPERSEDE, "m1", "Lives in Kyiv"),
            add("lives in Oslo"),
            about(Verb.DELETE, "m2"),
        ],
        known,
        [],
        asked=Forgetting.SOME,
    )
    assert said_of(decisions) == [
        (Verb.SUPERSEDE, Reason.CHANGED),
        (Verb.ADD, Reason.UNKNOWN_ID),
        (None, Reason.DUPLICATE),
        (None, Reason.UNKNOWN_ID),
    ]


def test_two_updates_of_one_memory_in_a_batch_follow_each_other() -> None:
    known = [memory("m1", "Works at Acme in the data team as an engineer", version=4)]
    first = "Works at Acme in the data team as an engineer on weekdays"
    decisions = decide([about(Verb.UPDATE, "m1", first), about(Verb.UPDATE, "m1", f"{first} from nine")], known, [])
    assert [(d.verb, d.version) for d in decisions] == [(Verb.UPDATE, 4), (Verb.UPDATE, 5)]


@pytest.mark.parametrize("verb", [Verb.DELETE, Verb.CLEAR])
def test_nothing_is_forgotten_unless_the_person_asked_for_it(verb: Verb) -> None:
    known = [memory("m1", "Likes tea")]
    operation = about(verb, "m1")
    assert said_of(decide([operation], known, [])) == [(None, Reason.NOT_ASKED)]
    assert said_of(decide([operation], known, [], asked=Forgetting.EVERYTHING)) == [(verb, Reason.ASKED)]
    some = decide([operation], known, [], asked=Forgetting.SOME)
    assert (some[0].verb is None) == (verb is Verb.CLEAR), "everything only goes if exactly that was asked"
    only = decide([operation], known, [], asked=Forgetting.EVERYTHING, policy=Policy.APPEND_ONLY)
    assert said_of(only) == [(None, Reason.POLICY)]


def test_append_only_adds_and_does_nothing_else() -> None:
    known = [memory("m1", "Lives in Rome")]
    decisions = decide(
        [about(Verb.UPDATE, "m1", "Lives in Rome with Ana"), about(Verb.SUPERSEDE, "m1", "Lives in Oslo")],
        known,
        [],
        policy=Policy.APPEND_ONLY,
    )
    assert said_of(decisions) == [(Verb.ADD, Reason.POLICY), (Verb.ADD, Reason.POLICY)]


def test_merge_similar_keeps_one_state_of_what_is_near() -> None:
    known = [memory("m1", "Prefers dark mode in the code editor", topics=("editor",))]
    similar = add("Prefers dark mode in the terminal and editor", topics=("Editor", "terminal"))
    (decision,) = decide([similar], known, [], policy=Policy.MERGE_SIMILAR)
    assert (decision.verb, decision.memory_id, decision.reason) == (Verb.UPDATE, "m1", Reason.SIMILAR)
    assert decision.draft is not None
    assert decision.draft.topics == ("editor", "terminal")
    same = add("Prefers dark mode in the code editor always")
    assert said_of(decide([same], known, [], policy=Policy.MERGE_SIMILAR)) == [(None, Reason.DUPLICATE)]
    topical = add("Prefers dark mode in the code editor always", topics=("looks",))
    (kept,) = decide([topical], known, [], policy=Policy.MERGE_SIMILAR)
    assert kept.draft is not None
    assert (kept.draft.text, kept.draft.topics) == (known[0].text, ("editor", "looks"))


async def test_memory_1_13_what_adds_is_kept_beside_and_what_changed_is_history() -> None:
    store = House().shelves.of(1)
    for text in ("I like tea.", "I also like coffee.", "I live in Rome.", "I moved from Rome to Oslo."):
        operations = extract(said(text), await store.read(), ZONE)
        await applied(store, decide(operations, await store.read(), []))
    assert {m.text for m in await store.read()} == {"I like tea", "I also like coffee", "I moved from Rome to Oslo"}
    assert len(await store.search(Query(text="like"))) == 2
    assert await store.search(Query(text="live")) == ()
    (oslo,) = [hit.memory for hit in await store.search(Query(text="Oslo"))]
    assert [m.text for m in await store.history(oslo.id)] == ["I moved from Rome to Oslo", "I live in Rome"]


async def test_five_years_and_then_six_is_six_with_five_in_its_history() -> None:
    for five, six in (
        ("I have 5 years of experience with Go.", "I have 6 years of experience with Go."),
        ("我有五年的Java开发经验。", "我有六年的Java开发经验。"),
    ):
        store = House().shelves.of(1)
        for text in (five, six):
            await applied(store, decide(extract(said(text), await store.read(), ZONE), await store.read(), []))
        (current,) = await store.read()
        assert current.text == six.strip(".。")
        assert [m.text for m in await store.history(current.id)] == [six.strip(".。"), five.strip(".。")]


async def test_memory_1_14_what_was_deleted_does_not_come_back_from_what_was_said_before() -> None:
    house = House()
    store = house.shelves.of(1)
    old = said("I live in Rome.", at=AT)
    await applied(store, decide(extract(old, [], ZONE), [], []))
    (rome,) = await store.read()
    await store.delete(rome.id, by=Source.PERSON)

    async def decided(*operations: Operation) -> list[tuple[Verb | None, Reason]]:
        return said_of(decide(operations, await store.read(), await store.buried(hashes_of(operations))))

    again = extract(old, [], ZONE)
    assert await decided(*again) == [(None, Reason.BURIED)]
    assert await decided(add("I LIVE in Rome!", kind=Kind.EPISODE)) == [(None, Reason.BURIED)], "however it is put"
    anew = extract(said("I live in Rome.", at=house.clock() + timedelta(days=1)), [], ZONE)
    assert await decided(*anew) == [(Verb.ADD, Reason.NEW)], "said again, it is said again"
    typed = Operation(verb=Verb.ADD, draft=draft("I live in Rome", source=Source.PERSON))
    assert await decided(typed) == [(Verb.ADD, Reason.NEW)]


def test_a_tombstone_stands_before_a_change_too() -> None:
    grave = Tombstone(id="m9", hash=words_hash("Lives in Oslo"), at=AT, by=Source.PERSON)
    known: list[Memory] = [memory("m1", "Lives in Rome")]
    assert said_of(decide([about(Verb.SUPERSEDE, "m1", "lives in Oslo.")], known, [grave])) == [(None, Reason.BURIED)]
