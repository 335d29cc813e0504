"""What an installation consists of: two servers, a preparation, the web process and the worker."""

import os
import signal
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from workbench.embedded import Postgres, Valkey
from workbench.processes import Command
from workbench.supervisor import Part

ROOT = Path(__file__).resolve().parent.parent
MARK = "WORKBENCH_LAUNCHER"
DRAIN_S = 2.0  # how long runs may go on after Ctrl-C, unless SHUTDOWN_GRACE_S says otherwise


def is_set(name: str) -> bool:
    return bool(os.environ.get(name) or os.environ.get(f"{name}_FILE"))


def server_parts(data: Path) -> tuple[list[Part], dict[str, str]]:
    """Return the embedded servers that the environment does not name outside ones for, and how to reach them.

    Raises CannotStart when one of them may not run here.
    """
    parts: list[Part] = []
    urls: dict[str, str] = {}
    if not is_set("DATABASE_URL"):
        postgres = Postgres(data=data)
        parts.append(_server(postgres))
        urls["DATABASE_URL"] = postgres.url
    if not is_set("REDIS_URL"):
        valkey = Valkey(data=data)
        parts.append(_server(valkey))
        urls["REDIS_URL"] = valkey.url
        if not is_set("CELERY_BROKER_URL"):
            urls["CELERY_BROKER_URL"] = valkey.broker_url
    return parts, urls


def _server(server: Postgres | Valkey) -> Part:
    return Part(name=server.name, prepare=server.prepare, command=server.command, ready=server.ready, says=server.says)


def child_env(data: Path, urls: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of our own processes on this data directory."""
    return {
        **os.environ,
        **urls,
        "WORKBENCH_DATA": str(data),
        MARK: str(data),
        "DJANGO_SETTINGS_MODULE": "workbench.settings",
        "PYTHONUNBUFFERED": "1",
    }


def python(
    arguments: Iterable[str],
    env: dict[str, str],
    *,
    stop: tuple[tuple[signal.Signals, float], ...],
    pass_fds: tuple[int, ...] = (),
    mute: bool = False,
) -> Command:
    """Return the command for a Python process of ours. It gets the first stop signal when the launcher dies."""
    return Command(
        argv=(sys.executable, *arguments),
        env=env,
        cwd=ROOT,
        stop=stop,
        death=stop[0][0],
        pass_fds=pass_fds,
        mute=mute,
    )


def prepare_part(env: dict[str, str], gate: int, answer: int, *, owner: bool) -> Part:
    """Migrations, translations, static files, first owner: once, before anything is served.

    gate: opened when the database is up. answer: where the path of a sign-in link is written, if there is one.
    """
    words = ["-m", "workbench.preload", str(gate), "prepare", f"--answer={answer}"]
    if not owner:
        words.append("--no-owner")
    return Part(
        name="prepare",
        command=lambda: python(words, env, stop=((signal.SIGTERM, 2.0),), pass_fds=(gate, answer)),
        ready=lambda pid: False,
        asked=False,
        says=lambda: "schema, translations and static files are up to date",
        once=True,
        timeout_s=300,
    )


def web_part(env: dict[str, str], listening: socket.socket, gate: int | None) -> Part:
    """The web server on a socket that the launcher holds, so that a restart refuses nobody.

    gate: for its first start, which waits for the preparation.
    """
    grace_s = float(env.setdefault("SHUTDOWN_GRACE_S", str(DRAIN_S)))
    host, port = listening.getsockname()[:2]
    first = [gate]

    def command() -> Command:
        wait, first[0] = first[0], None
        serve = ["workbench.serve", "--host", host, "--port", str(port), "--fd", str(listening.fileno())]
        ahead = ["-m"] if wait is None else ["-m", "workbench.preload", str(wait)]
        fds = (listening.fileno(),) if wait is None else (listening.fileno(), wait)
        return python([*ahead, *serve], env, stop=((signal.SIGTERM, grace_s + 1.5),), pass_fds=fds)

    return Part(
        name="web",
        command=command,
        asked=gate is None,
        ready=lambda pid: _answers(host, port),
        says=lambda: f"http://{shown(host)}:{port}/",
    )


def worker_parts(env: dict[str, str], data: Path, *, beat: bool) -> tuple[Part, Part]:
    """The two Celery workers: one for what is quick, with the clock, of which an installation has exactly one; and one
    that reads files, so that a long reading holds up nothing but other readings."""
    quick = "background work" + (" and its clock" if beat else "")
    return (
        _worker("worker", "quick", ["--beat"] if beat else [], env, ready=data / "worker.ready", says=quick),
        _worker("reader", "heavy", [], env, ready=data / "reader.ready", says="reading of files"),
    )


def _worker(name: str, takes: str, more: list[str], env: dict[str, str], *, ready: Path, says: str) -> Part:
    # as root, on a machine of one's own: the data directory decides who may do what, Celery need not warn
    words = [
        "-W",
        "ignore:You're running the worker with superuser",
        "-m",
        "celery",
        "--app=workbench.celery",
        "--quiet",
        "worker",
        "--loglevel=WARNING",
        f"--hostname={name}@%h",
        "--without-gossip",
        "--without-mingle",
        *more,
    ]
    env = {
        **env,
        "WORKER_READY_FILE": str(ready),
        "WORKER_LAUNCHER": str(os.getpid()),
        "WORKER_TAKES": takes,
        "DATABASE_POOL": env.get("WORKER_POOL") or "2",
    }
    return Part(
        name=name,
        prepare=lambda: ready.unlink(missing_ok=True),
        # QUIT: tasks get a moment, and what is not done goes back to the queue
        command=lambda: python(words, env, stop=((signal.SIGQUIT, 2.5),), mute=True),
        ready=lambda pid: ready.exists(),
        says=lambda: says,
    )


def shown(host: str) -> str:
    """Return the host as a person types it: a wildcard is reached by the loopback address."""
    if host in ("0.0.0.0", "::"):
        return "127.0.0.1" if host == "0.0.0.0" else "[::1]"
    return f"[{host}]" if ":" in host else host


def _answers(host: str, port: int) -> bool:
    target = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    try:
        with socket.create_connection((target, port), timeout=0.5) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return s.recv(64).startswith((b"HTTP/1.1 200", b"HTTP/1.0 200"))
    except OSError:
        return False
