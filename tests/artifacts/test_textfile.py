"""The file an extracted text lies in. No database."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.textfile import MOST_HEADINGS, MOST_TABLES, NotTextFile, TextReader, TextWriter, cut_before, splits_here

TEXT = st.text(
    alphabet=st.sampled_from([*"ab \n.。中", "🙂", "\u0301", "\u200d", "👩", "🇩", "\U0001f3fd"]), max_size=400
)


def kept(*pieces: str) -> TextReader:
    out = io.BytesIO()
    writer = TextWriter(out)
    for piece in pieces:
        writer.add(piece)
    writer.close()
    return TextReader(out)


@given(pieces=st.lists(TEXT, max_size=5), size=st.integers(1, 90))
def test_stretches_join_to_the_whole_and_end_between_characters(pieces: list[str], size: int) -> None:
    whole, reader = "".join(pieces), kept(*pieces)
    at, seen = 0, ""
    while at < len(whole):
        text, after = reader.stretch(at, size)
        assert 0 < len(text) <= size and after == at + len(text)
        seen, at = seen + text, after
    assert seen == whole


@given(text=TEXT, start=st.integers(0, 400), chars=st.integers(0, 400))
def test_any_place_can_be_read(text: str, start: int, chars: int) -> None:
    reader = kept(text)
    assert reader.exactly(start, chars) == text[start : start + chars]
    if start < len(text):
        assert reader.line_at(start) == text[:start].count("\n") + 1


@pytest.mark.parametrize("whole", ["e\u0301", "👩\u200d👩\u200d👧", "🇩🇪", "👍\U0001f3fd", "❤\ufe0f", "\r\n"])
def test_what_a_reader_sees_as_one_is_not_cut(whole: str) -> None:
    text = "x" + whole + "y"
    places = [at for at in range(1, len(text)) if splits_here(text, at)]
    assert places == [1, 1 + len(whole)]
    assert cut_before(text, 1 + len(whole) - 1) == 1


def test_two_flags_are_cut_between_them() -> None:
    assert [at for at in range(1, 4) if splits_here("🇩🇪🇫🇷", at)] == [2]


@pytest.mark.parametrize("end", ["\n\n", "\n", "。", ". ", " "])
def test_a_good_place_near_the_end_is_taken(end: str) -> None:
    text = "a" * 90 + end + "b" * 90
    assert cut_before(text, 100) == 90 + len(end)
    assert cut_before("a" * 50 + end + "b" * 90, 100) == 100


@pytest.mark.parametrize("data", [b"", b"words", b"words" * 10, b"x" * 8 + (99).to_bytes(8, "big") + b"WBTEXT1\n"])
def test_other_bytes_are_not_taken_for_a_text(data: bytes) -> None:
    with pytest.raises(NotTextFile):
        TextReader(io.BytesIO(data))


def test_a_text_of_an_earlier_version_is_read() -> None:
    index = b'{"chars":5,"marks":[[0,0,1]],"pages":[],"headings":[[0,"Title"]]}'
    reader = TextReader(io.BytesIO(b"Words" + index + len(index).to_bytes(8, "big") + b"WBTEXT1\n"))
    assert reader.exactly(0, 9) == "Words" and reader.index.headings == [(0, "Title", 1)]
    assert (reader.heading_at(2), reader.sheet_at(2), reader.index.tables) == ("Title", "", [])


def test_what_was_written_but_not_counted_is_cut_off() -> None:
    out = io.BytesIO()
    writer = TextWriter(out)
    writer.add("Words\n")
    out.write(b"half a piece")  # as if the time had been up inside of `add`
    writer.close()
    assert TextReader(out).exactly(0, 99) == "Words\n"


def test_headings_and_rows_beyond_the_bounds_stand_under_none() -> None:
    out = io.BytesIO()
    writer = TextWriter(out)
    for n in range(MOST_TABLES + 5):
        writer.heading(f"H{n}")
        writer.rows(n + 1)
        writer.add("x\n")
    writer.close()
    reader = TextReader(out)
    last = reader.index.total_chars - 1
    assert len(reader.index.headings) == MOST_HEADINGS and len(reader.index.tables) == MOST_TABLES
    assert (reader.heading_at(last), reader.heading_at(3)) == ("", "H1")
    assert [row for _, _, row, _ in reader.index.tables] == [*range(1, MOST_TABLES), 0]
