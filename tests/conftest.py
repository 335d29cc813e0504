"""Servers and people for every test.

Without DATABASE_URL the session starts the embedded PostgreSQL and Valkey in a short temporary directory; with it, the
tests use what the environment names. TEST_DATABASE_NAME names the test database, so that several sessions can share a
server. Settings are read when Django loads, which is after this file: DJANGO_SETTINGS_MODULE is set here.

With `-n 2` each process that runs tests has a database of its own on the one PostgreSQL, a Valkey of its own (or, of
an outside Redis, a database of its own), and a secret key, which everything that an installation shares is named after.
"""

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django.conf
import pytest
from django.test import TransactionTestCase
from django.utils import translation

from tests.flushing import empty_the_database
from workbench import messages
from workbench.embedded import MAJOR
from workbench.parts import ROOT, server_parts
from workbench.supervisor import Supervisor

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")  # "gw0", …: one of several processes that share the tests
# Nobody needs this database after a power cut.
FORGETFUL = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n"


def part_from_others() -> None:
    """In one of several processes: keep only what can be shared of the servers that the first one started or found."""
    os.environ["SECRET_KEY"] += WORKER
    started = os.environ.get("TEST_STARTED", "").split()
    if "REDIS_URL" not in started:
        url = urlsplit(os.environ["REDIS_URL"])
        number = int(url.path.strip("/") or 0) + int(WORKER.removeprefix("gw"))
        os.environ["REDIS_URL"] = url._replace(path=f"/{number}").geturl()
    for name in ("REDIS_URL", "CELERY_BROKER_URL"):
        if name in started:
            del os.environ[name]


def start_servers() -> None:
    """Start what the environment does not name, and put the addresses into it; everything ends with this process."""
    data = Path(tempfile.mkdtemp(prefix="wb-"))  # short: a socket's path has at most 107 bytes
    data.chmod(0o711)
    (data / "static").mkdir()  # else the static files' middleware warns at every client
    supervisor = Supervisor(report=lambda part, words: None)

    def stop() -> None:
        supervisor.shut_all()
        shutil.rmtree(data, ignore_errors=True)

    atexit.register(stop)
    parts, urls = server_parts(data)
    for part in parts:
        if part.name == "postgres":
            part.prepare()
            with (data / f"pg{MAJOR}" / "postgresql.conf").open("a") as conf:
                conf.write(FORGETFUL)
        supervisor.start(part)
    supervisor.wait(*parts)
    os.environ.update(urls)
    os.environ["WORKBENCH_DATA"] = str(data)
    os.environ["TEST_STARTED"] = " ".join(urls)
    if "DATABASE_URL" in urls:
        os.environ["TEST_SERVERS"] = "embedded"  # for tests that start an installation: not this session's servers


os.environ.setdefault("DEBUG", "true")
os.environ.setdefault("SECRET_KEY", "for tests only, and long enough for those who measure it")
os.environ.setdefault("TEST_DATABASE_NAME", "test_workbench")
for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "MODELS"):
    os.environ.pop(name, None)  # a developer's key must not be spent by tests
for name in ("METRICS_TOKEN", "OTEL_EXPORTER_OTLP_ENDPOINT"):
    os.environ.pop(name, None)  # nor what tests do be counted with a developer's work
assert not django.conf.settings.configured, "settings must not be read before the servers are known"
if WORKER:
    part_from_others()
start_servers()
messages.compile_all(ROOT / "workbench" / "locale")
os.environ["DJANGO_SETTINGS_MODULE"] = "workbench.settings"
django.setup()
# what slows down who guesses passwords slows down tests too, by half a second a person
django.conf.settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
TransactionTestCase._fixture_teardown = empty_the_database


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Before the test database is dropped: nobody may still be connected, or the drop fails with a warning."""
    yield
    cut_other_connections()


def cut_other_connections() -> None:
    """Close pools and end the connections that worker threads left open."""
    import psycopg
    from django.db import connection

    parameters = connection.get_connection_params()
    name = connection.settings_dict["NAME"]
    connection.close()
    with contextlib.suppress(Exception):
        connection.close_pool()
    for unknown in ("pool", "cursor_factory", "context", "prepare_threshold", "dbname", "options"):
        parameters.pop(unknown, None)
    with psycopg.connect(dbname="postgres", autocommit=True, **parameters) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])


@pytest.fixture(autouse=True)
def own_language() -> Iterator[None]:
    """A request of the test client leaves its language on in this thread; the next test begins without."""
    yield
    translation.deactivate()


@pytest.fixture
def alice(db: None) -> Any:
    """The person a test is about."""
    return make_user("alice")


@pytest.fixture
def bob(db: None) -> Any:
    """Another person of the same installation: must never see what is alice's."""
    return make_user("bob")


@pytest.fixture
def charlie(db: None) -> Any:
    """Staff without more: sees the admin, and no bodies of events."""
    return make_user("charlie", is_staff=True)


def make_user(name: str, **more: Any) -> Any:
    from django.contrib.auth import get_user_model

    return get_user_model().objects.create_user(name, password=f"{name}'s long password", **more)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what takes longest first, so that of two processes none is left with it at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: ("e2e" not in item.path.parts, item.path not in slow))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Keep the processes that will run the tests from reading settings before this file has named their servers."""
    del os.environ["DJANGO_SETTINGS_MODULE"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each file to one process, and all end-to-end tests too: they share a browser and two installations."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "tests/e2e" if nodeid.startswith("tests/e2e/") else str(super()._split_scope(nodeid))

    config.option.loadscopereorder = False  # the order is that of pytest_collection_modifyitems
    return ByFile(config, log)
