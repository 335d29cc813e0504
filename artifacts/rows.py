"""The rows of artifacts and versions: whose they are, and how they are found. For worker threads and plain views.

Whoever asks says as whom: only the sweep looks beyond one owner.
"""

import logging
import re
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agents.models.session import Fork, Session
from agents.runtime.artifacts import SHARED, ArtifactInvalid, ArtifactMissing, ArtifactRef, clean_name
from agents.runtime.errors import ToolFailure
from agents.runtime.knowledge import DocumentState
from artifacts import blobs
from artifacts.models import Version

_MIME = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,100}")
ORPHAN_AGE = timedelta(hours=1)  # a blob's row comes within one transaction; longer is never

logger = logging.getLogger(__name__)


class TextStatus(StrEnum):
    """Values of Version.text_status."""

    NONE = ""  # nobody asked yet: it is read when somebody does, and is not searched
    WAITING = "waiting"  # a job will read it
    READING = "reading"  # page `pages_read` of `pages`
    READY = "ready"
    FAILED = "failed"  # text_error says why


STATES: Final = {
    TextStatus.NONE: DocumentState.WAITING,
    TextStatus.WAITING: DocumentState.WAITING,
    TextStatus.READING: DocumentState.READING,
    TextStatus.READY: DocumentState.READY,
    TextStatus.FAILED: DocumentState.FAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose files, seen from where. session: primary key, or None for what belongs to no conversation."""

    owner: int
    session: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a version comes from. mime: without parameters; "" = by its bytes, as always for an upload.

    base: the version that this one is a copy of. document: id of what it is a version of; if the name that it is saved
    under is another's by now, it is not saved. "" = whatever has the name.
    """

    origin: Version.Origin
    mime: str = ""
    original_name: str = ""
    run_id: str = ""
    tool_call_id: str = ""
    base: int | None = None
    document: str = ""

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
    """A version and where its bytes and its text lie. session: its conversation; None = shared by all."""

    pk: int
    ref: ArtifactRef
    session: int | None
    origin: str
    blob: str
    text_status: str
    text_blob: str
    text_error: str


def find(scope: Scope, name_or_id: str, version: int | None) -> Stored:
    """Return a version, None = the latest. An id is found in all of the owner's sessions. Raises ArtifactMissing."""
    all_of_it = _named(scope, name_or_id)
    wanted = F("artifact__last_version") if version is None else version
    row = all_of_it.filter(number=wanted).first()
    if row is not None:
        return stored_of(row)
    latest = all_of_it.order_by("number").last()
    if latest is None:
        raise ArtifactMissing(f'There is no file "{name_or_id}".')
    said = f'There is no version {version} of "{latest.artifact.name}"; the latest is {latest.number}.'
    raise ArtifactMissing(said, ToolFailure.VERSION_NOT_FOUND)


def latest(scope: Scope) -> tuple[ArtifactRef, ...]:
    """Return the latest version of everything the scope may see, sorted by name."""
    visible = Q(artifact__session=None)
    if scope.session is not None:
        visible |= Q(artifact__session=scope.session)
    rows = alive(scope).filter(visible, number=F("artifact__last_version"))
    return tuple(ref_of(row) for row in rows.order_by("artifact__name", "artifact_id"))


def versions(scope: Scope, name_or_id: str) -> tuple[ArtifactRef, ...]:
    """Return every version, ascending."""
    return tuple(ref_of(row) for row in _named(scope, name_or_id).order_by("number"))


def sweep(*, shelf: str = "") -> int:
    """Delete blobs that no row names; return how many.

    Each call looks at one of 256 shelves, at random if none is named ("00" to "ff"), so that it is cheap enough to be
    called every few seconds. Blobs younger than an hour stay: their row may be on its way.
    """
    keys = blobs.old_keys(before=timezone.now() - ORPHAN_AGE, shelf=shelf)
    named = Version.objects.of_everyone().filter(Q(blob__in=keys) | Q(text_blob__in=keys))
    used: Iterable[tuple[str, str]] = named.values_list("blob", "text_blob")
    orphans = sorted(set(keys) - {key for pair in used for key in pair})
    blobs.delete(orphans)
    if orphans:
        logger.info("Deleted %d blobs without a row", len(orphans))
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


def alive(scope: Scope) -> QuerySet[Version]:
    """Return the owner's versions, without those of conversations that were deleted."""
    rows = Version.objects.of(scope.owner).select_related("artifact")
    return rows.filter(artifact__deleted_at=None, artifact__session__deleted_at=None)


def missing(owner_id: int, artifact_ids: Collection[str]) -> list[str]:
    """Return which of the ids name no file of the owner, in their order: unknown, deleted and others' alike."""
    rows = alive(Scope(owner=owner_id, session=None)).filter(artifact__public_id__in=artifact_ids)
    known = {str(public_id) for public_id in rows.values_list("artifact__public_id", flat=True)}
    return [artifact_id for artifact_id in artifact_ids if artifact_id not in known]


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
    return alive(scope).filter(known | Q(artifact__session=home, artifact__name=name))


def stored_of(row: Version) -> Stored:
    return Stored(
        pk=row.pk,
        ref=ref_of(row),
        session=row.artifact.session_id,
        origin=row.origin,
        blob=row.blob,
        text_status=row.text_status,
        text_blob=row.text_blob,
        text_error=row.text_error,
    )


def ref_of(row: Version) -> ArtifactRef:
    return ArtifactRef(
        artifact_id=str(row.artifact.public_id),
        name=row.artifact.name,
        version=row.number,
        mime=row.mime,
        size_bytes=row.size_bytes,
        sha256=row.sha256,
    )
