"""Bytes in storage: opaque keys, counted and hashed when written, checked when read.

The storage is `storages["artifacts"]`, which STORAGE_URL names: a folder, S3, or any Django storage. A key says nothing
of the person's file name: two levels of folders and a random UUID.
"""

import hashlib
import logging
import os
import random
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, Storage, storages

CHUNK_BYTES = 256 * 1024

logger = logging.getLogger(__name__)


class BlobMissing(LookupError):
    """The bytes are not there, or are not the bytes that were written."""


class StorageAway(BlobMissing):
    """The storage does not give the bytes now; it may do so later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written. sha256: hex digest of the bytes."""

    key: str
    size_bytes: int
    sha256: str


def storage() -> Storage:
    return storages["artifacts"]


def new_key() -> str:
    name = uuid.uuid4().hex
    return f"{name[:2]}/{name[2:4]}/{name}"


def write(file: IO[bytes], *, key: str = "") -> Written:
    """Store the file from its beginning and return key, size and hash. Durable on return with the file system.

    key: the one it gets, if it is free; "" = a new one. Leaves nothing behind when it fails. Raises OSError.
    """
    key, digest, size_bytes = key or new_key(), hashlib.sha256(), 0
    file.seek(0)
    while data := file.read(CHUNK_BYTES):
        digest.update(data)
        size_bytes += len(data)
    file.seek(0)
    try:
        stored = storage().save(key, File(file))
        _sync(stored)
    except BaseException:
        delete([key])
        raise
    return Written(key=stored, size_bytes=size_bytes, sha256=digest.hexdigest())


def _sync(key: str) -> None:
    """Wait until the file system has the bytes: the row that names them must not outlive a power cut alone."""
    path = _local_path(key)
    if path is None:  # the service answered, so it is durable
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _local_path(key: str) -> str | None:
    """Return where the file system keeps a blob; None if the storage is another kind."""
    kept_in = storage()
    return kept_in.path(key) if isinstance(kept_in, FileSystemStorage) else None


def open_blob(key: str) -> "File[bytes]":
    """Return the bytes as an open file. Raises BlobMissing, StorageAway."""
    try:
        return storage().open(key, "rb")
    except FileNotFoundError as e:
        raise BlobMissing(key) from e
    except OSError as e:
        raise StorageAway(key) from e


def read(key: str, *, size_bytes: int, sha256: str) -> bytes:
    """Return all bytes, checked against size and hash. Raises BlobMissing."""
    with open_blob(key) as file:
        data: bytes = file.read()
    if len(data) != size_bytes or hashlib.sha256(data).hexdigest() != sha256:
        raise BlobMissing(key)
    return data


def checked_chunks(key: str, *, size_bytes: int, sha256: str) -> Iterator[bytes]:
    """Yield the bytes in pieces; the last piece only if size and hash agree.

    So a reader who was promised size_bytes sees a broken file as a cut one. Raises BlobMissing.
    """
    with open_blob(key) as file:
        if file.size != size_bytes:
            raise BlobMissing(key)
        digest, held = hashlib.sha256(), b""
        while data := file.read(CHUNK_BYTES):
            digest.update(data)
            if held:
                yield held
            held = data
        if digest.hexdigest() != sha256:
            raise BlobMissing(key)
        yield held


def _copied(key: str) -> IO[bytes]:
    with open_blob(key) as source:
        file = tempfile.TemporaryFile()
        shutil.copyfileobj(source, file, CHUNK_BYTES)
    file.seek(0)
    return file


def open_real(key: str, *, size_bytes: int, sha256: str) -> IO[bytes]:
    """Return the bytes, checked, as a file of the operating system that another process can be given.

    Raises BlobMissing, StorageAway.
    """
    if _local_path(key) is None:
        file: IO[bytes] = _copied(key)
    else:
        file = open_blob(key)
    digest = hashlib.sha256()
    while data := file.read(CHUNK_BYTES):
        digest.update(data)
    if file.tell() != size_bytes or digest.hexdigest() != sha256:
        file.close()
        raise BlobMissing(key)
    file.seek(0)
    return file


def delete(keys: Iterable[str]) -> None:
    """Delete what is there; what cannot be deleted now is left to the sweep."""
    for key in keys:
        try:
            storage().delete(key)
        except OSError:
            logger.warning("Blob %s could not be deleted", key)


def old_keys(*, before: datetime, shelf: str = "") -> list[str]:
    """Return the keys of one shelf, a first-level folder (at random if none is named), last written before a time."""
    shelf = shelf or f"{random.randrange(256):02x}"
    kept_in: Any = storage()
    if hasattr(kept_in, "keys_before"):
        try:
            return list(kept_in.keys_before(shelf, before))
        except OSError as e:
            logger.warning("Old blobs are not looked for: %s", e)
            return []
    found = []
    for folder in _listdir(shelf)[0]:
        for name in _listdir(f"{shelf}/{folder}")[1]:
            key = f"{shelf}/{folder}/{name}"
            try:
                if storage().get_modified_time(key) < before:
                    found.append(key)
            except OSError:  # somebody else deleted it
                continue
    return found


def _listdir(path: str) -> tuple[list[str], list[str]]:
    try:
        return storage().listdir(path)
    except OSError:
        return [], []
