"""The one query builder, on a real PostgreSQL."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents import search
from agents.models.search_entry import Embedding, Kind, SearchEntry, Text, add, drop
from agents.search import Scope, Vector, holds, phrases

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def put(owner: Any, *texts: str, group: int = 1, kind: Kind = Kind.PASSAGE, first: int = 1, **more: Any) -> None:
    """Make texts findable as refs `first`, first + 1, ... ten positions apart, so that they are no neighbours."""
    entries = [
        Text(ref=first + i, position=10 * i, text=text, created=more.get("created", NOW), marks=more.get("marks", ()))
        for i, text in enumerate(texts)
    ]
    add(owner.pk, kind, group, entries)


def found(owner: Any, query: str, *, kinds: tuple[Kind, ...] = (Kind.PASSAGE,), **more: Any) -> list[int]:
    groups: Sequence[int] | None = more.pop("groups", None)
    created = more.pop("created", None)
    scope = Scope(owner_id=owner.pk, kinds=kinds, groups=groups, created=created)
    return [ranked.ref for ranked in search.search(scope, query, **more)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("paint", 1),  # stems
        ("PAINTINGS", 1),
        ("京", 2),  # one character: a prefix
        ("好", 2),  # the last of its run stands alone
        ("北京", 2),
        ("北京的天气", 2),
        ("API 限流", 3),
        ("api限流", 3),
        ("ＡＰＩ", 3),  # full width
        ("data:migration's", 4),
        ("O'Brien", 4),
        ("ticket-4711", 4),
        ("東京タワー", 5),
    ],
)
def test_a_text_is_found_by_its_words(alice: Any, query: str, expected: int) -> None:
    put(
        alice,
        "Painting lessons are in the evening.",
        "北京的天气很好",
        "网关的API限流策略与配额",
        "O'Brien wrote data:migration's plan in ticket-4711 🎉",
        "東京タワーの入場料",
    )
    assert found(alice, query)[0] == expected


@pytest.mark.parametrize(
    "query", ["", "   ", "the of and", "' \\ : * & | ! ( ) <-> <2>", "\x00", "\ud83d", "。，！", '"" “”']
)
def test_what_has_no_words_finds_nothing(alice: Any, query: str) -> None:
    put(alice, "the of and 🎉 ' \\ : * & | ! ( )")
    assert found(alice, query) == []


@pytest.mark.parametrize(
    "marks", ["'", "\\", ":*", "&", "|", "!", "(", ")", "<->", "''\\'", ":A", "$$", "%s", "%(owner)s", "{scope}"]
)
def test_marks_of_query_languages_are_nothing_but_marks(alice: Any, marks: str) -> None:
    put(alice, f"budget{marks} review", "holiday")
    assert found(alice, f"{marks} budget{marks} {marks}") == [1]


@given(query=st.text(max_size=80))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_may_be_asked(alice: Any, query: str) -> None:
    found(alice, query)


def test_an_owner_finds_only_what_is_theirs(alice: Any, bob: Any) -> None:
    put(alice, "secret painting", "秘密计划")
    put(bob, "harmless", f"{alice.pk}:paint", first=11)
    for query in (
        "paint",
        "秘密",
        "秘",
        f"{alice.pk}:paint",
        f"'{alice.pk}:paint'",
        f"x' | '{alice.pk}:paint",
        '秘密 "秘密计划"',
    ):
        assert set(found(bob, query)) <= {12}
    assert found(alice, "paint")[0] == 1
    assert found(bob, "paint", groups=(1,)) == [12]


def test_a_mark_cannot_be_asked_for_as_a_word(alice: Any) -> None:
    put(alice, "who knows", marks=("@caroline", "#q"), kind=Kind.EVENT)
    assert found(alice, "@caroline #q", kinds=(Kind.EVENT,)) == []


def test_what_is_dropped_is_not_found_and_its_vectors_go_with_it(alice: Any) -> None:
    put(alice, "old words", group=1)
    put(alice, "other words", group=2, first=2)
    for entry in SearchEntry.objects.of(alice.pk):
        embed(entry, [1.0, 0.0])
    drop(alice.pk, Kind.PASSAGE, [1])
    assert found(alice, "words") == [2]
    assert Embedding.objects.of(alice.pk).count() == 1


def test_only_the_kinds_groups_and_times_asked_for(alice: Any) -> None:
    put(alice, "budget of spring", group=1)
    put(alice, "budget of autumn", group=2, first=2, created=datetime(2026, 9, 1, tzinfo=UTC))
    put(alice, "budget talk", group=1, first=3, kind=Kind.EVENT)
    assert sorted(found(alice, "budget")) == [1, 2]
    assert found(alice, "budget", kinds=(Kind.EVENT,)) == [3]
    assert found(alice, "budget", groups=(2,)) == [2]
    assert found(alice, "budget", groups=()) == []
    assert found(alice, "budget", groups=(7,)) == []
    summer = (datetime(2026, 6, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    assert found(alice, "budget", created=summer) == [2]
    assert found(alice, "budget", limit=0) == []


def test_groups_may_be_a_query_set(alice: Any, django_assert_num_queries: Any) -> None:
    put(alice, "budget", group=1)
    put(alice, "budget", group=2, first=2)
    groups = SearchEntry.objects.of(alice.pk).filter(ref=2).values_list("group_id", flat=True)
    with django_assert_num_queries(1):
        assert found(alice, "budget", groups=groups) == [2]


def test_rare_words_weigh_more_than_common_ones(alice: Any) -> None:
    put(alice, *["the project went well"] * 20, "the penalty went up")
    assert found(alice, "project penalty")[0] == 21


def test_a_neighbour_lends_its_words(alice: Any) -> None:
    texts = ["What did the audit cost?", "Forty thousand euros.", "Lunch is at noon."]
    add(alice.pk, Kind.PASSAGE, 1, [Text(ref=i, position=i, text=t, created=NOW) for i, t in enumerate(texts)])
    add(alice.pk, Kind.PASSAGE, 2, [Text(ref=9, position=1, text="Forty thousand visitors.", created=NOW)])
    assert found(alice, "audit forty thousand")[:2] in ([0, 1], [1, 0])


def test_a_text_of_several_entries_is_one_hit(alice: Any) -> None:
    parts = [Text(ref=1, position=i, offset=100 * i, text="budget", created=NOW) for i in range(3)]
    add(alice.pk, Kind.PASSAGE, 1, parts)
    assert found(alice, "budget") == [1]


def test_quoted_words_must_all_be_there(alice: Any) -> None:
    put(alice, "notice period of thirty days", "period without", "限流策略与配额", "限流")
    assert found(alice, 'days "notice period"') == [1]
    assert found(alice, "“限流策略”") == [3]
    assert found(alice, '"absent words" period') == []


def test_phrases_are_checked_on_the_source() -> None:
    assert phrases('what about "Notice  Period" and “限流 策略” or 「配额」') == ("Notice Period", "限流 策略", "配额")
    assert holds("the NOTICE\nperiod is", phrases('"notice period"'))
    assert not holds("a period of notice", phrases('"notice period"'))


def test_a_question_of_ten_thousand_characters_is_bounded_to_its_rarest_words(alice: Any) -> None:
    put(alice, *[f"common{i} filler" for i in range(30)], "needle in the stack")
    long = " ".join(f"common{i % 30}" for i in range(100)) + " needle " + " ".join(f"word{i}" for i in range(1_000))
    assert 31 in found(alice, long[:10_000], limit=50)
    assert found(alice, "限流" * 5_000) == []


def embed(entry: SearchEntry, vector: list[float] | None, model: int = 7) -> None:
    Embedding.objects.of(entry.owner_id).create(
        entry=entry, owner_id=entry.owner_id, kind=entry.kind, group_id=entry.group_id, model=model, vector=vector
    )


@pytest.fixture
def likes(alice: Any) -> Any:
    """Three texts; to the question (1, 0) the first is near, the second is not, the third has no vector."""
    put(alice, "terminate with thirty days' warning", "bananas", "no vector yet")
    first, second, _ = SearchEntry.objects.of(alice.pk).order_by("ref")
    embed(first, [0.8, 0.6])
    embed(second, [0.0, 1.0])
    return alice


def test_the_nearest_are_found_without_a_shared_word(likes: Any) -> None:
    assert found(likes, "notice period", vector=Vector(model=7, values=(1.0, 0.0))) == [1]
    assert found(likes, "notice period") == []


def test_vectors_of_another_model_are_ignored(likes: Any) -> None:
    assert found(likes, "notice period", vector=Vector(model=8, values=(1.0, 0.0, 0.0))) == []
    assert found(likes, "bananas", vector=Vector(model=8, values=(1.0, 0.0, 0.0))) == [2]


def test_an_entry_without_a_vector_is_found_by_its_words(likes: Any) -> None:
    assert found(likes, "vector", vector=Vector(model=7, values=(1.0, 0.0)))[0] in (3, 1)
    assert 3 in found(likes, "vector", vector=Vector(model=7, values=(1.0, 0.0)))


def test_the_nearest_stay_within_owner_and_group(likes: Any, bob: Any) -> None:
    assert found(bob, "notice period", vector=Vector(model=7, values=(1.0, 0.0))) == []
    assert found(likes, "notice period", groups=(2,), vector=Vector(model=7, values=(1.0, 0.0))) == []


def test_speakers_questions_and_dates_count_for_events(alice: Any) -> None:
    put(alice, "we met about the budget", kind=Kind.EVENT, created=datetime(2026, 3, 2, tzinfo=UTC))
    put(alice, "we met about the budget", kind=Kind.EVENT, group=2, first=2, marks=("#q",))
    put(alice, "we met about the budget", kind=Kind.EVENT, group=3, first=3, marks=("@carolin",))
    assert found(alice, "budget", kinds=(Kind.EVENT,))[-1] == 2
    assert found(alice, "what did Caroline say about the budget", kinds=(Kind.EVENT,))[0] == 3
    assert found(alice, "budget on 1 March 2026", kinds=(Kind.EVENT,))[0] == 1


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [
        ("on 5 May 2023", date(2023, 5, 5), date(2023, 5, 11)),
        ("May 5th, 2023?", date(2023, 5, 5), date(2023, 5, 11)),
        ("in May 2023", date(2023, 5, 1), date(2023, 6, 6)),
        ("2023-05-05", date(2023, 5, 5), date(2023, 5, 11)),
        ("2023年5月5日", date(2023, 5, 5), date(2023, 5, 11)),
        ("2023年", date(2023, 1, 1), date(2024, 1, 2)),
        ("during 2023", date(2023, 1, 1), date(2024, 1, 2)),
    ],
)
def test_dates_in_a_question(query: str, start: date, end: date) -> None:
    assert search.dates_in(query) == ((start, end),)


def test_no_date_is_seen_where_there_is_none() -> None:
    assert search.dates_in("31 February 2023, room 1234, version 3.2023") == ((date(2023, 1, 1), date(2024, 1, 2)),)


def test_in_one_long_group_the_surroundings_count(alice: Any) -> None:
    texts = ["nothing of note"] * 150
    texts[40] = "budget"
    for i in range(100, 110):
        texts[i] = "budget"
    add(alice.pk, Kind.PASSAGE, 1, [Text(ref=i, position=i, text=t, created=NOW) for i, t in enumerate(texts)])
    assert 100 <= found(alice, "budget", groups=(1,))[0] < 110


def test_common_words_are_counted_once(alice: Any) -> None:
    put(alice, *["meeting notes"] * 1_100, "meeting of the zebra")
    first = found(alice, "meeting zebra")
    assert first[0] == 1_101
    assert found(alice, "meeting zebra") == first  # now "meeting" is known, and not counted again
    assert len(found(alice, "meeting")) == 26


def test_a_word_that_nearly_every_text_holds_is_still_found(alice: Any) -> None:
    put(alice, *["meeting notes"] * (search.MOST_HITS + 100))
    for _ in range(2):  # the second time it is known how common they are
        assert len(found(alice, "xyzzy plugh meeting")) == 26
