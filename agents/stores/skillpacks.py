"""What people bring as skills, taken apart with care: a folder's files, a zip, a tar, a tar.gz, or one SKILL.md.

Everything lands on a desk (skillfiles.py) under a number, never under a name that somebody else chose. What breaks a
rule refuses the whole of it. Nothing here writes a row or a blob.
"""

import gzip
import io
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePosixPath
from typing import IO, Final

from agents.runtime.errors import AgentError
from agents.runtime.skills.skill import SKILL_FILE
from agents.stores.skillfiles import Desk, Entry
from artifacts import names

FILE_BYTES: Final = 64 * 1024 * 1024  # of one file, as it is brought and as it is unpacked
UNPACKED_BYTES: Final = 256 * 1024 * 1024
MOST_FILES: Final = 1_000  # in one import
MOST_SKILLS: Final = 300
PATH_BYTES: Final = 1_024
PART_BYTES: Final = 255
DEPTH: Final = 16
CHUNK_BYTES: Final = 256 * 1024
HEADERS_BYTES: Final = 4 * 1024 * 1024  # what an archive may have around its files
FALLBACK: Final = "skill"
_JUNK: Final = frozenset({"__MACOSX", ".git", ".DS_Store", "Thumbs.db"})  # what systems leave in folders
_ENDINGS: Final = (".tar.gz", ".tgz", ".tar", ".zip", ".skill", ".md")


class Refusal(StrEnum):
    """Why nothing of it is taken."""

    EMPTY = "empty"  # there is no file
    NO_SKILL = "no_skill"  # no SKILL.md anywhere
    KIND = "kind"  # neither an archive nor a SKILL.md
    DAMAGED = "damaged"
    ENCRYPTED = "encrypted"
    FILE_SIZE = "file_size"
    TOTAL_SIZE = "total_size"
    COUNT = "count"
    PATH = "path"  # leads out, is absolute, or has what no path may have
    LINK = "link"
    DEVICE = "device"
    TWICE = "twice"  # two entries for one place
    NAME = "name"  # two skills of one name


class PackRefused(AgentError):
    """What was brought cannot be taken. about: the entry it is about, "" = all of it."""

    code = "skill_pack_refused"

    def __init__(self, reason: Refusal, about: str = "") -> None:
        self.reason = reason
        self.about = "".join(char if names.harmless(char) else "\ufffd" for char in about[:200])
        super().__init__(f"{reason.value} {self.about}".strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """A file as it was brought. path: its name, or its path in the folder that was chosen."""

    path: str
    file: IO[bytes]
    size: int

    @classmethod
    def of(cls, path: str, data: bytes) -> "Brought":
        return cls(path=path, file=io.BytesIO(data), size=len(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """One skill's files, paths relative to it. directory: the name of the folder or archive it was in."""

    directory: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packs:
    """All that was brought. beside: paths that belong to no skill and were left out."""

    packs: tuple[Pack, ...]
    beside: tuple[str, ...] = ()


class _Room:
    """What may still come: counts real bytes, whatever headers say."""

    def __init__(self) -> None:
        self._left = UNPACKED_BYTES
        self._places: dict[str, str] = {}

    def enter(self, raw: str) -> str:
        """Return the path of one more file, "" for what is left out. Raises PackRefused."""
        path = clean_path(raw)
        if _JUNK.intersection(path.split("/")) or path.rsplit("/", 1)[-1].startswith("._"):
            return ""
        place = path.casefold()
        if place in self._places or any(str(p) in self._places for p in PurePosixPath(place).parents):
            raise PackRefused(Refusal.TWICE, raw)
        if any(taken.startswith(f"{place}/") for taken in self._places):
            raise PackRefused(Refusal.TWICE, raw)
        self._places[place] = path
        if len(self._places) > MOST_FILES:
            raise PackRefused(Refusal.COUNT)
        return path

    def pieces(self, file: IO[bytes], raw: str) -> Iterator[bytes]:
        """Yield the bytes of one file. Raises PackRefused as soon as they are too many."""
        size = 0
        while piece := file.read(CHUNK_BYTES):
            size += len(piece)
            self._left -= len(piece)
            if size > FILE_BYTES:
                raise PackRefused(Refusal.FILE_SIZE, raw)
            if self._left < 0:
                raise PackRefused(Refusal.TOTAL_SIZE)
            yield piece


def unpack(brought: Sequence[Brought], desk: Desk) -> Packs:
    """Return the skills in what was brought: one archive, one SKILL.md, or a folder's files. Raises PackRefused."""
    if not brought:
        raise PackRefused(Refusal.EMPTY)
    for one in brought:
        if one.size > FILE_BYTES:
            raise PackRefused(Refusal.FILE_SIZE, one.path)
    alone = brought[0] if len(brought) == 1 and "/" not in brought[0].path.replace("\\", "/") else None
    outer = _stem(alone.path) if alone else ""
    if alone is None:
        laid = list(_folder(brought, desk))
    else:
        try:
            laid = list(_alone(alone, desk))
        except (
            zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile, struct.error, ValueError,
            NotImplementedError, RecursionError,
        ) as e:  # fmt: skip
            raise PackRefused(Refusal.DAMAGED) from e
    return _split(laid, outer)


def clean_path(raw: str) -> str:
    """Return a path as it may stand in a skill: relative, with slashes, no way out. Raises PackRefused."""
    if len(raw) > PATH_BYTES + PART_BYTES:  # not looked at any closer: an archive may give one of many megabytes
        raise PackRefused(Refusal.PATH, raw)
    path = unicodedata.normalize("NFC", raw)
    parts = path.split("/")
    bad = (
        not path
        or "\\" in path
        or ":" in path
        or not names.harmless(path)
        or len(parts) > DEPTH + 1  # one folder may stand around a skill, as when it was exported
        or len(path.encode()) > PATH_BYTES + PART_BYTES
        or any(not part.strip() or part in (".", "..") or len(part.encode()) > PART_BYTES for part in parts)
        or any(part != part.strip() for part in parts)
    )
    if bad:
        raise PackRefused(Refusal.PATH, raw)
    return path


def zipped(files: Iterable[tuple[str, bytes]]) -> bytes:
    """Return a zip with these, in this order and always the same bytes for the same files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files:
            info = zipfile.ZipInfo(path)  # of 1980: what is in it is the same, so is the archive
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(info, data)
    return out.getvalue()


def _alone(one: Brought, desk: Desk) -> Iterator[Entry]:
    one.file.seek(0)
    head = one.file.read(512)
    one.file.seek(0)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip(one.file, desk)
    if head.startswith(b"\x1f\x8b"):
        return _tar(gzip.GzipFile(fileobj=one.file), desk)
    if head[257:262] == b"ustar":
        return _tar(one.file, desk)
    if one.path.lower().endswith(".md"):
        return _folder([Brought(path=SKILL_FILE, file=one.file, size=one.size)], desk)
    raise PackRefused(Refusal.KIND, one.path)


def _folder(brought: Sequence[Brought], desk: Desk) -> Iterator[Entry]:
    room = _Room()
    for one in brought:
        if path := room.enter(one.path):
            one.file.seek(0)
            yield desk.lay(path, room.pieces(one.file, one.path))


class _Bounded:
    """The file of a zip. Its list of entries is read in one piece, and each costs far more memory than its bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_SET and not 0 <= offset <= FILE_BYTES:
            raise zipfile.BadZipFile("an offset leads out of the file")
        return self._file.seek(offset, whence)

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > HEADERS_BYTES:
            raise PackRefused(Refusal.COUNT)
        return self._file.read(-1 if size is None else size)


def _zip(file: IO[bytes], desk: Desk) -> Iterator[Entry]:
    room = _Room()
    with zipfile.ZipFile(_Bounded(file)) as archive:
        infos = archive.infolist()
        if len(infos) > 2 * MOST_FILES:  # folders have entries too
            raise PackRefused(Refusal.COUNT)
        for info in infos:
            name, mode = _zip_name(info), info.external_attr >> 16
            if info.flag_bits & 1:
                raise PackRefused(Refusal.ENCRYPTED, name)
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise PackRefused(Refusal.KIND, name)
            if stat.S_ISLNK(mode):
                raise PackRefused(Refusal.LINK, name)
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise PackRefused(Refusal.DEVICE, name)
            if name.endswith("/"):
                clean_path(name.removesuffix("/"))
            elif path := room.enter(name):
                with archive.open(info) as content:
                    yield desk.lay(path, room.pieces(content, name))


def _zip_name(info: zipfile.ZipInfo) -> str:
    """Return the name of an entry. Old programs write Chinese in their own encoding and do not say so.

    Python takes such names for code page 437, and cuts them at a NUL: that is no name.
    """
    raw = info.orig_filename
    if info.flag_bits & 0x800 or raw.isascii():
        return raw
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.encode("cp437").decode(encoding)
        except UnicodeError:
            continue
    return raw


class _Metered(io.RawIOBase):
    """The bytes of a tar: those of the files that were announced, and HEADERS_BYTES around all of them.

    A small gzip can hold endless headers, and a long one costs time that grows faster than it.
    """

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file = file
        self._left = HEADERS_BYTES
        self._files = 0

    def expect(self, size: int) -> None:
        """Let the bytes of a file come. Raises PackRefused."""
        self._files += size
        if size < 0:
            raise PackRefused(Refusal.DAMAGED)
        if self._files > UNPACKED_BYTES:
            raise PackRefused(Refusal.TOTAL_SIZE)
        self._left += size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(CHUNK_BYTES if size < 0 else size)
        self._left -= len(piece)
        if self._left < 0:
            raise PackRefused(Refusal.TOTAL_SIZE)
        return piece


def _tar(file: IO[bytes] | gzip.GzipFile, desk: Desk) -> Iterator[Entry]:
    room, metered = _Room(), _Metered(file)
    with tarfile.open(fileobj=metered, mode="r|") as archive:
        for entries, member in enumerate(archive, 1):
            name = member.name
            if entries > 2 * MOST_FILES:
                raise PackRefused(Refusal.COUNT)
            if member.issym() or member.islnk():
                raise PackRefused(Refusal.LINK, name)
            if member.isdir():
                if name not in (".", "./"):
                    clean_path(name.removeprefix("./").removesuffix("/"))
                continue
            if not member.isreg() or member.issparse():
                raise PackRefused(Refusal.DEVICE, name)
            metered.expect(member.size)
            if path := room.enter(name.removeprefix("./")):
                content = archive.extractfile(member)
                assert content is not None  # it is a regular file
                with content:
                    yield desk.lay(path, room.pieces(content, name))
    while metered.read():  # to the end, where a packed one says whether it is whole
        pass


def _split(entries: Sequence[Entry], outer: str) -> Packs:
    """Return the skills among the files: each folder with a SKILL.md that lies in no other such folder."""
    roots = sorted(entry.path.removesuffix(SKILL_FILE) for entry in entries if _is_skill_file(entry.path))
    roots = [root for root in roots if not any(root != other and root.startswith(other) for other in roots)]
    if not roots:
        raise PackRefused(Refusal.NO_SKILL if entries else Refusal.EMPTY)
    if len(roots) > MOST_SKILLS:
        raise PackRefused(Refusal.COUNT)
    packs: list[Pack] = []
    taken: set[str] = set()
    for root in roots:
        own = [entry for entry in entries if entry.path.startswith(root)]
        taken.update(entry.path for entry in own)
        moved = [replace(entry, path=entry.path[len(root) :]) for entry in own]
        for entry in moved:
            if entry.path.count("/") >= DEPTH or len(entry.path.encode()) > PATH_BYTES:
                raise PackRefused(Refusal.PATH, entry.path)
        directory = root.rstrip("/").rsplit("/", 1)[-1] or outer or FALLBACK
        packs.append(Pack(directory=directory, entries=tuple(sorted(moved, key=lambda entry: entry.path))))
    beside = tuple(sorted(entry.path for entry in entries if entry.path not in taken))
    return Packs(packs=tuple(packs), beside=beside)


def _is_skill_file(path: str) -> bool:
    return path == SKILL_FILE or path.endswith(f"/{SKILL_FILE}")


def _stem(name: str) -> str:
    """Return the name of an archive without its ending; of a SKILL.md there is none."""
    name = name.rsplit("/", 1)[-1]
    ending = next((e for e in _ENDINGS if name.lower().endswith(e)), "")
    stem = name[: len(name) - len(ending)] if ending else name
    return "" if stem.upper() == "SKILL" else stem
