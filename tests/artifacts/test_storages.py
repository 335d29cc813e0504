"""Where files are kept: STORAGE_URL, and one contract for a folder and for S3."""

import io
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from moto.server import ThreadedMotoServer

from agents.models.session import Session
from agents.runtime.artifacts import ArtifactMissing, ArtifactNotKept
from artifacts import blobs, indexing, library, rows
from artifacts.models import Artifact, Version
from artifacts.store import DjangoArtifactStore, in_thread
from tests.artifacts.finding import do_jobs, found, upload
from tests.artifacts.pdfs import pdf
from workbench import doctor, storages

KEYS = {"aws_access_key_id": "key", "aws_secret_access_key": "se/cret", "region_name": "us-east-1"}


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """An S3 server of this machine. Yields host and port."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"{host}:{port}"
    server.stop()


@pytest.fixture(params=["file", "s3", "s3 with a prefix"])
def kept_in(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> str:
    """The kind of storage that a test runs on."""
    if request.param == "file":
        url = f"file://{tmp_path}/some%20files"
    else:
        server, bucket = request.getfixturevalue("s3_server"), f"documents-{uuid.uuid4().hex}"
        boto3.client("s3", endpoint_url=f"http://{server}", **KEYS).create_bucket(Bucket=bucket)
        url = f"s3://key:se%2Fcret@{server}/{bucket}?region=us-east-1&tls=0"
        url += "&prefix=one/two" if "prefix" in request.param else ""
    settings.STORAGES = {**settings.STORAGES, "artifacts": storages.by_url(url, tmp_path)}
    return str(request.param)


async def test_bytes_come_back_whole_in_pieces_and_as_text(kept_in: str, store: DjangoArtifactStore) -> None:
    data = "Zeile 行\n".encode() * 100_000
    ref = await store.save(name="报告.txt", data=data)
    assert await store.load(ref) == data
    assert b"".join([piece async for piece in await store.stream(ref)]) == data
    assert (await store.read_text(ref, cursor="line:50000", max_chars=100)).text.startswith("Zeile")
    empty = await store.save(name="empty.bin", data=b"")
    assert await store.load(empty) == b""


def test_an_upload_is_read_by_its_job_deleted_and_purged(kept_in: str, anna: User) -> None:
    saved = upload(anna, "a.pdf", pdf("Buy ropes"))
    do_jobs()
    assert found(anna, "rope") == ["Buy ropes"]
    row = Version.objects.of(anna.pk).get()
    library.delete(anna.pk, [saved.ref.artifact_id])
    Artifact.objects.of(anna.pk).update(purge_at=timezone.now() - timedelta(seconds=1))
    assert library.purge() == 1
    for key in (row.blob, row.text_blob):
        with pytest.raises(blobs.BlobMissing):
            blobs.open_blob(key)


def test_a_blob_without_a_row_is_swept_and_one_with_a_row_stays(kept_in: str, anna: User) -> None:
    upload(anna, "a.txt", b"kept")
    kept, orphan = Version.objects.of(anna.pk).get().blob, blobs.write(io.BytesIO(b"orphan")).key
    later = timezone.now() + timedelta(seconds=5)
    shelf = orphan[:2]
    assert orphan in blobs.old_keys(before=later, shelf=shelf)
    assert kept in blobs.old_keys(before=later, shelf=kept[:2])
    assert blobs.old_keys(before=timezone.now() - timedelta(hours=1), shelf=shelf) == []
    assert rows.sweep(shelf=shelf) == 0  # young: its row may be on its way
    age, rows.ORPHAN_AGE = rows.ORPHAN_AGE, timedelta(seconds=-5)
    try:
        assert sum(rows.sweep(shelf=f"{n:02x}") for n in {int(orphan[:2], 16), int(kept[:2], 16)}) == 1
    finally:
        rows.ORPHAN_AGE = age
    with blobs.open_blob(kept) as file:
        assert file.read() == b"kept"


def test_a_blob_that_is_not_there_is_missing_and_deleting_it_is_fine(kept_in: str) -> None:
    with pytest.raises(blobs.BlobMissing) as told:
        blobs.open_blob(blobs.new_key())
    assert not isinstance(told.value, blobs.StorageAway)
    blobs.delete([blobs.new_key()])


def test_doctor_writes_reads_and_deletes(kept_in: str) -> None:
    assert doctor.storage() == "written, read, deleted"


@pytest.fixture
def away(settings: Any, tmp_path: Path) -> None:
    """A storage that does not answer."""
    settings.STORAGE_URL = "s3://elsewhere"
    url = "s3://key:secret@127.0.0.1:9/documents?tls=0"
    settings.STORAGES = {**settings.STORAGES, "artifacts": storages.by_url(url, tmp_path)}


async def test_a_storage_that_is_away_keeps_nothing_and_says_so(
    store: DjangoArtifactStore, anna: User, session: Session, away: None
) -> None:
    with pytest.raises(ArtifactNotKept):
        await store.save(name="a.txt", data=b"x")
    assert not await in_thread(lambda: Artifact.objects.of(anna.pk).exists())()
    assert await in_thread(rows.sweep)() == 0


def test_what_is_away_for_a_moment_is_not_called_gone(
    anna: User, settings: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    upload(anna, "a.txt", b"ropes")
    here = settings.STORAGES
    request.getfixturevalue("away")
    stored = indexing.begin(anna.pk, Version.objects.of(anna.pk).get().pk)
    assert stored
    with pytest.raises(blobs.StorageAway):
        indexing.source(stored)
    settings.STORAGES = here
    do_jobs()
    assert found(anna, "rope") == ["ropes"]


async def test_away_is_missing_content_to_whoever_reads(
    store: DjangoArtifactStore, request: pytest.FixtureRequest
) -> None:
    ref = await store.save(name="a.txt", data=b"x")
    request.getfixturevalue("away")
    with pytest.raises(ArtifactMissing):
        await store.load(ref)


def test_doctor_tells_which_setting_is_wrong(away: None) -> None:
    with pytest.raises(doctor.Ill) as ill:
        doctor.storage()
    assert "STORAGE_URL" in ill.value.cure


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", {"location": "/data/files"}),
        ("file:///srv/my%20files", {"location": "/srv/my files"}),
        ("s3://bucket", {"bucket_name": "bucket", "region_name": None, "location": ""}),
        ("s3://bucket?region=eu-central-1&prefix=/a/b/", {"region_name": "eu-central-1", "location": "a/b"}),
        (
            "s3://k%40y:s%2Fcret@minio.example:9000/bucket",
            {
                "endpoint_url": "https://minio.example:9000",
                "access_key": "k@y",
                "secret_key": "s/cret",
                "addressing_style": "path",
            },
        ),
        ("s3://k:s@[::1]:9000/bucket?tls=0", {"endpoint_url": "http://[::1]:9000", "bucket_name": "bucket"}),
        ("s3://minio.example/bucket", {"endpoint_url": "https://minio.example"}),
    ],
)
def test_a_url_names_a_storage(url: str, expected: dict[str, Any]) -> None:
    options = storages.by_url(url, Path("/data/files"))["OPTIONS"]
    assert {name: options[name] for name in expected} == expected
    if url == "s3://bucket":
        assert "access_key" not in options and "endpoint_url" not in options


@pytest.mark.parametrize(
    "url",
    [
        "/srv/files",
        "ftp://host/files",
        "file://srv/files",
        "file:///",
        "s3://",
        "s3://key:secret@host",
        "s3://host:9000",
        "s3://host/bucket/folder",
        "s3://key@host/bucket",
        "s3://k:s@host:port/bucket",
        "s3://bucket?regio=eu",
        "s3://bucket?tls=no",
    ],
)
def test_a_wrong_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^(must|has|knows|names)"):
        storages.by_url(url, Path("/data/files"))
