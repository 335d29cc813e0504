"""New versions: the blob first, then the rows under the artifact's row lock, and with them what makes it searchable."""

import uuid
from dataclasses import dataclass
from typing import IO

from django.db import transaction
from django.utils import timezone

from agents.models.session import Session
from agents.runtime.artifacts import (
    SHARED,
    ArtifactConflict,
    ArtifactInvalid,
    ArtifactMissing,
    ArtifactRef,
    clean_name,
)
from agents.runtime.errors import ToolFailure
from artifacts import blobs, indexing
from artifacts.indexing import Text
from artifacts.models import Artifact, Collection, Version
from artifacts.rows import Scope, Source, Stored, TextStatus, ref_of
from artifacts.sniff import HEAD_BYTES, admit, sniff


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What a name holds now. fresh: a version was made; False = the same bytes were there already."""

    ref: ArtifactRef
    fresh: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """Where a version comes from and goes. base: what has to be the latest; None = anything."""

    source: Source
    base: int | None = None
    collection: Collection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A version to be: its bytes are in storage. text: if it is there at once."""

    name: str
    written: blobs.Written
    mime: str
    text: Text | None
    way: _Way


def save(
    scope: Scope,
    name: str,
    file: IO[bytes],
    source: Source,
    *,
    base: int | None = None,
    collection: Collection | None = None,
) -> Saved:
    """Store the file as the next version of a name. An upload of what the latest version holds already makes none.

    base: the version that was changed; only if it is the latest is anything saved. collection: where the document
    goes; None = it stays where it is. Raises ArtifactInvalid, ArtifactMissing, ArtifactConflict; then nothing is left
    behind.
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
    return _keep(scope, name, file, mime, _Way(source=source, base=base, collection=collection))


def bring(scope: Scope, stored: Stored) -> ArtifactRef:
    """Return a version as one of the scope's conversation, which its names reach.

    One of another conversation is copied: it becomes the next version of its name here, unless the same bytes are here
    under that name. Raises ArtifactInvalid (the conversation is gone), BlobMissing.
    """
    ref = stored.ref
    if stored.session in (None, scope.session):
        return ref
    here = Version.objects.of(scope.owner).select_related("artifact").filter(artifact__deleted_at=None)
    here = here.filter(artifact__session=scope.session, artifact__name=ref.name, sha256=ref.sha256)
    same = here.order_by("number").last()
    if same is not None:
        return ref_of(same)
    return copy(scope, stored, Source(origin=Version.Origin(stored.origin), original_name=ref.name)).ref


def copy(scope: Scope, stored: Stored, source: Source, *, base: int | None = None) -> Saved:
    """Store a version's bytes once more, as the next version of its name in the scope.

    Raises as `save` does, and BlobMissing.
    """
    ref = stored.ref
    with blobs.open_real(stored.blob, size_bytes=ref.size_bytes, sha256=ref.sha256) as file:
        return _keep(scope, ref.name, file, ref.mime, _Way(source=source, base=base))


def _keep(scope: Scope, name: str, file: IO[bytes], mime: str, way: _Way) -> Saved:
    written = blobs.write(file)
    text = None
    try:
        if way.source.origin in (Version.Origin.TOOL, Version.Origin.EDIT):
            text = indexing.text_at_once(file, mime, written.size_bytes)
        saved = _insert(scope, _Draft(name=name, written=written, mime=mime, text=text, way=way))
    except BaseException:
        _let_go(written, text)
        raise
    finally:
        if text is not None:
            text.file.close()
    if not saved.fresh:
        _let_go(written, text)
    return saved


def _let_go(written: blobs.Written, text: Text | None) -> None:
    blobs.delete([written.key] if text is None else [written.key, text.blob])


@transaction.atomic
def _insert(scope: Scope, draft: _Draft) -> Saved:
    source, base, collection = draft.way.source, draft.way.base, draft.way.collection
    artifact = _locked(scope, draft.name)
    before = _latest(artifact)
    if source.document not in ("", str(artifact.public_id)):
        raise ArtifactMissing(f'"{draft.name}" is the name of another document by now.')
    if base is not None:
        if before is None:
            raise ArtifactMissing(f'There is no file "{draft.name}".')
        if before.number != base:
            raise ArtifactConflict(base, ref_of(before))
    if collection is not None:  # deleted this very moment: the document is in none
        kept = Collection.objects.of(scope.owner).select_for_update()
        artifact.collection = kept.filter(pk=collection.pk).first()
    if source.origin is Version.Origin.UPLOAD and before is not None and before.sha256 == draft.written.sha256:
        artifact.save(update_fields=["collection"])
        return Saved(ref=ref_of(before), fresh=False)
    artifact.last_version += 1
    artifact.deleted_at = artifact.purge_at = None
    artifact.changed_at = timezone.now()
    artifact.save(update_fields=["last_version", "deleted_at", "purge_at", "changed_at", "collection"])
    version = Version.objects.of(scope.owner).create(
        owner_id=scope.owner,
        artifact=artifact,
        number=artifact.last_version,
        blob=draft.written.key,
        mime=draft.mime[:127],
        size_bytes=draft.written.size_bytes,
        sha256=draft.written.sha256,
        original_name=_storable(source.original_name)[-255:],
        origin=source.origin,
        run_id=source.run_id[:128],
        tool_call_id=source.tool_call_id[:128],
        base_number=source.base if source.base is not None else base,
    )
    _make_findable(artifact, version, draft.text)
    return Saved(ref=ref_of(version), fresh=True)


def _storable(text: str) -> str:
    """Return the text without what PostgreSQL cannot keep."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _make_findable(artifact: Artifact, version: Version, text: Text | None) -> None:
    if text is not None:
        indexing.fill(artifact, version, text)
    elif version.origin != Version.Origin.GUARD:
        version.text_status = TextStatus.WAITING
        version.save(update_fields=["text_status"])
        indexing.plant(version)


def _locked(scope: Scope, name: str) -> Artifact:
    """Return the artifact of a name, made if there is none, with its row locked. What was deleted of it goes for good.

    Raises ArtifactInvalid.
    """
    session = _home(scope, name)
    mine = Artifact.objects.of(scope.owner)
    artifact = None
    while artifact is None:  # what had the name may be given another in between
        fresh = Artifact(owner_id=scope.owner, session_id=session, name=name, public_id=uuid.uuid4())
        mine.bulk_create([fresh], ignore_conflicts=True)
        artifact = mine.select_for_update(of=("self",)).filter(session=session, name=name).first()
    if artifact.deleted_at is not None:
        purge(artifact)
    return artifact


def purge(artifact: Artifact) -> None:
    """Delete all versions of a deleted artifact; their bytes go once that is committed. The count of versions stays.

    In the caller's transaction, which holds the artifact's row.
    """
    doomed = Version.objects.of(artifact.owner_id).filter(artifact=artifact)
    keys = [key for pair in doomed.values_list("blob", "text_blob") for key in pair if key]
    doomed.delete()
    transaction.on_commit(lambda: blobs.delete(keys))


def _latest(artifact: Artifact) -> Version | None:
    versions = Version.objects.of(artifact.owner_id).select_related("artifact")
    return versions.filter(artifact=artifact, number=artifact.last_version).first()


def _home(scope: Scope, name: str) -> int | None:
    """Return the session that a new version of this name belongs to; None = the owner's shared files."""
    if name.startswith(SHARED):
        return None
    if scope.session is None:
        raise ArtifactInvalid(f'Outside a conversation a file name begins with "{SHARED}".')
    if not Session.objects.of(scope.owner).filter(pk=scope.session, deleted_at=None).exists():
        raise ArtifactInvalid("The conversation is gone.", ToolFailure.CONVERSATION_GONE)
    return scope.session
