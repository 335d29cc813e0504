"""Rolling summaries as a run sees them: one text that stands for the events of a scope up to a boundary.

What a summary covers and what its boundary hides are the same: `covers` is the one predicate. A boundary only moves
forward along a chain, only over events that the summarising model was given, and only with new text.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from agents.runtime.events import Stored
from agents.runtime.knowledge import Citation
from agents.runtime.scopes import sees


class Source(StrEnum):
    """Who asks for a summary."""

    BACKGROUND = "background"  # a job, after qualifying events
    RUN = "run"  # between two steps of a run
    CALL = "call"  # before a call whose request has grown too large
    MANUAL = "manual"  # a person: "Summarise now"
    ARCHIVE = "archive"  # the conversation was archived


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """The last event that is covered. fork: the fork it was stored in. at: its time; comparisons go by position."""

    position: int
    fork: int
    event_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A covering text. text: never empty. base: id of the summary it was built from, "" = of raw events alone.

    filter_key: the scope it covers, "" = the whole session. read_from: position of the first event that a run must
    read beside this text: the beginning of the run in which the boundary lies, so that a split turn can be restored.
    citations: those that the text names as `[[c:ID]]`. tokens: estimate of the text. covered_tokens, covered_events:
    of all it stands for, its base's included. report: see summary/report.py.
    """

    id: str
    text: str
    filter_key: str
    boundary: Boundary
    read_from: int
    made_at: datetime
    base: str = ""
    summarizer: str = ""
    model: str = ""
    source: Source = Source.BACKGROUND
    citations: tuple[Citation, ...] = ()
    tokens: int = 0
    covered_tokens: int = 0
    covered_events: int = 0
    report: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What was made of the beginning of a text that fits no request of the writer, until the rest is read too.

    base: id of the summary that it goes on from, "" = none. read_chars, read_sha256: the beginning that it stands for.
    """

    base: str
    read_chars: int
    read_sha256: str
    text: str


def covers(filter_key: str, boundary: Boundary | None, stored: Stored) -> bool:
    """Return whether a summary of this scope, up to this boundary, covers the event, and so hides it."""
    return boundary is not None and stored.position <= boundary.position and sees(filter_key, stored.origin.filter_key)


class SummaryStore(Protocol):
    """The summaries of one session as one chain of forks sees them. Bound to owner, session and head fork."""

    async def newest(self, filter_keys: Sequence[str]) -> Mapping[str, Summary]:
        """Return the newest summary of each scope whose boundary lies on the chain; scopes without one are left out.

        One statement. Raises StorageUnavailable.
        """
        ...

    def hold(self, filter_key: str, *, wait_s: float) -> AbstractAsyncContextManager[bool]:
        """Serialise the making of one scope's summaries, over all processes; False if it is held after wait_s."""
        ...

    async def advance(self, summary: Summary) -> bool:
        """Store a summary, text and boundary in one write, if its `base` is still the newest on the chain.

        False, and nothing stored, if another came first or the boundary does not lie beyond the base's.
        """
        ...

    async def draft(self, filter_key: str) -> Draft | None:
        """Return what is kept of a long text that is being read for this scope. Raises StorageUnavailable."""
        ...

    async def keep_draft(self, filter_key: str, draft: Draft | None) -> None:
        """Keep this in place of what is kept; None = nothing. Raises StorageUnavailable."""
        ...
