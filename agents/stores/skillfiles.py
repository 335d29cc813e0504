"""The bytes of skills in storage, named by their content: skills/<key of the skill>/<SHA-256>.

Revisions of one skill share what did not change; skills share nothing, so that a deleted one takes all it had along.
The sweep of other files looks at shelves "00" to "ff" alone and leaves these be.
"""

import hashlib
import random
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, Final

from django.utils import timezone

from agents.models.skill import Skill
from artifacts import blobs

FOLDER: Final = "skills"
DESK: Final = "workbench-skill-"  # what directories of desks begin with
ORPHAN_AGE: Final = timedelta(hours=1)
LOOKED_AT: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file on its way into a skill. path: relative, with slashes. at: where its bytes lie until it is stored."""

    path: str
    size: int
    sha256: str
    at: Path

    def listed(self) -> dict[str, Any]:
        """Return the entry of SkillRevision.files."""
        return {"path": self.path, "size": self.size, "sha256": self.sha256}


class Desk:
    """A directory for files on their way in. What they are called has no part in where they lie."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._laid = 0

    def lay(self, path: str, pieces: Iterable[bytes]) -> Entry:
        """Write one file. What `pieces` raises goes through."""
        self._laid += 1
        at, digest, size = self._directory / str(self._laid), hashlib.sha256(), 0
        with at.open("wb") as out:
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                out.write(piece)
        return Entry(path=path, size=size, sha256=digest.hexdigest(), at=at)


@contextmanager
def desk() -> Iterator[Desk]:
    """Give a desk that is cleared in the end, whatever happens."""
    with tempfile.TemporaryDirectory(prefix=DESK) as directory:
        yield Desk(Path(directory))


@contextmanager
def kept(key: uuid.UUID, entries: Sequence[Entry]) -> Iterator[None]:
    """Store the bytes of a skill for rows that the block writes; what was not there before goes if the block fails."""
    fresh: list[str] = []
    try:
        for entry in {entry.sha256: entry for entry in entries}.values():
            name = _name(key, entry.sha256)
            if not _is_whole(name, entry.size):
                with entry.at.open("rb") as file:
                    stored = blobs.write(file, key=name).key
                if stored == name:
                    fresh.append(name)
                else:  # somebody else stored the same this very moment
                    blobs.delete([stored])
        yield
    except BaseException:
        blobs.delete(fresh)
        raise


def _is_whole(name: str, size: int) -> bool:
    """Return whether the bytes are there. What a crash left of them while they were written goes."""
    storage = blobs.storage()
    if not storage.exists(name):
        return False
    if storage.size(name) == size:
        return True
    blobs.delete([name])
    return False


def copied(source: uuid.UUID, files: Sequence[dict[str, Any]], on: Desk) -> list[Entry]:
    """Lay a skill's files on a desk. Raises BlobMissing."""
    return [on.lay(file["path"], _pieces(source, file)) for file in files]


def read(key: uuid.UUID, file: dict[str, Any]) -> bytes:
    """Return the bytes of an entry of SkillRevision.files, checked. Raises BlobMissing."""
    return blobs.read(_name(key, file["sha256"]), size_bytes=file["size"], sha256=file["sha256"])


def opened(key: uuid.UUID, file: dict[str, Any]) -> IO[bytes]:
    """Return them as an open file. Raises BlobMissing."""
    return blobs.open_blob(_name(key, file["sha256"]))


def drop(key: uuid.UUID) -> None:
    """Delete all bytes of a skill."""
    folder = f"{FOLDER}/{key.hex}"
    blobs.delete(f"{folder}/{name}" for name in _listed(folder)[1])
    blobs.delete([folder])


def sweep() -> int:
    """Delete the bytes of skills that have no row; return of how many. For what a crash or a deleted person left.

    Each call looks at a few of them, at random, so that it is cheap enough to be called every few seconds. Desks of
    this machine that a crash left go too.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{DESK}*"):
        _clear(left)
    all_of_them = _listed(FOLDER)[0]
    folders = [name for name in random.sample(all_of_them, min(LOOKED_AT, len(all_of_them))) if _old(name)]
    keys = {uuid.UUID(hex=name) for name in folders}
    known = set(Skill.objects.of_everyone().filter(key__in=keys).values_list("key", flat=True))
    for key in keys - known:
        drop(key)
    return len(keys - known)


def _clear(left: Path) -> None:
    with suppress(OSError):  # it goes this very moment, or is another user's
        if left.stat().st_mtime < (timezone.now() - ORPHAN_AGE).timestamp():
            shutil.rmtree(left)


def _old(folder: str) -> bool:
    """Return whether the rows of these files are no longer on their way."""
    try:
        uuid.UUID(hex=folder)
        names = _listed(f"{FOLDER}/{folder}")[1]
        times = [blobs.storage().get_modified_time(f"{FOLDER}/{folder}/{name}") for name in names]
    except (ValueError, OSError):
        return False
    return bool(times) and max(times) < timezone.now() - ORPHAN_AGE


def _listed(path: str) -> tuple[list[str], list[str]]:
    try:
        return blobs.storage().listdir(path)
    except OSError:
        return [], []


def _pieces(key: uuid.UUID, file: dict[str, Any]) -> Iterator[bytes]:
    return blobs.checked_chunks(_name(key, file["sha256"]), size_bytes=file["size"], sha256=file["sha256"])


def _name(key: uuid.UUID, sha256: str) -> str:
    return f"{FOLDER}/{key.hex}/{sha256}"
