import asyncio
import hashlib
import io
import os
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DataError
from django.utils import timezone

from agents.models.session import Session
from agents.runtime.artifacts import ArtifactInvalid, ArtifactMissing
from artifacts import blobs, rows, saving
from artifacts.models import Artifact, Version
from artifacts.store import DjangoArtifactStore, in_thread


def blobs_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def test_4_3_1_saving_a_name_three_times_gives_versions_one_to_three(store: DjangoArtifactStore) -> None:
    refs = [await store.save(name="a.txt", data=data) for data in (b"one", b"two", b"three")]
    assert [ref.version for ref in refs] == [1, 2, 3]
    assert await store.load(await store.find("a.txt")) == b"three"
    assert await store.load(await store.find("a.txt", 1)) == b"one"
    assert [ref.version for ref in await store.versions("a.txt")] == [1, 2, 3]
    assert len({ref.artifact_id for ref in refs}) == 1
    assert refs[1].sha256 == hashlib.sha256(b"two").hexdigest() and refs[1].size_bytes == 3


async def test_4_3_2_a_user_name_is_seen_from_every_session_of_its_owner_only(
    store: DjangoArtifactStore, anna: User, boris: User
) -> None:
    await store.save(name="user:logo.png", data=b"\x89PNG\r\n\x1a\n")
    elsewhere = await in_thread(_session)(anna, "t2")
    second = DjangoArtifactStore(owner_id=anna.pk, session_id=str(elsewhere.pk))
    assert [ref.name for ref in await second.list()] == ["user:logo.png"]
    assert (await second.find("user:logo.png")).mime == "image/png"
    outside = DjangoArtifactStore(owner_id=anna.pk, session_id=None)
    assert [ref.name for ref in await outside.list()] == ["user:logo.png"]
    stranger = await in_thread(_session)(boris, "t1")
    foreign = DjangoArtifactStore(owner_id=boris.pk, session_id=str(stranger.pk))
    assert await foreign.list() == ()
    with pytest.raises(ArtifactMissing):
        await foreign.find("user:logo.png")


async def test_4_3_3_the_same_name_in_two_sessions_has_versions_of_its_own(
    store: DjangoArtifactStore, anna: User
) -> None:
    other = DjangoArtifactStore(owner_id=anna.pk, session_id=str((await in_thread(_session)(anna, "t2")).pk))
    await store.save(name="a.txt", data=b"1")
    await store.save(name="a.txt", data=b"2")
    assert (await other.save(name="a.txt", data=b"other")).version == 1
    assert await other.load(await other.find("a.txt")) == b"other"
    assert await store.load(await store.find("a.txt")) == b"2"


async def test_4_3_4_ten_saves_at_once_become_versions_one_to_ten(store: DjangoArtifactStore) -> None:
    payloads = [f"payload {n}".encode() for n in range(10)]
    refs = await asyncio.gather(*(store.save(name="a.txt", data=data) for data in payloads))
    assert sorted(ref.version for ref in refs) == list(range(1, 11))
    assert sorted([await store.load(ref) for ref in refs]) == sorted(payloads)
    assert [await store.load(ref) for ref in refs] == payloads


async def test_4_3_5_deleting_leaves_nothing_but_the_count(store: DjangoArtifactStore, files: Path) -> None:
    old = await store.save(name="a.txt", data=b"old")
    await store.save(name="a.txt", data=b"newer")
    await store.delete("a.txt")
    with pytest.raises(ArtifactMissing):
        await store.find("a.txt")
    with pytest.raises(ArtifactMissing):
        await store.load(old)
    assert await store.versions("a.txt") == ()
    assert await store.list() == ()
    await store.delete("a.txt")
    await store.delete("never there")
    assert (await store.save(name="a.txt", data=b"again")).version == 3
    with pytest.raises(ArtifactMissing):
        await store.find(old.artifact_id, 1)
    assert len(blobs_in(files)) == 2  # what was deleted is gone for good: the new bytes, and their text


@pytest.mark.parametrize("name", ["", "../x", "a\\b", "a\0b", "/abs", "a//b", "user:", "user:../x", "dir/"])
async def test_4_3_6_a_name_that_is_not_clean_is_refused_and_leaves_nothing(
    store: DjangoArtifactStore, files: Path, name: str
) -> None:
    with pytest.raises(ArtifactInvalid):
        await store.save(name=name, data=b"x")
    assert blobs_in(files) == []


async def test_4_3_6_a_name_with_folders_is_accepted(store: DjangoArtifactStore, files: Path) -> None:
    ref = await store.save(name="out/报告 👩‍💻.md", data=b"# x")
    assert (ref.name, ref.mime) == ("out/报告 👩‍💻.md", "text/markdown")
    assert await store.find("out/报告 👩‍💻.md") == ref
    assert "报告" not in str(blobs_in(files)[0])


async def test_4_3_9_a_corrupt_blob_is_missing_content_and_an_error_in_the_log(
    store: DjangoArtifactStore, files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ref = await store.save(name="a.txt", data=b"good bytes", origin={"kind": "upload"})
    blobs_in(files)[0].write_bytes(b"evil bytes")
    with pytest.raises(ArtifactMissing, match="unavailable"):
        await store.load(ref)
    with pytest.raises(ArtifactMissing, match="unavailable"):
        await store.read_text(ref)
    assert "gone or not what was written" in caplog.text
    assert (await store.find("a.txt")) == ref  # the conversation still knows of it
    blobs_in(files)[0].unlink()
    with pytest.raises(ArtifactMissing):
        await store.load(ref)


async def test_4_3_10_a_pinned_reference_keeps_its_bytes_when_a_newer_version_comes(store: DjangoArtifactStore) -> None:
    pinned = await store.save(name="a.txt", data=b"first")
    await store.save(name="a.txt", data=b"second")
    assert await store.load(pinned) == b"first"
    assert await store.load(await store.find("a.txt", 1)) == b"first"
    assert await store.load(await store.find("a.txt")) == b"second"


async def test_a_missing_version_says_which_is_the_latest(store: DjangoArtifactStore) -> None:
    await store.save(name="a.txt", data=b"x")
    with pytest.raises(ArtifactMissing, match=r'no version 99 of "a\.txt"; the latest is 1'):
        await store.find("a.txt", 99)
    with pytest.raises(ArtifactMissing, match=r'no file "b\.txt"'):
        await store.find("b.txt")


async def test_a_strangers_file_is_not_found_by_its_id(store: DjangoArtifactStore, boris: User) -> None:
    ref = await store.save(name="a.txt", data=b"secret")
    foreign = DjangoArtifactStore(owner_id=boris.pk, session_id=None)
    with pytest.raises(ArtifactMissing):
        await foreign.find(ref.artifact_id)
    with pytest.raises(ArtifactMissing):
        await foreign.load(ref)
    with pytest.raises(ArtifactMissing):
        await foreign.stream(ref)
    with pytest.raises(ArtifactMissing):
        await foreign.read_text(ref)
    assert await foreign.versions(ref.artifact_id) == ()
    await foreign.delete(ref.artifact_id)
    assert await store.load(ref) == b"secret"


async def test_nobody_can_save_into_a_strangers_session(boris: User, session: Session, files: Path) -> None:
    foreign = DjangoArtifactStore(owner_id=boris.pk, session_id=str(session.pk))
    with pytest.raises(ArtifactInvalid):
        await foreign.save(name="a.txt", data=b"x")
    assert blobs_in(files) == []


async def test_files_of_a_deleted_conversation_are_not_found(store: DjangoArtifactStore, session: Session) -> None:
    ref = await store.save(name="a.txt", data=b"x")

    def mark(at: object) -> None:
        Session.objects.of(session.owner_id).filter(pk=session.pk).update(deleted_at=at)

    await in_thread(mark)(timezone.now())
    with pytest.raises(ArtifactMissing):
        await store.load(ref)
    await in_thread(mark)(None)
    assert await store.load(ref) == b"x"


async def test_a_name_that_looks_like_an_id_is_found_by_name(store: DjangoArtifactStore) -> None:
    name = uuid.uuid4().hex
    await store.save(name=name, data=b"x")
    assert (await store.find(name)).name == name


async def test_what_people_bring_passes_the_door_and_what_tools_make_does_not(store: DjangoArtifactStore) -> None:
    program = b"\x7fELF\x02\x01\x01\x00"
    with pytest.raises(ArtifactInvalid):
        await store.save(name="a.txt", data=program, mime="text/plain", origin={"kind": "upload"})
    ref = await store.save(name="a.txt", data=b"%PDF-1.4\n", mime="text/plain", origin={"kind": "upload"})
    assert ref.mime == "application/pdf"
    named = await store.save(name="C:\\Users\\x\\计划.md", data=b"# x", origin={"kind": "upload"})
    assert named.name == "计划.md"
    kept = await store.save(name="b.bin", data=program, origin={"kind": "tool", "run_id": "r", "tool_call_id": "c"})
    assert kept.mime == "application/x-executable"


@pytest.mark.parametrize(
    ("mime", "kept"),
    [("text/plain; charset=utf-8", "text/plain"), ("Text/HTML", "text/html"), ("x\r\nSet-Cookie: a", "text/markdown")],
)
async def test_a_type_that_a_tool_names_is_kept_plain_or_not_at_all(
    store: DjangoArtifactStore, mime: str, kept: str
) -> None:
    assert (await store.save(name="a.md", data=b"x", mime=mime)).mime == kept


async def test_blobs_are_readable_by_their_owner_only(store: DjangoArtifactStore, files: Path) -> None:
    await store.save(name="a.txt", data=b"x", origin={"kind": "upload"})
    (blob,) = blobs_in(files)
    assert os.stat(blob).st_mode & 0o777 == 0o600
    assert os.stat(blob.parent).st_mode & 0o777 == 0o700
    assert blob.parent.parent.name == blob.name[:2] and blob.parent.name == blob.name[2:4]


def test_a_failed_row_takes_its_blob_along(session: Session, files: Path) -> None:
    scope = rows.Scope(owner=session.owner_id, session=session.pk)
    source = rows.Source(origin=Version.Origin.TOOL, run_id="a\0")  # PostgreSQL refuses it at the insert
    with pytest.raises(DataError):
        saving.save(scope, "a.txt", io.BytesIO(b"x"), source)
    assert blobs_in(files) == []
    assert not Artifact.objects.of(session.owner_id).exists()


def test_a_write_that_breaks_off_leaves_no_half_blob(files: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 0:
                raise OSError("disk gone")
            return super().read(1000)

    with pytest.raises(OSError, match="disk gone"):
        blobs.write(Broken(b"x" * 5000))
    assert blobs_in(files) == []


def test_the_sweep_deletes_old_blobs_without_a_row_only(session: Session, files: Path) -> None:
    scope = rows.Scope(owner=session.owner_id, session=session.pk)
    saving.save(scope, "a.txt", io.BytesIO(b"kept"), rows.Source(origin=Version.Origin.TOOL))
    version = Version.objects.of(session.owner_id).get()
    assert version.text_blob
    old, young = blobs.write(io.BytesIO(b"orphan")), blobs.write(io.BytesIO(b"young"))
    long_ago = time.time() - 7200
    for key in (version.blob, version.text_blob, old.key):
        os.utime(files / key, (long_ago, long_ago))
    deleted = sum(rows.sweep(shelf=f"{shelf:02x}") for shelf in range(256))
    assert deleted == 1
    assert {path.name for path in blobs_in(files)} == {
        key.rsplit("/", 1)[1] for key in (version.blob, version.text_blob, young.key)
    }
    rows.sweep()  # any shelf


async def test_a_stream_gives_the_bytes_and_holds_the_last_piece_until_they_are_checked(
    store: DjangoArtifactStore, files: Path
) -> None:
    data = os.urandom(600_000)
    ref = await store.save(name="a.bin", data=data)
    assert b"".join([piece async for piece in await store.stream(ref)]) == data
    blob = blobs_in(files)[0]
    blob.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    sent = b""
    with pytest.raises(ArtifactMissing):
        async for piece in await store.stream(ref):
            sent += piece
    assert 0 < len(sent) < len(data)
    blob.write_bytes(b"short")
    with pytest.raises(ArtifactMissing):
        await store.stream(ref)


async def test_an_empty_file_can_be_saved_by_a_tool_and_streamed(store: DjangoArtifactStore) -> None:
    ref = await store.save(name="empty.txt", data=b"")
    assert await store.load(ref) == b""
    assert b"".join([piece async for piece in await store.stream(ref)]) == b""


def _session(owner: User, thread_id: str) -> Session:
    return Session.objects.of(owner.pk).create(owner=owner, thread_id=thread_id, agent="assistant")


async def test_a_storage_that_is_no_file_system_serves_as_well(store: DjangoArtifactStore, settings: Any) -> None:
    memory = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    settings.STORAGES = {**settings.STORAGES, "artifacts": memory}
    data = b"Zeile\n" * 100_000
    ref = await store.save(name="a.txt", data=data)
    assert await store.load(ref) == data
    assert (await store.read_text(ref, cursor="line:50000", max_chars=100)).text.startswith("Zeile\n")
    assert b"".join([piece async for piece in await store.stream(ref)]) == data
    assert await in_thread(lambda: sum(rows.sweep(shelf=f"{n:02x}") for n in range(256)))() == 0
    await store.delete("a.txt")
    with pytest.raises(ArtifactMissing):
        await store.load(ref)
