"""The door of the library: names, sizes, duplicates, cuts, how many at once, and whose it is."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client

from agents import jobs
from agents.models.job import Job
from artifacts import library
from artifacts.library import Wanted
from artifacts.models import Artifact, Version
from artifacts.store import in_thread
from tests.artifacts.pdfs import pdf
from tests.workbench.test_files import anna, blobs_in, boris, files, send_half, signed_in, token_of
from workbench import uploads
from workbench.views import files as door

__all__ = ["anna", "boris", "files"]  # fixtures
LONG = "很长的文件名" * 60


def send(client: Client, name: str, data: bytes, **fields: str) -> Any:
    return client.post(
        "/library/upload/", {"file": SimpleUploadedFile("blob", data, "application/x-lie"), "name": name, **fields}
    )


def names(owner: User) -> list[str]:
    return sorted(line.name for line in library.listing(owner.pk, Wanted()).documents)


def test_a_document_comes_into_the_library_and_waits_for_its_reader(anna: User) -> None:
    answer = send(signed_in(anna), "报告.pdf", pdf("Hello"))
    told = answer.json()
    assert answer.status_code == 201 and "already" not in told
    assert (told["name"], told["version"], told["mime"]) == ("user:报告.pdf", 1, "application/pdf")
    artifact = Artifact.objects.of(anna.pk).get()
    assert (artifact.session_id, str(artifact.public_id)) == (None, told["artifactId"])
    assert Version.objects.of(anna.pk).get().text_status == "waiting"
    assert Job.objects.get().kind == jobs.READ


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("plan.txt", "plan.txt"),
        ("project/a/plan.txt", "project/a/plan.txt"),
        ("项目/附件/计划 二.txt", "项目/附件/计划 二.txt"),
        ("C:\\Users\\anna\\plan.txt", "C:/Users/anna/plan.txt"),
        ("../../../etc/passwd.txt", "etc/passwd.txt"),
        ("/absolute//path/./plan.txt", "absolute/path/plan.txt"),
        ("cafe\u0301.txt", "caf\u00e9.txt"),
        ("תוכנית שנתית.txt", "תוכנית שנתית.txt"),
        ("invoice\u202etxt.exe.txt", "invoice_txt.exe.txt"),
        ("\u2066hidden\u2069.txt", "_hidden_.txt"),
        ("👩‍💻 plan 🇪🇺.txt", "👩‍💻 plan 🇪🇺.txt"),
        ("tab\there\x00nul.txt", "tab_here_nul.txt"),
        ("user:plan.txt", "user_plan.txt"),
        ("...", "file"),
        ("   ", "file"),
        ('con<>:"|?*.txt', 'con<>:"|?*.txt'),
        (".env.txt", "env.txt"),
        (f"{LONG}.txt", f"{LONG[:82]}.txt"),
        ("/".join(["folder"] * 50) + "/plan.txt", "/".join(["folder"] * 34) + "/plan.txt"),
        ("'; drop table artifacts_artifact; --.txt", "'; drop table artifacts_artifact; --.txt"),
        ("<img src=x onerror=alert(1)>.txt", "<img src=x onerror=alert(1)>.txt"),
    ],
)
def test_a_name_is_kept_as_far_as_it_may_be(anna: User, sent: str, kept: str) -> None:
    answer = send(signed_in(anna), sent, b"words")
    assert answer.status_code == 201, answer.content
    assert names(anna) == [kept]
    assert len(kept.encode()) <= 255


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"x", 201, ""),
        (b"x" * 99_999, 201, ""),
        (b"x" * 100_000, 201, ""),
        (b"x" * 100_001, 413, "too_large"),
        (b"x" * 900_000, 413, "too_large"),
        (b"", 400, "file_refused"),
        (b"\x7fELF\x02\x01", 400, "file_refused"),
    ],
    ids=["1 byte", "just below", "exactly", "just above", "far above", "empty", "program"],
)
def test_a_size_or_kind_that_may_not_be_leaves_nothing(
    anna: User, files: Path, settings: Any, data: bytes, status: int, code: str
) -> None:
    settings.UPLOAD_MAX_BYTES = 100_000
    answer = send(signed_in(anna), "a.txt", data)
    assert answer.status_code == status
    assert answer.json().get("error", {}).get("code", "") == code
    assert Artifact.objects.of(anna.pk).count() == len(blobs_in(files)) == (1 if status == 201 else 0)


def test_the_same_bytes_under_the_same_name_are_there_already(anna: User, files: Path) -> None:
    client = signed_in(anna)
    first = send(client, "a.txt", b"words")
    again = send(client, "a.txt", b"words")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {**first.json(), "already": True}
    assert Version.objects.of(anna.pk).count() == 1 and len(blobs_in(files)) == 1


def test_other_bytes_are_the_next_version_and_old_bytes_again_one_more(anna: User) -> None:
    client = signed_in(anna)
    told = [send(client, "a.txt", data) for data in (b"one", b"two", b"one")]
    assert [(t.status_code, t.json()["version"]) for t in told] == [(201, 1), (201, 2), (201, 3)]
    assert len({t.json()["artifactId"] for t in told}) == 1


def test_the_same_bytes_under_two_names_or_in_two_folders_are_two_documents(anna: User) -> None:
    client = signed_in(anna)
    for name in ("a.txt", "b.txt", "folder/a.txt"):
        assert send(client, name, b"words").status_code == 201
    assert names(anna) == ["a.txt", "b.txt", "folder/a.txt"]


def test_composed_and_decomposed_writing_is_one_name(anna: User) -> None:
    client = signed_in(anna)
    assert send(client, "caf\u00e9.txt", b"words").status_code == 201
    assert send(client, "cafe\u0301.txt", b"words").status_code == 200


def test_a_document_goes_into_the_collection_that_is_named(anna: User) -> None:
    client, shelf = signed_in(anna), library.make_collection(anna.pk, "Survey")
    send(client, "a.txt", b"words", collection=shelf.id)
    send(client, "a.txt", b"more words")  # and stays there
    (line,) = library.listing(anna.pk, Wanted()).documents
    assert (line.version, line.collection) == (2, "Survey")


def test_a_retried_upload_whose_answer_was_lost_changes_only_its_collection(anna: User) -> None:
    client, shelf = signed_in(anna), library.make_collection(anna.pk, "Survey")
    send(client, "a.txt", b"words")
    assert send(client, "a.txt", b"words", collection=shelf.id).status_code == 200
    (line,) = library.listing(anna.pk, Wanted()).documents
    assert (line.version, line.collection) == (1, "Survey")


@pytest.mark.parametrize("collection", ["foreign", "00000000-0000-4000-8000-000000000000", "nonsense"])
def test_a_collection_that_is_not_ones_own_is_not_found_and_nothing_is_kept(
    anna: User, boris: User, files: Path, collection: str
) -> None:
    wanted = library.make_collection(boris.pk, "His").id if collection == "foreign" else collection
    answer = send(signed_in(anna), "a.txt", b"words", collection=wanted)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "collection_not_found")
    assert not Artifact.objects.of(anna.pk).exists() and blobs_in(files) == []
    assert [shelf.documents for shelf in library.collections(boris.pk)] == [0] * (collection == "foreign")


def test_the_same_name_of_two_people_is_two_documents(anna: User, boris: User) -> None:
    told = [send(signed_in(who), "a.txt", b"words") for who in (anna, boris)]
    assert [t.status_code for t in told] == [201, 201]
    assert told[0].json()["artifactId"] != told[1].json()["artifactId"]
    assert signed_in(boris).get(told[0].json()["url"]).status_code == 404


def test_an_upload_after_deleting_is_new_and_can_be_undone_no_more(anna: User) -> None:
    client = signed_in(anna)
    told = send(client, "a.txt", b"words").json()
    library.delete(anna.pk, [told["artifactId"]])
    assert client.get(told["url"]).status_code == 404
    again = send(client, "a.txt", b"words")
    assert (again.status_code, again.json()["version"]) == (201, 2)


def test_only_people_who_came_from_our_page_and_tokens_that_may_write_come_in(anna: User) -> None:
    assert send(Client(), "a.txt", b"x").status_code == 401
    strict = signed_in(anna, enforce_csrf_checks=True)
    assert send(strict, "a.txt", b"x").status_code == 403
    assert strict.get("/library/upload/").status_code == 405
    bare = Client(enforce_csrf_checks=True)
    for scope, status in (("run", 201), ("read", 403)):
        body = {"file": SimpleUploadedFile("a.txt", b"x")}
        bearer = {"Authorization": f"Bearer {token_of(anna, scope)}"}
        assert bare.post("/library/upload/", body, headers=bearer).status_code == status
    assert not Artifact.objects.of(anna.pk).exclude(name="user:a.txt").exists()


def test_a_request_carries_exactly_one_file(anna: User) -> None:
    client = signed_in(anna)
    two = [SimpleUploadedFile("a.txt", b"a"), SimpleUploadedFile("b.txt", b"b")]
    for body in ({"file": two}, {"name": "a.txt"}, {"file": "no file at all"}):
        assert client.post("/library/upload/", body).status_code == 400
    assert not Artifact.objects.of(anna.pk).exists()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Uploads stop while they are stored: (one has come so far, they may go on)."""
    come, on = threading.Event(), threading.Event()
    save = door.saving.save

    def wait(*given: Any, **more: Any) -> Any:
        come.set()
        assert on.wait(20)
        return save(*given, **more)

    monkeypatch.setattr(door.saving, "save", wait)
    yield come, on
    on.set()


def test_more_at_once_than_allowed_are_asked_to_come_again(
    anna: User, boris: User, settings: Any, held: tuple[threading.Event, threading.Event]
) -> None:
    settings.UPLOADS_PER_OWNER = 1
    come, on = held
    answers: list[Any] = []
    client, other = signed_in(anna), signed_in(anna)
    first = threading.Thread(target=lambda: answers.append(in_own_connection(client)))
    first.start()
    assert come.wait(20)
    refused = send(other, "b.txt", b"words")
    assert (refused.status_code, refused["Retry-After"]) == (429, "1")
    on.set()
    first.join(20)
    assert [a.status_code for a in answers] == [201]
    assert send(other, "b.txt", b"words").status_code == 201
    assert names(anna) == ["a.txt", "b.txt"]


HOLDER = """
import sys, django
django.setup()
from workbench import uploads
with uploads.place(int(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def elsewhere(anna: User) -> Iterator["subprocess.Popen[str]"]:
    """Another web process, in which anna sends a file."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(anna.pk)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()
    uploads._valkey().delete(uploads._key(anna.pk))


def test_what_another_process_takes_counts_too(
    anna: User, boris: User, settings: Any, elsewhere: "subprocess.Popen[str]"
) -> None:
    settings.UPLOADS_PER_OWNER = 2
    client = signed_in(anna)
    assert send(client, "计划.txt", b"words").status_code == 201
    settings.UPLOADS_PER_OWNER = 1
    assert send(client, "b.txt", b"words").status_code == 429
    assert send(signed_in(boris), "b.txt", b"words").status_code == 201
    elsewhere.communicate("go on\n", 20)
    assert send(client, "b.txt", b"words").status_code == 201


def test_a_place_whose_process_died_is_free_again_in_the_end(
    anna: User, settings: Any, elsewhere: "subprocess.Popen[str]"
) -> None:
    settings.UPLOADS_PER_OWNER = 1
    client = signed_in(anna)
    elsewhere.kill()
    elsewhere.wait()
    assert send(client, "a.txt", b"words").status_code == 429
    (name,), key = uploads._valkey().zrange(uploads._key(anna.pk), 0, -1), uploads._key(anna.pk)
    assert 0 < uploads._valkey().ttl(key) <= uploads.LEASE_S
    uploads._valkey().zadd(key, {name: time.time() - 1})  # as if it had been so long
    assert send(client, "a.txt", b"words").status_code == 201


def test_without_valkey_each_process_keeps_to_the_limit_for_itself(anna: User, settings: Any) -> None:
    with socket.socket() as held:  # bound and not listening: refused
        held.bind(("127.0.0.1", 0))
        settings.REDIS_URL = f"redis://127.0.0.1:{held.getsockname()[1]}/0"
        settings.UPLOADS_PER_OWNER = 1
        assert send(signed_in(anna), "a.txt", b"words").status_code == 201
        with uploads.place(anna.pk):
            assert send(signed_in(anna), "b.txt", b"words").status_code == 429


def in_own_connection(client: Client) -> Any:
    try:
        return send(client, "a.txt", b"words")
    finally:
        connection.close()


async def test_a_cut_upload_leaves_nothing_and_may_be_sent_again(anna: User, files: Path) -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhalf a fi'
    await send_half(anna, "/library/upload/", body)
    assert blobs_in(files) == []

    def again() -> Any:
        assert not Artifact.objects.of(anna.pk).exists()
        return send(signed_in(anna), "a.txt", b"half a file and the rest")

    assert (await in_thread(again)()).status_code == 201
