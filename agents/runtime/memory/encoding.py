"""Memories as JSON: for what a person takes along, and for what an undo puts back."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agents.runtime.memory.dates import Period, Precision
from agents.runtime.memory.memories import Draft, Kind, Memory, Origin, Source


def as_json(draft: Draft) -> dict[str, Any]:
    """Return a draft, or a Memory with its row, as JSON that `draft_from` and `memory_from` read again."""
    time, origin = draft.event_time, draft.origin
    out: dict[str, Any] = {
        "text": draft.text,
        "kind": draft.kind.value,
        "topics": list(draft.topics),
        "event_time": [time.start.isoformat(), time.end.isoformat(), time.precision.value] if time else None,
        "participants": list(draft.participants),
        "location": draft.location,
        "source": draft.source.value,
        "origin": [origin.thread_id, origin.event_id, origin.position] if origin else None,
    }
    if isinstance(draft, Memory):
        out |= {
            "id": draft.id,
            "created_at": draft.created_at.isoformat(),
            "updated_at": draft.updated_at.isoformat(),
            "version": draft.version,
            "used_at": draft.used_at.isoformat() if draft.used_at else None,
            "superseded_by": draft.superseded_by,
            "muted": draft.muted,
        }
    return out


def draft_from(values: Mapping[str, Any]) -> Draft:
    """Return the draft that `as_json` wrote. Raises KeyError, TypeError, ValueError for anything else."""
    return Draft(**_draft(values))


def memory_from(values: Mapping[str, Any]) -> Memory:
    """Return the memory that `as_json` wrote. Raises KeyError, TypeError, ValueError for anything else."""
    used_at = values["used_at"]
    return Memory(
        **_draft(values),
        id=str(values["id"]),
        created_at=datetime.fromisoformat(values["created_at"]),
        updated_at=datetime.fromisoformat(values["updated_at"]),
        version=int(values["version"]),
        used_at=datetime.fromisoformat(used_at) if used_at else None,
        superseded_by=str(values["superseded_by"]),
        muted=bool(values["muted"]),
    )


def _draft(values: Mapping[str, Any]) -> dict[str, Any]:
    time, origin = values["event_time"], values["origin"]
    return {
        "text": str(values["text"]),
        "kind": Kind(values["kind"]),
        "topics": tuple(map(str, values["topics"])),
        "event_time": _period(*time) if time else None,
        "participants": tuple(map(str, values["participants"])),
        "location": str(values["location"]),
        "source": Source(values["source"]),
        "origin": Origin(thread_id=origin[0], event_id=origin[1], position=int(origin[2])) if origin else None,
    }


def _period(start: str, end: str, precision: str) -> Period:
    return Period(start=datetime.fromisoformat(start), end=datetime.fromisoformat(end), precision=Precision(precision))
