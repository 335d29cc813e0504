"""What stays true of a person beyond a conversation: the shapes, and the store they lie in.

MemoryFailed           nothing was written
+ MemoryInvalid        a field is empty or too long; `field` names it
+ MemoryMissing        there is no such memory for this person: unknown and foreign alike
+ MemoryConflict       it cannot be written as things stand
  - VersionConflict    somebody changed it since it was read
  - MemoryDuplicate    another memory says exactly this; `other` is its id
+ MemoryOff            the person wants nothing to be remembered
+ MemoryUnavailable    the memories cannot be read or searched now
"""

import hashlib
import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Protocol

from agents.runtime.errors import AgentError
from agents.runtime.memory.dates import Between, Period
from agents.runtime.memory.words import cleaned, normalised

MOST_MEMORIES: Final = 1_000  # of one owner, superseded ones included
TEXT_CHARS: Final = 2_000
LIST_ITEMS: Final = 20  # topics, participants
ITEM_CHARS: Final = 100
LOCATION_CHARS: Final = 200
FEW_HITS: Final = 3  # fewer than this, and another kind is searched too

_ANY_TIME: Final = Between()


class Kind(StrEnum):
    FACT = "fact"  # holds until something else is said
    EPISODE = "episode"  # happened, or will, at a time


class Source(StrEnum):
    """Who wrote it, or took it away."""

    TOOL = "tool"  # the model, in a run
    EXTRACTOR = "extractor"  # a job, after one
    PERSON = "person"


class MemoryFailed(AgentError):
    """The memory could not be written."""

    code = "memory_failed"


class MemoryInvalid(MemoryFailed):
    """The memory has an empty or a too long field."""

    code = "memory_invalid"

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


class MemoryMissing(MemoryFailed):
    """There is no such memory."""

    code = "memory_missing"


class MemoryConflict(MemoryFailed):
    """The memory cannot be written as things stand."""

    code = "memory_conflict"


class VersionConflict(MemoryConflict):
    """The memory was changed meanwhile."""

    code = "memory_changed"


class MemoryDuplicate(MemoryConflict):
    """Another memory says exactly this."""

    code = "memory_duplicate"

    def __init__(self, other: str) -> None:
        self.other = other
        super().__init__()


class MemoryOff(MemoryFailed):
    """The person has switched their memories off."""

    code = "memory_off"


class MemoryUnavailable(MemoryFailed):
    """The memories cannot be read now."""

    code = "memory_unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The message that something comes from."""

    thread_id: str
    event_id: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One self-contained statement that is to be remembered. `checked` makes it fit to be stored.

    text: one line, 1 to TEXT_CHARS characters. topics: labels, no part of what makes it the same. event_time: when it
    happens, mainly of episodes. participants: people in it. origin: None if a person typed it in.
    """

    text: str
    kind: Kind = Kind.FACT
    topics: tuple[str, ...] = ()
    event_time: Period | None = None
    participants: tuple[str, ...] = ()
    location: str = ""
    source: Source
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Draft):
    """A draft as it is stored. id: opaque, the same through every update. version: from 1, one more with each write.

    used_at: when it was last put before a model. superseded_by: id of the memory that holds instead, "" = it holds.
    muted: the person keeps it, and no model is shown it.
    """

    id: str
    created_at: datetime
    updated_at: datetime
    version: int
    used_at: datetime | None = None
    superseded_by: str = ""
    muted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """What is left of a deleted memory: nothing of what it said. hash: words.words_hash of its text."""

    id: str
    hash: str
    at: datetime
    by: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a write came to. created: the memory is new. evicted: ids that had to go for it."""

    memory: Memory
    created: bool
    evicted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to look for. kind: None = both; `fallback` adds the other kind behind, if there are fewer than FEW_HITS.

    between: by event_time; what has none always passes. limit: 1 or more.
    """

    text: str
    kind: Kind | None = None
    between: Between = _ANY_TIME
    limit: int = 10
    fallback: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A hit. score: above 0 to 1, comparable within one search."""

    memory: Memory
    score: float


def draft_of(memory: Memory) -> Draft:
    """Return what the memory says, without its row."""
    return Draft(**{one.name: getattr(memory, one.name) for one in fields(Draft)})


def checked(draft: Draft) -> Draft:
    """Return the draft as it is stored: on one line, lists trimmed and without repetitions. Raises MemoryInvalid."""
    text, location = cleaned(draft.text), cleaned(draft.location)
    if not normalised(text):
        raise MemoryInvalid("text", "A memory needs a text.")
    if len(text) > TEXT_CHARS:
        raise MemoryInvalid("text", f"A memory has at most {TEXT_CHARS} characters.")
    if len(location) > LOCATION_CHARS:
        raise MemoryInvalid("location", f"A place has at most {LOCATION_CHARS} characters.")
    return Draft(
        text=text,
        kind=draft.kind,
        topics=_items("topics", draft.topics),
        event_time=draft.event_time,
        participants=_items("participants", draft.participants),
        location=location,
        source=draft.source,
        origin=draft.origin,
    )


def content_hash(draft: Draft) -> str:
    """Return the SHA-256 of what makes two memories of one owner the same, in hexadecimal.

    The kind, the normalised text, the time, the people (in any order and case), and the place. Not the topics.
    """
    people = sorted({normalised(name) for name in draft.participants})
    time, place = draft.event_time, normalised(draft.location)
    stretch = [time.start.astimezone(UTC).isoformat("T", "seconds"), time.precision] if time else []
    what = json.dumps([draft.kind, normalised(draft.text), stretch, people, place])
    return hashlib.sha256(what.encode()).hexdigest()


def merged(first: Collection[str], second: Collection[str]) -> tuple[str, ...]:
    """Return the labels of both, the first ones first, each once whatever its case."""
    kept: dict[str, str] = {}
    for item in (*first, *second):
        kept.setdefault(item.casefold(), item)
    return tuple(kept.values())


def happened(draft: Draft) -> float:
    """Return when it happens, in seconds since 1970, to sort by; what has no time stands before everything."""
    return draft.event_time.start.timestamp() if draft.event_time else -math.inf


def _items(field: str, items: Collection[str]) -> tuple[str, ...]:
    found = tuple(item for item in merged([cleaned(item) for item in items], ()) if item)
    if len(found) > LIST_ITEMS:
        raise MemoryInvalid(field, f"At most {LIST_ITEMS} {field} can be given.")
    if any(len(item) > ITEM_CHARS for item in found):
        raise MemoryInvalid(field, f"Each of the {field} has at most {ITEM_CHARS} characters.")
    return found


class MemoryStore(Protocol):
    """The memories of one owner. Bound to the owner: nothing here takes one, and foreign ids are unknown ids.

    Each method is one transaction and safe from several processes at once. Drafts are `checked` by every write. Of the
    memories that hold, no two have the same content_hash. Every method may raise MemoryUnavailable. A store that heeds
    the person's switch has nothing while it is off, and every write of it raises MemoryOff.
    """

    async def add(self, draft: Draft) -> Written:
        """Store a draft. If a memory that holds says the same, that one gets the draft's topics and nothing is created.

        A tombstone does not stand in the way: whether something may come back is for policies.py. Above MOST_MEMORIES
        the least valuable go, with what they superseded, and are named: superseded ones first, then the longest unused,
        then the longest unchanged; never the one just added. An eviction leaves no tombstone. Raises MemoryInvalid.
        """
        ...

    async def update(self, id: str, draft: Draft, *, version: int | None = None) -> Memory:
        """Put this in the place of all that the memory says; id and created_at stay. version: as it was read, None =
        whatever it is.

        Raises MemoryInvalid, MemoryMissing (a superseded one too: it is history), VersionConflict, MemoryDuplicate.
        """
        ...

    async def supersede(self, id: str, draft: Draft, *, version: int | None = None) -> Written:
        """Store a draft that holds from now on in place of the memory, which becomes history.

        If another memory that holds says the same as the draft, that one takes the place. If the memory says it itself,
        only its topics change. Raises MemoryInvalid, MemoryMissing, VersionConflict.
        """
        ...

    async def delete(self, id: str, *, by: Source) -> bool:
        """Remove the memory and all that it superseded, for good; each leaves a tombstone. False = there is none."""
        ...

    async def withdraw(self, id: str, *, by: Source) -> Memory | None:
        """Remove this memory alone, with a tombstone, and let what it superseded last hold again; return that, None =
        it superseded nothing. Of what another memory says by now nothing holds again. Raises MemoryMissing (a
        superseded one too).
        """
        ...

    async def restore(self, memories: Sequence[Memory]) -> None:
        """Put back what was deleted, a memory with its history, as it was, and remove its tombstones.

        Raises MemoryDuplicate if another memory says by now what one of them says that holds; then nothing is put back.
        Ids that are there already are left as they are.
        """
        ...

    async def mute(self, id: str, muted: bool) -> Memory:
        """Keep a memory from models, or show it to them again. Changes no version. Raises MemoryMissing."""
        ...

    async def clear(self, *, by: Source) -> int:
        """Remove every memory of the owner, history too, each leaving a tombstone. Return how many were removed."""
        ...

    async def read(self, limit: int = 0, *, muted: bool = False) -> tuple[Memory, ...]:
        """Return what holds, the latest updated_at first, then created_at, then id. limit: 0 or less = all. muted: with
        those that are."""
        ...

    async def search(self, query: Query) -> tuple[Found, ...]:
        """Return what holds, is not muted and fits the query, best first; of equals those with the later event_time,
        without one last, then the later updated_at, then by id. A blank query finds nothing."""
        ...

    async def history(self, id: str) -> tuple[Memory, ...]:
        """Return the memory and all that it superseded, newest first. Raises MemoryMissing."""
        ...

    async def export(self) -> tuple[Memory, ...]:
        """Return every memory, history too, by created_at, then id."""
        ...

    async def buried(self, hashes: Collection[str]) -> tuple[Tombstone, ...]:
        """Return the tombstones with one of these hashes, the latest first."""
        ...

    async def used(self, ids: Collection[str]) -> None:
        """Note that these were put before a model just now. Changes no version; unknown ids are left out."""
        ...
