"""Every habit of providers that spec 2.1 and 2.2 name."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.runtime.memorystores import Ids
from agents.runtime.model import ToolCallChunk
from agents.runtime.toolcalls import NAMELESS, CallAssembler


def chunk(index: int = 0, id: str = "", name: str = "", arguments: str = "") -> ToolCallChunk:
    return ToolCallChunk(index=index, id=id, name=name, arguments=arguments)


def assembled(*chunks: ToolCallChunk, taken: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    """Return (id, name, arguments) of each call, having checked that the deltas add up to them."""
    assembler = CallAssembler(Ids("new"), taken)
    deltas = [d for c in chunks for d in assembler.feed(c)] + list(assembler.finish())
    calls = assembler.calls()
    for call in calls:
        own = [d for d in deltas if d.call_id == call.id]
        assert "".join(d.arguments for d in own) == call.arguments
        assert {d.name for d in own} == {call.name}
    assert {d.call_id for d in deltas} == {c.id for c in calls}
    assert len({c.id for c in calls}) == len(calls)
    return [(c.id, c.name, c.arguments) for c in calls]


CASES: dict[str, tuple[list[ToolCallChunk], list[tuple[str, str, str]]]] = {
    "as specified": (
        [chunk(0, "a", "f"), chunk(0, arguments='{"x"'), chunk(0, arguments=":1}"), chunk(1, "b", "g", "{}")],
        [("a", "f", '{"x":1}'), ("b", "g", "{}")],
    ),
    "index always 0": ([chunk(0, "a", "f", "{}"), chunk(0, "b", "g", "{}")], [("a", "f", "{}"), ("b", "g", "{}")]),
    "index always 0, interleaved by id": (
        [chunk(0, "a", "f", '{"x"'), chunk(0, "b", "g", '{"y"'), chunk(0, "a", "", ":1}"), chunk(0, "b", "", ":2}")],
        [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')],
    ),
    "id comes late": (
        [chunk(0, "", "f"), chunk(0, "", "", '{"x"'), chunk(0, "a", "", ":1}")],
        [("a", "f", '{"x":1}')],
    ),
    "name comes late": ([chunk(0, "a"), chunk(0, "", "", '{"x":'), chunk(0, "", "f", "1}")], [("a", "f", '{"x":1}')]),
    "id and name on every fragment": (
        [chunk(0, "a", "f", '{"x"'), chunk(0, "a", "f", ":1"), chunk(0, "a", "f", "}")],
        [("a", "f", '{"x":1}')],
    ),
    "id repeated at the end without anything": (
        [chunk(0, "a", "f", "{}"), chunk(0, "a", "f", "")],
        [("a", "f", "{}")],
    ),
    "no ids at all, whole calls, one index": (
        [chunk(0, "", "f", '{"x":1}'), chunk(0, "", "f", '{"x":2}')],
        [("call_new1", "f", '{"x":1}'), ("call_new2", "f", '{"x":2}')],
    ),
    "no ids, two indices": (
        [chunk(0, "", "f", "{}"), chunk(1, "", "g", "{}")],
        [("call_new1", "f", "{}"), ("call_new2", "g", "{}")],
    ),
    "one id for two calls at two indices": (
        [chunk(0, "a", "f", "{}"), chunk(1, "a", "g", "{}")],
        [("a", "f", "{}"), ("call_new1", "g", "{}")],
    ),
    "one id for two whole calls at one index": (
        [chunk(0, "a", "f", '{"x":1}'), chunk(0, "a", "f", '{"x":2}')],
        [("a", "f", '{"x":1}'), ("call_new1", "f", '{"x":2}')],
    ),
    "no name": ([chunk(0, "a", "", "{}")], [("a", NAMELESS, "{}")]),
    "arguments at an index of their own": ([chunk(0, "a", "f"), chunk(1, "", "", "{}")], [("a", "f", "{}")]),
    "an empty fragment": ([chunk()], []),
    "no arguments": ([chunk(0, "a", "f")], [("a", "f", "")]),
}


@pytest.mark.parametrize("name", CASES)
def test_2_14_fragments_become_the_calls_that_were_meant(name: str) -> None:
    chunks, calls = CASES[name]
    assert assembled(*chunks) == calls


def test_an_id_of_an_earlier_answer_is_not_used_again() -> None:
    assert assembled(chunk(0, "call_0", "f", "{}"), taken=("call_0",)) == [("call_new1", "f", "{}")]


def test_a_call_is_shown_as_soon_as_its_id_and_name_are_known() -> None:
    assembler = CallAssembler(Ids())
    assert [d.name for d in assembler.feed(chunk(0, "a", "f"))] == ["f"]
    assert [d.arguments for d in assembler.feed(chunk(0, "", "", "{"))] == ["{"]
    assert assembler.feed(chunk(0, "", "", "")) == ()


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            ToolCallChunk,
            index=st.integers(min_value=0, max_value=2),
            id=st.sampled_from(["", "a", "b"]),
            name=st.sampled_from(["", "f", "g"]),
            arguments=st.sampled_from(["", "{}", '{"x":', "1}", " "]),
        ),
        max_size=12,
    )
)
def test_whatever_comes_the_deltas_add_up_and_ids_are_distinct(chunks: list[ToolCallChunk]) -> None:
    assembled(*chunks)


@pytest.mark.parametrize("unfit", ["a\0b", "\ud800", "line\nbreak", "x" * 129])
def test_an_id_that_a_store_or_a_client_cannot_hold_is_replaced(unfit: str) -> None:
    """It would be stored as something else, and its result would match no call that was announced."""
    assert assembled(chunk(id=unfit, name="f", arguments="{"), chunk(id=unfit, arguments="}")) == [
        ("call_new1", "f", "{}")
    ]
