"""Blobs in S3, or in what speaks like it. Loaded only if STORAGE_URL says so: boto3 costs a process its memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import File
from storages.backends.s3 import S3Storage

SPOOL_BYTES = 1024 * 1024  # of a blob that is read, in memory; the rest goes to a file without a name
CONNECT_S = 5.0
READ_S = 60.0


class S3Blobs(S3Storage):  # type: ignore[misc]  # django-storages has no types
    """django-storages' S3 storage whose failures are OSErrors, as a file system's are. Nothing in it is public."""

    def __init__(self, *, addressing_style: str = "auto", **options: Any) -> None:
        config = Config(
            connect_timeout=CONNECT_S,
            read_timeout=READ_S,
            retries={"total_max_attempts": 3, "mode": "standard"},
            s3={"addressing_style": addressing_style},
            signature_version="s3v4",
        )
        super().__init__(
            client_config=config,
            transfer_config=TransferConfig(use_threads=False),
            default_acl=None,
            file_overwrite=True,  # keys are random: none is written twice, so none has to be looked for first
            max_memory_size=SPOOL_BYTES,
            **options,
        )

    def keys_before(self, folder: str, before: datetime) -> list[str]:
        """Return the keys under a folder that were last written before a time: one request for a thousand of them."""
        inside = f"{self.location.strip('/')}/".lstrip("/")
        with _told():
            found = self.bucket.objects.filter(Prefix=f"{inside}{folder}/")
            return [entry.key.removeprefix(inside) for entry in found if entry.last_modified < before]

    def delete(self, name: str) -> None:
        with _told():
            super().delete(name)

    def _open(self, name: str, mode: str = "rb") -> "File[bytes]":
        """Return the blob, fetched: what fails later would not be told as an OSError."""
        with _told():
            file: File[bytes] = super()._open(name, mode)
            file.seek(0)
            return file

    def _save(self, name: str, content: "File[bytes]") -> str:
        with _told():
            return str(super()._save(name, content))


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError, Boto3Error) as e:
        raise OSError(f"S3: {type(e).__name__}: {e}"[:300]) from e
