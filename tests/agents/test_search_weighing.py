"""What rows are worth and which are given, without a database."""

from datetime import date
from typing import Any

import pytest

from agents.models.search_entry import Kind
from agents.search.choosing import choose
from agents.search.dates import asks_when
from agents.search.rows import Rows
from agents.search.weighing import weigh
from agents.search.words import asked, names_in

DAY = date(2026, 1, 1)


def rows(*texts: dict[str, Any], kind: Kind = Kind.EVENT) -> Rows:
    """Return rows as the statement does. words: the numbers of the terms a text holds."""
    columns: list[list[Any]] = [[] for _ in range(12)]
    for n, text in enumerate(texts, 1):
        values = (
            1,
            text.get("ref", n),
            text.get("offset", 0),
            text.get("group", 1),
            text.get("at", 10 * n),
            text.get("length", 10),
            text.get("cosine"),
            sum(1 << word for word in text.get("words", ())),
            text.get("asks", False),
            text.get("time", False),
            text.get("speaks", False),
            text.get("created", DAY),
        )
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    return Rows((kind,), columns)


def about(*counts: int, n: int = 1_000) -> dict[str, Any]:
    """counts: in how many of the n texts each term stands; terms are numbered from 1."""
    return {"n": n, "df": [[i, count, f"t{i}"] for i, count in enumerate(counts, 1)], "wide": None}


def order(found: Rows, of: dict[str, Any], query: str = "", **more: Any) -> list[int]:
    given = {"limit": 26, "hits": None, **more}
    return [ranked.ref for ranked in choose(found, weigh(found, of, query), **given)]


def test_a_rare_term_is_worth_more_than_a_common_one() -> None:
    assert order(rows({"words": [1]}, {"words": [2]}), about(500, 2)) == [2, 1]


def test_a_neighbour_lends_a_part_of_its_words_and_one_further_away_less() -> None:
    found = rows({"at": 1, "words": [1]}, {"at": 2}, {"at": 3}, {"at": 4}, {"at": 9})
    parts = weigh(found, about(5), "").parts[:, 0]
    assert parts[0] > parts[1] > parts[2] > parts[3] == parts[4] == 0


def test_neighbours_of_another_conversation_lend_nothing() -> None:
    found = rows({"at": 1, "words": [1]}, {"at": 2, "group": 2})
    assert weigh(found, about(5), "").parts[1, 0] == 0


def test_lent_words_of_several_neighbours_do_not_add_up() -> None:
    found = rows({"at": 1, "words": [1]}, {"at": 2}, {"at": 3, "words": [1]})
    assert weigh(found, about(5), "").parts[1, 0] < weigh(found, about(5), "").parts[0, 0]


def test_who_speaks_counts_and_a_question_counts_less_than_an_answer() -> None:
    same = {"words": [1]}
    assert order(rows(same, {**same, "speaks": True}), about(5)) == [2, 1]
    assert order(rows({**same, "asks": True}, same), about(5)) == [2, 1]
    of_documents = rows({**same, "asks": True}, {**same, "speaks": False}, kind=Kind.PASSAGE)
    assert order(of_documents, about(5)) == [1, 2]


def test_words_of_time_count_where_a_time_is_asked_for() -> None:
    found = rows({"words": [1]}, {"words": [1], "time": True})
    assert order(found, about(5), "the audit") == [1, 2]
    assert order(found, about(5), "when was the audit") == [2, 1]
    assert order(found, about(5), "审计是什么时候") == [2, 1]


def test_what_is_of_the_date_asked_for_comes_first() -> None:
    found = rows({"words": [1]}, {"words": [1], "created": date(2026, 3, 2)})
    assert order(found, about(5), "the audit of 1 March 2026") == [2, 1]


def test_what_is_nearer_in_meaning_comes_first_and_no_vector_is_no_harm() -> None:
    found = rows({"words": [1], "cosine": 0.1}, {"words": [1], "cosine": 0.8}, {"words": [1]})
    assert order(found, about(5)) == [2, 3, 1]


def test_every_entry_of_an_event_is_given_and_every_passage_once() -> None:
    pieces = ({"ref": 1, "at": 1, "words": [1]}, {"ref": 1, "at": 2, "offset": 1_500, "words": [1]})
    assert order(rows(*pieces), about(5)) == [1, 1]
    assert order(rows(*pieces, kind=Kind.PASSAGE), about(5)) == [1]


def test_after_the_hits_come_the_parts_of_the_query_that_they_tell_least_of() -> None:
    many, other = {"words": [1, 2]}, {"words": [3]}
    found = rows(*[many] * 8, other)
    of = about(20, 20, 60)
    assert order(found, of, limit=4) == [1, 2, 3, 4]
    assert 9 not in order(found, of, limit=4, hits=4)
    assert order(found, of, limit=8, hits=3)[:3] == [1, 2, 3]
    assert 9 in order(found, of, limit=8, hits=3)


def test_the_first_hits_bring_their_neighbours() -> None:
    found = rows(
        {"at": 5, "words": [1]},
        {"at": 4},
        {"at": 6},
        *[{"words": [1], "asks": True, "at": 100 + 9 * i} for i in range(9)],
    )
    assert order(found, about(5), limit=5, hits=2)[2:4] == [2, 3]
    assert len(order(found, about(5), limit=5, hits=2)) == 5


@pytest.mark.parametrize("hits", [None, 1, 5, 50])
def test_never_more_than_asked_for_and_nothing_twice(hits: int | None) -> None:
    found = rows(*[{"at": i, "words": [1 + i % 3]} for i in range(40)])
    given = order(found, about(5, 50, 500), limit=26, hits=hits)
    assert len(given) == len(set(given)) == 26
    assert len(order(found, about(5, 50, 500), limit=3, hits=hits)) == 3


def test_texts_found_by_vectors_alone_are_weighed() -> None:
    found = rows({"cosine": 0.4}, {"cosine": 0.9})
    assert order(found, {"n": 2, "df": None, "wide": None}, hits=1) == [2, 1]


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("请问项目的预算是多少", ["项目的预算"]),
        ("我们之前说的交货时间是什么时候？", ["交货时间"]),
        ("What was the budget?", ["What", "was", "the", "budget"]),
    ],
)
def test_what_is_asked_stays_without_the_words_of_asking(query: str, rest: list[str]) -> None:
    assert [word.strip("？?是") for word in asked(query).split() if word.strip("？?是")] == rest


@pytest.mark.parametrize("query", ["什么", "多少", "是什么？", "好", "之前"])
def test_a_query_of_nothing_but_such_words_stays_whole(query: str) -> None:
    assert asked(query) == query


def test_names_are_read_as_marks_of_speakers_have_them() -> None:
    assert names_in("What did Caroline's sister, ＡＮＮ, say in 2026?") == (
        "what",
        "did",
        "caroline",
        "sister",
        "ann",
        "say",
        "in",
    )


@pytest.mark.parametrize("query", ["When is it due", "how long did it take", "what time", "哪天交货", "要多久"])
def test_a_time_is_asked_for(query: str) -> None:
    assert asks_when(query)


@pytest.mark.parametrize("query", ["the whenever clause", "what is long", "什么颜色"])
def test_no_time_is_asked_for(query: str) -> None:
    assert not asks_when(query)
