"""Who is at the door, and what they may do.

A browser comes with the session cookie, and only from our own origin; another frontend comes with an API token from
anywhere. Whose rows a request sees is decided further down: every query names its owner.
"""

import asyncio
import http.cookies
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import urlsplit

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib import auth
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host
from django.middleware.csrf import CsrfViewMiddleware

from agents.runtime.errors import StorageUnavailable
from workbench import tokens
from workbench.models import ApiToken

BEARER = "bearer."  # subprotocol that carries a token, for browsers cannot set a header on a WebSocket
PATIENCE_S = 10.0
_Answer = TypeVar("_Answer")
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class Verb(StrEnum):
    RUN = "run"  # start, steer and stop runs
    READ = "read"  # follow runs, read history


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Somebody who came in. by_token: an API token, which is limited by its scope; else a signed-in browser."""

    owner_id: int
    by_token: bool = False
    scope: str = ""

    @property
    def origin(self) -> str:
        """What a run's `origin` says."""
        return "api" if self.by_token else "page"


class Unauthorized(Exception):
    """Sign in, or send a valid token."""


class Forbidden(Exception):
    """This is not allowed."""


def may(who: Identity, verb: Verb) -> bool:
    """Return whether somebody may do this kind of thing at all, to what is theirs."""
    return not who.by_token or who.scope == ApiToken.Scope.RUN or verb is Verb.READ


async def of_socket(scope: Mapping[str, Any]) -> Identity:
    """Return who opens a WebSocket.

    Raises Unauthorized, Forbidden for a cookie from another origin, StorageUnavailable.
    """
    headers = dict(scope["headers"])
    if token := _socket_token(headers, scope.get("subprotocols", ())):
        return await _by_token(token)
    if not same_origin(headers):
        raise Forbidden
    cookie = headers.get(b"cookie", b"").decode("latin-1")
    return await _by_cookie(_session_key(cookie))


async def of_request(request: HttpRequest) -> Identity:
    """Return who sends an HTTP request. A cookie needs the CSRF header when the method changes something.

    Raises Unauthorized, Forbidden, StorageUnavailable.
    """
    if (header := request.headers.get("Authorization")) is not None:
        return await _by_token(_bearer(header))
    who = await _by_cookie(request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""))
    if _Csrf(_no_response).refused(request):
        raise Forbidden
    return who


def same_origin(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether Origin names the host that was asked, and that host is ours. No Origin is not the same.

    The scheme is left out on purpose: behind a proxy that speaks TLS, we only see plain HTTP.
    """
    host = headers.get(b"host", b"").decode("latin-1").lower()
    try:
        origin = urlsplit(headers.get(b"origin", b"").decode("latin-1").lower())
        port = origin.port or _DEFAULT_PORTS.get(origin.scheme)
    except ValueError:
        return False
    if origin.scheme not in ("http", "https") or not origin.hostname:
        return False
    domain, asked_port = split_domain_port(host)
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS or (".localhost", "127.0.0.1", "[::1]")):
        return False
    name = f"[{origin.hostname}]" if ":" in origin.hostname else origin.hostname
    return domain == name.rstrip(".") and int(asked_port or _DEFAULT_PORTS[origin.scheme]) == port


def _socket_token(headers: Mapping[bytes, bytes], subprotocols: Iterable[str]) -> str:
    """Return the token a socket was opened with, "" if it has none. Raises Unauthorized for a header we cannot read."""
    if (header := headers.get(b"authorization")) is not None:
        return _bearer(header.decode("latin-1"))
    return next((name[len(BEARER) :] for name in subprotocols if name.startswith(BEARER)), "")


def _bearer(header: str) -> str:
    kind, _, token = header.strip().partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Unauthorized
    return token.strip()


async def _by_token(token: str) -> Identity:
    row = await _asked(tokens.find_token, token)
    if row is None:
        raise Unauthorized
    return Identity(owner_id=row.owner_id, by_token=True, scope=row.scope)


async def _by_cookie(session_key: str) -> Identity:
    owner_id = await _asked(_signed_in, session_key) if session_key else None
    if owner_id is None:
        raise Unauthorized
    return Identity(owner_id=owner_id)


async def _asked(question: Callable[[str], _Answer], about: str) -> _Answer:
    """Ask the database in a thread. Raises StorageUnavailable, also if it does not answer within 10 s."""
    ask: Callable[[str], Awaitable[_Answer]] = database_sync_to_async(question, thread_sensitive=False)
    asking = asyncio.ensure_future(ask(about))
    # asgiref waits for its thread when the task is cancelled; a thread that hangs is left behind instead
    await asyncio.wait((asking,), timeout=PATIENCE_S)
    if not asking.done():
        asking.add_done_callback(_looked_at)
        raise StorageUnavailable
    try:
        return asking.result()
    except (OperationalError, InterfaceError) as e:
        raise StorageUnavailable from e


def _looked_at(asking: "asyncio.Future[Any]") -> None:
    """Look at the exception, so that asyncio does not complain: nobody waits for this answer any more."""
    if not asking.cancelled():
        asking.exception()


def _signed_in(session_key: str) -> int | None:
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = auth.get_user(request)
    return user.pk if user.is_authenticated and user.is_active else None


def _session_key(cookie: str) -> str:
    try:
        found = http.cookies.SimpleCookie(cookie).get(settings.SESSION_COOKIE_NAME)
    except http.cookies.CookieError:
        return ""
    return found.value if found else ""


class _Csrf(CsrfViewMiddleware):
    """Django's own check, for views that are exempt from it because a token needs none."""

    def refused(self, request: HttpRequest) -> bool:
        self.process_request(request)
        return self.process_view(request, _checked, (), {}) is not None

    def _reject(self, request: HttpRequest, reason: str) -> str:
        return reason


def _no_response(request: HttpRequest) -> Any:
    raise AssertionError("only the check of the middleware is used")


def _checked(request: HttpRequest) -> Any:
    """A view that is not exempt."""
