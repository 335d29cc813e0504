"""What every request passes through, and the pages for those that fail."""

import inspect
import logging
import re
from typing import Any

import pytest
from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.test import AsyncRequestFactory, Client, RequestFactory, override_settings
from django.urls import path
from django.utils.module_loading import import_string

from workbench import errors, middleware


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a secret of the implementation")


def fine(request: HttpRequest) -> HttpResponse:
    return HttpResponse("fine")


def own_policy(request: HttpRequest) -> HttpResponse:
    return HttpResponse("x", headers={"Content-Security-Policy": "sandbox"})


urlpatterns = [path("broken", broken), path("fine", fine), path("own", own_policy)]
handler404 = errors.not_found
handler500 = errors.server_error
here = override_settings(ROOT_URLCONF=__name__, DEBUG=False, ALLOWED_HOSTS=["testserver"])


@pytest.mark.parametrize("name", settings.MIDDLEWARE)
def test_every_middleware_is_async_capable(name: str) -> None:
    made = import_string(name)
    assert made.async_capable

    async def inner(request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    assert iscoroutinefunction(made(inner)), f"{name} would cost a thread per request"


@pytest.mark.parametrize("name", [m for m in settings.MIDDLEWARE if m.startswith("workbench.")])
async def test_our_middleware_answers_in_both_worlds(name: str) -> None:
    made = import_string(name)

    async def inner(request: HttpRequest) -> HttpResponse:
        return HttpResponse("a")

    said = made(inner)(prepared(AsyncRequestFactory().get("/x")))
    assert inspect.isawaitable(said)
    assert (await said).content == b"a"
    assert made(lambda request: HttpResponse("s"))(prepared(RequestFactory().get("/x"))).content == b"s"


def prepared(request: Any) -> Any:
    request.META.setdefault("workbench.reference", "r")
    return request


@here
def test_a_page_may_load_its_own_files_and_the_one_import_map() -> None:
    policies = [Client().get("/fine").headers["Content-Security-Policy"] for _ in range(2)]
    assert "default-src 'none'" in policies[0]
    assert "unsafe" not in policies[0]
    assert "ws://testserver wss://testserver" in policies[0]
    nonces = [re.search(r"'nonce-([^']+)'", p) for p in policies]
    assert nonces[0]
    assert nonces[1]
    assert nonces[0][1] != nonces[1][1]


@here
def test_the_template_sees_the_nonce_of_the_header() -> None:
    request = RequestFactory().get("/x")
    layer = middleware.ContentSecurityPolicy(lambda r: HttpResponse(middleware.nonce(r)["csp_nonce"]))
    response: Any = layer(request)
    assert f"'nonce-{response.content.decode()}'" in response.headers["Content-Security-Policy"]


@here
def test_a_response_keeps_the_policy_it_brings() -> None:
    assert Client().get("/own").headers["Content-Security-Policy"] == "sandbox"


@here
@pytest.mark.parametrize(("where", "status", "english", "chinese"), [
    ("/nowhere", 404, "There is nothing here", "这里什么也没有"),
    ("/broken", 500, "Something broke on our side", "服务器出错了"),
])  # fmt: skip
def test_error_pages_speak_both_languages_run_no_script_and_name_the_reference(
    where: str, status: int, english: str, chinese: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = Client(raise_request_exception=False).get(where)
    page = response.content.decode()
    assert response.status_code == status
    assert english in page
    assert chinese in page
    assert "<script" not in page
    assert "secret of the implementation" not in page
    assert response.headers["X-Reference"] in page


@here
def test_an_unknown_host_is_told_so_without_a_stack(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.CRITICAL):
        response = Client(raise_request_exception=False, headers={"host": "evil.example"}).get("/fine")
    assert response.status_code == 400
    assert "evil.example" not in response.content.decode()


@here
def test_programs_get_their_error_as_json() -> None:
    response = Client(headers={"accept": "application/json"}).get("/nowhere")
    assert response.json() == {"error": {"code": "not_found", "reference": response.headers["X-Reference"]}}


@here
def test_a_form_without_its_token_is_refused_with_our_page() -> None:
    response = Client(enforce_csrf_checks=True).post("/fine")
    assert response.status_code == 403
    assert "页面已过期" in response.content.decode()


@override_settings(DEBUG=True)
async def test_static_files_are_served_by_the_async_application() -> None:
    async def nothing(request: HttpRequest) -> HttpResponse:
        return HttpResponse(status=404)

    layer: Any = middleware.StaticFiles(nothing)
    response = await layer(AsyncRequestFactory().get("/static/css/main.css"))
    assert (response.status_code, response.headers["Content-Type"]) == (200, 'text/css; charset="utf-8"')
    assert b"@layer" in response.content
    assert (await layer(AsyncRequestFactory().get("/static/no.css"))).status_code == 404
    assert (await layer(AsyncRequestFactory().get("/static/../manage.py"))).status_code == 404
    not_modified = AsyncRequestFactory().get(
        "/static/css/main.css", headers={"if-none-match": response.headers["ETag"]}
    )
    assert (await layer(not_modified)).status_code == 304
