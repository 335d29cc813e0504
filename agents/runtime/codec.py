"""Records as JSON, for the store and back.

The shape is the dataclass's own: field names as keys, defaults left out. Readers accept what an older version wrote:
unknown keys are ignored, missing ones take the default. `version` is raised when a key changes its meaning.
"""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from agents.runtime import events, model
from agents.runtime.events import Record

RECORDS: dict[str, type[Any]] = {
    "run_started": events.RunStarted,
    "user_message": events.UserMessage,
    "assistant_message": events.AssistantMessage,
    "tool_returned": events.ToolReturned,
    "state_changed": events.StateChanged,
    "context_compacted": events.ContextCompacted,
    "preloaded": events.Preloaded,
    "run_finished": events.RunFinished,
    "run_failed": events.RunFailed,
}
PARTS: dict[str, type[Any]] = {"text": model.TextPart, "file": model.FilePart}

# Most values are one of these; asking first makes both ways twice as fast.
_PLAIN = frozenset({str, int, float, bool, type(None)})

# Looking fields and hints up costs more than copying them, so each class is looked at once.
_DEFAULTS: dict[type[Any], tuple[tuple[str, Any], ...]] = {}
_HINTS: dict[type[Any], dict[str, Any]] = {}


class UnknownRecord(ValueError):
    """A stored payload names a type this version does not know."""


def dump(record: Record) -> dict[str, Any]:
    """Return the record as JSON values, without its type and without fields that hold their default."""
    return _dump_fields(record, skip=("type",))


def load(type_name: str, payload: Mapping[str, Any]) -> Record:
    """Return the record that `dump` made. Raises UnknownRecord."""
    cls = RECORDS.get(type_name)
    if cls is None:
        raise UnknownRecord(type_name)
    record: Record = _load_fields(cls, payload)
    return record


def _dump_fields(value: Any, *, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, default in _defaults(type(value)):
        field = getattr(value, name)
        if name not in skip and field != default:
            out[name] = _dump_value(field)
    return out


def _dump_value(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [_dump_value(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _dump_value(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value):
        out = _dump_fields(value)
        if isinstance(value, model.TextPart | model.FilePart):
            out["type"] = value.type
        return out
    return value


def _defaults(cls: type[Any]) -> tuple[tuple[str, Any], ...]:
    if cls in _DEFAULTS:
        return _DEFAULTS[cls]
    found = []
    for field in dataclasses.fields(cls):
        default = field.default
        if default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        found.append((field.name, default))
    return _DEFAULTS.setdefault(cls, tuple(found))


def _hints(cls: type[Any]) -> dict[str, Any]:
    return _HINTS.get(cls) or _HINTS.setdefault(cls, get_type_hints(cls))


def _load_fields(cls: type[Any], payload: Mapping[str, Any]) -> Any:
    hints = _hints(cls)
    return cls(**{name: _load_value(hints[name], payload[name]) for name, _ in _defaults(cls) if name in payload})


def _load_value(hint: Any, value: Any) -> Any:
    if hint in _PLAIN:
        return value
    if hint is datetime:
        return datetime.fromisoformat(value)
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        if value is None:
            return None
        if isinstance(value, Mapping) and value.get("type") in PARTS:
            return _load_fields(PARTS[value["type"]], {k: v for k, v in value.items() if k != "type"})
        return _load_value(next(a for a in get_args(hint) if a is not type(None)), value)
    if origin is tuple:
        inner = get_args(hint)
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(_load_value(inner[0], item) for item in value)
        return tuple(_load_value(kind, item) for kind, item in zip(inner, value, strict=True))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _load_fields(hint, value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    return value
