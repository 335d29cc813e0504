"""A memory as the columns of its row, and back."""

from typing import Any

from agents.models.memory import Memory as Row
from agents.runtime.memory.dates import Period, Precision
from agents.runtime.memory.memories import Draft, Kind, Memory, Origin, Source, content_hash


def load(row: Row) -> Memory:
    """Return a row as what runs and pages see. Of history the row that superseded it is looked at too."""
    time = None
    if row.event_start is not None and row.event_end is not None:
        time = Period(start=row.event_start, end=row.event_end, precision=Precision(row.event_precision))
    origin = None
    if row.origin_position is not None:
        origin = Origin(thread_id=row.origin_thread, event_id=row.origin_event, position=row.origin_position)
    return Memory(
        text=row.text,
        kind=Kind(row.kind),
        topics=tuple(row.topics),
        event_time=time,
        participants=tuple(row.participants),
        location=row.location,
        source=Source(row.source),
        origin=origin,
        id=row.memory_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        version=row.version,
        used_at=row.used_at,
        superseded_by=row.superseded_by.memory_id if row.superseded_by else "",
        muted=row.muted,
    )


def columns_of(draft: Draft) -> dict[str, Any]:
    """Return what a draft says as columns."""
    time, origin = draft.event_time, draft.origin
    return {
        "text": draft.text,
        "kind": draft.kind.value,
        "topics": list(draft.topics),
        "event_start": time.start if time else None,
        "event_end": time.end if time else None,
        "event_precision": time.precision.value if time else "",
        "participants": list(draft.participants),
        "location": draft.location,
        "source": draft.source.value,
        "origin_thread": origin.thread_id if origin else "",
        "origin_event": origin.event_id if origin else "",
        "origin_position": origin.position if origin else None,
        "content_hash": content_hash(draft),
    }
