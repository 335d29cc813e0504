import pytest

from agents.runtime.scopes import in_subtree, sees
from agents.runtime.state import app_delta, session_delta, stored_part, user_delta


def test_context_1_8_each_writer_refuses_the_keys_of_other_scopes() -> None:
    with pytest.raises(ValueError, match="app:x"):
        user_delta({"app:x": 1})
    with pytest.raises(ValueError, match="user:x"):
        session_delta({"user:x": 1})
    with pytest.raises(ValueError, match="temp:x"):
        app_delta({"temp:x": 1})
    assert session_delta({"temp:x": 1, "y": 2}) == {"temp:x": 1, "y": 2}
    assert user_delta({"tone": "dry", "user:name": "A"}) == {"user:tone": "dry", "user:name": "A"}
    assert app_delta({"x": None}) == {"app:x": None}


def test_a_change_is_a_copy() -> None:
    value = {"list": [1]}
    delta = session_delta(value)
    value["list"].append(2)
    assert delta == {"list": [1]}


def test_context_1_9_an_explicit_null_stays_and_only_temp_keys_are_not_stored() -> None:
    assert stored_part({"x": None, "temp:y": 1, "user:z": 2}) == {"x": None, "user:z": 2}


@pytest.mark.parametrize(
    ("scope", "key", "seen", "below"),
    [
        ("fk/fk2", "fk", True, False),
        ("fk/fk2", "fk/fk2", True, True),
        ("fk/fk2", "fk/fk2/fk3", True, True),
        ("fk/fk2", "fk/fk", False, False),
        ("fk/fk2", "b1", False, False),
        ("tool", "toolbox", False, False),
        ("toolbox", "tool", False, False),
        ("", "x", True, True),
        ("x", "", True, True),
        ("", "", True, True),
    ],
)
def test_context_1_6_who_sees_whom(scope: str, key: str, seen: bool, below: bool) -> None:
    assert sees(scope, key) is seen
    assert sees(key, scope) is seen
    assert in_subtree(scope, key) is below


def test_context_1_7_a_parallel_child_is_seen_by_its_parent_and_an_isolated_tool_agent_is_not() -> None:
    assert sees("parent", "parent/child")
    assert not sees("parent", "child-6f1c")
    assert sees("parent", "parent/child-6f1c")
