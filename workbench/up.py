"""`manage.py up`: the whole installation on one machine, from one command, without Django in the launcher itself.

The launcher holds the data directory's lock and the listening socket, and supervises. Everything that can overlap
does: the servers come up while the web process imports, which waits behind a gate until the schema is right.
"""

import argparse
import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TextIO

from workbench.datadir import forget_figures, forget_services, lock, make_secret_key, open_data, write_services
from workbench.parts import (
    MARK,
    ROOT,
    child_env,
    is_set,
    prepare_part,
    server_parts,
    shown,
    web_part,
    worker_parts,
)
from workbench.processes import CannotStart, clear_away, processes_marked
from workbench.supervisor import Interrupted, Part, Supervisor
from workbench.version import version

PORT_PATIENCE_S = 5.0  # an earlier start may still be ending
LOOK_S = 0.25


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manage.py up",
        description="Start the workbench: PostgreSQL, Valkey, the web server and a worker. Ctrl-C stops everything.",
        epilog="--data DIR names the data directory (var/ without it); installations on several run side by side.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1; 0.0.0.0 for all)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (8000; 0 for any free one)")
    parser.add_argument("--only", choices=("web", "worker"), help="start one kind of process, on outside services")
    parser.add_argument("--no-beat", action="store_true", help="worker without the clock: of many workers one has it")
    parser.add_argument("--version", action="version", version=version())
    return parser


@dataclass(slots=True, kw_only=True)
class Console:
    """One line per part, rewritten in place on a terminal while parts start; plain lines elsewhere and later."""

    out: TextIO
    lines: dict[str, str] = field(default_factory=dict)
    live: bool = True

    def show(self, part: Part, words: str) -> None:
        line = f"  {part.name:<10}{words}"
        if not self.live or not self.out.isatty():
            self.say(line)
            return
        if part.name in self.lines:
            up = len(self.lines) - list(self.lines).index(part.name)
            self.out.write(f"\x1b[{up}A\r\x1b[K{line}\x1b[{up}B\r")
        else:
            self.out.write(line + "\n")
        self.lines[part.name] = line
        self.out.flush()

    def say(self, text: str) -> None:
        self.out.write(text + "\n")
        self.out.flush()


def main(words: Sequence[str]) -> int:
    """Run until told to stop; return the exit code: 0 after a clean stop, 1 with a message if it cannot start."""
    options = arguments().parse_args(words)
    data = Path(os.environ.get("WORKBENCH_DATA") or ROOT / "var").resolve()
    console = Console(out=sys.stdout)
    supervisor = Supervisor(report=console.show)
    try:
        open_data(data)
        with lock(data), woken_by_signals(supervisor) as wake:
            return _run(options, data, console, supervisor, wake)
    except CannotStart as e:
        sys.stderr.write(f"\nCannot start: {e}\n")
        return 1


def _run(options: argparse.Namespace, data: Path, console: Console, supervisor: Supervisor, wake: int) -> int:
    began = time.monotonic()
    console.say(f"workbench {version()}, data in {data}")
    try:
        forget_services(data)
        clear_away(lambda: processes_marked(f"{MARK}={data}"), (signal.SIGTERM, signal.SIGKILL), patience_s=8)
        forget_figures(data)
        if not is_set("SECRET_KEY"):
            make_secret_key(data)
        link = _start(options, data, supervisor)
        console.live = False
        took = time.monotonic() - began
        if options.only != "worker":
            console.say(f"Ready in {took:.1f} s: {_address(options)}/   (Ctrl-C stops everything)")
            _advise(options, console, link)
        while not supervisor.stops:
            select.select([wake], [], [], LOOK_S)
            _drain(wake)
            supervisor.tick()
    except Interrupted:
        pass
    finally:
        console.live = False
        forget_services(data)
        console.say("Stopping…")
        supervisor.shut_all()
    console.say("Stopped.")
    return 0


def _start(options: argparse.Namespace, data: Path, supervisor: Supervisor) -> str:
    """Start every part and return the path of the sign-in link, if the owner has not been here yet."""
    listening = None if options.only == "worker" else _listen(options, supervisor)
    servers, urls = server_parts(data)
    env = child_env(data, urls)
    if options.host not in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::") and not is_set("ALLOWED_HOSTS"):
        env["ALLOWED_HOSTS"] = f"localhost,127.0.0.1,[::1],{shown(options.host)}"
    (servers_up, open_prepare), (prepared, open_web), (answer, tell) = os.pipe(), os.pipe(), os.pipe()
    prepare = prepare_part(env, servers_up, tell, owner=options.only != "worker")
    for server in servers:
        supervisor.start(server)
    supervisor.start(prepare)
    web = web_part(env, listening, prepared) if listening else None
    if web:
        supervisor.start(web)
    supervisor.wait(*servers)
    write_services(data, {**urls, "ADDRESS": _address(options)})
    os.write(open_prepare, b"\n")
    supervisor.wait(prepare)
    os.close(tell)
    with os.fdopen(answer, encoding="ascii") as f:
        link = f.read().strip()
    os.write(open_web, b"\n")
    for end in (servers_up, open_prepare):
        os.close(end)
    if web:
        web.asked = True
        supervisor.wait(web)
    for end in (prepared, open_web):
        os.close(end)
    if options.only != "web":
        for worker in worker_parts(env, data, beat=not options.no_beat):
            supervisor.start(worker)
    return link


def _listen(options: argparse.Namespace, supervisor: Supervisor) -> socket.socket:
    """Return the listening socket. The web process inherits it; connections wait in it while that one restarts."""
    until = time.monotonic() + PORT_PATIENCE_S
    host = "127.0.0.1" if options.host == "localhost" else options.host
    while True:
        listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, options.port))
            listening.listen(1024)
        except OSError as e:
            listening.close()
            if time.monotonic() > until or supervisor.stops:
                raise CannotStart(
                    f"Port {options.port} on {host} cannot be had ({e.strerror}). Choose another with --port."
                ) from e
            time.sleep(0.05)
        else:
            options.port = listening.getsockname()[1]
            return listening


def _address(options: argparse.Namespace) -> str:
    return os.environ.get("PUBLIC_URL", "").rstrip("/") or f"http://{shown(options.host)}:{options.port}"


def _advise(options: argparse.Namespace, console: Console, link: str) -> None:
    if link:
        console.say(f"\nSign in as the owner with this link (once, within 15 minutes):\n  {_address(options)}{link}\n")
    else:
        data = os.environ.get("WORKBENCH_DATA") or str(ROOT / "var")
        where = "" if data == str(ROOT / "var") else f" --data {data}"
        console.say(f"A fresh sign-in link: manage.py owner{where}")
    if options.host in ("0.0.0.0", "::") and not is_set("ALLOWED_HOSTS"):
        console.say("Other machines are refused until ALLOWED_HOSTS names the address they use, e.g. 192.168.1.20.")
    if not any(map(is_set, ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MODELS"))):
        console.say("No model is connected: answers are extracts. Set OPENAI_API_KEY or OPENAI_BASE_URL for a model.")


@contextlib.contextmanager
def woken_by_signals(supervisor: Supervisor) -> Iterator[int]:
    """Count requests to stop in `supervisor.stops`; yield a descriptor that is readable after any signal."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)

    def stop(_number: int, _frame: FrameType | None) -> None:
        supervisor.stops += 1

    def look(_number: int, _frame: FrameType | None) -> None:
        """A child changed: the descriptor wakes the loop."""

    stopping = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup the end of the terminal is none of ours
        stopping.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in stopping}
    before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, look)
    old = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


def _drain(wake: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(wake, 4096):
            pass
