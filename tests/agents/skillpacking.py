"""Archives for tests: good ones, and ones that no program of good faith would write."""

import gzip
import io
import stat
import tarfile
import warnings
import zipfile
from typing import Any

from agents.stores.skillpacks import Brought


def skill(name: str = "board-memo", description: str = "Write a memo for the board.", body: str = "1. Ask.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"


def brought(path: str, data: bytes | str) -> Brought:
    raw = data.encode() if isinstance(data, str) else data
    return Brought(path=path, file=io.BytesIO(raw), size=len(raw))


def zip_of(*files: tuple[str, bytes | str], mode: int = stat.S_IFREG | 0o644) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files:
            info = zipfile.ZipInfo("x")
            info.filename = path  # as it stands: the constructor would repair it
            info.external_attr = (mode if path.rsplit("/", 1)[-1] != "SKILL.md" else stat.S_IFREG | 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a name is there twice is what some tests are about
                archive.writestr(info, data)
    return out.getvalue()


def tar_of(*files: tuple[str, bytes | str], packed: bool = False, **more: Any) -> bytes:
    """more: attributes of the members that are not SKILL.md, like type and linkname."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, data in files:
            raw = data.encode() if isinstance(data, str) else data
            info = tarfile.TarInfo(path)
            info.size = len(raw)
            if not path.endswith("SKILL.md"):
                for key, value in more.items():
                    setattr(info, key, value)
            archive.addfile(info, io.BytesIO(raw))
    return gzip.compress(out.getvalue()) if packed else out.getvalue()


def encrypted(data: bytes) -> bytes:
    """Return a zip that says of its entries that they are encrypted."""
    raw = bytearray(data)
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = raw.find(mark)
        while start >= 0:
            raw[start + at] |= 1
            start = raw.find(mark, start + 4)
    return bytes(raw)


def unmarked(data: bytes, name: bytes, stands_in: bytes) -> bytes:
    """Return a zip with other bytes for a name of the same length: as old programs write them, in their encoding."""
    assert len(name) == len(stands_in)
    return data.replace(stands_in, name)
