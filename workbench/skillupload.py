"""A folder, an archive or a SKILL.md on its way from a browser: bounded while it is read."""

from collections.abc import Sequence
from typing import Any, Final, cast

from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest

from agents.stores.skillpacks import FILE_BYTES, UNPACKED_BYTES, Brought

FORM_BYTES: Final = 1024 * 1024  # what the request may have around its files
RAW_PATH_CHARS: Final = 4_096


class PackRequest(HttpRequest):
    """A request that may turn out too large."""

    too_large: bool


class PackGuard(FileUploadHandler):
    """Stops a request as soon as one of its files, or all together, grow past the limit."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request)
        self._total = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        self._total += len(raw_data)
        if start + len(raw_data) > FILE_BYTES or self._total > UNPACKED_BYTES:
            cast(PackRequest, self.request).too_large = True
            raise StopUpload(connection_reset=True)
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None


def guard(request: HttpRequest) -> PackRequest:
    """Put the guard before the body is looked at."""
    guarded = cast(PackRequest, request)
    guarded.too_large = False
    request.upload_handlers.insert(0, PackGuard(request))
    return guarded


def declared_too_large(request: HttpRequest) -> bool:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0) > UNPACKED_BYTES + FORM_BYTES
    except ValueError:
        return False


def brought(request: HttpRequest) -> Sequence[Brought]:
    """Return the files of a form: each `file`, and in the same order its `path`, if a folder was chosen."""
    files: list[Any] = request.FILES.getlist("file")
    paths = request.POST.getlist("path")
    named = paths if len(paths) == len(files) else [""] * len(files)
    return [
        Brought(path=(path or file.name or "")[-RAW_PATH_CHARS:], file=file.file, size=file.size or 0)
        for file, path in zip(files, named, strict=True)
    ]
