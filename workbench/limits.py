"""What one owner may use of this process at once: sockets, and frames in a second."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class OwnerLimits:
    """Counts for every owner. Belongs to one event loop. An installation of n processes allows n times as much.

    sockets: at once. frames_per_second: on the long run; twice as many may come in one burst. now: monotonic seconds.
    """

    def __init__(self, *, sockets: int, frames_per_second: int, now: Callable[[], float]) -> None:
        self._sockets = sockets
        self._rate = frames_per_second
        self._now = now
        self._open: Counter[int] = Counter()
        self._buckets: dict[int, _Bucket] = {}

    def enter(self, owner_id: int) -> bool:
        """Count one more socket of the owner, or return False if there are too many. Each True needs a `leave`."""
        if self._open[owner_id] >= self._sockets:
            return False
        self._open[owner_id] += 1
        return True

    def leave(self, owner_id: int) -> None:
        self._open[owner_id] -= 1
        if self._open[owner_id] <= 0:
            del self._open[owner_id]
            self._buckets.pop(owner_id, None)

    def take(self, owner_id: int) -> bool:
        """Use up one frame of the owner's allowance; False if there is none left now."""
        now = self._now()
        burst = 2.0 * self._rate
        bucket = self._buckets.setdefault(owner_id, _Bucket(burst, now))
        bucket.left = min(burst, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.left < 1:
            return False
        bucket.left -= 1
        return True
