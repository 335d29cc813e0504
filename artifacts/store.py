"""The artifact store over Django's tables and storage: what runs, tools and views reach files by."""

import asyncio
import io
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import IO, Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from channels.db import DatabaseSyncToAsync
from django.db import Error

from agents.runtime.artifacts import (
    NAME_CHARS,
    ArtifactMissing,
    ArtifactNotKept,
    ArtifactRef,
    ArtifactUnreadable,
    TextPage,
)
from agents.runtime.errors import ToolFailure
from artifacts import blobs, indexing, library, names, reading, rows, saving
from artifacts.indexing import UNREAD
from artifacts.models import Version
from artifacts.rows import Scope, Source, Stored, TextStatus
from artifacts.textfile import NotTextFile

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 4
CHILDREN = 2  # extractions at once in this process; more wait
_executor = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="artifacts")
_children = ThreadPoolExecutor(max_workers=CHILDREN, thread_name_prefix="extract")
_extracting: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

logger = logging.getLogger(__name__)


def in_thread(fn: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return fn as a coroutine function that runs on a thread of this store and gives its connection back."""
    made: Callable[P, Coroutine[Any, Any, R]] = DatabaseSyncToAsync(fn, thread_sensitive=False, executor=_executor)
    return made


class DjangoArtifactStore:
    """agents.runtime.artifacts.ArtifactStore for one owner, as seen from one session.

    session_id: Session's primary key as text; None = from outside any conversation: only "user:" names can be saved
    and found, ids of all the owner's files are found. Safe for many calls at once and from several processes. No
    database connection is held while a file is written, read or extracted.
    """

    def __init__(self, *, owner_id: int, session_id: str | None) -> None:
        self._scope = Scope(owner=owner_id, session=None if session_id is None else int(session_id))

    async def save(
        self,
        *,
        name: str,
        data: bytes,
        mime: str = "",
        origin: Mapping[str, Any] | None = None,
        base: int | None = None,
    ) -> ArtifactRef:
        """Store data as the next version of `name`. origin: also {"kind": upload, tool, edit or guard}.

        kind "upload" passes the door for what people bring: the name is made fit (names.from_upload), `mime` is
        ignored and the bytes are looked at (sniff.admit). Raises ArtifactInvalid, ArtifactNotKept; with a base
        ArtifactMissing, ArtifactConflict.
        """
        source = Source.of(origin, mime)
        if source.origin is Version.Origin.UPLOAD:
            source = replace(source, original_name=name[-NAME_CHARS:])
            name = names.from_upload(name)
        try:
            return (await in_thread(saving.save)(self._scope, name, io.BytesIO(data), source, base=base)).ref
        except (OSError, Error) as e:
            logger.exception("a file was not kept")
            raise ArtifactNotKept from e

    async def find(self, name_or_id: str, version: int | None = None) -> ArtifactRef:
        return (await self._stored(name_or_id, version)).ref

    async def bring(self, ref: ArtifactRef) -> ArtifactRef:
        """Return a version of any of the owner's conversations as a file of this one, copied if it is another's.

        Raises ArtifactMissing, ArtifactInvalid, ArtifactNotKept.
        """
        stored = await self._stored(ref.artifact_id, ref.version)
        try:
            return await in_thread(saving.bring)(self._scope, stored)
        except blobs.BlobMissing as e:
            raise _gone(stored) from e
        except (OSError, Error) as e:
            logger.exception("a file was not kept")
            raise ArtifactNotKept from e

    async def load(self, ref: ArtifactRef) -> bytes:
        stored = await self._stored(ref.artifact_id, ref.version)
        return await in_thread(_checked_bytes)(stored)

    async def stream(self, ref: ArtifactRef) -> AsyncIterator[bytes]:
        """Return the bytes in pieces. The first is there already, so a file that is gone is known before.

        The last piece comes only if size and hash agree. Raises ArtifactMissing, here or in the middle.
        """
        stored = await self._stored(ref.artifact_id, ref.version)
        pieces = _pieces(stored)
        first = await in_thread(_next)(pieces)
        return _stream(first, pieces)

    async def read_text(self, ref: ArtifactRef, *, cursor: str = "", max_chars: int = 12_000) -> TextPage:
        """Return a page of the text; see reading.page for cursors and page lines.

        A version that no job has read yet is read now, in a process of its own, and is searchable from then on.
        Cancelling stops that process.
        """
        for _attempt in range(2):  # a kept text that is gone or broken is made once more
            stored = await self._stored(ref.artifact_id, ref.version)
            if stored.text_status in UNREAD:
                stored = await self._with_text(stored)
            if stored.text_status == TextStatus.FAILED:
                raise reading.unreadable(stored.text_error, ref.name)
            try:
                return await in_thread(_page)(stored, cursor, max_chars)
            except (blobs.BlobMissing, NotTextFile):
                logger.exception("The text of version %s is gone or broken", stored.pk)
                await in_thread(indexing.forget_text)(self._scope.owner, stored.pk, stored.text_blob)
        raise ArtifactMissing(f'The text of "{ref.name}" cannot be kept.', ToolFailure.FILE_UNAVAILABLE)

    async def list(self) -> tuple[ArtifactRef, ...]:
        return await in_thread(rows.latest)(self._scope)

    async def versions(self, name_or_id: str) -> tuple[ArtifactRef, ...]:
        try:
            return await in_thread(rows.versions)(self._scope, name_or_id)
        except ArtifactMissing:
            return ()

    async def delete(self, name_or_id: str) -> None:
        try:
            await in_thread(_delete)(self._scope, name_or_id)
        except ArtifactMissing:
            return

    async def _stored(self, name_or_id: str, version: int | None) -> Stored:
        return await in_thread(rows.find)(self._scope, name_or_id, version)

    async def _with_text(self, stored: Stored) -> Stored:
        """Extract the text unless somebody else in this process just did."""
        lock = _extracting.setdefault(stored.pk, asyncio.Lock())
        async with lock:
            now = await self._stored(stored.ref.artifact_id, stored.ref.version)
            if now.text_status in UNREAD:
                await self._extract(now)
                now = await self._stored(stored.ref.artifact_id, stored.ref.version)
            return now

    async def _extract(self, stored: Stored) -> None:
        source = await in_thread(_checked_file)(stored)
        with source, tempfile.TemporaryFile() as out:
            extraction = reading.Extraction(source, stored.ref.mime)
            try:
                trouble = await asyncio.get_running_loop().run_in_executor(_children, extraction.run, out)
            except reading.ExtractionFailed as e:
                said = f'"{stored.ref.name}" could not be read now. Try again.'
                raise ArtifactUnreadable(said, ToolFailure.FILE_NOT_READ) from e
            except asyncio.CancelledError:
                extraction.stop()
                raise
            await in_thread(indexing.keep)(self._scope.owner, stored.pk, out, str(trouble or ""))


def _delete(scope: Scope, name_or_id: str) -> None:
    library.delete(scope.owner, [rows.find(scope, name_or_id, None).ref.artifact_id])


def _page(stored: Stored, cursor: str, max_chars: int) -> TextPage:
    with blobs.open_blob(stored.text_blob) as file:
        return reading.page(stored.ref, file, cursor=cursor, max_chars=max_chars)


def _checked_bytes(stored: Stored) -> bytes:
    try:
        return blobs.read(stored.blob, size_bytes=stored.ref.size_bytes, sha256=stored.ref.sha256)
    except blobs.BlobMissing as e:
        raise _gone(stored) from e


def _checked_file(stored: Stored) -> IO[bytes]:
    try:
        return indexing.source(stored)
    except blobs.BlobMissing as e:
        raise _gone(stored) from e


def _pieces(stored: Stored) -> Iterator[bytes]:
    try:
        yield from blobs.checked_chunks(stored.blob, size_bytes=stored.ref.size_bytes, sha256=stored.ref.sha256)
    except blobs.BlobMissing as e:
        raise _gone(stored) from e


def _gone(stored: Stored) -> ArtifactMissing:
    logger.error("The bytes of version %s (blob %s) are gone or not what was written", stored.pk, stored.blob)
    return ArtifactMissing(f'The content of "{stored.ref.name}" is unavailable.', ToolFailure.FILE_UNAVAILABLE)


def _next(pieces: Iterator[bytes]) -> bytes | None:
    return next(pieces, None)


async def _stream(first: bytes | None, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    piece = first
    while piece is not None:
        yield piece
        piece = await in_thread(_next)(pieces)
