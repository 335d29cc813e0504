"""Changes to the library that race: one wins, the others are told so, and nobody waits for ever."""

import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agents.runtime.artifacts import ArtifactInvalid, ArtifactMissing
from artifacts import library, rows, saving
from artifacts.library import Wanted
from artifacts.models import Version
from artifacts.rows import Scope, Source
from tests.artifacts.finding import upload

ROUNDS = 5


def at_once(changes: Sequence[Callable[[], object]]) -> list[bool]:
    """Do all at the same moment; return of each whether it was done. What is no refusal is raised."""
    start = Barrier(len(changes))

    def do(change: Callable[[], object]) -> bool:
        try:
            start.wait(timeout=20)
            change()
        except (ArtifactInvalid, ArtifactMissing):
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(len(changes)) as threads:
        return list(threads.map(do, changes))


def bring(owner: User, name: str) -> str:
    return upload(owner, name, name.encode()).ref.artifact_id


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_of_documents_that_take_one_name_one_gets_it(anna: User, turn: int) -> None:
    documents = [bring(anna, f"{n}.txt") for n in range(6)]
    done = at_once([lambda d=d: library.rename(anna.pk, d, "taken.txt") for d in documents])  # type: ignore[misc]
    assert done.count(True) == 1
    shown = [line.name for line in library.listing(anna.pk, Wanted()).documents]
    assert len(shown) == 6 and shown.count("taken.txt") == 1


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_two_documents_that_take_each_others_name_do_not_wait_for_each_other(anna: User, turn: int) -> None:
    one, two = bring(anna, "one.txt"), bring(anna, "two.txt")
    at_once([lambda: library.rename(anna.pk, one, "two.txt"), lambda: library.rename(anna.pk, two, "one.txt")])
    assert len({line.name for line in library.listing(anna.pk, Wanted()).documents}) == 2


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_a_name_that_is_uploaded_and_given_at_once_is_one_documents(anna: User, turn: int) -> None:
    document = bring(anna, "old.txt")
    done = at_once(
        [lambda: upload(anna, "new.txt", b"other words"), lambda: library.rename(anna.pk, document, "new.txt")]
    )
    assert done[0]
    shown = [line.name for line in library.listing(anna.pk, Wanted()).documents]
    assert shown.count("new.txt") == 1


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_a_collections_name_is_given_once(anna: User, turn: int) -> None:
    done = at_once([lambda: library.make_collection(anna.pk, "Taken")] * 6)
    assert done.count(True) == 1
    assert len(library.collections(anna.pk)) == 1


def test_an_edit_never_lands_in_another_document_that_took_the_name(anna: User) -> None:
    edited, other = bring(anna, "plan.txt"), bring(anna, "other.txt")
    scope = Scope(owner=anna.pk, session=None)
    name = rows.find(scope, edited, None).ref.name  # as an edit reads it
    library.rename(anna.pk, edited, "old plan.txt")
    library.rename(anna.pk, other, "plan.txt")
    source = Source(origin=Version.Origin.EDIT, document=edited)
    with pytest.raises(ArtifactMissing):
        saving.save(scope, name, io.BytesIO(b"edited"), source, base=1)
    assert [line.version for line in library.listing(anna.pk, Wanted()).documents] == [1, 1]
