"""A process that gives up all that reading a file does not need."""

import os
import resource
import signal
import sys
from typing import Any, NoReturn

from artifacts.extract.outcome import TimeUp

OUTPUT_BYTES = 512 * 1024 * 1024


def confine(seconds: int, memory_bytes: int) -> None:
    """Leave network, memory, time, files and other programs. What the system does not offer (namespaces) stays."""
    _leave_network()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_BYTES, OUTPUT_BYTES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    signal.signal(signal.SIGXCPU, _time_up)  # at four fifths what was read is kept; at the end the system kills
    resource.setrlimit(resource.RLIMIT_CPU, (max(1, seconds * 4 // 5), seconds + 1))
    signal.signal(signal.SIGALRM, _time_up)  # a busy machine gives less than a second of work a second
    signal.setitimer(signal.ITIMER_REAL, seconds)
    here = os.path.dirname(os.path.dirname(__file__))
    roots = tuple({sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), here})
    sys.addaudithook(lambda event, args: _refuse(event, args, roots))


def _time_up(_signal: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    raise TimeUp


def _refuse(event: str, args: tuple[Any, ...], roots: tuple[str, ...]) -> None:
    if event.startswith(("socket.", "subprocess.", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "os.system")):
        raise PermissionError(event)
    if event == "open" and isinstance(args[0], str):
        writes = bool(args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) if isinstance(args[2], int) else False
        if writes or not args[0].startswith(roots):
            raise PermissionError(event)


def _leave_network() -> None:
    """Die with the parent, and move into an empty network namespace if the system lets us."""
    import ctypes  # noqa: PLC0415 - the application, which knows this package too, needs none of it

    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if hasattr(libc, "unshare"):
        new_user, new_net = 0x10000000, 0x40000000
        if libc.unshare(new_net) != 0:
            libc.unshare(new_user | new_net)
