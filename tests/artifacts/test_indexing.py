"""From saved to found: who reads a file, what is kept, and what a newer version, a death or a race changes."""

import asyncio
import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.contrib.auth.models import User
from django.db import DataError
from django.utils import timezone

from agents import hints, jobs
from agents.background import read
from agents.models.job import Job
from agents.models.session import Session
from agents.runtime.artifacts import ArtifactUnreadable
from agents.runtime.errors import ToolFailure
from artifacts import indexing, library, reading, rows, saving
from artifacts.models import Passage, Version
from artifacts.reading import NOT_READ, UNAVAILABLE, Extraction, ExtractionFailed
from artifacts.rows import Scope, Source, TextStatus
from artifacts.store import DjangoArtifactStore, in_thread
from tests.artifacts.finding import do_jobs, entries, found, upload
from tests.artifacts.pdfs import pdf

NOTES = "# Costs\n\nThe harbour crane costs 400 euro.\n\n# Weather\n\nStorms come in autumn.\n"


def version(owner: User, number: int = 1) -> Version:
    return Version.objects.of(owner.pk).get(number=number)


def test_an_upload_waits_is_read_by_its_job_and_is_found(anna: User) -> None:
    upload(anna, "plan.pdf", pdf("Paint the harbour wall", "Buy ropes"))
    assert (version(anna).text_status, entries(anna)) == (TextStatus.WAITING, 0)
    assert do_jobs() == 1
    row = version(anna)
    assert (row.text_status, row.pages, row.pages_read) == (TextStatus.READY, 2, 2)
    assert row.text_chars > 30
    assert found(anna, "rope") == ["Buy ropes"]
    assert [p.place for p in Passage.objects.of(anna.pk).order_by("number")] == [{"page": 1}, {"page": 2}]
    assert Job.objects.get(kind=jobs.EMBED).scope == f"artifact:{row.artifact_id}"


async def test_what_a_tool_writes_is_found_with_its_version(store: DjangoArtifactStore, anna: User) -> None:
    await store.save(name="notes.md", data=NOTES.encode())

    def look() -> None:
        assert version(anna).text_status == TextStatus.READY
        assert len(found(anna, "crane")) == 1
        assert not Job.objects.filter(kind=jobs.READ).exists()

    await in_thread(look)()


async def test_a_passage_is_found_by_the_heading_it_stands_under(store: DjangoArtifactStore, anna: User) -> None:
    await store.save(name="notes.md", data=NOTES.encode())
    texts = await in_thread(found)(anna, "weather", "autumn")
    assert len(texts) == 1 and "Storms" in texts[0]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("page.html", b"<html><body><p>crane</p></body></html>"),
        ("long.md", b"crane words here. " * 20_000),
        ("picture.png", b"\x89PNG\r\n\x1a\n"),
        ("plan.pdf", pdf("crane")),
    ],
)
async def test_what_a_tool_makes_that_is_no_short_text_is_read_by_a_job(
    store: DjangoArtifactStore, anna: User, name: str, data: bytes
) -> None:
    await store.save(name=name, data=data)
    assert (await in_thread(version)(anna)).text_status == TextStatus.WAITING
    assert await in_thread(lambda: Job.objects.filter(kind=jobs.READ).count())() == 1


async def test_a_result_too_long_for_its_conversation_is_kept_and_not_searched(
    store: DjangoArtifactStore, anna: User
) -> None:
    await store.save(name="result.txt", data=b"crane " * 100, origin={"kind": "guard"})
    assert (await in_thread(version)(anna)).text_status == TextStatus.NONE
    assert not await in_thread(lambda: Job.objects.exists())()
    assert await in_thread(entries)(anna) == 0


async def test_a_run_that_cannot_wait_reads_at_once_and_makes_the_file_searchable(
    anna: User, session: Session, store: DjangoArtifactStore
) -> None:
    saved = await in_thread(upload)(anna, "plan.pdf", pdf("Buy ropes"), session=session.pk)
    assert "ropes" in (await store.read_text(saved.ref)).text
    assert await in_thread(found)(anna, "rope") == ["Buy ropes"]
    assert await in_thread(do_jobs)() == 1  # the job finds that there is nothing left to do
    assert await in_thread(entries)(anna) == 1


def test_only_the_latest_version_is_found_and_older_passages_stay(anna: User) -> None:
    upload(anna, "a.txt", b"ropes")
    do_jobs()
    upload(anna, "a.txt", b"anchors")
    do_jobs()
    assert (found(anna, "rope"), found(anna, "anchor")) == ([], ["anchors"])
    old = Passage.objects.of(anna.pk).get(version=version(anna, 1))
    assert (old.text, old.start, old.end) == ("ropes", 0, 5)


def test_versions_read_in_the_wrong_order_leave_the_latest_found(anna: User) -> None:
    for data in (b"ropes", b"anchors"):
        upload(anna, "a.txt", data)
    first, second = Job.objects.filter(kind=jobs.READ).order_by("pk")
    for job in (second, first):
        claim = jobs.claim(job.pk)
        assert claim
        asyncio.run(read.run(claim))
    assert (found(anna, "rope"), found(anna, "anchor")) == ([], ["anchors"])
    assert version(anna, 1).text_status == TextStatus.READY


def test_a_newer_version_without_text_hides_the_older_ones(anna: User) -> None:
    upload(anna, "a.pdf", pdf("ropes"))
    do_jobs()
    upload(anna, "a.pdf", b"%PDF-1.4\nnothing")
    do_jobs()
    assert version(anna, 2).text_status == TextStatus.FAILED
    assert entries(anna) == 0


def test_two_workers_that_read_the_same_keep_one_text(anna: User, files: Path) -> None:
    upload(anna, "a.txt", b"ropes")
    pk = version(anna).pk
    stored = indexing.begin(anna.pk, pk)
    again = indexing.begin(anna.pk, pk)
    assert stored and again
    for _ in range(2):
        with indexing.source(stored) as source, (files / "out").open("w+b") as out:
            assert Extraction(source, "text/plain").run(out) is None
            indexing.keep(anna.pk, pk, out)
    assert entries(anna) == 1 and Passage.objects.of(anna.pk).count() == 1
    (files / "out").unlink()
    assert len([p for p in files.rglob("*") if p.is_file()]) == 2  # bytes and one text


def test_a_text_that_cannot_be_read_says_why_and_is_not_tried_again(anna: User) -> None:
    upload(anna, "a.pdf", b"%PDF-1.4\nnothing")
    do_jobs()
    assert (version(anna).text_status, version(anna).text_error) == (TextStatus.FAILED, "broken")
    assert do_jobs() == 0 and indexing.settle() == []


def test_bytes_that_are_gone_are_said(anna: User, files: Path) -> None:
    upload(anna, "a.txt", b"ropes")
    next(p for p in files.rglob("*") if p.is_file()).unlink()
    do_jobs()
    assert version(anna).text_error == UNAVAILABLE


def test_a_reader_that_dies_each_time_is_tried_three_times(anna: User, settings: Any, tmp_path: Path) -> None:
    settings.BASE_DIR = tmp_path  # the child finds no program there
    saved = upload(anna, "a.txt", b"ropes")
    job = Job.objects.get(kind=jobs.READ)
    for attempt in (1, 2, 3):
        claim = jobs.claim(job.pk)
        assert claim and claim.attempt == attempt
        if attempt < read.TRIES:
            with pytest.raises(ExtractionFailed):
                asyncio.run(read.run(claim))
            jobs.failed(claim, "ExtractionFailed", "")
        else:
            asyncio.run(read.run(claim))
    assert (version(anna).text_status, version(anna).text_error) == (TextStatus.FAILED, NOT_READ)
    settings.BASE_DIR = Path(__file__).resolve().parents[2]
    library.read_again(anna.pk, saved.ref.artifact_id)
    do_jobs()
    assert found(anna, "rope") == ["ropes"]


def test_a_job_whose_worker_died_is_done_by_the_next(anna: User) -> None:
    upload(anna, "a.txt", b"ropes")
    job = Job.objects.get(kind=jobs.READ)
    dead = jobs.claim(job.pk)
    assert dead and indexing.begin(anna.pk, version(anna).pk)
    assert jobs.claim(job.pk) is None
    Job.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert job.pk in jobs.due()
    claim = jobs.claim(job.pk)
    assert claim and claim.attempt == 2
    asyncio.run(read.run(claim))
    assert found(anna, "rope") == ["ropes"]
    assert not jobs.renew(dead) and jobs.renew(claim)


def test_what_every_worker_died_of_is_closed_by_the_sweep(anna: User) -> None:
    saved = upload(anna, "a.txt", b"ropes")
    assert indexing.begin(anna.pk, version(anna).pk)
    Version.objects.of(anna.pk).update(created_at=timezone.now() - 2 * indexing.STALE)
    assert indexing.settle() == []  # its job waits
    Job.objects.update(status=Job.Status.DEAD)
    assert indexing.settle() == [(anna.pk, saved.ref.artifact_id)]
    assert version(anna).text_error == NOT_READ


def test_a_save_that_breaks_off_leaves_neither_text_nor_entries(anna: User, files: Path) -> None:
    source = Source(origin=Version.Origin.TOOL, run_id="a\0")  # PostgreSQL refuses it at the insert
    with pytest.raises(DataError):
        saving.save(Scope(owner=anna.pk, session=None), "user:a.md", io.BytesIO(b"# ropes"), source)
    assert entries(anna) == 0 and [p for p in files.rglob("*") if p.is_file()] == []


async def test_a_failed_text_has_words_for_the_model_and_a_code_for_people(
    anna: User, session: Session, store: DjangoArtifactStore
) -> None:
    saved = await in_thread(upload)(anna, "a.txt", b"ropes", session=session.pk)
    for trouble, code in (
        (NOT_READ, ToolFailure.FILE_NOT_READ),
        (UNAVAILABLE, ToolFailure.FILE_UNAVAILABLE),
    ):
        await in_thread(lambda t=trouble: Version.objects.of(anna.pk).update(text_status="failed", text_error=t))()
        with pytest.raises(ArtifactUnreadable) as told:
            await store.read_text(saved.ref)
        assert told.value.code is code


def test_what_is_beyond_the_last_passage_is_said(anna: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artifacts.indexing.MOST_PASSAGES", 2)
    upload(anna, "a.txt", b"Ropes and anchors are kept in the shed behind the harbour wall. " * 100)
    do_jobs()
    assert (version(anna).text_status, version(anna).text_error) == (TextStatus.READY, indexing.NOT_ALL)
    assert entries(anna) == 2


def test_a_strangers_version_is_neither_read_nor_tried_again(anna: User, boris: User) -> None:
    saved = upload(anna, "a.txt", b"ropes")
    pk = version(anna).pk
    assert indexing.begin(boris.pk, pk) is None
    assert not indexing.keep(boris.pk, pk, None, "broken")
    assert not indexing.read_again(boris.pk, pk)
    with pytest.raises(LookupError):
        library.read_again(boris.pk, saved.ref.artifact_id)
    assert rows.find(Scope(owner=anna.pk, session=None), saved.ref.artifact_id, None).text_status == "waiting"


async def test_open_pages_hear_that_a_document_is_read_and_how_far(anna: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "TELL_S", 0.01)
    monkeypatch.setattr(reading, "TELL_EVERY_S", 0.01)
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(hints.group(anna.pk), channel)
    saved = await in_thread(upload)(anna, "long.pdf", pdf(*["Paint the harbour wall. " * 200] * 150))
    claim = await in_thread(lambda: jobs.claim(Job.objects.get(kind=jobs.READ).pk))()
    assert claim
    going_on = asyncio.ensure_future(read.run(claim))
    pages: set[tuple[int, int]] = set()
    async with asyncio.timeout(60):
        while True:
            message = await layer.receive(channel)
            assert (message["owner_id"], message["hints"]) == (anna.pk, [{"documents": [saved.ref.artifact_id]}])
            row = await in_thread(version)(anna)
            pages.add((row.pages_read, row.pages))
            if row.text_status == TextStatus.READY:
                break
    await going_on
    await layer.flush()
    assert (150, 150) in pages and any(0 < page < 150 and of == 150 for page, of in pages)
