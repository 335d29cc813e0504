"""What was said and done in conversations, as a run may search and load it: shapes, scopes and the Recall protocol.

What is searched are *pieces* (pieces.py): a message or a tool's result, or a part of a long one.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from agents.runtime.knowledge import Citation

TURNS: Final = 26  # pieces of one search, neighbours included
TURN_TOKENS: Final = 1_600  # of them together, as the model reads them
MOST_BYTES: Final = 65_536  # of one load
ID_CHARS: Final = 128  # of an id that is told back; no stored one is longer


class RecallScope(StrEnum):
    """Where to search: visible chains of forks only, and of the current conversation never what the person said to
    this run."""

    CURRENT_HIDDEN = (
        "current_hidden"  # what a summary hides from the model, also of this run; nothing without a summary
    )
    CURRENT_SESSION = "current_session"  # what came before this run
    OTHER_SESSIONS = "other_sessions"
    ALL_SESSIONS = "all_sessions"  # current_hidden and other_sessions


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stored text, or a part of it. thread_id, title: of its conversation. position: of its event, from 1.

    message_id: what the page knows it by, a message's id or a result's call id. offset, start: byte and character of
    the content (pieces.content_of) at which `text` begins; content_bytes: of the whole. citations: those that the
    content names as `[[c:ID]]`.
    """

    thread_id: str
    title: str
    event_id: str
    message_id: str
    position: int
    role: Role
    at: datetime
    text: str
    offset: int = 0
    start: int = 0
    content_bytes: int = 0
    tool_call_id: str = ""
    tool_name: str = ""
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """One piece that a search found. score: of a hit, above 0 and comparable within one search; 0 for what stands
    around hits and what adds to them.

    scope: current_hidden or current_session for the run's own conversation, else other_sessions.
    """

    piece: Piece
    scope: RecallScope
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What a load returns: the anchor with its neighbours, in order. anchor: its index.

    summary_id, summary_text: of the summary that covers the anchor, "" = none does. replaced: the conversation does not
    show the anchor any more; it was edited away, or answered anew.
    """

    pieces: tuple[Piece, ...]
    anchor: int
    summary_id: str = ""
    summary_text: str = ""
    replaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """Which event to load: the one of this id, else, where that is empty or not found, the newest result of this call,
    else the message of this id. thread_id: "" = this conversation."""

    thread_id: str = ""
    event_id: str = ""
    call_id: str = ""
    message_id: str = ""

    @property
    def named(self) -> str:
        return self.event_id or self.call_id or self.message_id


class EventMissing(Exception):
    """There is no such event for this person: unknown and foreign alike. The message is for the model."""


class RecallFailed(Exception):
    """The past cannot be searched now."""


def missing(named: str) -> EventMissing:
    """Return what is said of an event that is not there, or is somebody else's."""
    return EventMissing(
        f'There is no event "{named[:ID_CHARS]}". An event_id is the one that session_search gives with a hit, or a '
        "placeholder, exactly as it stands there (not the number of a turn); the id in a record's marker does too."
    )


class Recall(Protocol):
    """The conversations of one owner, as seen from one run. Bound to both; a tool cannot reach past it."""

    async def search(
        self, query: str, *, scope: RecallScope, limit: int = 10, dense: bool = False, min_score: float = 0.0
    ) -> tuple[Recollection, ...]:
        """Return at most `limit` hits, best first, then what else fits into TURNS pieces: the hits' neighbours and
        what adds to the parts of the query that the hits cover least. Each piece once.

        A blank query finds nothing. dense: by vectors alone, where there are any. min_score: the least likeness of
        vectors, 0 to 1, of a hit of a dense search. Three statements. Raises RecallFailed.
        """
        ...

    async def load(self, anchor: Anchor, *, before: int, after: int) -> Window:
        """Return the event with its neighbours of the same line, whole, oldest first.

        Neighbours are counted in texts: calls and empty events are passed over. Of this conversation the visible chain
        is looked at, of another one its newest line, else the one the event stands on. Two statements. Raises
        EventMissing, for unknown and foreign alike, and RecallFailed.
        """
        ...


class NoRecall:
    """A scope without a past."""

    async def search(
        self, query: str, *, scope: RecallScope, limit: int = 10, dense: bool = False, min_score: float = 0.0
    ) -> tuple[Recollection, ...]:
        return ()

    async def load(self, anchor: Anchor, *, before: int, after: int) -> Window:
        raise missing(anchor.named)


NO_RECALL: Final = NoRecall()
