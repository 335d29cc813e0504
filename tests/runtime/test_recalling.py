"""What to search for next, by rules."""

import pytest

from agents.runtime.recalling import follow_up

FOUND = (
    "Maya: The greenhouse contract went to Halden, they start on Monday.",
    "Maya: Halden wants the greenhouse heated from October.",
    "Tom: I looked at the heating offers again.",
    "Maya: The greenhouse needs a permit too.",
    "Tom: Thanks, that is great.",
)


def test_the_next_query_names_who_was_asked_about_and_what_the_first_texts_are_about() -> None:
    query = follow_up("Who builds Maya's greenhouse?", FOUND)
    assert query is not None
    words = query.split()
    assert words[0] == "Maya"
    assert "halden" in words
    assert "greenhouse" not in words  # it was asked for already


def test_a_third_query_asks_for_something_else() -> None:
    first = follow_up("Who builds Maya's greenhouse?", FOUND)
    assert first is not None
    second = follow_up("Who builds Maya's greenhouse?", FOUND, [first])
    assert second is not None
    assert not (set(first.split()) & set(second.split())) - {"Maya", "builds"}


def test_what_no_text_tells_of_is_asked_for_again() -> None:
    query = follow_up("Who insured the greenhouse?", FOUND)
    assert query is not None
    assert "insured" in query.split()


def test_words_that_nearly_all_texts_hold_are_not_asked_for() -> None:
    texts = [f"pump station number{chr(97 + i)} valve" for i in range(20)]
    query = follow_up("Which one leaks?", texts)
    assert query is not None
    assert not {"pump", "station", "valve"} & set(query.split())


@pytest.mark.parametrize("texts", [(), ("",), ("Thanks, that is great!",), ("Who builds the greenhouse?",)])
def test_nothing_new_to_ask(texts: tuple[str, ...]) -> None:
    assert follow_up("Who builds the greenhouse?", texts) is None


def test_a_question_in_chinese_has_a_next_one() -> None:
    query = follow_up("温室由谁承建", ["合同给了 Halden，周一开工", "供暖要另外报价"])
    assert query is not None
    assert "halden" in query
