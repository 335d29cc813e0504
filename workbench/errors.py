"""Pages for requests that fail: both languages at once, no JavaScript, the reference that also stands in the log."""

import logging
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

logger = logging.getLogger(__name__)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return answer(request, 400, "bad_request", "400.html")


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return answer(request, 403, "forbidden", "403.html")


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW."""
    logger.warning("csrf check failed: %s", reason)
    return answer(request, 403, "csrf_failed", "403_csrf.html")


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return answer(request, 404, "not_found", "404.html")


def server_error(request: HttpRequest) -> HttpResponse:
    return answer(request, 500, "internal", "500.html")


def answer(request: HttpRequest, status: int, code: str, template: str) -> HttpResponse:
    """Return the page, or for a program that asks for JSON {"error": {"code", "reference"}}; never fails itself."""
    reference = request.META.get("workbench.reference", "")
    if wants_json(request):
        body: dict[str, Any] = {"error": {"code": code, "reference": reference}}
        return JsonResponse(body, status=status)
    try:
        # no request: no context processor, no database
        return render(None, template, {"reference": reference}, status=status)
    except (OSError, ValueError):
        # a static file that was never collected: the words matter more than their looks
        logger.exception("the page for status %s cannot be drawn", status)
        text = f"{status} {code}. Reference · 编号：{reference}\n"
        return HttpResponse(text, status=status, content_type="text/plain; charset=utf-8")


def wants_json(request: HttpRequest) -> bool:
    accepted = request.headers.get("Accept", "")
    return "application/json" in accepted and "text/html" not in accepted
