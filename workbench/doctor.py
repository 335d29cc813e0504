"""What `manage.py doctor` looks at. Each check is a function that says what it found, or raises Ill with the cure."""

import asyncio
import datetime as dt
import os
import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import kombu.exceptions
import psycopg
import redis
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import DatabaseError

from agents.runtime.errors import AgentError
from agents.runtime.model import ModelRequest, ReasoningChunk, Role, TextChunk, text_message
from agents.stores.summaries import MOST_HELD
from workbench import prepare
from workbench.celery import app

CLOCK_TOLERANCE_S = 2.0
DISK_LEAST_BYTES = 1_000_000_000
WORKER_PATIENCE_S = 2.0
MODEL_PATIENCE_S = 60.0
RESERVED_CONNECTIONS = 8  # superuser's three, autovacuum, the commands of a person
START = "Start everything with `manage.py up`, or set"


class Ill(Exception):
    """Something is wrong. cure: the command or setting that mends it."""

    def __init__(self, found: str, cure: str) -> None:
        super().__init__(found)
        self.cure = cure


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    name: str
    ok: bool
    found: str
    cure: str = ""
    took_ms: int = 0


def examine() -> list[Finding]:
    """Run every check and return what each found, in order. No check raises; a missing server fails its checks."""
    return [_run(name, check) for name, check in CHECKS.items()]


def as_dicts(findings: list[Finding]) -> list[dict[str, object]]:
    return [asdict(f) for f in findings]


def _run(name: str, check: Callable[[], str]) -> Finding:
    began = time.monotonic()
    try:
        found, cure = check(), ""
    except Ill as e:
        found, cure = str(e), e.cure
    except (DatabaseError, psycopg.Error) as e:
        found, cure = _first_line(e) or type(e).__name__, f"{START} DATABASE_URL to a PostgreSQL that answers."
    except (redis.RedisError, kombu.exceptions.OperationalError, OSError) as e:
        found, cure = _first_line(e) or type(e).__name__, f"{START} REDIS_URL and CELERY_BROKER_URL."
    return Finding(name=name, ok=not cure, found=found, cure=cure, took_ms=round((time.monotonic() - began) * 1000))


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]


def ask_database(question: str) -> tuple[Any, ...]:
    """Return the first row of the answer. Not through the pool, whose patience would be half a minute a check."""
    if not settings.DATABASE_URL:
        raise Ill("no database is configured", f"{START} DATABASE_URL.")
    target = {**prepare.psycopg_params(), "connect_timeout": 3, "autocommit": True}
    with psycopg.connect(**target) as link:
        return link.execute(question.encode()).fetchone() or ()


def database() -> str:
    number, version = ask_database(
        "SELECT current_setting('server_version_num')::int, current_setting('server_version')"
    )
    if number < 150000:
        raise Ill(f"PostgreSQL {version}", "Use PostgreSQL 15 or newer (DATABASE_URL).")
    return f"PostgreSQL {version}"


def vector() -> str:
    installed = ask_database("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    if installed:
        return f"vector {installed[0]}"
    available = ask_database("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
    if not available:
        raise Ill("the server has no pgvector", "Install pgvector on the database server (postgresql-NN-pgvector).")
    return f"vector {available[0]} is there to be used"


def migrations() -> str:
    ask_database("SELECT 1")
    if pending := prepare.pending_migrations():
        first = f"{pending[0].app_label}.{pending[0].name}"
        raise Ill(f"{len(pending)} pending, the first is {first}", "Run `manage.py prepare`.")
    return "none pending"


def most_of_process(pool: int, making: int) -> int:
    """Return how many connections a process may hold: both pools, the writer's own, the sweep's, and one for each
    summary that it makes at once."""
    return 2 * pool + 2 + making


def pools() -> str:
    web = settings.WEB_PROCESSES * most_of_process(settings.DATABASE_POOL, MOST_HELD)
    # of each of the two workers its processes and its own; only the quick one makes summaries
    each = most_of_process(settings.WORKER_POOL, 2) + most_of_process(settings.WORKER_POOL, 0)
    work = (settings.WORKER_PROCESSES + 1) * each
    (most,) = ask_database("SHOW max_connections")
    words = f"{web} for web, {work} for workers, {RESERVED_CONNECTIONS} in reserve, of max_connections {most}"
    if web + work + RESERVED_CONNECTIONS > int(most):
        raise Ill(words, "Lower DATABASE_POOL, WEB_PROCESSES or WORKER_PROCESSES, or raise max_connections.")
    return words


def valkey() -> str:
    if not settings.REDIS_URL:
        raise Ill("no Valkey or Redis is configured", f"{START} REDIS_URL.")
    with redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=3, socket_timeout=3) as client:
        about = client.info("server")
        policy = client.info("memory").get("maxmemory_policy", "noeviction")
    name = "Valkey" if "valkey_version" in about else "Redis"
    version = str(about.get("valkey_version", about["redis_version"]))
    if tuple(int(part) for part in about["redis_version"].split(".")[:2]) < (6, 2):
        raise Ill(f"{name} {version}", "Use Redis 6.2 or newer, or Valkey (REDIS_URL).")
    if policy.startswith("allkeys"):
        raise Ill(f"{name} {version} may evict any key", "Set its maxmemory-policy to volatile-ttl or noeviction.")
    return f"{name} {version}"


def broker() -> str:
    if not settings.CELERY_BROKER_URL:
        raise Ill("no broker is configured", f"{START} CELERY_BROKER_URL.")
    with app.connection_for_write(connect_timeout=3) as link:
        link.ensure_connection(max_retries=1, interval_start=0, timeout=3)
        return f"{link.transport.driver_type} answers"


def worker() -> str:
    if not settings.CELERY_BROKER_URL:
        raise Ill("no broker, so no worker", f"{START} CELERY_BROKER_URL.")
    answers = app.control.inspect(timeout=WORKER_PATIENCE_S).active_queues() or {}
    cure = "Start one with `manage.py up`, or `manage.py up --only worker`."
    if not answers:
        raise Ill("no worker answers", cure)
    taken = {queue["name"] for queues in answers.values() for queue in queues}
    if left := {settings.QUICK_QUEUE, settings.HEAVY_QUEUE} - taken:
        raise Ill(f"{len(answers)} answering, but nobody takes from {', '.join(sorted(left))}", cure)
    return f"{len(answers)} answering"


def storage() -> str:
    store = storages["artifacts"]
    body = secrets.token_bytes(64)
    try:
        name = store.save(f"doctor/{secrets.token_hex(8)}", ContentFile(body))
        try:
            with store.open(name) as f:
                same = f.read() == body
        finally:
            store.delete(name)
    except OSError as e:
        cure = f"Let this user write to {settings.DATA_DIR / 'files'} (or choose --data DIR)."
        raise Ill(_first_line(e), "Check STORAGE_URL and what it names." if settings.STORAGE_URL else cure) from e
    if not same:
        cure = "Check what STORAGE_URL names." if settings.STORAGE_URL else f"Check the disk under {settings.DATA_DIR}."
        raise Ill("what was read is not what was written", cure)
    return "written, read, deleted"


def model() -> str:
    return asyncio.run(_ask_models())


async def _ask_models() -> str:
    """Ask every configured model for a word. Loads the providers, which no other check needs."""
    from agents import wiring  # noqa: PLC0415  # loads the providers

    try:
        return ", ".join([await _ask(m.info.name) for m in wiring.models()])
    finally:
        await wiring.close_clients()


async def _ask(name: str) -> str:
    from agents import wiring  # noqa: PLC0415  # loads the providers

    request = ModelRequest(messages=(text_message(Role.USER, "Answer with one word: ready"),))
    began = time.monotonic()
    try:
        async with asyncio.timeout(MODEL_PATIENCE_S):
            chunks = [chunk async for chunk in wiring.model_of(name, 0).stream(request)]
    except (AgentError, TimeoutError) as e:
        found = f"{name}: {_first_line(e) or 'no answer within a minute'}"
        raise Ill(found, "Check OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL and MODELS.") from e
    if not any(isinstance(chunk, TextChunk | ReasoningChunk) for chunk in chunks):
        raise Ill(f"{name} answers with nothing", "Name another model in OPENAI_MODEL or MODELS.")
    return f"{name} answers in {time.monotonic() - began:.1f} s"


def embeddings() -> str:
    from agents import wiring  # noqa: PLC0415  # loads the providers
    from agents.background import embed  # noqa: PLC0415  # loads the providers

    ask_database("SELECT 1")
    if wiring.embedder() is None:
        return "search goes by words alone (EMBEDDER)"
    try:
        made, total = embed.progress()
    except DatabaseError as e:
        raise Ill(_first_line(e), "Run `manage.py prepare`.") from e
    if made < total:
        return f"{made:,} of {total:,} passages have theirs; the others are found by their words meanwhile"
    return f"all {total:,} passages have theirs"


def clock() -> str:
    before = dt.datetime.now(dt.UTC)
    (theirs,) = ask_database("SELECT clock_timestamp()")
    after = dt.datetime.now(dt.UTC)
    off = abs((theirs - (before + (after - before) / 2)).total_seconds())
    if off > CLOCK_TOLERANCE_S:
        raise Ill(
            f"{off:.1f} s away from the database's", "Run a time service on both machines (chrony, systemd-timesyncd)."
        )
    return f"{off * 1000:.0f} ms away from the database's"


def disk() -> str:
    free = shutil.disk_usage(settings.DATA_DIR).free
    words = f"{free / 1e9:.1f} GB free at {settings.DATA_DIR}"
    if free < DISK_LEAST_BYTES:
        raise Ill(words, "Free some space, or move the data directory (--data DIR).")
    if not os.access(settings.DATA_DIR, os.W_OK):
        raise Ill(f"{settings.DATA_DIR} cannot be written", "Run as the user that owns it, or choose --data DIR.")
    return words


def code() -> str:
    from agents import wiring  # noqa: PLC0415  # loads the providers

    found, missing = wiring.code_found()
    if settings.CODE_EXECUTOR == "bubblewrap" and missing:
        raise Ill(f"no code can be run: {missing}", "Mend that, or set CODE_EXECUTOR to auto, monty or none.")
    if found == "nothing":
        return "nothing runs code (CODE_EXECUTOR=none)"
    return f"{found}; not bubblewrap: {missing}" if missing else found


CHECKS: dict[str, Callable[[], str]] = {
    "database": database,
    "vector": vector,
    "migrations": migrations,
    "connections": pools,
    "valkey": valkey,
    "broker": broker,
    "worker": worker,
    "storage": storage,
    "model": model,
    "embeddings": embeddings,
    "code": code,
    "clock": clock,
    "disk": disk,
}
