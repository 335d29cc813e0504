"""Who has a job: a name for this process by which another on the same machine can tell whether it still lives."""

import os
from functools import cache
from pathlib import Path

PROC = Path("/proc")


def me() -> str:
    """Return the name of this process."""
    return of(os.getpid())


def of(pid: int) -> str:
    """Return "machine pid start", at most 160 characters; "" where the system does not tell, or there is no process."""
    began = _began(pid)
    return f"{machine()} {pid} {began}" if machine() and began else ""


@cache
def machine() -> str:
    """Return a name for the running kernel and the process numbers seen from here; "" where there is none.

    Two containers on one machine count their processes apart, and a host name may come again: neither would do.
    """
    try:
        booted = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{booted}/{os.readlink(PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def gone(holder: str) -> bool:
    """Return whether a holder is known to live no more; False also for one that cannot be seen from here."""
    parts = holder.split(" ")
    if len(parts) != 3 or not machine() or parts[0] != machine():
        return False
    return _began(int(parts[1])) != parts[2]


def _began(pid: int) -> str:
    """Return when a process began, in ticks since the machine did; "" if there is none or it is dead already."""
    try:
        # the name of the program stands in brackets and may have any character; the state follows it
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
