"""Markers in a streamed text become links, whatever the text was cut into."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.runtime.context.citing import (
    Citing,
    Known,
    cited_message,
    known,
    known_citations,
    marked,
    numbered,
    plain,
    settled,
)
from agents.runtime.events import AssistantMessage, ToolReturned
from agents.runtime.knowledge import Citation, Cited, Place
from tests.runtime.samples import stored


def citation(citation_id: str, document: str, start: int = 0) -> Citation:
    return Citation(
        id=citation_id,
        artifact_id=document,
        version=1,
        name=f"{document}.pdf",
        start=start,
        end=start + 10,
        place=Place(page=3),
        quote="ten chars.",
    )


def said(citation_id: str, message_id: str, thread_id: str = "t") -> Citation:
    """A piece of a message."""
    return replace(citation(citation_id, ""), version=0, name="Costs", thread_id=thread_id, message_id=message_id)


A, A2, B = citation("aaaaaa", "one"), citation("aaaaa2", "one", 20), citation("bbbbbb", "two")


def citable(*citations: Citation) -> Known:
    return Known(citations={c.id: c for c in citations or (A, A2, B)})


def cite(*pieces: str, known: Known | None = None) -> tuple[str, Citing, list[str | Cited]]:
    citing = Citing(known or citable())
    out = [item for piece in pieces for item in citing.feed(piece)] + citing.end()
    return "".join(item for item in out if isinstance(item, str)), citing, out


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Costs fell. [[c:aaaaaa]]", "Costs fell. [1](#c-aaaaaa)"),
        ("成本下降。[[c:aaaaaa]][[c:bbbbbb]]完", "成本下降。[1](#c-aaaaaa)[2](#c-bbbbbb)完"),
        ("x [[c:bbbbbb]] y [[c:aaaaaa]] z [[c:aaaaa2]]", "x [1](#c-bbbbbb) y [2](#c-aaaaaa) z [2](#c-aaaaa2)"),
        ("x [[c:AAAAAA]]", "x [1](#c-aaaaaa)"),
        ("Great![[c:aaaaaa]]", "Great! [1](#c-aaaaaa)"),  # "![" would be an image
        ("a\\[[c:aaaaaa]]", "a\\ [1](#c-aaaaaa)"),  # "\\[" would be no link
        ("| a [[c:aaaaaa]] | b |", "| a [1](#c-aaaaaa) | b |"),
    ],
)
def test_a_known_marker_becomes_a_link_with_one_number_per_document(said: str, shown: str) -> None:
    text, citing, _ = cite(said)
    assert text == shown
    assert citing.dropped == 0 and not citing.not_found
    assert marked(text, citing.cited).replace("! [[", "![[").replace("\\ [[", "\\[[").lower() == said.lower()


@pytest.mark.parametrize(
    ("said", "shown", "dropped"),
    [
        ("It is so [[c:zzzzzz]].", "It is so.", 1),
        ("It is so[[c:zzzzzz]] and [[c:1]] so.", "It is so and so.", 2),
        ("a [[c:zzzzzz]] [[c:aaaaaa]]", "a [1](#c-aaaaaa)", 1),
        ("[[c:]] [[c:a b]] [[x:aaaaaa]] [[c:aaaaaaaaa]] [c:aaaaaa]", None, 0),  # not of the form: text
        ("a[[c:aaaaaa]", None, 0),
        ("[[[c:aaaaaa]]]", "[[1](#c-aaaaaa)]", 0),
    ],
)
def test_a_marker_of_nothing_known_is_dropped_and_counted(said: str, shown: str | None, dropped: int) -> None:
    text, citing, _ = cite(said)
    assert text == (said if shown is None else shown)
    assert citing.dropped == dropped


def test_not_in_the_documents_is_remembered_and_not_shown() -> None:
    text, citing, _ = cite("Your documents do not say. [[c:none]]")
    assert text == "Your documents do not say." and citing.not_found and citing.dropped == 0
    text, citing, _ = cite("Nothing. [[c:none]]", known=Known(citations={}))
    assert text.rstrip() == "Nothing." and citing.not_found


@pytest.mark.parametrize("said", ["see [1](#c-aaaaaa)", "see [1]( #c-aaaaaa)", "see [1](<#c-aaaaaa>)"])
def test_a_link_that_the_model_writes_itself_is_no_citation(said: str) -> None:
    text, citing, _ = cite(said)
    assert "](" not in text and text.replace("] (", "](") == said
    assert citing.cited == []


@pytest.mark.parametrize(
    ("said", "shown", "dropped"),
    [
        ("`[[c:aaaaaa]]` x", "` ` x", 1),
        ("```\nx = 1 [[c:aaaaaa]]\n```\nSo. [[c:aaaaaa]]", "```\nx = 1\n```\nSo. [1](#c-aaaaaa)", 1),
        # behind a closing fence it would open the fence again
        ("```py\nx\n```[[c:aaaaaa]]\nSo [[c:aaaaaa]]", "```py\nx\n``` \nSo [1](#c-aaaaaa)", 1),
        ("- ~~~\n  a[[c:zzzzzz]]\n  ~~~\n- b [[c:aaaaaa]]", "- ~~~\n  a[[c:zzzzzz]]\n  ~~~\n- b [1](#c-aaaaaa)", 0),
        ("``a ` b [[c:zzzzzz]]`` [[c:aaaaaa]]", "``a ` b [[c:zzzzzz]]`` [1](#c-aaaaaa)", 0),
        ("```a b``` c [[c:aaaaaa]]", "```a b``` c [1](#c-aaaaaa)", 0),
        ("it`s so\nand [[c:aaaaaa]]", "it`s so\nand [1](#c-aaaaaa)", 0),
        ("1```x\n[[c:aaaaaa]]", "1```x\n[1](#c-aaaaaa)", 0),
        ("a[0](#c-aaaaaa) `b[0](#c-aaaaaa)`", "a[0] (#c-aaaaaa) `b[0](#c-aaaaaa)`", 0),
        ("`[[c:none]]`", "`[[c:none]]`", 0),
    ],
)
def test_inside_code_a_known_marker_is_dropped_and_the_rest_is_left_alone(said: str, shown: str, dropped: int) -> None:
    text, citing, _ = cite(said)
    assert text == shown
    assert citing.dropped == dropped and not citing.not_found


def test_a_citation_is_shown_once_before_the_text_that_uses_it() -> None:
    _, citing, out = cite("x [[c:bbbbbb]] y", " [[c:aaaaaa]]", "[[c:bbbbbb]]")
    assert out == [
        "x ",
        Cited(number=1, citation=B),
        "[1](#c-bbbbbb) y",
        " ",
        Cited(number=2, citation=A),
        "[2](#c-aaaaaa)",
        "[1](#c-bbbbbb)",
    ]
    assert citing.cited == [Cited(number=1, citation=B), Cited(number=2, citation=A)]


def test_only_what_may_become_a_marker_is_held_back() -> None:
    citing = Citing(citable())
    assert citing.feed("Costs [") == ["Costs"]
    assert citing.feed("see below] fell") == [" [see below] fell"]
    assert citing.feed(" by [[c:aaa") == [" by"]
    assert citing.feed("aaa]] 5 %.") == [" ", Cited(number=1, citation=A), "[1](#c-aaaaaa) 5 %."]
    assert citing.feed("So [[c:aaaaaa") == ["So"]
    assert citing.end() == [" [[c:aaaaaa"]
    without = Citing(Known(citations={}))
    assert without.feed("It is ") == ["It is "]  # no blank waits where nothing can be cited


PIECES = st.one_of(
    st.sampled_from("[[c:aaaaaa]] [[c:aaaaa2]] [[c:bbbbbb]] [[c:none]] [[c:zzzzzz]] [[c: ]] [[ [ ] ](".split()),
    st.sampled_from("#c- (#c-aaaaaa) ![ ` `` ``` ~~~ - > 1. # | \\ ! 成本 word".split()),
    st.sampled_from([" ", "  ", "\n", "\n\n", "\n```\n", "](#c-aaaaaa)", "](<#c-aaaaaa>)", "]( \n#c-x)"]),
    st.text(alphabet="[]c:( )#-`~\nab<", max_size=6),
)


def cut(text: str, places: Iterable[int]) -> list[str]:
    ends = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[a:b] for a, b in pairwise(ends)]


@given(st.lists(PIECES, max_size=20), st.lists(st.integers(0, 400), max_size=30), st.booleans())
@example(["x", " ", "[[c:zzzzzz]]", "."], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], True)
def test_a_text_comes_out_the_same_however_it_was_cut(pieces: list[str], places: list[int], something: bool) -> None:
    text = "".join(pieces)

    def outcome(parts: Sequence[str]) -> tuple[object, ...]:
        shown, citing, out = cite(*parts, known=citable() if something else Known(citations={}))
        return shown, citing.cited, citing.dropped, citing.not_found, [o for o in out if isinstance(o, Cited)]

    whole = outcome([text])
    assert outcome(cut(text, places)) == whole
    assert outcome(list(text)) == whole
    if something:
        assert not any(f"[[c:{c.id}]]" in str(whole[0]) for c in (A, A2, B))


@given(st.lists(PIECES, max_size=20))
@example(["`", "[[c:aaaaaa]]", "`", "[[c:aaaaaa]]"])
@example(["]", "[[c:none]]", "(#c-aaaaaa)"])
def test_what_was_settled_once_stays(pieces: list[str]) -> None:
    message = settled(AssistantMessage(id="m", response_id="m", text="".join(pieces)), citable())
    again = settled(message, citable())
    assert again.citations == message.citations and again.not_in_documents == message.not_in_documents
    assert marked(again.text, again.citations) == marked(message.text, message.citations)


def test_only_links_of_the_messages_own_citations_go_back_to_markers() -> None:
    cited = (Cited(number=2, citation=A),)
    assert marked("a [2](#c-aaaaaa) [1](#c-aaaaaa) [2](#c-bbbbbb)", cited) == (
        "a [[c:aaaaaa]] [1](#c-aaaaaa) [2](#c-bbbbbb)"
    )
    assert numbered("a [2](#c-aaaaaa) [1](#c-aaaaaa)", cited) == "a [2] [1](#c-aaaaaa)"
    assert plain("a[2](#c-aaaaaa) [1](#c-aaaaaa)", cited) == "a [1](#c-aaaaaa)"


def test_what_may_be_cited_comes_from_tool_results_and_numbers_from_this_run_only() -> None:
    returned = ToolReturned(id="t", call_id="c", name="search", content="x", citations=(A, B))
    old = AssistantMessage(id="m0", response_id="m0", text="x", citations=(Cited(number=7, citation=B),))
    new = AssistantMessage(id="m1", response_id="m1", text="x", citations=(Cited(number=1, citation=A),))
    history = [stored(1, returned, run_id="r0"), stored(2, old, run_id="r0"), stored(3, new, run_id="r1")]
    assert known_citations(history) == {"aaaaaa": A, "bbbbbb": B}
    now = known(history, "r1")
    assert now.numbers == {"one": 1}
    assert now.cited(B).number == 2 and now.cited(A2).number == 1
    assert known(history, "r2").numbers == {}


def test_each_message_has_a_number_of_its_own_and_its_pieces_share_it() -> None:
    one, piece, two = said("aaaaaa", "m1"), said("aaaaa2", "m1"), said("bbbbbb", "m2")
    elsewhere, document = said("cccccc", "m1", "t2"), citation("dddddd", "one")
    shown, citing, _ = cite(
        "a [[c:aaaaaa]] b [[c:bbbbbb]] c [[c:aaaaa2]] d [[c:cccccc]] e [[c:dddddd]]",
        known=citable(one, piece, two, elsewhere, document),
    )
    assert shown == "a [1](#c-aaaaaa) b [2](#c-bbbbbb) c [1](#c-aaaaa2) d [3](#c-cccccc) e [4](#c-dddddd)"
    assert [c.number for c in citing.cited] == [1, 2, 1, 3, 4]
    answer = AssistantMessage(id="m", response_id="m", text=shown, citations=tuple(citing.cited))
    returned = ToolReturned(id="t", call_id="c", name="session_search", content="x", citations=(one, two, elsewhere))
    again = known([stored(1, returned, run_id="r1"), stored(2, answer, run_id="r1")], "r1")
    assert again.cited(two).number == 2 and again.cited(elsewhere).number == 3


def test_a_message_counts_what_was_dropped_in_all_its_passes() -> None:
    message = AssistantMessage(id="m", response_id="m", citations_dropped=1)
    _, citing, _ = cite("[[c:zzzzzz]]")
    assert cited_message(message, "", citing).citations_dropped == 2
