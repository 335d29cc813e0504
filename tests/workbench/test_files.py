"""The doors for files: attach, list, download."""

import io
import json
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.handlers.asgi import ASGIHandler
from django.db import connection
from django.test import AsyncClient, Client
from django.utils import timezone

from agents.models.session import Session
from artifacts.models import Artifact, Version
from artifacts.store import in_thread
from tests.artifacts.pdfs import pdf
from workbench import tokens

THREAD = "7d3c1b52-0000-4000-8000-000000000001"


@pytest.fixture(autouse=True)
def files(settings: Any, tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    backend = "django.core.files.storage.FileSystemStorage"
    settings.STORAGES = {**settings.STORAGES, "artifacts": {"BACKEND": backend, "OPTIONS": {"location": str(folder)}}}
    return folder


@pytest.fixture
def anna(transactional_db: Any) -> User:
    return User.objects.create_user("anna")


@pytest.fixture
def boris(transactional_db: Any) -> User:
    return User.objects.create_user("boris")


def signed_in(user: User, **more: Any) -> Client:
    client = Client(**more)
    client.force_login(user)
    return client


def attach(client: Client, name: str, data: bytes, thread: str = THREAD, fields: Any = None) -> Any:
    body = {"thread_id": thread, "file": SimpleUploadedFile(name, data, "application/x-lie"), **(fields or {})}
    return client.post("/files/", body)


def blobs_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_file_is_attached_to_a_new_thread_and_listed(anna: User) -> None:
    client = signed_in(anna)
    answer = attach(client, "报告.pdf", pdf("Hello"))
    assert answer.status_code == 201, answer.content
    told = answer.json()
    assert told["name"] == "报告.pdf" and told["version"] == 1 and told["mime"] == "application/pdf"
    assert told["sizeBytes"] == len(pdf("Hello"))
    session = Session.objects.of(anna.pk).get()
    assert session.thread_id == THREAD and session.forks.get().number == 0
    version = Version.objects.of(anna.pk).get()
    assert (version.origin, version.original_name) == ("upload", "报告.pdf")
    assert client.get("/files/", {"thread_id": THREAD}).json() == {"files": [told]}


def test_the_same_name_again_is_the_next_version(anna: User) -> None:
    client = signed_in(anna)
    first, second = attach(client, "a.txt", b"one").json(), attach(client, "a.txt", b"two").json()
    assert (first["artifactId"], first["version"], second["version"]) == (second["artifactId"], 1, 2)
    assert [f["version"] for f in client.get("/files/", {"thread_id": THREAD}).json()["files"]] == [2]
    assert Session.objects.of(anna.pk).count() == 1


def test_a_name_can_be_sent_beside_the_file(anna: User) -> None:
    told = attach(signed_in(anna), "blob", b"words", fields={"name": "👩‍💻 图.txt"}).json()
    assert told["name"] == "👩‍💻 图.txt"


def test_a_large_file_goes_through_the_disk_unchanged(anna: User, files: Path) -> None:
    data = ("0123456789abcdef" * 64 + "\n").encode() * 3000  # 3 MB
    told = attach(signed_in(anna), "big.txt", data).json()
    assert told["sizeBytes"] == len(data)
    assert blobs_in(files)[0].read_bytes() == data


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (
            "old.doc",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100),
            ".doc is an old format of Office. Save it as .docx or PDF.",
        ),
        ("empty.txt", b"", "empty.txt is empty."),
        ("a.exe", b"MZ\x00\x00", "Files of this kind (.exe) aren't supported."),
    ],
)
def test_a_refused_file_says_why_and_leaves_nothing(
    anna: User, files: Path, name: str, data: bytes, words: str
) -> None:
    answer = attach(signed_in(anna), name, data)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "file_refused"
    assert answer.json()["error"]["message"].startswith(words)
    assert not Session.objects.of(anna.pk).exists() and blobs_in(files) == []


def test_a_file_past_the_limit_is_refused_while_it_is_read(anna: User, files: Path, settings: Any) -> None:
    settings.UPLOAD_MAX_BYTES = 100_000
    client = signed_in(anna)
    assert attach(client, "fits.txt", b"x" * 100_000).status_code == 201
    just_over = attach(client, "over.txt", b"x" * 100_001)
    far_over = attach(client, "far.txt", b"x" * 500_000)
    for answer in (just_over, far_over):
        assert answer.status_code == 413 and answer.json()["error"]["code"] == "too_large"
        assert "up to" in answer.json()["error"]["message"]
    assert [a.name for a in Artifact.objects.of(anna.pk)] == ["fits.txt"] and len(blobs_in(files)) == 1


def test_a_request_without_a_thread_or_with_two_files_is_refused(anna: User) -> None:
    client = signed_in(anna)
    two = [SimpleUploadedFile("a.txt", b"a"), SimpleUploadedFile("b.txt", b"b")]
    assert client.post("/files/", {"thread_id": THREAD, "file": two}).status_code == 400
    assert client.post("/files/", {"thread_id": THREAD}).status_code == 400
    assert attach(client, "a.txt", b"x", thread="").status_code == 400
    assert attach(client, "a.txt", b"x", thread="t" * 129).status_code == 400
    assert attach(client, "a.txt", b"x", thread="t\x00").status_code == 400
    assert not Session.objects.of(anna.pk).exists()


def test_a_deleted_thread_takes_no_files(anna: User) -> None:
    client = signed_in(anna)
    attach(client, "a.txt", b"x")
    Session.objects.of(anna.pk).update(deleted_at=timezone.now())
    assert attach(client, "b.txt", b"x").status_code == 404
    assert client.get("/files/", {"thread_id": THREAD}).status_code == 404


def test_only_people_who_are_signed_in_and_came_from_our_page_may_attach(anna: User) -> None:
    assert attach(Client(), "a.txt", b"x").status_code == 401
    assert Client().get("/files/", {"thread_id": THREAD}).status_code == 401
    client = signed_in(anna, enforce_csrf_checks=True)
    assert attach(client, "a.txt", b"x").status_code == 403
    client.cookies["csrftoken"] = "a" * 32
    body = {"thread_id": THREAD, "file": SimpleUploadedFile("a.txt", b"x")}
    assert client.post("/files/", body, headers={"X-CSRFToken": "a" * 32}).status_code == 201


def test_the_same_thread_id_of_two_people_is_two_threads(anna: User, boris: User) -> None:
    attach(signed_in(anna), "a.txt", b"anna's")
    assert signed_in(boris).get("/files/", {"thread_id": THREAD}).status_code == 404
    assert attach(signed_in(boris), "a.txt", b"boris's").json()["version"] == 1
    assert len(signed_in(boris).get("/files/", {"thread_id": THREAD}).json()["files"]) == 1


def test_a_full_disk_is_said_and_leaves_nothing(anna: User, files: Path) -> None:
    files.parent.mkdir(exist_ok=True)
    files.write_text("a file where the folder should be")
    answer = attach(signed_in(anna), "a.txt", b"x")
    assert answer.status_code == 507 and answer.json()["error"]["code"] == "storage_unavailable"
    assert not Artifact.objects.of(anna.pk).exists()


async def send_half(user: User, path: str, body: bytes) -> None:
    """Begin an upload, with parts that "b" sets apart, and break the connection before its end."""
    client = AsyncClient()
    await client.aforce_login(user)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [
            (b"host", b"localhost"),
            (b"cookie", f"{cookie.key}={cookie.value}".encode()),
            (b"content-type", b"multipart/form-data; boundary=b"),
            (b"content-length", b"5000"),
        ],
        "scheme": "http",
    }
    communicator = ApplicationCommunicator(ASGIHandler(), scope)
    await communicator.send_input({"type": "http.request", "body": body, "more_body": True})
    await communicator.send_input({"type": "http.disconnect"})
    await communicator.wait(10)


async def test_an_upload_that_is_cut_leaves_nothing(anna: User, files: Path) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="thread_id"\r\n\r\n' + THREAD.encode() + b"\r\n--b\r\n"
        b'Content-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhalf a file'
    )
    await send_half(anna, "/files/", body)
    assert blobs_in(files) == []
    assert not await in_thread(lambda: Artifact.objects.of(anna.pk).exists())()


async def downloaded(user: User | None, url: str, **headers: str) -> Any:
    client = AsyncClient()
    if user:
        await client.aforce_login(user)
    return await client.get(url, headers=cast(Any, headers))


async def body_of(response: Any) -> bytes:
    return b"".join([piece async for piece in response.streaming_content])


async def stored(user: User, name: str, data: bytes) -> str:
    answer = await in_thread(lambda: attach(signed_in(user), name, data))()
    assert answer.status_code == 201, answer.content
    return str(answer.json()["url"])


async def test_a_download_is_the_same_bytes_and_harmless(anna: User) -> None:
    data = "# 报告\n<script>alert(1)</script>".encode()
    response = await downloaded(anna, await stored(anna, "年度报告 2026.md", data))
    assert response.status_code == 200 and await body_of(response) == data
    assert response["Content-Type"] == "text/markdown"
    assert response["Content-Length"] == str(len(data))
    assert response["Content-Disposition"] == "attachment; filename*=utf-8''" + quote("年度报告 2026.md")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert response["Cache-Control"] == "private, no-cache"


@pytest.mark.parametrize("query", ["", "?inline=1"])
async def test_what_a_browser_would_run_is_never_shown_in_place(anna: User, query: str) -> None:
    page = await downloaded(anna, await stored(anna, "page.html", b"<html><script>x</script>") + query)
    assert page["Content-Type"] == "application/octet-stream"
    assert page["Content-Disposition"] == 'attachment; filename="page.html"'
    paper = await downloaded(anna, await stored(anna, "paper.pdf", pdf("x")) + query)
    assert paper["Content-Disposition"] == 'attachment; filename="paper.pdf"'
    await body_of(page)
    await body_of(paper)


async def test_a_picture_may_be_shown_in_place(anna: User) -> None:
    url = await stored(anna, "a.png", b"\x89PNG\r\n\x1a\n" + bytes(20))
    shown = await downloaded(anna, url + "?inline=1")
    assert (shown["Content-Type"], shown["Content-Disposition"]) == ("image/png", 'inline; filename="a.png"')
    kept = await downloaded(anna, url)
    assert kept["Content-Disposition"] == 'attachment; filename="a.png"'
    await body_of(shown)
    await body_of(kept)


async def test_unknown_and_foreign_files_answer_alike(anna: User, boris: User, settings: Any) -> None:
    settings.LOGIN_URL = "/signin/"
    url = await stored(anna, "secret.txt", b"x")
    foreign = await downloaded(boris, url)
    unknown = await downloaded(boris, "/files/00000000-0000-4000-8000-000000000000/1/")
    assert foreign.status_code == unknown.status_code == 404
    assert (await downloaded(anna, url.replace("/1/", "/2/"))).status_code == 404
    stranger = await downloaded(None, url)
    assert stranger.status_code == 302 and stranger["Location"].startswith("/signin/?next=/files/")


async def test_a_known_version_is_not_sent_twice_but_asked_for_each_time(anna: User, boris: User) -> None:
    url = await stored(anna, "a.txt", b"x")
    first = await downloaded(anna, url)
    await body_of(first)
    assert (await downloaded(anna, url, **{"If-None-Match": first["ETag"]})).status_code == 304
    assert (await downloaded(boris, url, **{"If-None-Match": first["ETag"]})).status_code == 404


async def test_a_broken_file_is_not_found_or_arrives_cut(anna: User, files: Path) -> None:
    data = b"x" * 600_000 + b"\n"
    url = await stored(anna, "a.txt", data)
    (blob,) = blobs_in(files)
    blob.write_bytes(data[:-2] + b"yy")
    response = await downloaded(anna, url)
    got = io.BytesIO()
    with pytest.raises(LookupError):
        async for piece in response.streaming_content:
            got.write(piece)
    assert len(got.getvalue()) < int(response["Content-Length"])
    blob.unlink()
    assert (await downloaded(anna, url)).status_code == 404


async def test_no_database_connection_is_held_while_a_file_is_sent(anna: User) -> None:
    url = await stored(anna, "a.txt", b"x" * 600_000)
    client = AsyncClient()
    await client.aforce_login(anna)
    async with ThreadSensitiveContext():  # as Django's ASGI handler gives each request a thread of its own
        await sync_to_async(lambda: User.objects.count())()  # what a middleware may have done on the way
        assert await sync_to_async(lambda: connection.connection)() is not None
        response = await client.get(url)
        assert await sync_to_async(lambda: connection.connection)() is None
        assert len(await body_of(response)) == 600_000


def test_another_frontend_attaches_and_downloads_with_a_token(anna: User) -> None:
    client, bearer = Client(enforce_csrf_checks=True), {"Authorization": f"Bearer {token_of(anna, 'run')}"}
    body = {"thread_id": THREAD, "file": SimpleUploadedFile("a.txt", b"x")}
    told = client.post("/files/", body, headers=bearer)
    assert told.status_code == 201
    assert client.get("/files/", {"thread_id": THREAD}, headers=bearer).json()["files"] == [told.json()]
    assert client.get(told.json()["url"], headers=bearer).status_code == 200
    reader = {"Authorization": f"Bearer {token_of(anna, 'read')}"}
    body = {"thread_id": THREAD, "file": SimpleUploadedFile("a.txt", b"x")}
    assert client.post("/files/", body, headers=reader).status_code == 403
    assert client.get("/files/", {"thread_id": THREAD}, headers=reader).status_code == 200
    wrong = {"Authorization": "Bearer nonsense"}
    assert client.get("/files/", {"thread_id": THREAD}, headers=wrong).status_code == 401
    assert client.get(told.json()["url"], headers=wrong).status_code == 401


def test_the_list_is_json_that_a_page_can_read(anna: User) -> None:
    client = signed_in(anna)
    told = attach(client, "a.txt", b"x").json()
    assert json.loads(json.dumps(told)) == told
    assert told["url"] == f"/files/{told['artifactId']}/1/"


def token_of(user: User, scope: str) -> str:
    return tokens.make_token(owner_id=user.pk, name="another frontend", scope=scope)[1]
