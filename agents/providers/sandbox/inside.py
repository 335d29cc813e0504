"""The first process in a sandbox: unpacks the workspace, starts the command, watches it, sends back what changed.

Given to the sandbox's own Python (3.8 or newer) as text, so it imports nothing of ours and little of Python's. Being
process 1 it cannot be killed from inside, and every process that loses its parent becomes its child; when it ends, the
kernel ends them all. carrying.py is the other end and has the form of both streams.
"""

from __future__ import annotations

# signal itself wraps it in enums, which take longer to import than all the rest to run
import _signal as signal  # type: ignore[import-not-found]  # the typeshed knows only the wrapper
import os
import resource
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes as long to import as all the rest
    from typing import IO, Any

    Seen = dict[str, tuple[int, int, int, int] | None]

# file descriptors: what to do, read to its end; what came of it; the highest number that came with us
ORDERS, REPORT, HIGHEST = map(int, sys.argv[1:])
LOOK_S = 0.025
PIECE = 1 << 16
PAGE = os.sysconf("SC_PAGE_SIZE")
PR_SET_DUMPABLE = 4
PATIENCE = 10  # of the command: the watch and the server come first, however many processes there are


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 gets no signal it has not asked for
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    orders = os.fdopen(ORDERS, "rb")
    job = eval(orders.readline())  # of our own making: repr() of a dict
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    hide()
    root = job["root"]
    unpack(job, orders, root)
    orders.close()
    before = seen(root, job["kept"])
    child = start(job)
    for stream in (0, 1, 2):
        os.dup2(os.open("/dev/null", os.O_RDWR), stream)
    code, stopped = watch(job, child)
    end_all()
    report = os.fdopen(REPORT, "wb")
    if job["returns"]:
        send_changes(root, before, seen(root, job["kept"]), report)
    report.write(b"E %d %s\n" % (code, stopped.encode() or b"-"))
    report.flush()


def hide() -> None:
    """Close this process's memory and descriptors in /proc to the command, which has the same user."""
    import ctypes  # noqa: PLC0415  # the first call of it is here

    if ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError("prctl")


def unpack(job: dict[str, Any], orders: IO[bytes], root: str) -> None:
    for path in job["dirs"]:
        os.makedirs(os.path.join(root, path), exist_ok=True)
    while True:
        path, size, mode = eval(orders.readline())  # as above
        if not path:
            break
        whole = os.path.join(root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        handle = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        while size:
            data = orders.read(min(size, PIECE))
            if not data:
                raise EOFError(path)
            size -= len(data)
            while data:
                data = data[os.write(handle, data) :]
        os.fchmod(handle, mode)
        os.close(handle)
    for path, target in job["links"]:
        try:
            os.symlink(target, os.path.join(root, path))
        except FileExistsError:
            pass  # a skill may have a directory of that name
    os.chmod(root, 0o555)  # what is written beside the kept directories would be lost


def start(job: dict[str, Any]) -> int:
    """Fork, give up what the command may not have, and become it. Returns its process id to the parent."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        os.nice(PATIENCE)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for name, value in job["limits"].items():
            hard = value + 1 if name == "RLIMIT_CPU" else value  # it is told first, then killed
            resource.setrlimit(getattr(resource, name), (value, hard))
        os.closerange(3, HIGHEST + 1)
        os.chdir(os.path.join(job["root"], job["cwd"]))
        os.execve(job["argv"][0], job["argv"], job["env"])
    except OSError as error:
        os.write(2, b"cannot start: %s\n" % str(error).encode())
    os._exit(127)


def watch(job: dict[str, Any], child: int) -> tuple[int, str]:
    """Wait for the command's end or a limit. Returns (exit code, what stopped it or "")."""
    ends = time.monotonic() + job["wall_s"]
    while True:
        signal.sigtimedwait([signal.SIGCHLD], LOOK_S)
        status = reap(child)
        if status is not None:
            code = os.waitstatus_to_exitcode(status) if hasattr(os, "waitstatus_to_exitcode") else status >> 8
            if code == -signal.SIGXCPU or (code == -signal.SIGKILL and cpu_used() > job["cpu_s"]):
                return -1, "time"
            return (128 - code if code < 0 else code), ""
        if time.monotonic() > ends:
            return -1, "time"
        for path in job["disks"]:
            disk = os.statvfs(path)
            if disk.f_files - disk.f_ffree > job["entries"]:
                return -1, "disk"
        if memory_used() + queued() > job["memory"]:
            return -1, "memory"


def reap(child: int) -> int | None:
    """Collect every process that ended. Returns the command's status if it is among them."""
    status = None
    while True:
        try:
            pid, said = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if not pid:
            return status
        if pid == child:
            status = said


def cpu_used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory_used() -> int:
    """Return the bytes that all processes hold. Shared pages count for each of them, unless it might matter."""
    pids = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    quick = sum(field(f"/proc/{pid}/statm", 1) for pid in pids) * PAGE
    if quick <= 1 << 26:
        return quick
    return sum(proportional(pid) for pid in pids)


def field(path: str, number: int) -> int:
    try:
        with open(path) as file:
            return int(file.read().split()[number])
    except (OSError, IndexError, ValueError):
        return 0


def proportional(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return field(f"/proc/{pid}/statm", 1) * PAGE


def queued() -> int:
    """Return the bytes that wait in connections: memory of the kernel, of which the whole machine has one share."""
    total = 0
    for name in ("tcp", "tcp6", "udp", "udp6"):
        try:
            with open("/proc/net/sockstat6" if name.endswith("6") else "/proc/net/sockstat") as file:
                # the list itself takes long on a machine with many connections, though it shows only ours
                if not any(int(line.split()[2]) for line in file if line.startswith(f"{name.upper()}:")):
                    continue
            with open(f"/proc/net/{name}") as file:
                waiting = [line.split()[4] for line in file][1:]
            total += sum(int(part, 16) for pair in waiting for part in pair.split(":"))
        except FileNotFoundError:
            continue  # a kernel without IPv6
    return total


def end_all() -> None:
    """Kill every other process until none is left. None can outrun it: kill(-1) reaches all at once."""
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def seen(root: str, kept: list[str]) -> Seen:
    """Return (size, inode, change time) of each regular file below the kept directories, and None of each link."""
    found: Seen = {}
    waiting = [os.path.join(root, name) for name in kept]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.path != os.path.join(root, "work/inputs"):
                    waiting.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                stat = entry.stat(follow_symlinks=False)
                found[entry.path] = (stat.st_size, stat.st_ino, stat.st_ctime_ns, stat.st_mode & 0o100)
            elif entry.is_symlink():
                found[entry.path] = None
    return found


def send_changes(root: str, before: Seen, after: Seen, report: IO[bytes]) -> None:
    """Write what is gone (D), new or changed (F, with its bytes), and which links were left behind (L)."""
    for path in before:
        if path not in after:
            report.write(b"D %s\n" % name(root, path))
    for path, now in after.items():
        if now is None:
            if path not in before:
                report.write(b"L %s\n" % name(root, path))
        elif before.get(path) != now:
            try:
                os.chmod(path, 0o600)
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            except OSError:
                continue
            with os.fdopen(handle, "rb") as file:
                size = os.fstat(handle).st_size
                report.write(b"F %s %d %d\n" % (name(root, path), size, bool(now[3])))
                while size:
                    data = file.read(min(size, PIECE))
                    size -= len(data)
                    report.write(data)


def name(root: str, path: str) -> bytes:
    return os.fsencode(os.path.relpath(path, root)).hex().encode()


if __name__ == "__main__":
    main()
    os._exit(0)  # at once: there is nothing to flush
