"""What a sandbox is made of: the arguments of bwrap, and whether this machine lets us make one."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from agents.providers.sandbox import filter
from agents.runtime.code import WORKSPACE

PROBE_S: Final = 10.0
PYTHON: Final = "/usr/bin/python3"
NOBODY: Final = 65534
TMP_BYTES: Final = 64 * 1024 * 1024
# of /usr what programs need; /usr/src and the like may hold anything
_PARTS: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libexec", "libx32", "share", "include")
_TOP: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC: Final = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "fonts", "localtime", "mime.types")


def arguments(disk_bytes: int, hidden: Sequence[Path] = ()) -> list[str]:
    """Return bwrap and its arguments, up to what the seccomp filter adds."""
    words = [*_account(), shutil.which("bwrap") or "/usr/bin/bwrap"]
    words += ["--unshare-user", "--unshare-ipc", "--unshare-pid"]
    words += ["--unshare-net", "--unshare-uts", "--unshare-cgroup-try", "--as-pid-1", "--die-with-parent"]
    words += ["--new-session", "--cap-drop", "ALL", "--clearenv", "--hostname", "workspace"]
    words += ["--uid", str(NOBODY), "--gid", str(NOBODY)]
    bound = [*(f"/usr/{part}" for part in _PARTS), *(f"/usr/local/{part}" for part in _PARTS)]
    bound += [f"/etc/{name}" for name in _ETC]
    for path in bound:
        if os.path.exists(path):
            words += ["--ro-bind", os.path.realpath(path), path]
    for path in (f"/{name}" for name in _TOP):
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    for ours in hidden:
        if ours.is_dir() and any(ours.is_relative_to(top) for top in bound):
            words += ["--tmpfs", str(ours), "--remount-ro", str(ours)]
    # a full device gives zeros too, and cannot be mapped: mapped zeros are memory that cannot be counted (filter.py)
    words += ["--proc", "/proc", "--dev", "/dev", "--dev-bind", "/dev/full", "/dev/zero"]
    words += ["--size", str(TMP_BYTES), "--tmpfs", "/dev/shm"]
    words += ["--remount-ro", "/dev", "--size", str(TMP_BYTES), "--tmpfs", "/tmp"]
    return [*words, "--size", str(disk_bytes), "--tmpfs", WORKSPACE, "--chdir", WORKSPACE, "--remount-ro", "/"]


@cache
def unavailable(hidden: tuple[Path, ...] = ()) -> str:
    """Return why no sandbox can be made here, "" if it can. Starts one, once per process, which takes some 50 ms."""
    if sys.platform != "linux":
        return "bubblewrap needs Linux"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (apt-get install bubblewrap)"
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        return "root needs setpriv for it, of the package util-linux"
    if not os.access(PYTHON, os.X_OK):
        return f"there is no {PYTHON}, which the sandbox needs"
    fd = rules()
    fds = [fd] if fd is not None else []
    words = [*arguments(TMP_BYTES, hidden), *(["--seccomp", str(fd)] if fd is not None else []), "--"]
    words += [PYTHON, "-I", "-S", "-c", "import ctypes; print('ready')"]
    try:
        tried = subprocess.run(words, capture_output=True, timeout=PROBE_S, cwd="/", env={}, pass_fds=fds, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {type(error).__name__}"
    finally:
        if fd is not None:
            os.close(fd)
    if tried.stdout.strip() == b"ready":
        return ""
    said = tried.stderr.decode(errors="replace").strip().splitlines()
    return f"the system does not allow it: {said[0][:200] if said else f'exit status {tried.returncode}'}"


def _account() -> list[str]:
    """Return a prefix that makes root somebody who may do nothing: limits do not hold for root."""
    if os.geteuid() != 0:
        return []
    who = str(NOBODY)
    return [shutil.which("setpriv") or "/usr/bin/setpriv", "--reuid", who, "--regid", who, "--clear-groups"]


def rules() -> int | None:
    """Return a descriptor of the seccomp filter, for the caller to close; None where there is none."""
    data = filter.program()
    if data is None:
        return None
    fd = os.memfd_create("rules", 0)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
