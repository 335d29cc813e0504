"""How many files a person sends at once: counted in Valkey for all web processes, and in each process for itself.

A place in Valkey that nobody gives back, because its process died, is free again after LEASE_S. While Valkey is away
each process keeps to the limit for itself.
"""

import contextlib
import logging
import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from functools import cache

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

LEASE_S = 300  # longer than it takes to parse and store one file
PATIENCE_S = 1.0
AWAY = (redis.RedisError, OSError)

# KEYS[1]: a sorted set of places by when each is free again. ARGV: most, lease in seconds, name of the new place.
_TAKE = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
"""

_here: Counter[int] = Counter()  # by owner; of this process
_lock = threading.Lock()

logger = logging.getLogger(__name__)


class TooMany(Exception):
    """The owner sends as many files as allowed already."""


@contextlib.contextmanager
def place(owner_id: int) -> Iterator[None]:
    """Hold one of the owner's UPLOADS_PER_OWNER places for the time of the block. Raises TooMany."""
    with _place_here(owner_id):
        name = secrets.token_hex(8)
        if not _taken(owner_id, name):
            raise TooMany
        try:
            yield
        finally:
            with contextlib.suppress(*AWAY):
                _valkey().zrem(_key(owner_id), name)


@contextlib.contextmanager
def _place_here(owner_id: int) -> Iterator[None]:
    with _lock:
        if _here[owner_id] >= settings.UPLOADS_PER_OWNER:
            raise TooMany
        _here[owner_id] += 1
    try:
        yield
    finally:
        with _lock:
            _here[owner_id] -= 1
            if not _here[owner_id]:
                del _here[owner_id]


def _taken(owner_id: int, name: str) -> bool:
    try:
        return bool(_valkey().eval(_TAKE, 1, _key(owner_id), settings.UPLOADS_PER_OWNER, LEASE_S, name))
    except AWAY as error:
        logger.warning("uploads are counted in this process alone: %s", type(error).__name__)
        return True


def _key(owner_id: int) -> str:
    return f"workbench:uploads:{owner_id}"


def _valkey() -> redis.Redis:
    return _client(settings.REDIS_URL)


@cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url, socket_connect_timeout=PATIENCE_S, socket_timeout=PATIENCE_S, retry=Retry(NoBackoff(), 0)
    )
