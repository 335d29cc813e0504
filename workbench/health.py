"""Is this process alive, and could it serve? For load balancers and the launcher; neither needs signing in.

/healthz answers while the event loop turns. /readyz asks the database, Valkey and the schema, each for at most 2 s.
"""

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import redis.asyncio
import redis.exceptions
from channels.db import database_sync_to_async
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from workbench import prepare

PATIENCE_S = 2.0


@never_cache
@require_safe
async def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 "ok"."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
async def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when database, Valkey and schema are right, else 503; the body names what is not, without details."""
    checks: dict[str, Callable[[], Awaitable[bool]]] = {"database": _database, "valkey": _valkey}
    said = dict(zip(checks, await asyncio.gather(*(_within(check()) for check in checks.values())), strict=True))
    said["migrations"] = said["database"] and await _within(_migrations())
    return JsonResponse(said, status=200 if all(said.values()) else 503)


async def _within(check: Awaitable[bool]) -> bool:
    try:
        return await asyncio.wait_for(check, PATIENCE_S)
    except (TimeoutError, OSError, DatabaseError, psycopg.Error, redis.exceptions.RedisError):
        return False


@database_sync_to_async
def _database() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return bool(cursor.fetchone())


async def _valkey() -> bool:
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=PATIENCE_S)
    async with client:
        return bool(await client.ping())


@database_sync_to_async
def _migrations() -> bool:
    return not prepare.pending_migrations()
