"""What must be right before anything is served: database, schema, translations, static files, an owner.

Cheap when nothing changed, and safe on several machines at once. `manage.py up` does it; an installation that starts
its processes in another way runs `manage.py prepare` once per release.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import psycopg
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.migration import Migration

from workbench import messages, tokens

LOCK = 0x776F726B  # pg_advisory_lock: one preparation at a time
OWNER = "owner"


class NoDatabase(Exception):
    """The database does not answer."""


def run(*, owner: bool, answer: int | None = None) -> None:
    """Prepare everything. Raises NoDatabase.

    owner: make one if there is none. answer: a descriptor that gets the path of a sign-in link, if one is due.
    """
    files()
    try:
        make_database()
        migrate()
    except psycopg.OperationalError as e:
        raise NoDatabase(f"The database does not answer: {str(e).strip()} Check DATABASE_URL.") from e
    if owner and (link := first_link()) and answer is not None:
        os.write(answer, link.encode())
    connection.close_pool()  # type: ignore[attr-defined]  # only PostgreSQL's wrapper has it


def files() -> None:
    """What needs no database; the launcher has it done while the database starts."""
    compile_messages()
    collect_static()


def make_database() -> None:
    """Make the database if the server has none of that name (an embedded server begins with none)."""
    target = psycopg_params()
    name = target.pop("dbname")
    try:
        psycopg.connect(dbname=name, **target).close()
    except psycopg.OperationalError as e:
        if "does not exist" not in str(e):
            raise
        with psycopg.connect(dbname="postgres", autocommit=True, **target) as admin:
            admin.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))


def psycopg_params() -> dict[str, Any]:
    """Return how to connect to our database without Django and its pool, whose patience is half a minute."""
    target = dict(connection.get_connection_params())
    for ours in ("pool", "cursor_factory", "context", "prepare_threshold"):
        target.pop(ours, None)
    return target


def pending_migrations() -> list[Migration]:
    """Return the migrations that were not applied yet, in order. Raises DatabaseError."""
    executor = MigrationExecutor(connection)
    return [migration for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]


def migrate() -> None:
    """Bring the schema up to date. Asking costs a few milliseconds; `migrate` itself half a second."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        try:
            if pending_migrations():
                call_command("migrate", interactive=False, verbosity=0)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def compile_messages() -> None:
    """Compile translations that changed. A tree that cannot be written keeps what it was installed with."""
    for place in settings.LOCALE_PATHS:
        if os.access(place, os.W_OK):
            messages.compile_all(Path(place))


def collect_static() -> None:
    """Copy static files, with hashed names, if any changed; with DEBUG they are served in place."""
    if settings.DEBUG:
        return
    root = Path(settings.STATIC_ROOT)
    stamp = root / ".stamp"
    state = _state_of_static()
    if stamp.exists() and stamp.read_text(encoding="ascii") == state:
        return
    shutil.rmtree(root, ignore_errors=True)
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.write_text(state, encoding="ascii")


def _state_of_static() -> str:
    digest = hashlib.sha256(django.__version__.encode())
    for path in sorted(_static_files()):
        st = path.stat()
        digest.update(f"{path}\0{st.st_size}\0{st.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _static_files() -> Iterator[Path]:
    for finder in get_finders():
        for name, storage in finder.list([]):
            yield Path(storage.path(name))


def first_link() -> str:
    """Return the path of a fresh sign-in link while nobody has signed in yet, making the owner; else ""."""
    users = get_user_model().objects
    if users.exclude(last_login=None).exists():
        return ""
    owner = users.filter(is_superuser=True).order_by("id").first()
    if owner is None:
        owner = users.create_superuser(OWNER, password=None)
    return link_path(owner.pk)


def link_path(owner_id: int) -> str:
    """Return the path of a fresh link. Written out: to ask the URL table would load every view, for a second or two."""
    return f"/signin/{tokens.make_link(owner_id=owner_id)}/"
