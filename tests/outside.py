"""All database tests on outside services: `python -m tests.outside [pytest's arguments]`.

Starts the wheel's PostgreSQL 16 as a server of its own over TCP with a password, takes the machine's Redis and RabbitMQ
(or starts its redis-server and rabbitmq-server), and runs pytest with DATABASE_URL, REDIS_URL and CELERY_BROKER_URL:
nothing embedded takes part. Two processes share the tests; tests/conftest.py says how they keep apart.
"""

import contextlib
import hashlib
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

import kombu
import psycopg

from workbench.embedded import postgres_account, postgres_programs
from workbench.processes import run_as

ROOT = Path(__file__).resolve().parent.parent
DATABASE_TESTS = ("tests/agents", "tests/artifacts", "tests/workbench")
# These start embedded servers, whatever the environment says.
EMBEDDED_ONLY = ("tests/workbench/test_up.py", "tests/workbench/test_embedded_servers.py")
# These have nothing to do with a server, so once is enough.
NO_SERVER = (
    "tests/agents/test_knowledge_tools.py",
    "tests/agents/test_live_coalescing.py",
    "tests/agents/test_offline_judging.py",
    "tests/agents/test_offline_knowledge.py",
    "tests/agents/test_offline_provider.py",
    "tests/agents/test_openai_errors.py",
    "tests/agents/test_openai_provider.py",
    "tests/agents/test_openai_request.py",
    "tests/agents/test_policy_form.py",
    "tests/agents/test_refused_windows.py",
    "tests/artifacts/test_diff.py",
    "tests/artifacts/test_formats.py",
    "tests/artifacts/test_passages.py",
    "tests/artifacts/test_reading.py",
    "tests/artifacts/test_sniff.py",
    "tests/artifacts/test_textfile.py",
    "tests/artifacts/test_uploads.py",
    "tests/workbench/bench",
    "tests/workbench/test_bodies.py",
    "tests/workbench/test_logs.py",
    "tests/workbench/test_messages.py",
    "tests/workbench/test_middleware.py",
    "tests/workbench/test_processes.py",
    "tests/workbench/test_serve.py",
    "tests/workbench/test_supervisor.py",
    "tests/workbench/test_waterfall.py",
    "tests/workbench/test_wording.py",
)
PROCESSES = 2
REDIS_DATABASE = 9  # the first of the machine's Redis that is used, one for each process; nothing else is touched
RABBITMQ_PORT = 5672


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + 60
    while not answers(port):
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"{process.args!r} does not start")
        time.sleep(0.05)


def first_link(url: str, server: "subprocess.Popen[bytes]") -> "psycopg.Connection[tuple[object, ...]]":
    """Connect as soon as the server lets anybody in: it listens a moment earlier."""
    until = time.monotonic() + 60
    while True:
        try:
            return psycopg.connect(url, autocommit=True)
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > until:
                raise
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
        with first_link(f"{target}/postgres", server) as link:
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


@contextlib.contextmanager
def rabbitmq(top: Path, secret_key: str) -> Iterator[str]:
    """Yield the URL of the machine's RabbitMQ; if none runs, of its rabbitmq-server, started for this.

    What is named after this key is removed afterwards: it outlives those who made it.
    """
    with contextlib.ExitStack() as stack:
        port = RABBITMQ_PORT if answers(RABBITMQ_PORT) else stack.enter_context(own_rabbitmq(top))
        url = f"amqp://guest:guest@127.0.0.1:{port}//"
        with kombu.Connection(url, connect_timeout=5) as link:
            link.ensure_connection(max_retries=3)
            print("RabbitMQ", link.connection.server_properties["version"], flush=True)
        yield url
        with kombu.Connection(url, connect_timeout=5) as link, link.channel() as channel:
            for process in ("", *(f"gw{n}" for n in range(PROCESSES))):
                name = "workbench-" + hashlib.sha256(f"queue:{secret_key}{process}".encode()).hexdigest()[:8]
                channel.queue_delete(name)
                channel.queue_delete(f"{name}-heavy")
                channel.exchange_delete(name)


@contextlib.contextmanager
def own_rabbitmq(top: Path) -> Iterator[int]:
    program = shutil.which("rabbitmq-server", path=f"/usr/lib/rabbitmq/bin:{os.environ['PATH']}")
    if program is None:
        raise SystemExit("No RabbitMQ here. On Debian and Ubuntu: apt-get install rabbitmq-server")
    port, home = free_port(), top / "rabbitmq"
    home.mkdir()
    env = {
        "RABBITMQ_CONF_ENV_FILE": str(home / "none"),
        "RABBITMQ_CONFIG_FILE": str(home / "none"),
        "RABBITMQ_NODENAME": f"tests{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(home / "data"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_PID_FILE": str(home / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
        "HOME": str(home),
    }
    server = subprocess.Popen([program], env={**os.environ, **env}, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_for(port, server)
        yield port
    finally:
        os.killpg(server.pid, 15)
        server.wait(30)


def main(words: list[str]) -> int:
    top = Path(tempfile.mkdtemp(prefix="wbo-"))
    top.chmod(0o711)
    try:
        key = os.environ.get("SECRET_KEY") or secrets.token_urlsafe(40)
        with postgres(top) as database_url, redis(top) as redis_url, rabbitmq(top, key) as broker_url:
            urls = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "CELERY_BROKER_URL": broker_url}
            env = {**os.environ, **urls, "SECRET_KEY": key, "WORKBENCH_DATA": str(top / "d"), "TEST_SERVERS": "outside"}

            def pytest(*arguments: str) -> int:
                return subprocess.run(
                    [sys.executable, "-m", "pytest", *arguments], cwd=ROOT, env=env, check=False
                ).returncode

            failed = pytest(
                *(
                    words
                    or (
                        *("-n", str(PROCESSES), "-m", "not fault", *DATABASE_TESTS),
                        *(f"--ignore={t}" for t in (*EMBEDDED_ONLY, *NO_SERVER)),
                    )
                )
            )
            if not words and any((ROOT / "tests" / "e2e").glob("test_*.py")):
                failed = pytest("tests/e2e", "-m", "smoke") or failed
            return failed
    finally:
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
