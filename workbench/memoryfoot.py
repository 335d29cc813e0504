"""What memory had to do with the runs of a transcript: what they were given, and what was remembered of their turns."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from agents.models.memory import Memory
from agents.models.session import Session
from agents.runtime.events import Preloaded, Stored, ToolReturned
from agents.stores.remembering import changes_of_runs
from workbench.memorywords import Changed, Foot, Used
from workbench.transcript import Answer, Said

READING: Final = ("memory_load", "memory_search")


def mark(entries: list[Said | Answer], stored: Sequence[Stored], session: Session) -> None:
    """Say of each run's last article what memory had to do with it. Three statements at most."""
    last = {entry.run_id: entry for entry in entries if isinstance(entry, Answer) and entry.ended}
    if not last:
        return
    shown = {run_id: ids for run_id, ids in _shown(stored).items() if run_id in last}
    ids = {id for some in shown.values() for id in some}
    rows = {row.memory_id: row for row in Memory.objects.of(session.owner_id).filter(memory_id__in=ids)} if ids else {}
    changes = changes_of_runs(session.owner_id, session.pk, last)
    for run_id in shown.keys() | changes.keys():
        there = [rows[id] for id in shown.get(run_id, ()) if id in rows]
        last[run_id].memory = Foot(
            used=tuple(Used(id=row.memory_id, text=row.text, muted=row.muted) for row in there),
            gone=len(shown.get(run_id, ())) - len(there),
            changes=tuple(Changed.of(one) for one in changes.get(run_id, ())),
        )


def _shown(stored: Iterable[Stored]) -> dict[str, dict[str, None]]:
    """Return the ids of the memories that each run's model was shown, in order."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for one in stored:
        record = one.record
        if isinstance(record, Preloaded) and record.memories:
            found[one.origin.run_id] |= dict.fromkeys(id for id, _version in record.memories)
        elif isinstance(record, ToolReturned) and record.name in READING:
            results: Any = record.data.get("results")
            hits = [str(hit["id"]) for hit in results or () if "id" in hit]
            if hits:
                found[one.origin.run_id] |= dict.fromkeys(hits)
    return found
