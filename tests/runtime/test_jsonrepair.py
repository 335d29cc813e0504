import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.runtime.jsonrepair import NotJson, is_complete, parse_object


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("  \n", {}),
        ("null", {}),
        ("None", {}),
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Here you go: {"a": 1} Done.', {"a": 1}),
        ("{'a': 'it is \"x\"'}", {"a": 'it is "x"'}),
        ('{a: 1, "b-c": 2}', {"a": 1, "b-c": 2}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": True, "b": False, "c": None}', {"a": True, "b": False, "c": None}),
        ('{"a": "line\nbreak\tand tab"}', {"a": "line\nbreak\tand tab"}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{}{"a": 1}', {"a": 1}),
        ('{"a": 1}{"a": 2}', {"a": 1}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ('{"a": "caf\\u00e9 \\ud83d\\ude42"}', {"a": "café 🙂"}),
        ('{"a": -1.5e3, "b": +2, "c": .5}', {"a": -1500.0, "b": 2, "c": 0.5}),
        ('{"a": 1, // why\n "b": 2}', {"a": 1, "b": 2}),
        ('{"a": "x\\qy"}', {"a": "xqy"}),
    ],
)
def test_sloppy_json_is_read_as_meant(text: str, expected: dict[str, object]) -> None:
    parsed = parse_object(text)
    assert parsed.arguments == expected
    assert json.loads(parsed.text) == expected
    assert not parsed.cut


@pytest.mark.parametrize(
    "text", ['{"a": "half a wor', '{"a": [1, 2', '{"a": {"b": 1', '{"a"', '{"a":', "{", '{"a": 1,']
)
def test_what_ended_too_early_is_closed_and_marked(text: str) -> None:
    parsed = parse_object(text)
    assert parsed.cut and parsed.repaired
    assert isinstance(json.loads(parsed.text), dict)


@pytest.mark.parametrize("text", ["no json", "[1, 2]", "42", '"text"', "{]", '{"a" 1}', '{"a": [1}', "{" * 5000])
def test_what_is_no_object_is_refused(text: str) -> None:
    if text == "{" * 5000:
        with pytest.raises(NotJson):
            parse_object('{"a":' * 5000)
        return
    with pytest.raises(NotJson):
        parse_object(text)


def test_valid_json_is_left_as_it_was_written() -> None:
    text = '{ "a" :1.0 }'
    parsed = parse_object(text)
    assert parsed.text is text and not parsed.repaired


def test_complete_means_one_whole_object() -> None:
    assert is_complete('{"a": "}"} ')
    assert not any(map(is_complete, ["", "{", "[]", '{"a": 1', '{"a": "}', "{}{}"]))


@settings(deadline=None)
@given(st.text(alphabet="{}[]\"':,abc01\\ \n/-", max_size=60))
def test_any_text_gives_an_object_or_notjson(text: str) -> None:
    try:
        parsed = parse_object(text)
    except NotJson:
        return
    assert isinstance(json.loads(parsed.text), dict)


VALUES = st.one_of(st.integers(), st.text(max_size=8), st.none(), st.booleans())


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_every_cut_of_a_valid_object_is_closed_and_marked_and_invents_no_key(value: dict[str, object]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    for end in range(1, len(text)):
        parsed = parse_object(text[:end])
        assert parsed.cut
        assert set(parsed.arguments) <= set(value)
