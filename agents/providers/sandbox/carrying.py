"""A workspace carried into a sandbox and back: the two streams between us and inside.py.

Orders (to it): a line, repr() of a dict, then of each file a line, repr() of (path, size, mode), with so many bytes
behind it, and a last one without a path. Report (from it): lines
`D path`, `L path`, `F path size executable` with so many bytes behind it, and at the end `E exit-code reason`; paths
are relative to the workspace, in hexadecimal. What it says is not to be trusted: whatever runs in there may have
written it. So paths are checked, sizes and numbers are bounded, and nothing is written through a link.
"""

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

ROOT: Final = "/workspace"
KEPT: Final = ("work", "out", "runs", "skills")  # what comes back, if it changed; inputs never do
READ_ONLY: Final = "work/inputs"
MOST_NAMED: Final = 100
MOST_DEEP: Final = 64  # parts of a path: a directory costs us room that nobody counts
_PIECE: Final = 1 << 16
_LINE: Final = 16_384  # bytes; a path has at most 4,096, twice as many in hexadecimal


class TooMuch(Exception):
    """The workspace has no room in the sandbox."""


class NotTrusted(Exception):
    """The report is not what inside.py writes."""


@dataclass(slots=True, kw_only=True)
class Report:
    """What came back. links: paths of symbolic links, which stay behind. left: files beyond the limits, not taken."""

    exit_code: int = -1
    stopped: str = ""
    links: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A file that is put into the sandbox only. path: relative to the workspace."""

    path: str
    data: bytes


def send_orders(
    orders: IO[bytes], root: Path, job: Mapping[str, Any], given: Sequence[Given], *, most_bytes: int
) -> None:
    """Write the job and every file of the workspace. Blocks; raises BrokenPipeError when the sandbox is gone, OSError.

    most_bytes: of all files together; with more it raises TooMuch before anything is written.
    Another run of the conversation may bring its files at the same time: what is gone meanwhile is left out.
    """
    files = inventory(root)
    if sum(size for _path, size, _mode in files) > most_bytes:
        raise TooMuch
    orders.write(repr(dict(job)).encode() + b"\n")
    for path, _size, mode in files:
        with contextlib.suppress(FileNotFoundError), _opened(root, path) as file:
            size = os.fstat(file.fileno()).st_size
            orders.write(_headed(path, size, mode))
            _copy(file, orders, size, padded=True)
    for one in given:
        orders.write(_headed(one.path, len(one.data), 0o444) + one.data)
    orders.write(_headed("", 0, 0))
    orders.close()


def _headed(path: str, size: int, mode: int) -> bytes:
    return repr((path, size, mode)).encode() + b"\n"


def inventory(root: Path) -> list[tuple[str, int, int]]:
    """Return (path, size, mode in the sandbox) of every regular file of a workspace, sorted."""
    found = []
    for name in ("inputs", *KEPT):
        top = root / name
        shown = PurePosixPath(READ_ONLY if name == "inputs" else name)
        for folder, _folders, names in os.walk(top):
            for file in names:
                whole = Path(folder, file)
                try:
                    about = whole.lstat()
                except FileNotFoundError:
                    continue  # taken away by another run of the conversation
                path = (shown / whole.relative_to(top)).as_posix()
                if stat.S_ISREG(about.st_mode) and (name == "inputs" or not path.startswith(f"{READ_ONLY}/")):
                    mode = 0o444 if name == "inputs" else 0o700 if about.st_mode & 0o100 else 0o600
                    found.append((path, about.st_size, mode))
    return sorted(found)


def directories(root: Path) -> int:
    """Return how many directories code has made in a workspace."""
    return sum(len(folders) for name in KEPT for _folder, folders, _names in os.walk(root / name))


def host_path(root: Path, path: str) -> Path:
    """Return where a file of the sandbox lies here."""
    if path.startswith(f"{READ_ONLY}/"):
        return root / "inputs" / path.removeprefix(f"{READ_ONLY}/")
    return root / path


def _opened(root: Path, path: str) -> IO[bytes]:
    return os.fdopen(os.open(host_path(root, path), os.O_RDONLY | os.O_NOFOLLOW), "rb")


def _copy(source: IO[bytes], target: IO[bytes] | None, size: int, *, padded: bool = False) -> None:
    """Copy so many bytes. padded: with zeros, where the source has become shorter meanwhile."""
    while size:
        data = source.read(min(size, _PIECE))
        if not data and not padded:
            raise NotTrusted("it ended in the middle of a file")
        data = data or bytes(min(size, _PIECE))
        if target is not None:
            target.write(data)
        size -= len(data)


def receive(report: IO[bytes], root: Path, *, most_bytes: int, most_files: int) -> Report:
    """Read the report and bring the workspace up to it. Blocks. Raises NotTrusted; what was taken before stays."""
    try:
        return _receive(report, root, most_bytes, most_files)
    except (ValueError, IndexError, OSError) as error:
        raise NotTrusted(f"{type(error).__name__}: {error}") from error


def _receive(report: IO[bytes], root: Path, room: int, most_files: int) -> Report:
    came, there = Report(), len(inventory(root))
    while True:
        line = report.readline(_LINE)
        if not line.endswith(b"\n"):
            raise NotTrusted("it ended early")
        kind, *words = line.split()
        if kind == b"E":
            came.exit_code, said = int(words[0]), words[1].decode("ascii", "replace")
            came.stopped = said if said in ("time", "memory", "disk") else ""
            return came
        path = _path(bytes.fromhex(words[0].decode("ascii")))
        if kind == b"D" and path:
            there -= _remove(root, path)
        elif kind == b"L" and path:
            came.links = [*came.links, path][:MOST_NAMED]
        elif kind == b"F":
            size, executable = int(words[1]), words[2] == b"1"
            if not 0 <= size <= room:
                raise NotTrusted("more bytes than there may be")
            room -= size
            there += bool(path) and not (root / path).is_file()
            if path and there <= most_files:
                _take(report, root, path, size, executable=executable)
            else:
                came.left = [*came.left, path or repr(words[0])][:MOST_NAMED]
                _copy(report, None, size)


def _path(said: bytes) -> str:
    """Return the path, "" for one that is not UTF-8 or too deep. Raises NotTrusted."""
    try:
        path = said.decode()
    except UnicodeDecodeError:
        return ""
    parts = path.split("/")
    if parts[0] not in KEPT or len(parts) < 2 or any(p in ("", ".", "..") or "\0" in p for p in parts):
        raise NotTrusted("a path that is not in the workspace")
    if f"{path}/".startswith(f"{READ_ONLY}/"):
        raise NotTrusted("a path of an input")
    return path if len(parts) <= MOST_DEEP else ""


def _take(report: IO[bytes], root: Path, path: str, size: int, *, executable: bool) -> None:
    whole = root / path
    if whole.is_dir():
        shutil.rmtree(whole)  # its files were said to be gone
    fresh = root / f".{secrets.token_hex(8)}"
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700 if executable else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            _copy(report, file, size)
        _put(fresh, whole)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _put(fresh: Path, whole: Path) -> None:
    """Move a file to its place. There are no links in a workspace, so none is followed."""
    for again in (True, True, False):
        whole.parent.mkdir(parents=True, exist_ok=True)
        try:
            fresh.replace(whole)
        except FileNotFoundError:  # another run of the conversation took the directory away
            if not again:
                raise
        else:
            return


def _remove(root: Path, path: str) -> bool:
    """Remove a file, and the directories that are empty without it: they are carried nowhere, and would pile up."""
    whole = root / path
    try:
        whole.unlink()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return False
    top = root / path.split("/")[0]
    with contextlib.suppress(OSError):  # the first that is not empty
        while (whole := whole.parent) != top:
            whole.rmdir()
    return True
