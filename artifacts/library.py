"""The owner's documents as the pages see and change them: list, names, collections, deletion with undo, versions.

A document is an artifact: of the library, or of a conversation. What is not the owner's, was deleted or never was
answers alike: ArtifactMissing. For worker threads and plain views; one transaction each.
"""

import io
import logging
import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Case, Count, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.expressions import Expression, OrderBy
from django.db.models.functions import Lower, Substr
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.models import search_entry
from agents.models.search_entry import Kind
from agents.runtime.artifacts import SHARED, ArtifactInvalid, ArtifactMissing, ArtifactRef
from agents.runtime.knowledge import DocumentState
from artifacts import indexing, names, rows, saving, sniff
from artifacts.models import Artifact, Collection, Passage, Version
from artifacts.rows import Scope, Source, TextStatus

PAGE: Final = 200
PURGE_AT_ONCE: Final = 20
COLLECTION_CHARS: Final = 120
# What the type filter offers: the beginnings of MIME types, those of TEXT also taken by what stands before it
TYPES: Final[dict[str, tuple[str, ...]]] = {
    "pdf": ("application/pdf",),
    "document": (sniff.DOCX,),
    "slides": (sniff.PPTX,),
    "table": (sniff.XLSX, "text/csv", "text/tab-separated-values"),
    "page": ("text/html",),
    "text": ("text/", "application/json"),
    "image": ("image/",),
}
SORTS: Final = ("name", "kind", "size", "changed")  # each also with "-" before it: descending
_STATUSES: Final = {state: tuple(s for s, of in rows.STATES.items() if of is state) for state in DocumentState}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which documents to list. Everything empty: all.

    states: any of these. type: of TYPES. collection: public id. words: all of them in the name; found: artifact keys
    whose text holds them, as a search gave them.
    """

    states: Sequence[DocumentState] = ()
    type: str = ""
    collection: str = ""
    words: str = ""
    found: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The latest version of a document in the list.

    name: as people see it, folders included. reason: Version.text_error. page of pages: how far reading has come.
    of_conversation: attached or made there, perhaps under the name of a document of the library.
    """

    artifact_id: str
    name: str
    version: int
    mime: str
    size_bytes: int
    state: DocumentState
    reason: str
    page: int
    pages: int
    passages: int
    collection_id: str
    collection: str
    of_conversation: bool
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of documents in order. total: how many there are in all; by_state: the same without `states`."""

    documents: tuple[Line, ...]
    total: int
    by_state: dict[DocumentState, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """A collection. documents: how many it holds."""

    id: str
    name: str
    documents: int


def listing(owner_id: int, wanted: Wanted, *, sort: str = "", start: int = 0, most: int = PAGE) -> Listing:
    """Return the owner's documents that are wanted, from the `start`-th on. sort: of SORTS, "" = newest first."""
    found = _matching(owner_id, wanted)
    counts = dict(found.values_list("text_status").annotate(n=Count("pk")).order_by())
    by_state = {state: sum(counts.get(s, 0) for s in statuses) for state, statuses in _STATUSES.items()}
    if wanted.states:
        found = found.filter(text_status__in=[s for state in wanted.states for s in _STATUSES[state]])
    total = sum(by_state[state] for state in wanted.states or by_state)
    page = found.order_by(*_order(sort))[start : start + most]
    return Listing(documents=tuple(_line(row) for row in page), total=total, by_state=by_state)


def lines(owner_id: int, artifact_ids: Sequence[str]) -> tuple[Line, ...]:
    """Return these documents as the list shows them, newest first; what is not there is left out."""
    found = _latest(owner_id).filter(artifact__public_id__in=_uuids(artifact_ids))
    return tuple(_line(row) for row in found.order_by(*_order("")))


def _latest(owner_id: int) -> QuerySet[Version]:
    """Return the latest version of each document; the results that were too long for a conversation are none."""
    alive = rows.alive(Scope(owner=owner_id, session=None)).exclude(origin=Version.Origin.GUARD)
    last = Passage.objects.of(owner_id).filter(version=OuterRef("pk")).order_by("-number").values("number")
    return (
        alive.filter(number=F("artifact__last_version"))
        .select_related("artifact__collection")
        .annotate(last_passage=Subquery(last[:1]))
    )


def _matching(owner_id: int, wanted: Wanted) -> QuerySet[Version]:
    found = _latest(owner_id)
    if wanted.type in TYPES:
        found = found.filter(_of_type(wanted.type))
    if wanted.collection:
        found = found.filter(artifact__collection__public_id__in=_uuids([wanted.collection]))
    if words := wanted.words.replace("\0", "").split():
        in_name = Q()
        for word in words:
            in_name &= Q(shown__icontains=unicodedata.normalize("NFC", word))
        found = found.annotate(shown=_shown_name()).filter(in_name | Q(artifact_id__in=wanted.found))
    return found


def _order(sort: str) -> tuple[OrderBy, ...]:
    """Return the order of a sort; what is equal in it, and what is asked for that there is not, comes newest first."""
    newest = (F("artifact__changed_at").desc(), F("artifact_id").desc())
    keys: dict[str, Expression | F] = {
        "name": Lower(_shown_name()),  # in the database's collation
        "kind": Case(*(When(_of_type(t), then=Value(n)) for n, t in enumerate(TYPES)), default=Value(len(TYPES))),
        "size": F("size_bytes"),
        "changed": F("artifact__changed_at"),
    }
    key = keys.get(sort.removeprefix("-"))
    if key is None:
        return newest
    return (OrderBy(key, descending=sort.startswith("-")), *newest)


def _shown_name() -> Case:
    """Return a name as people see it: without the mark of the library."""
    return Case(When(artifact__session=None, then=Substr("artifact__name", len(SHARED) + 1)), default="artifact__name")


def _of_type(name: str) -> Q:
    begins = Q()
    for start in TYPES[name]:
        begins |= Q(mime__startswith=start)
    if name == "text":
        for other in ("table", "page"):
            begins &= ~_of_type(other)
    return begins


def _line(row: Version) -> Line:
    artifact = row.artifact
    last: int | None = getattr(row, "last_passage", None)
    return Line(
        artifact_id=str(artifact.public_id),
        name=artifact.name.removeprefix(SHARED),
        version=row.number,
        mime=row.mime,
        size_bytes=row.size_bytes,
        state=rows.STATES[TextStatus(row.text_status)],
        reason=row.text_error,
        page=row.pages_read,
        pages=row.pages,
        passages=0 if last is None else last + 1,
        collection_id=str(artifact.collection.public_id) if artifact.collection else "",
        collection=artifact.collection.name if artifact.collection else "",
        of_conversation=artifact.session_id is not None,
        changed_at=artifact.changed_at,
    )


# Changes


@transaction.atomic
def delete(owner_id: int, artifact_ids: Sequence[str]) -> tuple[str, ...]:
    """Hide these documents everywhere, at once, and return which there were. Bytes and rows go after PURGE_AFTER_S.

    Raises ArtifactMissing if there is none of them.
    """
    found = _locked(owner_id, artifact_ids, deleted_at=None, session__deleted_at=None)
    now = timezone.now()
    for artifact in found:
        artifact.deleted_at, artifact.purge_at = now, now + timedelta(seconds=settings.PURGE_AFTER_S)
        artifact.save(update_fields=["deleted_at", "purge_at"])
    search_entry.drop(owner_id, Kind.PASSAGE, [artifact.pk for artifact in found])
    return _ids(found)


@transaction.atomic
def restore(owner_id: int, artifact_ids: Sequence[str]) -> tuple[str, ...]:
    """Take a deletion back and return which documents are there again.

    Raises ArtifactMissing if there is none of them, or they are purged.
    """
    found = _locked(owner_id, artifact_ids, purge_at__isnull=False, session__deleted_at=None)
    for artifact in found:
        artifact.deleted_at = artifact.purge_at = None
        artifact.save(update_fields=["deleted_at", "purge_at"])
        indexing.find_again(artifact)
    return _ids(found)


def purge(most: int = PURGE_AT_ONCE) -> int:
    """Remove deleted documents whose time is up for good, at most so many; return how many. For the sweep."""
    done = 0
    while done < most and _purge_one():
        done += 1
    return done


@transaction.atomic
def _purge_one() -> bool:
    due = Artifact.objects.of_everyone().filter(purge_at__lt=timezone.now()).order_by("purge_at", "pk")
    artifact = due.select_for_update(of=("self",), skip_locked=True).first()
    if artifact is None:
        return False
    saving.purge(artifact)
    artifact.purge_at = None
    artifact.save(update_fields=["purge_at"])
    logger.info("deleted artifact %s purged", artifact.pk)
    return True


def forget_session(owner_id: int, session_id: int) -> None:
    """Drop what makes a conversation's documents searchable, before its rows go."""
    of_it = Artifact.objects.of(owner_id).filter(session=session_id)
    search_entry.drop(owner_id, Kind.PASSAGE, list(of_it.values_list("pk", flat=True)))


@transaction.atomic
def rename(owner_id: int, artifact_id: str, raw_name: str) -> str:
    """Give a document another name, made fit, and return it as people see it. Without an ending it keeps its own.

    Raises ArtifactMissing, ArtifactInvalid.
    """
    stored = rows.find(Scope(owner=owner_id, session=None), artifact_id, None)
    suffix = PurePosixPath(stored.ref.name).suffix
    if not raw_name.strip():
        raise ArtifactInvalid(_("A document needs a name."))
    wanted = raw_name if PurePosixPath(raw_name).suffix else raw_name.strip() + suffix
    name = (SHARED if stored.session is None else "") + names.from_path(wanted)
    namesake = Artifact.objects.of(owner_id).filter(session=stored.session, name=name).first()
    # both at once, in the order of all: two that take each other's name would wait for each other
    known = {str(namesake.public_id), artifact_id} if namesake else {artifact_id}
    found = {str(a.public_id): a for a in _locked(owner_id, sorted(known), session__deleted_at=None)}
    artifact = found.pop(str(uuid.UUID(artifact_id)), None)
    if artifact is None or artifact.deleted_at is not None:
        raise ArtifactMissing("There is no such document.")
    if name != artifact.name:
        _make_room(found.values(), name)
        artifact.name, artifact.changed_at = name, timezone.now()
        with _once(_("There is another document with this name.")):
            artifact.save(update_fields=["name", "changed_at"])
    return name.removeprefix(SHARED)


def _make_room(others: Iterable[Artifact], name: str) -> None:
    """Let a deleted document that has the name go for good; one that is there keeps it, and the change fails."""
    for other in others:
        if other.name == name and other.deleted_at is not None:
            saving.purge(other)
            other.delete()


@contextmanager
def _once(said: str) -> Iterator[None]:
    """Turn down a change that would give a name twice: somebody else may have taken it this very moment."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as e:
        raise ArtifactInvalid(said) from e


@transaction.atomic
def move(owner_id: int, artifact_ids: Sequence[str], collection_id: str) -> tuple[str, ...]:
    """Put documents into a collection, "" = into none, and return which. Raises ArtifactMissing."""
    found = _locked(owner_id, artifact_ids, deleted_at=None, session__deleted_at=None)
    collection = find_collection(owner_id, collection_id, lock=True) if collection_id else None
    Artifact.objects.of(owner_id).filter(pk__in=[a.pk for a in found]).update(collection=collection)
    return _ids(found)


def read_again(owner_id: int, artifact_id: str) -> None:
    """Try a document once more that could not be read; one that was read stays so. Raises ArtifactMissing."""
    indexing.read_again(owner_id, rows.find(Scope(owner=owner_id, session=None), artifact_id, None).pk)


def edit(owner_id: int, artifact_id: str, text: str, *, base: int) -> ArtifactRef:
    """Save the text as the version after `base`.

    Raises ArtifactMissing, ArtifactInvalid (it is no text file), ArtifactConflict (there is a newer version), OSError.
    """
    stored = rows.find(Scope(owner=owner_id, session=None), artifact_id, None)
    if not (stored.ref.mime.startswith("text/") or stored.ref.mime == "application/json"):
        raise ArtifactInvalid(_("Only text can be edited here."))
    source = Source(origin=Version.Origin.EDIT, mime=stored.ref.mime, document=stored.ref.artifact_id)
    file = io.BytesIO(text.encode("utf-8", "replace"))
    return saving.save(Scope(owner=owner_id, session=stored.session), stored.ref.name, file, source, base=base).ref


def restore_version(owner_id: int, artifact_id: str, number: int) -> ArtifactRef:
    """Save an old version once more as the newest one; the newest stays as it is.

    Raises ArtifactMissing, ArtifactConflict (another was saved this very moment), BlobMissing, OSError.
    """
    scope = Scope(owner=owner_id, session=None)
    stored, latest = rows.find(scope, artifact_id, number), rows.find(scope, artifact_id, None)
    if stored.pk == latest.pk:
        return latest.ref
    source = Source(origin=Version.Origin.EDIT, base=number, document=latest.ref.artifact_id)
    return saving.copy(Scope(owner=owner_id, session=stored.session), stored, source, base=latest.ref.version).ref


# Collections


def collections(owner_id: int) -> tuple[Shelf, ...]:
    """Return the owner's collections, by name."""
    alive = Q(artifacts__deleted_at=None, artifacts__session__deleted_at=None, artifacts__last_version__gt=0)
    counted = Collection.objects.of(owner_id).annotate(documents=Count("artifacts", filter=alive))
    return tuple(Shelf(id=str(c.public_id), name=c.name, documents=c.documents) for c in counted.order_by("name"))


@transaction.atomic
def make_collection(owner_id: int, name: str) -> Shelf:
    """Make a collection. Raises ArtifactInvalid: no name, or there is one with it."""
    name = _collection_name(name)
    with _once(_("There is another collection with this name.")):
        made = Collection.objects.of(owner_id).create(owner_id=owner_id, public_id=uuid.uuid4(), name=name)
    return Shelf(id=str(made.public_id), name=name, documents=0)


@transaction.atomic
def rename_collection(owner_id: int, collection_id: str, name: str) -> None:
    """Raises ArtifactMissing, ArtifactInvalid."""
    found = find_collection(owner_id, collection_id, lock=True)
    found.name = _collection_name(name)
    with _once(_("There is another collection with this name.")):
        found.save(update_fields=["name"])


def delete_collection(owner_id: int, collection_id: str) -> None:
    """Delete a collection; its documents stay. Raises ArtifactMissing."""
    find_collection(owner_id, collection_id).delete()


def find_collection(owner_id: int, collection_id: str, *, lock: bool = False) -> Collection:
    """Return a collection by its public id. lock: it stays until the transaction ends. Raises ArtifactMissing."""
    mine = Collection.objects.of(owner_id)
    found = (mine.select_for_update() if lock else mine).filter(public_id__in=_uuids([collection_id])).first()
    if found is None:
        raise ArtifactMissing("There is no such collection.")
    return found


def _collection_name(raw: str) -> str:
    name = " ".join(unicodedata.normalize("NFC", raw).split())
    if not name or len(name) > COLLECTION_CHARS or not names.harmless(name):
        said = _("A collection needs a name of at most %(most)d characters.") % {"most": COLLECTION_CHARS}
        raise ArtifactInvalid(said)
    return name


def _locked(owner_id: int, artifact_ids: Sequence[str], **conditions: object) -> list[Artifact]:
    """Return these of the owner's artifacts, locked, in one order for all. Raises ArtifactMissing if there is none."""
    mine = Artifact.objects.of(owner_id).select_for_update(of=("self",)).select_related("collection")
    wanted = mine.filter(public_id__in=_uuids(artifact_ids), last_version__gt=0, **conditions)
    found = list(wanted.order_by("pk"))
    if not found:
        raise ArtifactMissing("There is no such document.")
    return found


def _ids(found: Sequence[Artifact]) -> tuple[str, ...]:
    return tuple(str(artifact.public_id) for artifact in found)


def _uuids(texts: Sequence[str]) -> list[uuid.UUID]:
    found = []
    for text in texts:
        try:
            found.append(uuid.UUID(text))
        except ValueError:
            continue
    return found
