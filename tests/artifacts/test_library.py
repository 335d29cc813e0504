"""The library: what is listed, named, moved, deleted and brought back, and that strangers find nothing."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents import jobs
from agents.background import sweep
from agents.models.job import Job
from agents.models.search_entry import SearchEntry
from agents.models.session import Session
from agents.runtime.artifacts import ArtifactConflict, ArtifactInvalid, ArtifactMissing
from agents.runtime.knowledge import DocumentState
from artifacts import library, rows
from artifacts.library import Wanted
from artifacts.models import Artifact, Passage, Version
from artifacts.rows import Scope
from artifacts.store import DjangoArtifactStore, in_thread
from tests.artifacts.finding import do_jobs, entries, found, upload
from tests.artifacts.pdfs import pdf


def names(owner: User, **wanted: Any) -> list[str]:
    return [line.name for line in library.listing(owner.pk, Wanted(**wanted)).documents]


def bring(owner: User, name: str, data: bytes, **more: Any) -> str:
    return upload(owner, name, data, **more).ref.artifact_id


def blobs_in(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


# The list


def test_the_list_says_of_each_document_what_a_person_wants_to_know(anna: User, session: Session) -> None:
    bring(anna, "reports/报告.pdf", pdf("one", "two"))
    bring(anna, "notes.txt", b"words", session=session.pk)
    do_jobs()
    shelf = library.make_collection(anna.pk, "Survey")
    newest, oldest = library.listing(anna.pk, Wanted()).documents
    library.move(anna.pk, [oldest.artifact_id], shelf.id)
    assert (newest.name, newest.of_conversation, newest.collection) == ("notes.txt", True, "")
    (line,) = library.lines(anna.pk, [oldest.artifact_id, "nonsense", str(uuid.uuid4())])
    assert (line.name, line.version, line.mime, line.state) == (
        "reports/报告.pdf", 1, "application/pdf", DocumentState.READY
    )  # fmt: skip
    assert (line.page, line.pages, line.passages) == (2, 2, 2)
    assert (line.collection, line.collection_id) == ("Survey", shelf.id)
    assert library.collections(anna.pk) == (library.Shelf(id=shelf.id, name="Survey", documents=1),)


def test_the_list_is_narrowed_by_state_type_collection_and_words(anna: User, session: Session) -> None:
    bring(anna, "ready.md", b"# words")
    bring(anna, "broken.pdf", b"%PDF-1.4\nnothing")
    do_jobs()
    bring(anna, "user guide.csv", b"a,b\n1,2\n")
    bring(anna, "photo.png", b"\x89PNG\r\n\x1a\n", session=session.pk)
    assert names(anna) == ["photo.png", "user guide.csv", "broken.pdf", "ready.md"]
    assert names(anna, states=[DocumentState.READY]) == ["ready.md"]
    assert names(anna, states=[DocumentState.FAILED]) == ["broken.pdf"]
    assert names(anna, states=[DocumentState.WAITING, DocumentState.READING]) == ["photo.png", "user guide.csv"]
    assert names(anna, type="table") == ["user guide.csv"] and names(anna, type="text") == ["ready.md"]
    assert names(anna, type="image") == ["photo.png"] and names(anna, type="pdf") == ["broken.pdf"]
    assert names(anna, words="USER gui") == ["user guide.csv"]  # "user:" is ours, and no part of a name
    ready = Artifact.objects.of(anna.pk).get(name="user:ready.md")
    assert names(anna, words="guide", found=[ready.pk]) == ["user guide.csv", "ready.md"]
    assert names(anna, collection=str(uuid.uuid4())) == [] == names(anna, collection="x")
    told = library.listing(anna.pk, Wanted(states=[DocumentState.READY]))
    assert told.total == 1 and told.by_state == {
        DocumentState.WAITING: 2, DocumentState.READING: 0, DocumentState.READY: 1, DocumentState.FAILED: 1
    }  # fmt: skip


def test_a_long_list_comes_in_pages(anna: User) -> None:
    for number in range(5):
        bring(anna, f"{number}.txt", b"x")
    first, second = (library.listing(anna.pk, Wanted(), start=start, most=3) for start in (0, 3))
    assert [line.name for line in (*first.documents, *second.documents)] == [f"{n}.txt" for n in (4, 3, 2, 1, 0)]
    assert first.total == second.total == 5


async def test_results_that_were_too_long_and_deleted_conversations_are_not_listed(
    store: DjangoArtifactStore, anna: User, session: Session
) -> None:
    await store.save(name="whole.txt", data=b"x", origin={"kind": "guard"})
    await store.save(name="report.md", data=b"# x")
    assert await in_thread(names)(anna) == ["report.md"]

    def delete_conversation() -> None:
        Session.objects.of(anna.pk).filter(pk=session.pk).update(deleted_at=timezone.now())

    await in_thread(delete_conversation)()
    assert await in_thread(names)(anna) == []


# Delete, undo, purge


def test_a_deleted_document_is_gone_at_once_and_everywhere_and_comes_back_whole(anna: User) -> None:
    bring(anna, "kept.txt", b"anchors")
    gone = bring(anna, "gone.txt", b"ropes")
    do_jobs()
    Job.objects.all().delete()
    assert library.delete(anna.pk, [gone, "nonsense"]) == (gone,)
    assert names(anna) == ["kept.txt"] and found(anna, "rope") == []
    with pytest.raises(ArtifactMissing):
        rows.find(Scope(owner=anna.pk, session=None), gone, 1)
    with pytest.raises(ArtifactMissing):
        library.delete(anna.pk, [gone])
    assert library.restore(anna.pk, [gone]) == (gone,)
    assert names(anna) == ["gone.txt", "kept.txt"] and found(anna, "rope") == ["ropes"]
    assert found(anna, "anchor") == ["anchors"]
    assert [job.kind for job in Job.objects.all()] == [jobs.EMBED]
    with pytest.raises(ArtifactMissing):
        library.restore(anna.pk, [gone])


def test_a_document_deleted_while_it_waits_is_read_when_it_comes_back(anna: User) -> None:
    gone = bring(anna, "a.txt", b"ropes")
    library.delete(anna.pk, [gone])
    do_jobs()
    assert entries(anna) == 0
    library.restore(anna.pk, [gone])
    do_jobs()
    assert found(anna, "rope") == ["ropes"]


def test_the_sweep_purges_what_was_deleted_long_ago_and_nothing_else(anna: User, files: Path) -> None:
    gone = bring(anna, "gone.txt", b"ropes")
    do_jobs()
    library.delete(anna.pk, [gone])
    Artifact.objects.of(anna.pk).update(purge_at=timezone.now() - timedelta(seconds=1))
    young = bring(anna, "young.txt", b"sails")
    do_jobs()
    library.delete(anna.pk, [young])
    sweep._trim()
    assert [v.artifact.name for v in Version.objects.of(anna.pk).select_related("artifact")] == ["user:young.txt"]
    assert Passage.objects.of(anna.pk).count() == 1 and blobs_in(files) == 2
    with pytest.raises(ArtifactMissing):
        library.restore(anna.pk, [gone])
    assert library.restore(anna.pk, [young]) == (young,)
    assert upload(anna, "gone.txt", b"new ropes").ref.version == 2  # a number is never given again


def test_a_purge_is_bounded(anna: User) -> None:
    library.delete(anna.pk, [bring(anna, f"{n}.txt", b"x") for n in range(3)])
    Artifact.objects.of(anna.pk).update(purge_at=timezone.now() - timedelta(seconds=1))
    assert [library.purge(2), library.purge(2), library.purge(2)] == [2, 1, 0]


def test_a_new_upload_over_a_deleted_document_leaves_nothing_of_the_old(anna: User, files: Path) -> None:
    gone = bring(anna, "a.txt", b"ropes")
    do_jobs()
    library.delete(anna.pk, [gone])
    again = upload(anna, "a.txt", b"ropes")
    assert again.fresh and again.ref.version == 2
    do_jobs()
    assert [v.number for v in Version.objects.of(anna.pk)] == [2] and blobs_in(files) == 2
    with pytest.raises(ArtifactMissing):
        library.restore(anna.pk, [gone])


def test_a_purged_conversation_takes_its_search_entries_along(anna: User, session: Session) -> None:
    bring(anna, "a.txt", b"ropes", session=session.pk)
    bring(anna, "b.txt", b"anchors")
    do_jobs()
    Session.objects.of(anna.pk).update(deleted_at=timezone.now() - 2 * sweep.UNDO_TIME)
    sweep._trim()
    assert (found(anna, "rope"), found(anna, "anchor"), entries(anna)) == ([], ["anchors"], 1)


def test_files_of_a_deleted_conversation_cannot_be_brought_back_alone(anna: User, session: Session) -> None:
    document = bring(anna, "a.txt", b"ropes", session=session.pk)
    library.delete(anna.pk, [document])
    Session.objects.of(anna.pk).update(deleted_at=timezone.now())
    with pytest.raises(ArtifactMissing):
        library.restore(anna.pk, [document])


# Names and collections


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("plan 2.pdf", "plan 2.pdf"),
        ("plan 2", "plan 2.pdf"),
        ("  文件/新 计划.pdf ", "文件/新 计划.pdf"),
        ("../../etc/passwd", "etc/passwd.pdf"),
        ("evil\u202efdp.exe", "evil_fdp.exe"),
        ("user:plan.pdf", "user_plan.pdf"),
    ],
)
def test_a_new_name_is_made_fit_and_keeps_its_ending(anna: User, asked: str, told: str) -> None:
    document = bring(anna, "plan.pdf", pdf("x"))
    assert library.rename(anna.pk, document, asked) == told
    assert names(anna) == [told]


def test_a_name_that_is_taken_or_none_is_refused_and_a_deleted_ones_is_free(anna: User) -> None:
    document, other = bring(anna, "a.txt", b"a"), bring(anna, "b.txt", b"b")
    for wrong in ("b.txt", "  "):
        with pytest.raises(ArtifactInvalid):
            library.rename(anna.pk, document, wrong)
    library.delete(anna.pk, [other])
    assert library.rename(anna.pk, document, "b.txt") == "b.txt"
    with pytest.raises(ArtifactMissing):
        library.restore(anna.pk, [other])


def test_collections_are_made_named_filled_and_deleted(anna: User) -> None:
    shelf = library.make_collection(anna.pk, "  Meter   data ")
    assert shelf.name == "Meter data"
    document = bring(anna, "a.txt", b"a")
    library.move(anna.pk, [document], shelf.id)
    assert names(anna, collection=shelf.id) == ["a.txt"]
    library.rename_collection(anna.pk, shelf.id, "电表")
    assert [(c.name, c.documents) for c in library.collections(anna.pk)] == [("电表", 1)]
    library.delete(anna.pk, [document])
    assert [(c.name, c.documents) for c in library.collections(anna.pk)] == [("电表", 0)]
    library.restore(anna.pk, [document])
    library.move(anna.pk, [document], "")
    library.move(anna.pk, [document], shelf.id)
    library.delete_collection(anna.pk, shelf.id)
    assert library.collections(anna.pk) == () and names(anna) == ["a.txt"]


@pytest.mark.parametrize("name", ["", "   ", "x" * 121, "a\u202eb", "Taken"])
def test_a_collection_needs_a_name_of_its_own(anna: User, name: str) -> None:
    library.make_collection(anna.pk, "Taken")
    shelf = library.make_collection(anna.pk, "Other")
    for attempt in (
        lambda: library.make_collection(anna.pk, name),
        lambda: library.rename_collection(anna.pk, shelf.id, name),
    ):
        with pytest.raises(ArtifactInvalid):
            attempt()


# Versions


def test_an_edit_is_the_next_version_and_a_late_one_names_what_came_between(anna: User) -> None:
    document = bring(anna, "a.md", b"# ropes")
    do_jobs()
    edited = library.edit(anna.pk, document, "# anchors", base=1)
    assert (edited.version, edited.mime) == (2, "text/markdown")
    assert (found(anna, "rope"), found(anna, "anchor")) == ([], ["# anchors"])
    with pytest.raises(
        ArtifactConflict, match=r'"user:a\.md" was changed meanwhile: version 2 is newer than 1'
    ) as late:
        library.edit(anna.pk, document, "# sails", base=1)
    assert (late.value.latest, late.value.newer) == (2, edited)
    row = Version.objects.of(anna.pk).get(number=2)
    assert (row.origin, row.base_number) == (Version.Origin.EDIT, 1)
    with pytest.raises(ArtifactMissing):
        library.edit(anna.pk, str(uuid.uuid4()), "x", base=1)


def test_only_text_can_be_edited(anna: User) -> None:
    with pytest.raises(ArtifactInvalid):
        library.edit(anna.pk, bring(anna, "a.pdf", pdf("x")), "x", base=1)


def test_an_old_version_is_restored_as_the_newest_and_found_again(anna: User, files: Path) -> None:
    document = bring(anna, "a.txt", b"ropes")
    upload(anna, "a.txt", b"anchors")
    do_jobs()
    assert library.restore_version(anna.pk, document, 2).version == 2  # it is the newest
    assert library.restore_version(anna.pk, document, 1).version == 3
    do_jobs()
    assert (found(anna, "rope"), found(anna, "anchor")) == (["ropes"], [])
    row = Version.objects.of(anna.pk).get(number=3)
    assert (row.base_number, row.sha256) == (1, Version.objects.of(anna.pk).get(number=1).sha256)
    with pytest.raises(ArtifactMissing):
        library.restore_version(anna.pk, document, 9)


async def test_a_tools_change_to_an_old_version_is_refused(store: DjangoArtifactStore) -> None:
    await store.save(name="a.md", data=b"one")
    assert (await store.save(name="a.md", data=b"two", base=1)).version == 2
    with pytest.raises(ArtifactConflict):
        await store.save(name="a.md", data=b"three", base=1)
    with pytest.raises(ArtifactMissing):
        await store.save(name="never.md", data=b"x", base=1)
    assert [ref.version for ref in await store.versions("a.md")] == [1, 2]
    assert await store.versions("never.md") == ()


# Strangers

Act = Callable[[int, str, str], object]
ACTS: dict[str, Act] = {
    "delete": lambda owner, document, shelf: library.delete(owner, [document]),
    "restore": lambda owner, document, shelf: library.restore(owner, [document]),
    "rename": lambda owner, document, shelf: library.rename(owner, document, "mine.txt"),
    "take out": lambda owner, document, shelf: library.move(owner, [document], ""),
    "put in": lambda owner, document, shelf: library.move(owner, [document], shelf),
    "read again": lambda owner, document, shelf: library.read_again(owner, document),
    "edit": lambda owner, document, shelf: library.edit(owner, document, "mine", base=1),
    "restore a version": lambda owner, document, shelf: library.restore_version(owner, document, 1),
    "find": lambda owner, document, shelf: rows.find(Scope(owner=owner, session=None), document, 1),
    "name a collection": lambda owner, document, shelf: library.rename_collection(owner, shelf, "Mine"),
    "delete a collection": lambda owner, document, shelf: library.delete_collection(owner, shelf),
}


@pytest.mark.parametrize("what", ACTS)
@pytest.mark.parametrize("deleted", [False, True])
def test_a_strangers_document_is_not_found(anna: User, boris: User, what: str, deleted: bool) -> None:
    document = bring(anna, "secret.txt", b"ropes")
    do_jobs()
    shelf = library.make_collection(anna.pk, "Secret")
    library.move(anna.pk, [document], shelf.id)
    if deleted:
        library.delete(anna.pk, [document])
    before = list(Artifact.objects.of(anna.pk).values()), entries(anna), library.collections(anna.pk)
    for target in (document, str(uuid.uuid4()), "nonsense"):
        with pytest.raises(ArtifactMissing):
            ACTS[what](boris.pk, target, shelf.id)
    assert (list(Artifact.objects.of(anna.pk).values()), entries(anna), library.collections(anna.pk)) == before


def test_a_stranger_sees_neither_documents_nor_collections(anna: User, boris: User) -> None:
    document = bring(anna, "secret.txt", b"ropes")
    shelf = library.make_collection(anna.pk, "Secret")
    library.move(anna.pk, [document], shelf.id)
    pk = Artifact.objects.of(anna.pk).get().pk
    assert library.lines(boris.pk, [document]) == ()
    for wanted in (Wanted(), Wanted(collection=shelf.id), Wanted(words="x", found=[pk])):
        assert library.listing(boris.pk, wanted).documents == ()
    assert library.collections(boris.pk) == ()
    mine = bring(boris, "mine.txt", b"sails")
    with pytest.raises(ArtifactMissing):
        library.move(boris.pk, [mine], shelf.id)
    assert library.delete(boris.pk, [mine, document]) == (mine,)
    assert names(anna) == ["secret.txt"]
    assert not SearchEntry.objects.of(boris.pk).exists()
