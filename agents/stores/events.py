"""Records as rows of the event table and back."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from agents.runtime import codec
from agents.runtime.events import Origin, Stamped, StateChanged, Stored
from agents.runtime.surrogates import mended
from agents.stores import entries, state

# The origin's fields that have no column of their own.
_REST = ("parent_invocation_id", "trigger", "trigger_id", "trigger_name")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A record on its way to the table. json: the row as the statements in sql.py read it, without its run.

    stamped: what was given, or what is left of it if it held characters that PostgreSQL cannot keep. pieces: how many
    searchable entries it gives.
    """

    stamped: Stamped
    json: bytes
    plain: Mapping[str, Any]
    shared: Mapping[str, Any]
    pieces: int


def row(stamped: Stamped, *, run_key: int | None = None) -> Row:
    """Return the record as a row. Raises ValueError for a state key that is never stored, TypeError for no JSON."""
    payload = codec.dump(stamped.record)
    text, payload, changed = dump_json(payload)
    if changed:
        stamped = dataclasses.replace(stamped, record=codec.load(stamped.record.type, payload))
    plain: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    origin = stamped.origin
    out: dict[str, Any] = {
        "id": stamped.id,
        "type": stamped.record.type,
        "invocation_id": origin.invocation_id,
        "author": origin.author,
        "payload": orjson.Fragment(text),
        "at": stamped.at,
    }
    if run_key is not None:
        out["run"] = run_key
    if origin.branch:
        out["branch"] = origin.branch
    if origin.filter_key:
        out["filter_key"] = origin.filter_key
    if stamped.tokens:
        out["tokens"] = stamped.tokens
    if origin.parent_invocation_id or origin.trigger:
        out["origin"] = {name: value for name in _REST if (value := getattr(origin, name))}
    if pieces := entries.pieces(stamped.record):
        out["pieces"] = pieces
    if isinstance(stamped.record, StateChanged):
        plain, shared = state.split(payload.get("delta", {}))
        if plain:
            out["state"] = orjson.Fragment(dump_json(plain)[0])
        if shared:
            out["scoped"] = orjson.Fragment(dump_json(shared)[0])
    return Row(stamped=stamped, json=orjson.dumps(out), plain=plain, shared=shared, pieces=len(pieces))


def stored(row: Row, *, position: int, fork: int) -> Stored:
    """Return the row's record as it lies in the store."""
    s = row.stamped
    return Stored(position=position, fork=fork, id=s.id, at=s.at, origin=s.origin, record=s.record, tokens=s.tokens)


def load(columns: Sequence[Any]) -> Stored:
    """Return a record from the columns that the statements of sql.py select, JSON parsed or as text."""
    position, fork, event_id, kind, invocation_id, author, branch, filter_key, rest, payload, tokens, at, run_id = (
        columns
    )
    if isinstance(payload, str):  # Django's connections leave JSON alone
        payload, rest = orjson.loads(payload), orjson.loads(rest)
    return Stored(
        position=position,
        fork=fork,
        id=event_id,
        at=at,
        origin=Origin(
            run_id=run_id,
            invocation_id=invocation_id,
            author=author,
            branch=branch,
            filter_key=filter_key,
            **{name: rest[name] for name in _REST if name in rest},
        ),
        record=codec.load(kind, payload),
        tokens=tokens,
    )


def dump_json(value: dict[str, Any]) -> tuple[bytes, dict[str, Any], bool]:
    """Return the value as JSON that jsonb takes, the value this JSON stands for, and whether it had to be changed.

    jsonb keeps neither U+0000 nor half of a surrogate pair; both become U+FFFD. A number beyond 64 bits is kept.
    """
    try:
        text = orjson.dumps(value)
    except TypeError:
        value = _clean(value)
        return json.dumps(value).encode(), value, True
    if b"\\u0000" not in text:
        return text, value, False
    value = _clean(value)
    return orjson.dumps(value), value, True


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return mended(value.replace("\0", "\ufffd"))
    if isinstance(value, Mapping):
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
