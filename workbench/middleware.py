"""What every request passes through. All of it is async-capable; a sync middleware would cost a thread per request."""

import asyncio
import secrets
import string
from collections.abc import Awaitable, Callable
from typing import Any, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

from agents.runtime import logcontext

Handler = Callable[[HttpRequest], Any]
REFERENCE_ALPHABET = string.digits + "abcdefghjkmnpqrstvwxyz"  # nothing that is misread over the telephone


def new_reference() -> str:
    """Return a short id that a person can read out and staff can find in the logs."""
    return "".join(secrets.choice(REFERENCE_ALPHABET) for _ in range(8))


class Middleware:
    """The two calling conventions around one `before` and one `after`."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        self.waits = iscoroutinefunction(get_response)
        if self.waits:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self.waits:
            return self.acall(request)
        self.before(request)
        return self.after(request, self.get_response(request))

    async def acall(self, request: HttpRequest) -> HttpResponseBase:
        self.before(request)
        return self.after(request, await self.get_response(request))

    def before(self, request: HttpRequest) -> None:
        raise NotImplementedError

    def after(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        raise NotImplementedError


class Reference(Middleware):
    """Gives each request a reference: on its log lines, in the X-Reference header, on error pages."""

    def before(self, request: HttpRequest) -> None:
        reference = new_reference()
        logcontext.reference.set(reference)
        request.META["workbench.reference"] = reference

    def after(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers["X-Reference"] = request.META["workbench.reference"]
        return response


class ContentSecurityPolicy(Middleware):
    """Allows what the pages need and nothing else: own files, own sockets, the one import map with its nonce.

    A response that brings a policy of its own (a download) keeps it. Django's debug pages have inline styles, so they
    go without one; they exist only when DEBUG is on.
    """

    def before(self, request: HttpRequest) -> None:
        request.META["workbench.nonce"] = secrets.token_urlsafe(16)

    def after(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if settings.DEBUG and response.status_code in (404, 500):
            return response
        response.headers.setdefault("Content-Security-Policy", policy(request))
        return response


def policy(request: HttpRequest) -> str:
    """Return the policy for pages. Sockets are named because Safari's 'self' does not cover ws:."""
    try:
        host = request.get_host()
        sockets = f" ws://{host} wss://{host}"
    except DisallowedHost:
        sockets = ""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' 'nonce-{request.META['workbench.nonce']}'",
            "style-src 'self'",
            "img-src 'self' data: blob:",
            "font-src 'self'",
            f"connect-src 'self'{sockets}",
            "manifest-src 'self'",
            "frame-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        )
    )


def nonce(request: HttpRequest) -> dict[str, Any]:
    """Context processor: `csp_nonce` for the import map (django-htmx looks for it under this name)."""
    return {"csp_nonce": request.META.get("workbench.nonce", "")}


class StaticFiles:
    """WhiteNoise, async-capable. Files are small (CSS, JS, pictures), so each is read whole, off the loop."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        self.noise = WhiteNoiseMiddleware()
        self.prefix: str = self.noise.static_prefix
        self.waits = iscoroutinefunction(get_response)
        if self.waits:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self.waits:
            return self.acall(request)
        found = self.found(request)
        return self.answer(found, request) if found else cast("HttpResponseBase", self.get_response(request))

    async def acall(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(self.prefix):
            return cast("HttpResponseBase", await self.get_response(request))
        found = await asyncio.to_thread(self.found, request)
        if found is None:
            return cast("HttpResponseBase", await self.get_response(request))
        return await asyncio.to_thread(self.answer, found, request)

    def found(self, request: HttpRequest) -> StaticFile | None:
        if not request.path_info.startswith(self.prefix):
            return None
        noise = self.noise
        found = noise.find_file(request.path_info) if noise.autorefresh else noise.files.get(request.path_info)
        return cast("StaticFile | None", found)

    @staticmethod
    def answer(found: StaticFile, request: HttpRequest) -> HttpResponse:
        reply = found.get_response(request.method, request.META)
        content = b""
        if reply.file is not None:
            with reply.file:
                content = reply.file.read()
        response = HttpResponse(content, status=int(reply.status))
        del response.headers["Content-Type"]
        for name, value in reply.headers:
            response.headers[name] = value
        return response
