"""Where the keys of a state live: "app:" and "user:" keys outlive the session, "temp:" keys are never stored.

A StateChanged record keeps its keys as they are; the writer folds the plain ones into the session and the prefixed
ones into State rows, in the statement that stores the record.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agents.models.session import State
from agents.runtime import codec
from agents.runtime.events import StateChanged, Stored
from agents.runtime.state import APP, TEMP, USER, app_delta, user_delta


def split(delta: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the plain keys and the "app:"/"user:" keys of a delta. Raises ValueError for a "temp:" key."""
    plain: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for key, value in delta.items():
        if key.startswith(TEMP):
            raise ValueError(f"{key!r} lives as long as its run; it cannot be stored.")
        (shared if key.startswith((APP, USER)) else plain)[key] = value
    return plain, shared


def changes(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a stored StateChanged says of the session's own state."""
    record = codec.load("state_changed", payload)
    assert isinstance(record, StateChanged)
    return split(record.delta)[0]


def fold(events: Iterable[Stored]) -> dict[str, Any]:
    """Return the session's own state after these events, oldest first. A None value is an explicit null and stays."""
    state: dict[str, Any] = {}
    for stored in events:
        if isinstance(stored.record, StateChanged):
            state.update(split(stored.record.delta)[0])
    return state


def put_user(*, owner_id: int, values: Mapping[str, Any]) -> None:
    """Store values for all sessions of the owner; keys with or without "user:".

    Raises ValueError for a key of another scope. Sync, inside the caller's transaction.
    """
    for key, value in sorted(user_delta(values).items()):
        State.objects.update_or_create(
            scope=State.Scope.USER, owner_id=owner_id, agent="", key=key.removeprefix(USER), defaults={"value": value}
        )


def put_app(*, agent: str, values: Mapping[str, Any]) -> None:
    """Store values for all people of this agent; keys with or without "app:". For staff, not for a run's owner.

    Raises ValueError for a key of another scope. Sync, inside the caller's transaction.
    """
    for key, value in sorted(app_delta(values).items()):
        State.objects.update_or_create(
            scope=State.Scope.APP, owner=None, agent=agent, key=key.removeprefix(APP), defaults={"value": value}
        )


def of_user(*, owner_id: int) -> dict[str, Any]:
    """Return what the owner's sessions share, "user:" in front of each key. Sync."""
    rows = State.objects.filter(scope=State.Scope.USER, owner_id=owner_id)
    return {USER + key: value for key, value in rows.values_list("key", "value")}
