"""/metrics for Prometheus: figures, never what people write. Not there unless METRICS_TOKEN is set, and only for it.

The address of whoever asks is no ground for letting anybody in: behind a proxy on the same machine everybody comes from
127.0.0.1.
"""

import asyncio
import secrets

from django.conf import settings
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents import wiring
from agents.metrics.backlog import Backlog, waiting
from agents.stores.db import in_thread

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PATIENCE_S = 2.0


@never_cache
@require_safe
async def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with the figures of this installation; without those of jobs while the database is away.

    404 while there is no token, 401 without the right one.
    """
    if not settings.METRICS_TOKEN:
        raise Http404
    given = request.headers.get("Authorization", "")
    if not secrets.compare_digest(given.encode(), f"Bearer {settings.METRICS_TOKEN}".encode()):
        return HttpResponse(
            "unauthorized\n", status=401, content_type="text/plain", headers={"WWW-Authenticate": "Bearer"}
        )
    return HttpResponse(await in_thread(wiring.exposition)(await _waiting()), content_type=CONTENT_TYPE)


async def _waiting() -> tuple[Backlog, ...]:
    try:
        return await asyncio.wait_for(in_thread(waiting)(), PATIENCE_S)
    except (TimeoutError, OSError, DatabaseError):
        return ()
