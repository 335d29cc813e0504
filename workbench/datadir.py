"""The directory that holds an installation: one launcher at a time, one secret key, and where the servers are."""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from workbench.processes import CannotStart


def open_data(data: Path) -> None:
    """Make the data directory if it is new. Root's may be passed through by `nobody`, whom PostgreSQL runs as."""
    if not data.exists():
        data.mkdir(parents=True)
        data.chmod(0o711 if os.geteuid() == 0 else 0o700)
    if not os.access(data, os.W_OK | os.X_OK):
        raise CannotStart(f"{data} cannot be written by this user.")


@contextlib.contextmanager
def lock(data: Path) -> Iterator[None]:
    """Hold the data directory. Raises CannotStart if another process holds it; the kernel frees it on any death."""
    path = data / "lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 100, 0).decode(errors="replace").strip() or "unknown"
            raise CannotStart(
                f"{data} is in use (process {holder}). Stop that one first, or give this one another directory "
                "with --data DIR."
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def make_secret_key(data: Path) -> None:
    """Make DIR/secret_key once, readable by its owner only."""
    with contextlib.suppress(FileExistsError):
        handle = os.open(data / "secret_key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as f:
            f.write(secrets.token_urlsafe(48) + "\n")


def write_services(data: Path, urls: dict[str, str]) -> None:
    """Tell other commands on this data directory where the servers are. `forget_services` takes it back."""
    fresh = data / "services.json.new"
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as f:
        json.dump(urls, f, indent=1)
    fresh.replace(data / "services.json")


def forget_figures(data: Path) -> None:
    """Remove what processes of an earlier start counted (agents/metrics/prometheus.py): their files pile up."""
    shutil.rmtree(data / "metrics", ignore_errors=True)


def forget_services(data: Path) -> None:
    (data / "services.json").unlink(missing_ok=True)
