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


class RecallScope(StrEnum):
    """Where to search. The two of the current conversation see the visible chain of forks only, up to the run's own
    question."""

    CURRENT_HIDDEN = "current_hidden"  # what a summary hides from the model; nothing without a summary
    CURRENT_SESSION = "current_session"
    OTHER_SESSIONS = "other_sessions"
    ALL_SESSIONS = "all_sessions"  # current_hidden and other_sessions


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stored text, or a part of it. thread_id, title: of its conversation. position: of its event, from 1.

    message_id: what the page knows it by, a message's id or a result's call id. offset: byte of the content at which
    `text` begins; content_bytes: of the whole. citations: those that `text` names as `[[c:ID]]`.
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
    content_bytes: int = 0
    tool_call_id: str = ""
    tool_name: str = ""
    citations: tuple[Citation, ...] = ()

    @property
    def is_whole(self) -> bool:
        return self.offset == 0 and len(self.text.encode()) >= self.content_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """One piece that a search found. score: comparable within one search, 0 for a neighbour of a hit.

    scope: current_hidden or current_session for the run's own conversation, else other_sessions.
    """

    piece: Piece
    scope: RecallScope
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What a load returns: the anchor with its neighbours, in order. anchor: its index.

    summary_id, summary_text: of the summary that covers the anchor, "" = none does.
    """

    pieces: tuple[Piece, ...]
    anchor: int
    summary_id: str = ""
    summary_text: str = ""


class EventMissing(Exception):
    """There is no such event for this person: unknown and foreign alike. The message is for the model."""


class RecallFailed(Exception):
    """The past cannot be searched now. The message is for the model."""


class Recall(Protocol):
    """The conversations of one owner, as seen from one run. Bound to both; a tool cannot reach past it."""

    async def search(
        self, query: str, *, scope: RecallScope, limit: int = 10, dense: bool = False, min_score: float = 0.0
    ) -> tuple[Recollection, ...]:
        """Return at most `limit` hits, best first, then what else fits into TURNS pieces: the hits' neighbours and
        what adds to the parts of the query that the hits cover least. Each piece once.

        A blank query finds nothing. dense: by vectors alone. min_score: of hits, 0 to 1, by vectors only. Two
        statements. Raises RecallFailed.
        """
        ...

    async def load(
        self, *, thread_id: str = "", event_id: str = "", tool_call_id: str = "", before: int, after: int
    ) -> Window:
        """Return the event with its neighbours of the same chain, whole, oldest first.

        thread_id: "" = this conversation; of another one, its newest chain. tool_call_id: where to look, newest first,
        if event_id is empty or not found. Neighbours are counted in texts: calls and empty events are passed over.
        Raises EventMissing, RecallFailed.
        """
        ...


class NoRecall:
    """A scope without a past."""

    async def search(
        self, query: str, *, scope: RecallScope, limit: int = 10, dense: bool = False, min_score: float = 0.0
    ) -> tuple[Recollection, ...]:
        return ()

    async def load(
        self, *, thread_id: str = "", event_id: str = "", tool_call_id: str = "", before: int, after: int
    ) -> Window:
        raise EventMissing("There are no earlier events.")


NO_RECALL: Final = NoRecall()
