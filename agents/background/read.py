"""Read a file that was saved: text, passages and entries, with the page told how far it has come."""

import asyncio
import logging
import tempfile
from typing import IO, Final

from agents import hints, jobs
from agents.jobs import Claim
from agents.stores.db import in_thread
from artifacts import blobs, indexing
from artifacts.extract.outcome import Trouble
from artifacts.reading import NOT_READ, UNAVAILABLE, Extraction, ExtractionFailed
from artifacts.rows import Stored

TRIES: Final = 3  # a file that ends its reader each time is not tried for ever
TELL_S: Final = 0.5  # between two words about one document
RENEW_S: Final = 20.0

logger = logging.getLogger(__name__)


async def run(job: Claim) -> None:
    """Read the version that the job names. Safe to run twice, and beside another that reads the same."""
    if job.owner_id is None:
        return
    stored = await in_thread(indexing.begin)(job.owner_id, indexing.version_of(job.scope))
    if stored is None:
        return
    await hints.documents_changed(job.owner_id, [stored.ref.artifact_id])
    try:
        await _read(job, job.owner_id, stored)
    except _Taken:
        return
    except (ExtractionFailed, blobs.StorageAway, OSError):
        if job.attempt < TRIES:
            raise
        await in_thread(indexing.keep)(job.owner_id, stored.pk, None, NOT_READ)
    except blobs.BlobMissing:
        logger.error("The bytes of version %s (blob %s) are gone or not what was written", stored.pk, stored.blob)
        await in_thread(indexing.keep)(job.owner_id, stored.pk, None, UNAVAILABLE)
    await hints.documents_changed(job.owner_id, [stored.ref.artifact_id])


async def _read(job: Claim, owner_id: int, stored: Stored) -> None:
    """Read and keep. Raises ExtractionFailed, BlobMissing, OSError, _Taken."""
    with await in_thread(indexing.source)(stored) as source, tempfile.TemporaryFile() as out:
        trouble = await _Reading(source, out, stored).run(job, owner_id)
        keeping = asyncio.ensure_future(in_thread(indexing.keep)(owner_id, stored.pk, out, str(trouble or "")))
        try:
            while not (await asyncio.wait((keeping,), timeout=RENEW_S))[0]:
                await in_thread(jobs.renew)(job)  # 50,000 passages take longer than a lease
        finally:
            await asyncio.wait((keeping,))  # it holds the file
        await keeping


class _Taken(Exception):
    """This took so long that another worker has the job by now."""


class _Reading:
    """One run of the child, in a thread of its own, while this loop tells how far it has come."""

    def __init__(self, source: IO[bytes], out: IO[bytes], stored: Stored) -> None:
        self._extraction = Extraction(source, stored.ref.mime)
        self._out = out
        self._stored = stored
        self._at = (0, 0)  # page, of so many; written by the reading thread

    async def run(self, job: Claim, owner_id: int) -> Trouble | None:
        """Return the trouble there was. Raises ExtractionFailed, _Taken."""
        work = asyncio.get_running_loop().run_in_executor(None, self._work)
        told = (0, 0)
        try:
            while not (await asyncio.wait((work,), timeout=TELL_S))[0]:
                if not await in_thread(jobs.renew)(job):
                    raise _Taken
                if self._at != told:
                    told = self._at
                    await in_thread(indexing.progress)(owner_id, self._stored.pk, *told)
                    await hints.documents_changed(owner_id, [self._stored.ref.artifact_id])
            return await work
        finally:
            self._extraction.stop()
            await asyncio.wait((work,))  # it holds the files

    def _work(self) -> Trouble | None:
        return self._extraction.run(self._out, progress=self._progress)

    def _progress(self, page: int, pages: int) -> None:
        self._at = (page, pages)
