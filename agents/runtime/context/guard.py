"""The entry guard: a tool result that is too long becomes an artifact and a short text that says how to read the rest.

How it is cut depends on the tool's family: search keeps whole hits from the top, shell keeps the command line and the
exit status at the end, files keep the beginning, everything else head and tail.
"""

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum

from agents.runtime.artifacts import ArtifactInvalid, ArtifactNotKept, ArtifactRef, ArtifactStore
from agents.runtime.events import ToolReturned

NOTE_BYTES = 400  # room for the note in the middle, so that the guarded text stays inside the limit


class Family(StrEnum):
    """How a result that is too long is cut."""

    GENERAL = "general"  # head and tail
    SEARCH = "search"  # hits: title, text, source
    SHELL = "shell"  # command, head and tail, exit status
    FILES = "files"  # head, tail, how to read the rest


_HEAD_SHARE = {Family.GENERAL: 0.7, Family.SEARCH: 1.0, Family.SHELL: 0.4, Family.FILES: 0.85}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What is kept of a text. Both end and begin at whole characters, if possible at whole lines or hits."""

    head: str
    tail: str


async def guard(
    returned: ToolReturned, *, family: Family, limit_bytes: int, artifacts: ArtifactStore, run_id: str
) -> ToolReturned:
    """Return the result as it may be stored: unchanged up to limit_bytes of UTF-8, else guarded.

    The whole text is saved as an artifact with origin "guard" first, so a reference never leads nowhere.
    """
    data = returned.content.encode()
    if len(data) <= limit_bytes:
        return returned
    kept = cut(returned.content, family=family, room_bytes=max(200, limit_bytes - NOTE_BYTES))
    omitted = len(data) - len(kept.head.encode()) - len(kept.tail.encode())
    try:
        ref = await artifacts.save(
            name=f"results/{_slug(returned.name)}-{_slug(returned.call_id)}.txt",
            data=data,
            mime="text/plain; charset=utf-8",
            origin={"kind": "guard", "tool_call_id": returned.call_id, "run_id": run_id},
        )
    except (ArtifactInvalid, ArtifactNotKept):
        # The run can go on with what fits; only the rest is gone, and the model must not look for it.
        lost = f"[{omitted} bytes left out here. They could not be kept; call the tool again for less at once.]"
        return replace(returned, content=_join(kept, lost), size_bytes=len(data))
    return replace(
        returned,
        content=_join(kept, _note(ref, omitted)),
        artifact=ref,
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def cut(text: str, *, family: Family, room_bytes: int) -> Cut:
    """Return head and tail of the text, together at most room_bytes of UTF-8."""
    head_room = int(room_bytes * _HEAD_SHARE[family])
    head = _first_bytes(text, head_room)
    tail = _last_bytes(text, room_bytes - head_room)
    if family is Family.SEARCH:
        return Cut(head=_back_to(head, "\n\n") or _back_to(head, "\n") or head, tail="")
    return Cut(head=_back_to(head, "\n") or head, tail=_on_from(tail, "\n") or tail)


def _note(ref: ArtifactRef, omitted: int) -> str:
    return (
        f"[{omitted} bytes left out here. The whole result ({ref.size_bytes} bytes) is kept as {ref.uri}. To read the "
        f'rest, call read_artifact with {{"name": "{ref.uri}"}} and go on with the cursor that it returns.]'
    )


def _join(kept: Cut, note: str) -> str:
    return "\n\n".join(part for part in (kept.head.rstrip("\n"), note, kept.tail.lstrip("\n")) if part)


def _first_bytes(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")


def _last_bytes(text: str, size: int) -> str:
    return text.encode()[-size:].decode(errors="ignore") if size > 0 else ""


def _back_to(text: str, mark: str) -> str:
    """Return the text up to its last mark, "" if that would give up more than half of it."""
    end = text.rfind(mark)
    return text[:end] if end > len(text) // 2 else ""


def _on_from(text: str, mark: str) -> str:
    start = text.find(mark)
    return text[start + len(mark) :] if 0 <= start < len(text) // 2 else ""


def _slug(text: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in text)[:64] or "result"
