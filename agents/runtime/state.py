"""Who may write which state key, and what of it is stored.

Keys carry their scope (session.py). Values are JSON; None is an explicit null, not a removed key.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

APP = "app:"
USER = "user:"
TEMP = "temp:"


def session_delta(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a change of session state, "temp:" keys allowed. Raises ValueError for an "app:" or "user:" key."""
    return _checked(values, forbidden=(APP, USER), prefix="")


def user_delta(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a change of the owner's state, "user:" put in front. Raises ValueError for an "app:" or "temp:" key."""
    return _checked(values, forbidden=(APP, TEMP), prefix=USER)


def app_delta(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a change of the agent's state, "app:" put in front. Raises ValueError for a "user:" or "temp:" key."""
    return _checked(values, forbidden=(USER, TEMP), prefix=APP)


def stored_part(delta: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a change is stored: everything but "temp:" keys."""
    return {key: value for key, value in delta.items() if not key.startswith(TEMP)}


def _checked(values: Mapping[str, Any], *, forbidden: tuple[str, ...], prefix: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in values.items():
        if not key or key.startswith(forbidden):
            raise ValueError(f'"{key}" does not belong into this scope')
        out[key if not prefix or key.startswith(prefix) else prefix + key] = deepcopy(value)
    return out
