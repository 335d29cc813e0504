"""Texts cut into passages. No database."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.models.search_entry import TEXT_CHARS
from agents.runtime.knowledge import Place, place_from_json, place_to_json
from artifacts import passages
from artifacts.passages import NewPassage, split
from artifacts.textfile import TextReader, TextWriter, splits_here

PIECE = st.text(
    alphabet=st.sampled_from([*"abc  \n\n.。中文,，", "🙂", "\u0301", "\u200d", "👩", "🇩", "\U0001f3fd"]), max_size=900
)


def written(*steps: tuple[str, ...] | str) -> TextReader:
    """Return a text made of pieces and of calls of the writer."""
    out = io.BytesIO()
    writer = TextWriter(out)
    for step in steps:
        if isinstance(step, str):
            writer.add(step)
        else:
            getattr(writer, step[0])(*step[1:])
    writer.close()
    return TextReader(out)


def whole(reader: TextReader) -> str:
    return reader.exactly(0, reader.index.total_chars)


def cut(reader: TextReader) -> list[NewPassage]:
    """Return the passages, the same from the reader as from its text."""
    found = list(split(reader, reader.index))
    assert found == list(split(whole(reader), reader.index))
    return found


@given(pieces=st.lists(st.tuples(st.sampled_from(["", "page", "heading", "sheet"]), PIECE), max_size=8))
def test_passages_cover_all_but_blanks_in_order_and_end_between_characters(pieces: list[tuple[str, str]]) -> None:
    steps: list[tuple[str, ...] | str] = []
    for mark, piece in pieces:
        steps += [(mark,) if mark == "page" else (mark, "T")] if mark else []
        steps.append(piece * 3)
    reader = written(*steps)
    text, at = whole(reader), 0
    index = reader.index
    edges = {0, *index.pages, *(char for char, *_ in (*index.sheets, *index.headings))}
    for number, passage in enumerate(cut(reader)):
        assert passage.number == number and passage.text == text[passage.start : passage.end]
        assert text[at : passage.start].strip() == "" and passage.text.strip() and passage.start >= at
        assert len(passage.text) <= passages.MOST_CHARS <= TEXT_CHARS
        assert passage.start in edges or splits_here(text, passage.start) or at != passage.start
        at = passage.end
    assert text[at:].strip() == ""


def test_a_passage_ends_at_a_sentence_and_says_about_as_much_in_any_script() -> None:
    english = written("The pump was checked on Monday and found to be sound. " * 200)
    chinese = written("水泵在星期一进行了检查，结果一切正常。" * 200)
    for reader, least, most in ((english, 600, 1_000), (chinese, 260, 450)):
        found = cut(reader)
        assert all(least <= len(passage.text) <= most for passage in found[:-2])
        assert all(passage.text[-1] in ".。" for passage in found)


def test_a_text_a_little_too_long_becomes_two_of_a_size() -> None:
    found = cut(written("Short sentences stand here. " * 40))
    assert [400 < len(passage.text) < 720 for passage in found] == [True, True]


def test_a_passage_keeps_to_its_section_and_knows_the_way_to_it() -> None:
    reader = written(
        ("heading", "Plan", 1), "# Plan\n\n", ("heading", "Costs", 2), "## Costs\nTwo million.\n\n",
        ("heading", "Pumps", 3), "### Pumps\nOne.\n", ("heading", "Dates", 2), "## Dates\nMay.\n",
    )  # fmt: skip
    assert [(p.place.heading, p.place.lines, p.text) for p in cut(reader)] == [
        (("Plan", "Costs"), (1, 4), "# Plan\n\n## Costs\nTwo million."),
        (("Plan", "Costs", "Pumps"), (6, 7), "### Pumps\nOne."),
        (("Plan", "Dates"), (8, 9), "## Dates\nMay."),
    ]


def test_a_heading_without_a_title_ends_what_stands_above() -> None:
    reader = written(("page",), ("heading", "Results", 1), "Results\nGood.\n", ("page",), ("heading", "", 1), "Bye.\n")
    assert [(p.place.page, p.place.heading) for p in cut(reader)] == [(1, ("Results",)), (2, ())]


def test_rows_of_a_table_are_counted_over_gaps_and_carry_the_header() -> None:
    steps: list[tuple[str, ...] | str] = [("sheet", "Costs"), "Costs\n", ("rows", 1, "Item | Price")]  # type: ignore[list-item] # a number for the writer
    steps += ["Item | Price\n", *(f"pump {n} | {n * 100}\n" for n in range(2, 100))]
    steps += [("rows", 500, "Item | Price"), *(f"valve {n} | {n}\n" for n in range(500, 600)), ("rows", 0)]  # type: ignore[list-item] # as above
    steps += [("sheet", "Dates"), "Dates\nMay\n"]
    found = cut(written(*steps))
    tables = [passage for passage in found if passage.place.rows != (0, 0)]
    assert len(tables) == len(found) - 1 and {passage.place.heading for passage in tables} == {("Item | Price",)}
    assert {passage.place.sheet for passage in tables} == {"Costs"} and found[-1].place.sheet == "Dates"
    assert (
        tables[0].text.startswith("Costs\nItem | Price\npump 2")
        and tables[0].place.rows[0] == 1
        and tables[-1].place.rows[1] == 599
    )
    for passage in tables:
        numbers = [int(line.split()[1]) for line in passage.text.splitlines() if line[:4] in ("pump", "valv")]
        assert passage.place.rows == (1 if passage is tables[0] else numbers[0], numbers[-1])
    over = [passage for passage in tables if passage.place.rows[0] < 100 < passage.place.rows[1]]
    assert len(over) == 1  # a gap in the numbers is no reason to cut


def test_code_keeps_its_indent_and_its_lines() -> None:
    source = "".join(f"def f{n}():\n    first = {n}\n\n    return first + {n}\n\n\n" for n in range(100))
    found = cut(written(source))
    lines = source.split("\n")
    for passage in found:
        first, last = passage.place.lines
        assert passage.text == "\n".join(lines[first - 1 : last])


@pytest.mark.parametrize("text", ["x" * 50_000, "中" * 50_000, "e\u0301" * 20_000, "a,b;" * 10_000, "👩‍👩‍👧" * 5_000])
def test_a_text_of_one_word_is_cut_all_the_same(text: str) -> None:
    found = cut(written(text))
    assert "".join(passage.text for passage in found) == text


def test_a_text_of_20_000_passages_is_split() -> None:
    reader = written("Ein Satz, und noch ein Satz, der etwas länger ist als der erste. " * 300_000)
    assert sum(1 for _ in split(reader, reader.index)) > 19_000


def test_there_are_no_more_passages_than_there_may_be() -> None:
    reader = written("word " * 5_000)
    found = list(split(reader, reader.index, most=3))
    assert [passage.number for passage in found] == [0, 1, 2] and found[-1].end < reader.index.total_chars


@pytest.mark.parametrize(
    ("place", "kept"),
    [
        (Place(), {}),
        (Place(page=3, heading=("A", "B")), {"page": 3, "heading": ["A", "B"]}),
        (Place(sheet="S", rows=(2, 9)), {"sheet": "S", "rows": [2, 9]}),
        (Place(lines=(1, 1)), {"lines": [1, 1]}),
    ],
)
def test_a_place_is_kept_without_what_says_nothing(place: Place, kept: dict[str, object]) -> None:
    assert place_to_json(place) == kept
    assert place_from_json(kept | {"later": 1}) == place
