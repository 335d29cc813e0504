"""Two versions of a text, compared by words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts import diff
from artifacts.diff import Comparison, Part, Sign, compare

PROSE = st.lists(st.sampled_from(["gas ", "the ", "冷", "库", "。", "\n", "7.5 ", "\n\n", "é", " ", "-", "\t"])).map(
    "".join
)


def told(found: Comparison) -> list[tuple[str, str]]:
    """What changed, as (sign, text), without what stayed."""
    return [(p.sign.value, p.text) for part in found.parts for p in part.pieces if p.sign is not Sign.SAME]


def side(found: Comparison, without: Sign) -> str:
    return "".join(p.text for part in found.parts for p in part.pieces if p.sign is not without)


@given(PROSE, PROSE)
def test_both_texts_can_be_read_from_a_comparison(old: str, new: str) -> None:
    found = compare(old, new)
    assert side(found, Sign.IN) == old
    assert side(found, Sign.OUT) == new
    assert (found.changes == 0) == (old == new)
    assert [part.number for part in found.parts if part.number] == list(range(1, found.changes + 1))


def test_one_word_in_a_paragraph_marks_one_word() -> None:
    found = compare("It lost 43 kg of gas last year.\n", "It lost 45 kg of gas last year.\n")
    assert told(found) == [("out", "43"), ("in", "45")]
    assert (found.added, found.removed, found.changes) == (1, 1, 1)


def test_chinese_is_compared_by_characters() -> None:
    found = compare("冷库去年泄漏了四十三公斤制冷剂。", "冷库今年泄漏了四十五公斤制冷剂。")
    assert told(found) == [("out", "去"), ("in", "今"), ("out", "三"), ("in", "五")]
    assert (found.added, found.removed) == (2, 2)


def test_several_changed_words_in_a_row_are_one_change_to_read() -> None:
    found = compare("This memo sets out options.", "We ask the board.")
    assert told(found) == [("out", "This memo sets out options"), ("in", "We ask the board")]


def test_lines_added_at_the_end_do_not_touch_the_line_before() -> None:
    found = compare("one\ntwo\n", "one\ntwo\nthree\n")
    assert told(found) == [("in", "three\n")]
    assert (found.added, found.removed) == (1, 0)


def test_what_is_far_from_a_change_is_folded() -> None:
    old = "".join(f"line {n}\n" for n in range(40))
    found = compare(old, old.replace("line 20\n", "line twenty\n"))
    assert [(part.folded, part.number) for part in found.parts] == [(18, 0), (0, 0), (0, 1), (0, 0), (17, 0)]
    assert [sum(p.text.count("\n") for p in part.pieces if p.sign is Sign.SAME) for part in found.parts] == [
        18,
        2,
        1,
        2,
        17,
    ]


def test_a_single_line_between_changes_is_not_folded() -> None:
    lines = [f"line {n}\n" for n in range(7)]
    found = compare("".join(lines), "".join(["x\n", *lines[1:6], "y\n"]))
    assert [part.folded for part in found.parts] == [0, 0, 0]


def test_equal_texts_have_no_change_and_empty_ones_no_part() -> None:
    assert compare("a\nb\n", "a\nb\n").parts == (Part(pieces=(diff.Piece(sign=Sign.SAME, text="a\nb\n"),), folded=2),)
    assert compare("", "").parts == ()


def test_a_rewritten_book_is_compared() -> None:
    old = "".join(f"Paragraph {n} has words that say {n * 7} things.\n\n" for n in range(10_000))
    found = compare(old, old.replace("words", "letters"))
    assert found.changes > 0


def test_texts_beyond_the_limit_are_refused() -> None:
    with pytest.raises(diff.TooLong):
        compare("", "x" * (diff.TEXT_CHARS + 1))


def test_a_line_that_occurs_once_keeps_its_place_among_common_ones() -> None:
    old = "{\n" * 300 + "one\n" + "}\n" * 300
    new = "{\n" * 200 + "one\n" + "}\n" * 400
    found = compare(old, new)
    assert (side(found, Sign.IN), side(found, Sign.OUT)) == (old, new)
    assert {part.number for part in found.parts if any(p.text == "one\n" for p in part.pieces)} <= {0}


def test_what_would_take_too_long_is_shown_as_removed_and_added() -> None:
    old, new = ("".join(f"{(n * step) % 97}\n" for n in range(9_000)) for step in (5, 7))
    assert 9_000**2 > diff.PAIRS
    found = compare(old, new)
    assert (side(found, Sign.IN), side(found, Sign.OUT)) == (old, new)
    assert found.changes == 1


def test_every_second_line_changed_is_marked_word_by_word_however_long_the_text() -> None:
    lines = range(20_000)
    found = compare("".join(f"{n}\nold {n}\n" for n in lines), "".join(f"{n}\nnew {n}\n" for n in lines))
    assert (found.changes, found.added, found.removed) == (20_000, 20_000, 20_000)
