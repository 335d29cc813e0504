"""The product under test: `manage.py up` on a fresh data directory, and what its processes use."""

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
WEB_CORE, HARNESS_CORE = 0, (os.cpu_count() or 1) - 1


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def children(pid: int) -> list[int]:
    """Return the process and everything below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            for child in task.read_text().split():
                found += children(int(child))
    return found


def cpu_ms(pids: list[int]) -> float:
    """Return the milliseconds of CPU these processes have used so far, with those of children they have waited for."""
    total = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(int(f) for f in fields[11:15])
    return total * 1000 / TICKS


def rss_kb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 1024


class Stack:
    """A running installation. `web` is the pid of the web process, pinned to a core of its own."""

    def __init__(self, data: Path, model_port: int, model: str) -> None:
        self.data, self.port = data, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environ = {
            **{k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL")},
            "WORKBENCH_DATA": str(data),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{model_port}/v1",
            "OPENAI_API_KEY": "bench",
            "OPENAI_MODEL": model,
            "RUNS_PER_OWNER": "100000",
            "SOCKETS_PER_OWNER": "100000",
            "FRAMES_PER_SECOND": "100000",
            "DEBUG": "false",
        }
        self.launcher: subprocess.Popen[bytes] | None = None
        self.started_in = 0.0

    def manage(self, *words: str) -> str:
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=self.environ,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def start(self) -> None:
        """Start everything and wait for the first page; `started_in` is how long that took, in seconds."""
        begun = time.monotonic()
        with (self.data.parent / f"{self.data.name}.log").open("ab") as log:
            self.launcher = subprocess.Popen(
                [sys.executable, "manage.py", "up", "--host", "127.0.0.1", "--port", str(self.port)],
                cwd=ROOT,
                env=self.environ,
                stdout=log,
                stderr=log,
            )
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/signin/", timeout=1) as answer:
                if answer.status == 200:
                    break
            if self.launcher.poll() is not None or time.monotonic() - begun > 60:
                raise RuntimeError(f"the stack did not start; see {log.name}")
            time.sleep(0.01)
        self.started_in = time.monotonic() - begun

    def stop(self) -> None:
        if self.launcher:
            self.launcher.send_signal(signal.SIGINT)
            self.launcher.wait(30)

    @property
    def pids(self) -> list[int]:
        assert self.launcher
        return children(self.launcher.pid)

    @property
    def web(self) -> int:
        for pid in self.pids:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if "workbench.serve" in Path(f"/proc/{pid}/cmdline").read_text():
                    return pid
        raise RuntimeError("no web process")

    def pin(self) -> None:
        for task in Path(f"/proc/{self.web}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):  # a thread that has ended since
                os.sched_setaffinity(int(task.name), {WEB_CORE})

    def token(self) -> str:
        name = "bench" + secrets.token_hex(3)
        made = "from django.contrib.auth.models import User; User.objects.create_user(" + repr(name) + ")"
        self.manage("shell", "--no-imports", "-c", made)
        out = self.manage("token", "--user", name)
        found = re.search(r"wb_[A-Za-z0-9_-]+", out)
        if not found:
            raise RuntimeError("`token` printed none")
        return found[0]


@contextlib.contextmanager
def model_server() -> Iterator[int]:
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.modelserver", str(port)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert server.stdout
    server.stdout.readline()
    os.sched_setaffinity(server.pid, {HARNESS_CORE})
    try:
        yield port
    finally:
        server.kill()
        server.wait()
