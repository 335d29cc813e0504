"""Where is searched, with what vector, and what comes back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from django.db.models import QuerySet

from agents.models.search_entry import Kind

Groups: TypeAlias = Sequence[int] | QuerySet[Any, int] | None
Line: TypeAlias = tuple[int, tuple[tuple[int, int], ...]]  # group, ((fork, last position of an event in it), ...)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """A question as one embedder sees it. model: agents.runtime.embedding.model_id. values: of length 1."""

    model: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One text that was found. score: comparable within one search.

    A passage is the row `ref` of its table, given once though several entries may be of it. Of an event each entry is
    given: `ref` is the event's position in the session `group_id`, `offset` the byte at which the entry begins.
    position: order in the group; neighbours are one apart.
    """

    ref: int
    kind: str
    group_id: int
    position: int
    offset: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where to search. groups: None = all, () = nowhere; a query set of keys is asked in the search's own statement.

    created: from, and up to but without. Of events only: line: of this conversation what stands on the chain of forks,
    of others everything. without: conversations that are left out, keys or a query set.
    """

    owner_id: int
    kinds: tuple[Kind, ...]
    groups: Groups = None
    created: tuple[datetime, datetime] | None = None
    line: Line | None = None
    without: Groups = None

    @property
    def is_empty(self) -> bool:
        return not self.kinds or (isinstance(self.groups, Sequence) and not self.groups)

    @property
    def is_whole(self) -> bool:
        """Whether counts of all that the owner has serve: what `line` and `without` leave out is little."""
        return self.groups is None and self.created is None

    @property
    def is_one_document(self) -> bool:
        return Kind.EVENT not in self.kinds and isinstance(self.groups, Sequence) and len(self.groups) == 1
