from typing import Any

import pytest

from agents.runtime.schema import problems

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "count"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "ratio": {"type": "number"},
        "kind": {"enum": ["a", "b", 1]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "where": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["x"]}]},
        "maybe": {"type": "string", "nullable": True},
        "deep": {"type": "object", "properties": {"flag": {"type": "boolean"}}, "required": ["flag"]},
        "fixed": {"const": True},
    },
}
GOOD = {"name": "abc", "count": 3}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"ratio": 1},
        {"ratio": 1.5},
        {"count": 3.0},
        {"kind": 1},
        {"tags": ["x"]},
        {"where": None},
        {"either": {"x": 1}},
        {"maybe": None},
        {"ratio": None},
        {"deep": {"flag": True}},
        {"fixed": True},
    ],
)
def test_what_fits_has_no_problems(more: dict[str, Any]) -> None:
    assert problems({**GOOD, **more}, SCHEMA) == []


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"name": 3}, '"name" must be string, not integer.'),
        ({"name": "x"}, '"name" must be at least 2 characters.'),
        ({"count": "3"}, '"count" must be integer, not string.'),
        ({"count": 3.5}, '"count" must be integer, not number.'),
        ({"count": True}, '"count" must be integer, not boolean.'),
        ({"count": 10}, '"count" must be at most 9.'),
        ({"count": None}, '"count" must be integer, not null.'),
        ({"kind": "c"}, "\"kind\" must be one of 'a', 'b', 1."),
        ({"kind": True}, "\"kind\" must be one of 'a', 'b', 1."),
        ({"tags": ["x", 2]}, '"tags[1]" must be string, not integer.'),
        ({"tags": ["x"] * 3}, '"tags" must be at most 2 items.'),
        ({"where": 1}, '"where" must be string or null, not integer.'),
        ({"either": {}}, '"either.x" is required.'),
        ({"deep": {}}, '"deep.flag" is required.'),
        ({"fixed": 1}, '"fixed" must be True.'),
        ({"nmae": 1}, '"nmae" is unknown; known are'),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(more: dict[str, Any], problem: str) -> None:
    (found,) = problems({**GOOD, **more}, SCHEMA)
    assert found.startswith(problem)


def test_at_most_five_problems_are_told() -> None:
    assert len(problems({"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}, SCHEMA)) == 5


def test_an_empty_schema_allows_everything() -> None:
    assert problems({"a": [1, {"b": None}]}, {}) == []
