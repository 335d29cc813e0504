"""From a version's bytes to what is found and cited: its text as a blob, its passages, and, of the latest, its entries.

A text is kept once, in one transaction, whoever read it: the job (agents/background/read.py), a run that could not wait
(store.py), or the saving of a text that is there at once (saving.py). Plain functions for worker threads.
"""

import logging
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import IO, Final, TypeVar

from django.db import transaction
from django.db.models import CharField, Exists, OuterRef, QuerySet, Value
from django.db.models.functions import Cast, Concat
from django.utils import timezone

from agents import jobs
from agents.models import search_entry
from agents.models.job import Job
from agents.models.search_entry import Kind
from agents.runtime.knowledge import place_to_json
from artifacts import blobs, passages
from artifacts.extract.outcome import PARSER_ERRORS, Unreadable
from artifacts.extract.readers import extract
from artifacts.models import Artifact, Passage, Version
from artifacts.passages import MOST_PASSAGES, NewPassage
from artifacts.reading import NOT_READ
from artifacts.rows import Stored, TextStatus, stored_of
from artifacts.textfile import TextReader, TextWriter

AT_ONCE_BYTES: Final = 256 * 1024  # of a text that is made searchable while it is saved; a longer one is a job
BATCH: Final = 500
NOT_ALL: Final = "not_all"  # text_error of a text that is ready: its end is beyond what can be searched
STALE: Final = timedelta(minutes=5)
READER_ERRORS: Final[tuple[type[Exception], ...]] = (Unreadable, *PARSER_ERRORS)
UNREAD: Final = (TextStatus.NONE, TextStatus.WAITING, TextStatus.READING)
_SCOPE: Final = "version:"

T = TypeVar("T")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """An extracted text. blob: where it lies; file: the same, open, a text file of textfile.py."""

    blob: str
    file: IO[bytes]


def plant(version: Version) -> None:
    """Owe the reading of a version, in the caller's transaction."""
    jobs.plant(jobs.READ, owner_id=version.owner_id, scope=f"{_SCOPE}{version.pk}")


def version_of(scope: str) -> int:
    """Return the version that a job's scope names."""
    return int(scope.removeprefix(_SCOPE))


def text_at_once(file: IO[bytes], mime: str, size_bytes: int) -> Text | None:
    """Return the text of a small text file that we made ourselves; None for anything that the child has to read."""
    plain = mime == "application/json" or (mime.startswith("text/") and mime not in ("text/html", "text/xml"))
    if not plain or not 0 < size_bytes <= AT_ONCE_BYTES:
        return None
    out = tempfile.TemporaryFile()
    try:
        file.seek(0)
        source = tempfile.SpooledTemporaryFile(max_size=AT_ONCE_BYTES)
        with source:
            source.write(file.read())
            source.seek(0)
            writer = TextWriter(out)
            extract(source, mime, writer, lambda page, pages: None)
            writer.close()
        return Text(blob=blobs.write(out).key, file=out)
    except READER_ERRORS:
        out.close()
        return None
    except BaseException:
        out.close()
        raise


def begin(owner_id: int, pk: int) -> Stored | None:
    """Say that a version is being read and return it; None if it is gone or was read already."""
    unread = _unread(owner_id, pk)
    if not unread.update(text_status=TextStatus.READING, text_error="", pages_read=0):
        return None
    row = Version.objects.of(owner_id).select_related("artifact").filter(pk=pk).first()
    return stored_of(row) if row else None


def progress(owner_id: int, pk: int, page: int, pages: int) -> None:
    """Note how far the reading of a version has come."""
    _unread(owner_id, pk).update(pages_read=page, pages=pages)


def keep(owner_id: int, pk: int, out: IO[bytes] | None, trouble: str = "") -> bool:
    """Keep what the reading of a version gave: a text file, or why there is none.

    Return whether this was the first to say so: of two who read the same, one keeps it. Raises OSError.
    """
    text = None if trouble or out is None else Text(blob=blobs.write(out).key, file=out)
    try:
        kept = _keep(owner_id, pk, text, trouble)
    except BaseException:
        _let_go(text)
        raise
    if not kept:
        _let_go(text)
    return kept


def _let_go(text: Text | None) -> None:
    if text is not None:
        blobs.delete([text.blob])


@transaction.atomic
def _keep(owner_id: int, pk: int, text: Text | None, trouble: str) -> bool:
    home = Version.objects.of(owner_id).filter(pk=pk).values("artifact_id")
    # the artifact first, as everybody who writes versions: two orders would wait for each other
    artifact = Artifact.objects.of(owner_id).select_for_update(of=("self",)).filter(pk__in=home).first()
    version = _unread(owner_id, pk).first()
    if artifact is None or version is None:
        return False
    if text is None:
        version.text_status, version.text_error = TextStatus.FAILED, trouble
        version.save(update_fields=["text_status", "text_error"])
        if version.number == artifact.last_version:
            forget(artifact)
    else:
        fill(artifact, version, text)
    return True


def fill(artifact: Artifact, version: Version, text: Text) -> None:
    """Give a version its text and passages, and the artifact its entries if the version is its latest.

    In the caller's transaction, which holds the artifact's row.
    """
    reader = TextReader(text.file)
    latest = version.number == artifact.last_version
    if latest:
        forget(artifact)
    Passage.objects.of(version.owner_id).filter(version=version).delete()
    count = end = 0
    for batch in _batches(passages.split(reader, reader.index, most=MOST_PASSAGES)):
        made = Passage.objects.of(version.owner_id).bulk_create(_row(version, new) for new in batch)
        if latest and artifact.deleted_at is None:
            _enter(artifact, version, made)
        count, end = count + len(batch), batch[-1].end
    version.text_status, version.text_blob = TextStatus.READY, text.blob
    version.text_chars = reader.index.total_chars
    version.pages = version.pages_read = len(reader.index.pages)
    cut = count >= MOST_PASSAGES and end < version.text_chars
    version.text_error = NOT_ALL if cut else ""
    version.save(update_fields=["text_status", "text_blob", "text_chars", "pages", "pages_read", "text_error"])
    if latest and count:
        _owe_vectors(artifact)


def find_again(artifact: Artifact) -> None:
    """Make the latest version of a restored artifact searchable from the passages it kept, in the caller's transaction.

    One that was not read yet is read by its job.
    """
    version = Version.objects.of(artifact.owner_id).filter(artifact=artifact, number=artifact.last_version).first()
    if version is None:
        return
    if version.text_status in (TextStatus.WAITING, TextStatus.READING):
        plant(version)
        return
    forget(artifact)
    kept = Passage.objects.of(artifact.owner_id).filter(version=version).order_by("number")
    for batch in _batches(kept.iterator(chunk_size=BATCH)):
        _enter(artifact, version, batch)
    _owe_vectors(artifact)


def forget(artifact: Artifact) -> None:
    """Make an artifact unfindable, in the caller's transaction."""
    search_entry.drop(artifact.owner_id, Kind.PASSAGE, [artifact.pk])


def forget_text(owner_id: int, pk: int, text_blob: str) -> None:
    """Let the text be extracted again, because its blob is gone or broken."""
    lost = Version.objects.of(owner_id).filter(pk=pk, text_blob=text_blob)
    lost.update(text_status=TextStatus.NONE, text_blob="")


def read_again(owner_id: int, pk: int) -> bool:
    """Let a version that could not be read be tried once more; False if there is none such."""
    with transaction.atomic():
        failed = Version.objects.of(owner_id).filter(pk=pk, text_status=TextStatus.FAILED)
        version = failed.select_for_update(of=("self",)).first()
        if version is None:
            return False
        version.text_status, version.text_error = TextStatus.WAITING, ""
        version.save(update_fields=["text_status", "text_error"])
        plant(version)
    return True


def settle(most: int = 100) -> list[tuple[int, str]]:
    """Close readings that no job will finish: every worker that tried died. Return (owner, public id) of each.

    For the sweep.
    """
    scope = Concat(Value(_SCOPE), Cast(OuterRef("pk"), CharField()))
    going = Job.objects.filter(kind=jobs.READ, scope=scope, status__in=(Job.Status.QUEUED, Job.Status.RUNNING))
    lost = Version.objects.of_everyone().filter(
        ~Exists(going),
        text_status__in=(TextStatus.WAITING, TextStatus.READING),
        created_at__lt=timezone.now() - STALE,
    )
    closed = []
    for owner_id, pk, public_id in list(lost.values_list("owner_id", "pk", "artifact__public_id")[:most]):
        if keep(owner_id, pk, None, NOT_READ):
            closed.append((owner_id, str(public_id)))
            logger.warning("version %s was not read: every worker that tried died", pk)
    return closed


def source(stored: Stored) -> IO[bytes]:
    """Return a version's bytes, checked, as a file that the extracting process can be given. Raises BlobMissing."""
    return blobs.open_real(stored.blob, size_bytes=stored.ref.size_bytes, sha256=stored.ref.sha256)


def _unread(owner_id: int, pk: int) -> "QuerySet[Version]":
    return Version.objects.of(owner_id).filter(pk=pk, text_status__in=UNREAD)


def _row(version: Version, new: NewPassage) -> Passage:
    return Passage(
        owner_id=version.owner_id,
        version=version,
        number=new.number,
        start=new.start,
        end=new.end,
        text=new.text,
        place=place_to_json(new.place),
    )


def _enter(artifact: Artifact, version: Version, made: Iterable[Passage]) -> None:
    texts = [
        search_entry.Text(ref=row.pk, position=row.number, text=searched(row), created=version.created_at)
        for row in made
    ]
    search_entry.add(artifact.owner_id, Kind.PASSAGE, artifact.pk, texts)


def searched(passage: Passage) -> str:
    """Return what a passage is found by: its words, and the headings or the table's header row it stands under."""
    return "\n".join([*passage.place.get("heading", ()), passage.text])


def _owe_vectors(artifact: Artifact) -> None:
    jobs.plant(jobs.EMBED, owner_id=artifact.owner_id, scope=f"artifact:{artifact.pk}")


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch
