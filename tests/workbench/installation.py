"""A real `manage.py up` for tests, on a data directory of its own with everything embedded."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL")
SET_BY_TESTS = (*OUTSIDE, "WORKBENCH_DATA", "DEBUG", "SECRET_KEY", "TEST_DATABASE_NAME", "DJANGO_SETTINGS_MODULE")


def clean_env(**more: str) -> dict[str, str]:
    """Return the environment without what the test session has put into it.

    Installations of tests have servers of their own, except where tests/outside.py says that outside ones are tried.
    """
    kept = OUTSIDE if os.environ.get("TEST_SERVERS") == "outside" else ()
    return {**{k: v for k, v in os.environ.items() if k in kept or k not in SET_BY_TESTS}, **more}


def manage(data: Path, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run another command on the data directory."""
    return subprocess.run(
        [sys.executable, "manage.py", "--data", str(data), *words],
        cwd=ROOT,
        env=clean_env(**more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


class Up:
    """`manage.py up` as a child; what it prints goes to `log`, so that nothing blocks on a full pipe."""

    def __init__(self, data: Path, *words: str, port: int = 0, **env: str) -> None:
        self.data = data
        if data.exists():
            data.chmod(0o711)  # else, for root, the database would go elsewhere, and stay there after the test
        self.log = data.with_name(f"{data.name}.log")
        self.offset = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up", "--data", str(data), "--port", str(port), *words],
                cwd=ROOT,
                env=clean_env(**env),
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def said(self) -> str:
        with self.log.open("rb") as f:
            f.seek(self.offset)
            return f.read().decode(errors="replace")

    def wait_for(self, pattern: str, patience_s: float = 60) -> "re.Match[str]":
        """Return the first match in what it has said, waiting for it."""
        end = time.monotonic() + patience_s
        while not (found := re.search(pattern, self.said())):
            assert time.monotonic() < end, f"{pattern!r} not in:\n{self.said()}"
            assert self.process.poll() is None or re.search(pattern, self.said()), self.said()
            time.sleep(0.02)
        return found

    def ready(self) -> "Up":
        self.wait_for(r"Ready in [\d.]+ s: ")
        return self

    @property
    def port(self) -> int:
        return int(self.wait_for(r"Ready in [\d.]+ s: http://[^:]+:(\d+)/")[1])

    @property
    def link(self) -> str:
        """The path of a sign-in link: the printed one, or a fresh one where somebody has signed in before."""
        said = self.wait_for(r"http://[^/\s]+(/signin/\S+/)|A fresh sign-in link: manage.py owner")
        if said[1]:
            return said[1]
        return urlsplit(manage(self.data, "owner").stdout.strip()).path

    def get(
        self, path: str, method: str = "GET", body: str = "", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], str]:
        """Return status, headers and body of one request."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(link):
            link.request(method, path, body or None, headers or {})
            answer = link.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()

    def children(self) -> dict[int, str]:
        """Return the processes of the installation, with their command lines, however they are related."""
        mark = f"WORKBENCH_LAUNCHER={self.data}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    marked = mark in (entry / "environ").read_bytes().split(b"\0")
                    if line and (marked or (str(self.data) in line and "manage.py up" not in line)):
                        found[int(entry.name)] = line
        return found

    def child(self, word: str) -> int:
        """Return the id of the oldest process whose command line has the word."""
        return min(pid for pid, line in self.children().items() if word in line)

    def stop(self, number: int = signal.SIGINT) -> float:
        """Signal the launcher, and return how many seconds it took to end."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(30)
        return time.monotonic() - began

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def as_json(done: "subprocess.CompletedProcess[str]") -> Any:
    return json.loads(done.stdout)


def eventually(truth: Callable[[], bool], patience_s: float = 10) -> bool:
    """Ask until the answer is yes; False if it never is."""
    end = time.monotonic() + patience_s
    while not truth():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def gone(pids: Iterable[int], patience_s: float = 10) -> bool:
    """Wait until none of the processes is there; a zombie that nobody has reaped does not count."""
    end = time.monotonic() + patience_s
    while any(Path(f"/proc/{pid}/exe").is_symlink() and _works(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _works(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
