"""AG-UI over HTTP: runs as server-sent events, history, cancel, capabilities. docs/protocol.md describes them.

The same rules as over WebSocket: a run belongs to the server, and closing the connection stops nothing. No view keeps
a database connection while it streams: whoever is there is found out in a thread of its own, which gives its
connection back, and everything else goes through agents.stores.
"""

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import orjson
from channels.db import database_sync_to_async
from django.conf import settings
from django.db import connections
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt

from agents import wiring
from agents.live import registry
from agents.live.feed import Attachment
from agents.protocols.agui import control, decode, history, runinput
from agents.protocols.agui.capabilities import capabilities as describe
from agents.runtime.errors import Rejected, RunError
from agents.stores import sessions
from workbench import access
from workbench.access import Identity, Verb
from workbench.middleware import new_reference
from workbench.sinks import StreamSink
from workbench.version import version

logger = logging.getLogger(__name__)

# One table: what a code is over HTTP. Anything else is 400.
STATUS = {
    "unauthorized": 401,
    "forbidden": 403,
    "thread_not_found": 404,
    "message_not_found": 404,
    "agent_unavailable": 404,
    "method_not_allowed": 405,
    "run_conflict": 409,
    "run_id_reused": 409,
    "unknown_tool_call": 409,
    "tool_results_incomplete": 409,
    "tool_result_duplicate": 409,
    "payload_too_large": 413,
    "rate_limited": 429,
    "internal": 500,
    "storage_unavailable": 503,
    "shutting_down": 503,
}
RETRY_AFTER_S = {"rate_limited": 2, "storage_unavailable": 5, "shutting_down": 2}

View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def door(method: str, verb: Verb) -> Callable[[View], View]:
    """Wrap a view `(request, who, ...)`: one method, who is there, may they, errors as JSON, CORS for tokens."""

    def wrap(view: View) -> View:
        @csrf_exempt  # access.of_request asks for the CSRF header itself, unless there is a token
        @functools.wraps(view)
        async def wrapped(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
            if request.method == "OPTIONS":
                return _cors(HttpResponse(status=204, headers={"Allow": f"{method}, OPTIONS"}), method)
            response = await _answer(view, request, (method, verb), kwargs)
            response.headers["Cache-Control"] = "no-store"
            # Without a cookie the browser has nothing of ours to give away; with one, no other origin may read.
            return _cors(response, method) if "Authorization" in request.headers else response

        return wrapped

    return wrap


@door("POST", Verb.RUN)
async def run(request: HttpRequest, who: Identity, agent: str = "") -> HttpResponseBase:
    """Start a run and stream it to its end; a run that was started by an earlier request is streamed from its start."""
    body = await _body(request)
    asked = await _decoded(body, functools.partial(runinput.run_input, owner_id=who.owner_id, origin=who.origin), agent)
    started = await registry.current().start(asked)
    sink = StreamSink()
    attachment = await registry.current().attach(
        owner_id=who.owner_id, thread_id=started.thread_id, sink=sink, run_id=started.run_id, after=0
    )
    if sink.lost:
        attachment.detach()
        raise Rejected("run_id_reused", "This run is over, and its events are gone. Its messages are in the history.")
    await _let_go_of_database()
    return _stream(_following(sink, attachment))


@door("POST", Verb.READ)
async def conversation(request: HttpRequest, who: Identity) -> HttpResponseBase:
    """Return a thread's newest messages, or those before a position: as a closed run, or as JSON if that is asked."""
    asked = decode.history_request(await _body(request))
    thread_id = asked.thread_id
    found = await sessions.history(who.owner_id, thread_id, limit=asked.limit, before=asked.before)
    # A run that goes on is followed by attaching to it; here it would be half a message.
    stored = history.before_run(found.stored, found.running) if found.running else found.stored
    if not request.accepts("text/event-stream"):
        before = found.stored[0].position if found.truncated and found.stored else None
        return _json(history.page(thread_id, stored, truncated=found.truncated, before=before))
    frames = history.snapshot_run(thread_id, f"history-{new_reference()}", stored, found.truncated, found.session.state)
    return HttpResponse(b"".join(b"data: %b\n\n" % data for data in frames), content_type="text/event-stream")


@door("POST", Verb.RUN)
async def cancel(request: HttpRequest, who: Identity) -> HttpResponseBase:
    """Ask a run to stop. 200 means asked, not stopped: the run ends with its own terminal event."""
    frame = decode.cancel_request(await _body(request))
    asked = await registry.current().cancel(
        owner_id=who.owner_id, thread_id=frame.thread_id, run_id=frame.run_id, call_id=frame.call_id
    )
    if not asked:
        raise Rejected("thread_not_found", "There is no such run or call, it is over, or it was told to stop before.")
    answer = control.cancel_asked(thread_id=frame.thread_id, run_id=frame.run_id)
    return HttpResponse(answer, content_type="application/json")


@door("GET", Verb.READ)
async def capabilities(request: HttpRequest, who: Identity) -> HttpResponseBase:
    """Return what this server can do."""
    models = [model.info for model in wiring.models()]
    agents = registry.current().wiring.runner.agent_names
    names = tuple(model.name for model in models)
    return _json(describe(version=version(), agents=agents, models=names, images=models[0].images))


# --- around the views


async def _answer(view: View, request: HttpRequest, rule: tuple[str, Verb], kwargs: Any) -> HttpResponseBase:
    method, verb = rule
    try:
        if request.method != method:
            raise Rejected("method_not_allowed", f"Use {method}.")
        who = await access.of_request(request)
        if not access.may(who, verb):
            raise access.Forbidden
        return await view(request, who, **kwargs)
    except access.Unauthorized:
        return _error("unauthorized", "Sign in, or send a valid token.")
    except access.Forbidden:
        return _error("forbidden", "This is not allowed: a wrong CSRF token, or a token that may only read.")
    except (Rejected, RunError) as error:
        return _error(error.code, error.message)
    except Exception:  # the edge
        reference = request.META.get("workbench.reference", "")
        logger.exception("request failed: path=%s reference=%s", request.path, reference)
        return _error("internal", f"Something went wrong here. Reference: {reference}")


async def _body(request: HttpRequest) -> bytes:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if int(request.headers.get("Content-Length") or 0) > limit:
        raise Rejected("payload_too_large", f"At most {limit} bytes.")
    # the body lies in memory or in a temporary file already; reading a large one is not for the loop
    body = await asyncio.to_thread(request.read, limit + 1)
    if len(body) > limit:
        raise Rejected("payload_too_large", f"At most {limit} bytes.")
    return body


async def _decoded(body: bytes, read: Callable[..., Any], agent: str) -> Any:
    if len(body) > 256 * 1024:
        return await asyncio.to_thread(read, body, agent=agent)
    return read(body, agent=agent)


async def _following(sink: StreamSink, attachment: Attachment) -> AsyncIterator[bytes]:
    try:
        async for part in sink.body():
            yield part
    finally:
        attachment.detach()


async def _let_go_of_database() -> None:
    """Give this request's own connection back before the stream: it would be kept for as long as somebody listens."""
    await database_sync_to_async(connections.close_all)()


def _stream(body: AsyncIterator[bytes]) -> StreamingHttpResponse:
    response = StreamingHttpResponse(body, content_type="text/event-stream")
    response.headers["X-Accel-Buffering"] = "no"
    return response


def _json(value: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(orjson.dumps(value), status=status, content_type="application/json")


def _error(code: str, message: str) -> HttpResponse:
    response = _json({"code": code, "message": message}, STATUS.get(code, 400))
    if code in RETRY_AFTER_S:
        response.headers["Retry-After"] = str(RETRY_AFTER_S[code])
    if code == "unauthorized":
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _cors(response: HttpResponseBase, method: str) -> HttpResponseBase:
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Access-Control-Allow-Methods"] = method
    response.headers["Access-Control-Allow-Headers"] = "authorization, content-type, accept"
    response.headers["Access-Control-Max-Age"] = "600"
    return response
