"""The file an extracted text lies in. No database."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.textfile import NotTextFile, TextReader, TextWriter, cut_before, splits_here

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
