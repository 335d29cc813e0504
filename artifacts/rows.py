"""The rows of artifacts and versions. Plain functions for worker threads and plain views; one transaction each.

Every function takes a Scope, so that nothing is found or changed beyond one owner.
"""

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import IO, Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agents.models.session import Fork, Session
from agents.runtime.artifacts import SHARED, ArtifactInvalid, ArtifactMissing, ArtifactRef, clean_name
from artifacts import blobs
from artifacts.models import Artifact, Version
from artifacts.sniff import HEAD_BYTES, admit, sniff

_MIME = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,100}")
ORPHAN_AGE = timedelta(hours=1)  # a blob's row comes within one transaction; longer is never


class TextStatus(StrEnum):
    """Values of Version.text_status."""

    NONE = ""  # nobody asked yet
    READY = "ready"
    FAILED = "failed"  # text_error says why


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose files, seen from where. session: primary key, or None for what belongs to no conversation."""

    owner: int
    session: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a version comes from. mime: without parameters; "" = by its bytes, as always for an upload."""

    origin: Version.Origin
    mime: str = ""
    original_name: str = ""
    run_id: str = ""
    tool_call_id: str = ""

    @classmethod
    def of(cls, origin: Mapping[str, Any] | None, mime: str) -> "Source":
        """Return the source that a caller's origin names: {"kind", "run_id", "tool_call_id"}, kind "tool" if absent."""
        named = origin or {}
        plain = mime.partition(";")[0].strip().lower()
        return cls(
            origin=Version.Origin(named.get("kind") or Version.Origin.TOOL),
            mime=plain if _MIME.fullmatch(plain) else "",
            run_id=str(named.get("run_id", "")),
            tool_call_id=str(named.get("tool_call_id", "")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A version and where its bytes and its text lie."""

    pk: int
    ref: ArtifactRef
    blob: str
    text_status: str
    text_blob: str
    text_error: str


def save(scope: Scope, name: str, file: IO[bytes], source: Source) -> ArtifactRef:
    """Store the file as the next version of a name: blob first, then the rows under the artifact's row lock.

    Raises ArtifactInvalid; then nothing is left behind.
    """
    name = clean_name(name)
    file.seek(0, 2)
    size_bytes = file.tell()
    file.seek(0)
    head = file.read(HEAD_BYTES)
    if source.origin is Version.Origin.UPLOAD:
        mime = admit(head, source.original_name or name, size_bytes)
    else:
        mime = source.mime or sniff(head, name)
    written = blobs.write(file)
    try:
        return _insert(scope, name, written, mime, source)
    except BaseException:
        blobs.delete([written.key])
        raise


@transaction.atomic
def _insert(scope: Scope, name: str, written: blobs.Written, mime: str, source: Source) -> ArtifactRef:
    session = _home(scope, name)
    mine = Artifact.objects.of(scope.owner)
    fresh = Artifact(owner_id=scope.owner, session_id=session, name=name, public_id=uuid.uuid4())
    mine.bulk_create([fresh], ignore_conflicts=True)
    artifact = mine.select_for_update(of=("self",)).get(session=session, name=name)
    artifact.last_version += 1
    artifact.deleted_at = None
    artifact.save(update_fields=["last_version", "deleted_at"])
    version = Version.objects.of(scope.owner).create(
        owner_id=scope.owner,
        artifact=artifact,
        number=artifact.last_version,
        blob=written.key,
        mime=mime[:127],
        size_bytes=written.size_bytes,
        sha256=written.sha256,
        original_name=source.original_name[:255],
        origin=source.origin,
        run_id=source.run_id[:128],
        tool_call_id=source.tool_call_id[:128],
    )
    return _ref(version)


def _home(scope: Scope, name: str) -> int | None:
    """Return the session that a new version of this name belongs to; None = the owner's shared files."""
    if name.startswith(SHARED):
        return None
    if scope.session is None:
        raise ArtifactInvalid(f'Outside a conversation a file name begins with "{SHARED}".')
    if not Session.objects.of(scope.owner).filter(pk=scope.session, deleted_at=None).exists():
        raise ArtifactInvalid("The conversation is gone.")
    return scope.session


def find(scope: Scope, name_or_id: str, version: int | None) -> Stored:
    """Return a version, None = the latest. An id is found in all of the owner's sessions. Raises ArtifactMissing."""
    all_of_it = _named(scope, name_or_id)
    wanted = F("artifact__last_version") if version is None else version
    row = all_of_it.filter(number=wanted).first()
    if row is not None:
        return _stored(row)
    latest = all_of_it.order_by("number").last()
    if latest is None:
        raise ArtifactMissing(f'There is no file "{name_or_id}".')
    raise ArtifactMissing(f'There is no version {version} of "{latest.artifact.name}"; the latest is {latest.number}.')


def latest(scope: Scope) -> tuple[ArtifactRef, ...]:
    """Return the latest version of everything the scope may see, sorted by name."""
    visible = Q(artifact__session=None)
    if scope.session is not None:
        visible |= Q(artifact__session=scope.session)
    rows = _alive(scope).filter(visible, number=F("artifact__last_version"))
    return tuple(_ref(row) for row in rows.order_by("artifact__name", "artifact_id"))


def versions(scope: Scope, name_or_id: str) -> tuple[ArtifactRef, ...]:
    """Return every version, ascending."""
    return tuple(_ref(row) for row in _named(scope, name_or_id).order_by("number"))


@transaction.atomic
def delete(scope: Scope, name_or_id: str) -> None:
    """Delete all versions; their bytes go once that is committed. The count of versions stays."""
    rows = _named(scope, name_or_id)
    artifact_ids = set(rows.values_list("artifact_id", flat=True))
    Artifact.objects.of(scope.owner).select_for_update(of=("self",)).filter(pk__in=artifact_ids).update(
        deleted_at=timezone.now()
    )
    doomed = Version.objects.of(scope.owner).filter(artifact_id__in=artifact_ids)
    keys = [key for pair in doomed.values_list("blob", "text_blob") for key in pair if key]
    doomed.delete()
    transaction.on_commit(lambda: blobs.delete(keys))


def keep_text(scope: Scope, pk: int, *, text_blob: str, text_error: str = "") -> bool:
    """Note what the extraction gave: a text, or why there is none. Return whether it was the first to say so."""
    status = TextStatus.READY if text_blob else TextStatus.FAILED
    waiting = Version.objects.of(scope.owner).filter(pk=pk, text_status=TextStatus.NONE)
    return bool(waiting.update(text_status=status, text_blob=text_blob, text_error=text_error))


def forget_text(scope: Scope, pk: int, text_blob: str) -> None:
    """Let the text be extracted again, because its blob is gone or broken."""
    lost = Version.objects.of(scope.owner).filter(pk=pk, text_blob=text_blob)
    lost.update(text_status=TextStatus.NONE, text_blob="")


def sweep(*, shelf: str = "") -> int:
    """Delete blobs on one shelf that no row names and that are older than an hour; return how many."""
    keys = blobs.old_keys(before=timezone.now() - ORPHAN_AGE, shelf=shelf)
    named = Version.objects.of_everyone().filter(Q(blob__in=keys) | Q(text_blob__in=keys))
    used: Iterable[tuple[str, str]] = named.values_list("blob", "text_blob")
    orphans = sorted(set(keys) - {key for pair in used for key in pair})
    blobs.delete(orphans)
    return len(orphans)


@transaction.atomic
def session_of_thread(owner_id: int, thread_id: str, *, make: bool = False) -> int | None:
    """Return the session of a thread; None if there is none, or it was deleted.

    make: a new thread gets its session, with the trunk, before its first run; the agent is the first run's to choose.
    """
    mine = Session.objects.of(owner_id)
    if make:
        mine.bulk_create([Session(owner_id=owner_id, thread_id=thread_id, agent="")], ignore_conflicts=True)
    session = mine.filter(thread_id=thread_id, deleted_at=None).values_list("pk", flat=True).first()
    if make and session is not None:
        Fork.objects.bulk_create([Fork(session_id=session, number=0)], ignore_conflicts=True)
    return session


def _alive(scope: Scope) -> QuerySet[Version]:
    """Return the owner's versions, without those of conversations that were deleted."""
    rows = Version.objects.of(scope.owner).select_related("artifact")
    return rows.filter(artifact__deleted_at=None, artifact__session__deleted_at=None)


def _named(scope: Scope, name_or_id: str) -> QuerySet[Version]:
    known = Q()
    try:
        known = Q(artifact__public_id=uuid.UUID(name_or_id))
    except ValueError:
        pass
    try:
        name = clean_name(name_or_id)
    except ArtifactInvalid as e:
        raise ArtifactMissing(f"There is no such file. {e}") from e
    home = None if name.startswith(SHARED) else scope.session
    return _alive(scope).filter(known | Q(artifact__session=home, artifact__name=name))


def _stored(row: Version) -> Stored:
    return Stored(
        pk=row.pk,
        ref=_ref(row),
        blob=row.blob,
        text_status=row.text_status,
        text_blob=row.text_blob,
        text_error=row.text_error,
    )


def _ref(row: Version) -> ArtifactRef:
    return ArtifactRef(
        artifact_id=str(row.artifact.public_id),
        name=row.artifact.name,
        version=row.number,
        mime=row.mime,
        size_bytes=row.size_bytes,
        sha256=row.sha256,
    )
