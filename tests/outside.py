"""All database tests on outside services: `python -m tests.outside [pytest's arguments]`.

Starts the wheel's PostgreSQL 16 as a server of its own over TCP with a password, takes the Redis of the machine (or
starts its redis-server), and runs pytest with DATABASE_URL and REDIS_URL: nothing embedded takes part.
"""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from workbench.embedded import postgres_account, postgres_programs
from workbench.processes import run_as

ROOT = Path(__file__).resolve().parent.parent
DATABASE_TESTS = ("tests/agents", "tests/artifacts", "tests/workbench")
# These start embedded servers, whatever the environment says.
EMBEDDED_ONLY = ("tests/workbench/test_up.py", "tests/workbench/test_embedded_servers.py")
REDIS_DATABASE = 9  # of the machine's Redis; nothing else is touched


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + 30
    while not answers(port):
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"{process.args!r} does not start")
        time.sleep(0.05)


@contextlib.contextmanager
def postgres(top: Path) -> Iterator[str]:
    """Run PostgreSQL 16 with a password, over TCP only, and yield its URL."""
    account = postgres_account()
    home, password = top / "pg16", secrets.token_urlsafe(12)
    programs = postgres_programs(home, account, major=16) / "bin"
    home.mkdir(mode=0o700)
    word = top / "password"
    word.write_text(password)
    if account:
        for path in (home, word):
            os.chown(path, account.uid, account.gid)
    subprocess.run(
        [
            *(programs / "initdb", "-A", "scram-sha-256", f"--pwfile={word}", "-E", "UTF8", "--locale=C"),
            *("--no-sync", "-U", "postgres", "-D", home),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd="/",
        **run_as(account),
    )
    port = free_port()
    options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "fsync": "off"}
    server = subprocess.Popen(
        [programs / "postgres", "-D", home, *(w for k, v in options.items() for w in ("-c", f"{k}={v}"))],
        cwd="/",
        stderr=(top / "postgres.log").open("wb"),
        **run_as(account),
    )
    try:
        wait_for(port, server)
        target = f"postgresql://postgres:{password}@127.0.0.1:{port}"
        with psycopg.connect(f"{target}/postgres", autocommit=True) as link:
            link.execute("CREATE DATABASE workbench")
            print("PostgreSQL", link.info.server_version, "over TCP with a password", flush=True)
        yield f"{target}/workbench"
    finally:
        server.send_signal(2)
        server.wait(20)


@contextlib.contextmanager
def redis(top: Path) -> Iterator[str]:
    """Yield the URL of the machine's Redis; if none runs, of its redis-server, started for this."""
    if answers(6379):
        yield f"redis://127.0.0.1:6379/{REDIS_DATABASE}"
        return
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        raise SystemExit("No Redis here. On Debian and Ubuntu: apt-get install redis-server")
    port = free_port()
    server = subprocess.Popen(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(top)],
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for(port, server)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(20)


def main(words: list[str]) -> int:
    top = Path(tempfile.mkdtemp(prefix="wbo-"))
    top.chmod(0o711)
    try:
        with postgres(top) as database_url, redis(top) as redis_url:
            env = {**os.environ, "DATABASE_URL": database_url, "REDIS_URL": redis_url, "WORKBENCH_DATA": str(top / "d")}
            env.pop("CELERY_BROKER_URL", None)
            env["TEST_SERVERS"] = "outside"

            def pytest(*arguments: str) -> int:
                return subprocess.run(
                    [sys.executable, "-m", "pytest", *arguments], cwd=ROOT, env=env, check=False
                ).returncode

            failed = pytest(*(words or (*DATABASE_TESTS, *(f"--ignore={t}" for t in EMBEDDED_ONLY), "-m", "not fault")))
            if not words and any((ROOT / "tests" / "e2e").glob("test_*.py")):
                failed = pytest("tests/e2e", "-m", "smoke") or failed
            return failed
    finally:
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
