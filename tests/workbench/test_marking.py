"""What of a text a search marks: English stems, Chinese, names; and the part of a text that is shown."""

from collections.abc import Sequence

import pytest

from workbench import marking
from workbench.marking import Marked, Marker, Tokens


def marker(query: str, *texts: str) -> Marker:
    return Marker(query, marking.stems_of(marking.words_of(*map(Tokens, (query, *texts)))))


def meant(pieces: Marked) -> list[str]:
    return [piece for piece, hit in pieces if hit]


def spans(query: str, text: str) -> list[str]:
    return [text[start:end] for start, end in marker(query, text).spans(Tokens(text))]


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("leak", "Leaks leaked; a LEAKING rack, no leakage.", ["Leaks", "leaked", "LEAKING"]),
        ("the gas", "The gas of the house", ["gas"]),  # a stop word is none
        ("R-404A", "310 kg of R-404A, and r-404a.", ["R-404A", "r-404a"]),
        ("合同", "这份合同和合同法，合 同", ["合同", "合同"]),
        ("同", "合同与同意", ["同", "同"]),
        ("保密条款", "保密的条款", ["保密", "条款"]),
        ("API 限流", "API的限流策略", ["API", "限流"]),
        ("限流策略", "关于限流策略", ["限流策略"]),
        ("naïve", "A naïve one", ["naïve"]),
        ("nothing", "Something else", []),
        ("", "Something", []),
    ],
)
def test_marks_what_the_index_takes_for_the_same(db: None, query: str, text: str, found: Sequence[str]) -> None:
    assert spans(query, text) == list(found)


def test_counts_words_of_the_query_once_each(db: None) -> None:
    text = "Leaks and leaking gas; 合同"
    assert marker("gas leak 合同", text).covered(Tokens(text)) == 3
    assert marker("gas leak 合同", "Nothing.").covered(Tokens("Nothing.")) == 0


@pytest.mark.parametrize(
    ("query", "name", "found"),
    [
        ("harb", "Survey_Harbour_2025.pdf", ["Harb"]),
        ("HARBOUR 2025", "Survey_Harbour_2025.pdf", ["Harbour", "2025"]),
        ("resume", "Résumé.docx", ["Résumé"]),
        ("résumé", "RESUME.docx", ["RESUME"]),
        ("同", "合同审阅", ["同"]),
        ("a.b", "axb a.b", ["a.b"]),
    ],
)
def test_names_are_marked_where_they_hold_what_was_typed(query: str, name: str, found: Sequence[str]) -> None:
    pieces = marking.name(name, query)
    assert meant(pieces) == list(found)
    assert "".join(piece for piece, _hit in pieces) == name


def test_shows_the_part_of_a_long_text_where_the_words_stand_together(db: None) -> None:
    text = "Gas. " + "Filler words go here. " * 60 + "The rack lost gas through a leak in the valve. " + "More. " * 80
    found = marker("gas leak", text)
    start, end = marking.window(text, found.spans(Tokens(text)))
    assert end - start <= marking.SNIPPET_CHARS
    assert text[start - 1] == " ", "it begins with a word"
    pieces = marking.snippet(text, found, (start, end))
    assert meant(pieces) == ["gas", "leak"]
    shown = "".join(piece for piece, _hit in pieces)
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_short_text_is_shown_whole(db: None) -> None:
    found = marker("合同", "这份合同")
    assert marking.snippet("这份合同", found, marking.window("这份合同", found.spans(Tokens("这份合同")))) == (
        ("这份", False),
        ("合同", True),
    )


def test_snippet_reads_like_prose(db: None) -> None:
    text = '## Costs\n\n- **43 kg** of `gas` [[c:abcdef]]\n| a | b |\n[Attached file "plan.pdf"] [here](http://x/)'
    found = marker("gas", text)
    shown = "".join(p for p, _hit in marking.snippet(text, found, (0, len(text))))
    assert shown == "Costs 43 kg of gas a b plan.pdf here"


@pytest.mark.parametrize("text", ["une e\u0301cole", "une \uff45\u0301\uff43ole", "UNE E\u0301COLE"])
def test_the_same_word_is_meant_however_its_characters_are_written(db: None, text: str) -> None:
    found = marker("école", text)
    assert len(found.spans(Tokens(text))) == 1
    assert found.covered(Tokens(text)) == 1
