"""How many entries an owner has and how many hold a common word, kept for a while."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Final

from agents.models.search_entry import Kind
from agents.search.scope import Scope

KEEP_S: Final = 600.0
COMMON_FROM: Final = 1_000  # what stands in fewer entries is counted each time
COMMON_WORDS, COMMON_OWNERS = 400, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """n: all entries of a scope, None = not counted. words: how many hold a common word."""

    n: float | None = None
    words: Mapping[str, int] = field(default_factory=dict)


class Counts:
    """How many entries an owner has and how many hold a common word, kept for KEEP_S: a common word is counted once
    and not with each question. Only idf depends on it, and there little."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[int, tuple[Kind, ...]], tuple[float, Counted]] = OrderedDict()

    def get(self, scope: Scope) -> Counted:
        if not scope.is_whole:
            return Counted()
        with self._lock:
            until, counted = self._kept.get((scope.owner_id, scope.kinds), (0.0, Counted()))
        return counted if monotonic() < until else Counted()

    def put(self, scope: Scope, n: float, words: Mapping[str, int]) -> None:
        if not scope.is_whole or n < COMMON_FROM:
            return
        key, now = (scope.owner_id, scope.kinds), monotonic()
        common = [(word, count) for word, count in words.items() if count >= COMMON_FROM]
        with self._lock:
            until, counted = self._kept.pop(key, (0.0, Counted()))
            if now >= until:
                until, counted = now + KEEP_S, Counted()
            self._kept[key] = until, Counted(n=n, words=dict([*counted.words.items(), *common][-COMMON_WORDS:]))
            if len(self._kept) > COMMON_OWNERS:
                self._kept.popitem(last=False)


counts: Final = Counts()
