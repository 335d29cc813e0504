"""Servers and people for every test.

Without DATABASE_URL the session starts the embedded PostgreSQL and Valkey in a short temporary directory; with it, the
tests use what the environment names. TEST_DATABASE_NAME names the test database, so that several sessions can share a
server. Settings are read when Django loads, which is after this file: DJANGO_SETTINGS_MODULE is set here.
"""

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import pytest
from django.utils import translation

from workbench import messages
from workbench.parts import ROOT, server_parts
from workbench.supervisor import Supervisor


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
        supervisor.start(part)
    supervisor.wait(*parts)
    os.environ.update(urls)
    os.environ["WORKBENCH_DATA"] = str(data)
    if "DATABASE_URL" in urls:
        os.environ["TEST_SERVERS"] = "embedded"  # for tests that start an installation: not this session's servers


os.environ.setdefault("DEBUG", "true")
os.environ.setdefault("SECRET_KEY", "for tests only, and long enough for those who measure it")
os.environ.setdefault("TEST_DATABASE_NAME", "test_workbench")
for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "MODELS"):
    os.environ.pop(name, None)  # a developer's key must not be spent by tests
for name in ("METRICS_TOKEN", "OTEL_EXPORTER_OTLP_ENDPOINT"):
    os.environ.pop(name, None)  # nor what tests do be counted with a developer's work
start_servers()
messages.compile_all(ROOT / "workbench" / "locale")
os.environ["DJANGO_SETTINGS_MODULE"] = "workbench.settings"
django.setup()


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
    """Run the end-to-end tests last: Playwright keeps an event loop running in this thread until the session ends."""
    items.sort(key=lambda item: "e2e" in item.path.parts)
