"""`manage.py up` and the commands beside it, as a person at a terminal sees them."""

import os
import re
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workbench.installation import Up, as_json, eventually, gone, manage

pytestmark = pytest.mark.slow


def make_data() -> Path:
    top = Path(tempfile.mkdtemp(prefix="wb-"))
    top.chmod(0o711)
    return top / "d"


@pytest.fixture(scope="module")
def running() -> Iterator[Up]:
    up = Up(make_data()).ready()
    up.wait_for("worker +ready")
    yield up
    up.stop()
    shutil.rmtree(up.data.parent)


@pytest.fixture
def data() -> Iterator[Path]:
    place = make_data()
    yield place
    shutil.rmtree(place.parent)


def test_each_part_has_its_line_and_the_page_is_there(running: Up) -> None:
    for part in ("postgres", "valkey", "prepare", "web", "worker", "reader"):
        running.wait_for(rf"(?m)^  {part} +ready in [\d.]+ s: \S+")
    status, headers, page = running.get("/signin/")
    assert (status, "<form" in page) == (200, True)
    assert "nonce-" in headers["Content-Security-Policy"]
    stylesheet = re.search(r'href="(/static/css/main\.[0-9a-f]{12}\.css)"', page)
    assert stylesheet
    assert running.get(stylesheet[1])[0] == 200
    assert running.get("/healthz")[0] == 200
    assert running.get("/readyz")[2] == '{"database": true, "valkey": true, "migrations": true}'


def test_secrets_and_addresses_are_for_the_owner_of_the_directory_only(running: Up) -> None:
    for name in ("secret_key", "services.json", "lock"):
        assert (running.data / name).stat().st_mode & 0o777 == 0o600


def test_the_printed_link_shows_a_button_and_signs_in_once(running: Up) -> None:
    link = running.link
    assert running.get(link)[0] == 200
    status, headers, page = running.get(link)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert (status, bool(token)) == (200, True)
    assert token
    form = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": headers["Set-Cookie"].split(";")[0]}
    body = f"csrfmiddlewaretoken={token[1]}"
    status, headers, _ = running.get(link, "POST", body, form)
    assert (status, headers["Location"]) == (302, "/")
    assert running.get(link, "POST", body, form)[0] == 410


def test_a_second_up_on_the_same_data_is_refused(running: Up) -> None:
    second = Up(running.data)
    second.offset = 0
    second.wait_for(rf"in use \(process {running.process.pid}\)")
    assert second.process.wait(10) == 1
    assert running.get("/healthz")[0] == 200


def test_owner_prints_a_fresh_link_and_token_prints_a_token_once(running: Up) -> None:
    done = manage(running.data, "owner")
    assert re.fullmatch(rf"http://127\.0\.0\.1:{running.port}/signin/[\w-]+/\n", done.stdout), done.stderr
    done = manage(running.data, "token", "--user", "owner", "--name", "ci", "--scope", "read")
    assert re.fullmatch(r"wb_[\w-]{43}\n", done.stdout), done.stderr
    done = manage(running.data, "token", "--user", "nobody-of-that-name")
    assert done.returncode == 1
    assert "createsuperuser" in done.stderr


def test_doctor_finds_everything_well(running: Up) -> None:
    done = manage(running.data, "doctor", "--json")
    said = as_json(done)
    assert {c["name"]: c["found"] for c in said["checks"] if not c["ok"]} == {}, done.stderr
    assert (done.returncode, said["ok"]) == (0, True)
    assert [c["name"] for c in said["checks"]] == [
        *("database", "vector", "migrations", "connections", "valkey", "broker"),
        *("worker", "storage", "model", "embeddings", "code", "clock", "disk"),
    ]


@pytest.mark.parametrize("part", ["workbench.serve", "workbench.celery", "valkey-server", "bin/postgres"])
def test_a_part_that_dies_is_started_again_and_said_so(running: Up, part: str) -> None:
    name = {"workbench.serve": "web", "workbench.celery": "worker", "valkey-server": "valkey"}.get(part, "postgres")
    running.offset = running.log.stat().st_size
    pid = running.child(part)
    os.kill(pid, signal.SIGKILL)
    running.wait_for(rf"{name} +ended \(signal SIGKILL\), starting again")
    running.wait_for(rf"{name} +ready in")
    running.offset = 0
    assert running.child(part) != pid
    assert eventually(lambda: running.get("/readyz")[0] == 200)


def test_ctrl_c_stops_everything_within_five_seconds(data: Path) -> None:
    up = Up(data).ready()
    up.wait_for("worker +ready")
    pids = up.children()
    assert len(pids) >= 6
    assert up.stop(signal.SIGINT) < 5
    assert up.process.returncode == 0
    assert gone(pids, 0)
    assert not (data / "services.json").exists()
    assert "Stopped." in up.said()


def test_killing_the_launcher_leaves_nothing_behind_and_a_second_start_at_once_works(data: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    first = Up(data, port=port).ready()
    first.wait_for("worker +ready")
    left = first.children()
    first.kill()
    second = Up(data, port=port).ready()
    assert gone(left)
    assert second.get("/readyz")[0] == 200
    left = second.children()
    second.kill()
    assert gone(left)


def test_sigterm_while_starting_stops_what_was_started(data: Path) -> None:
    up = Up(data)
    up.wait_for("web +starting")
    pids = up.children()
    assert up.stop(signal.SIGTERM) < 5
    assert gone(pids, 0)


def test_a_port_that_is_taken_is_said_so(data: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        up = Up(data, port=port)
        up.wait_for(rf"Port {port} on 127\.0\.0\.1 cannot be had .*--port", 20)
        assert up.process.wait(10) == 1
    assert up.children() == {}


def test_a_wrong_setting_stops_the_start_with_its_name(data: Path) -> None:
    up = Up(data, DATABASE_POOL="many")
    up.wait_for("DATABASE_POOL must be a whole number")
    assert up.process.wait(20) == 1
    assert up.children() == {}
    assert "Traceback" not in up.said()  # the line says what to change


def test_a_database_that_does_not_answer_stops_the_start_with_its_setting(data: Path) -> None:
    up = Up(data, DATABASE_URL="postgresql://postgres@127.0.0.1:1/nowhere")
    up.wait_for("The database does not answer: [^\\0]+ Check DATABASE_URL.")
    assert up.process.wait(20) == 1
    assert "Traceback" not in up.said()


def test_people_can_be_made_when_nothing_runs(data: Path) -> None:
    words = ("createsuperuser", "--noinput", "--username", "mei", "--email", "mei@desk.example")
    done = manage(data, *words, DJANGO_SUPERUSER_PASSWORD="long enough to keep")
    assert "Superuser created" in done.stdout, done.stderr


def test_commands_borrow_the_servers_when_nothing_runs(data: Path) -> None:
    done = manage(data, "owner", "--address", "https://desk.example")
    assert re.fullmatch(r"https://desk\.example/signin/[\w-]+/\n", done.stdout), done.stderr
    assert not (data / "services.json").exists()


def test_doctor_without_servers_names_the_command_that_mends_it(data: Path) -> None:
    data.mkdir(mode=0o700)
    done = manage(data, "doctor", SECRET_KEY="x")
    assert done.returncode == 1
    assert re.search(r"FAIL  database +no database is configured\n +Start everything with `manage.py up`", done.stdout)


def test_a_command_on_a_directory_that_was_never_started_says_so_in_a_line(data: Path) -> None:
    done = manage(data, "doctor")
    assert done.returncode == 1
    assert re.fullmatch(r"SECRET_KEY is not set\. [^\n]+--data DIR\)\.\n", done.stderr)


def test_every_command_tells_the_products_version(data: Path) -> None:
    said = {name: manage(data, *name.split(), "--version").stdout for name in ("up", "doctor", "owner", "token", "ask")}
    assert set(said.values()) == {manage(data, "--version").stdout}
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", said["up"])
