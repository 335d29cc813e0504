"""All settings, from the environment. A wrong value stops the start and names the variable.

Every variable may be given as NAME_FILE instead, the path of a file that holds the value. docs/operations.md has the
table.
"""

import json
import os
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent


def env(name: str, default: str = "") -> str:
    """Return the variable, or the content of the file that NAME_FILE points to."""
    path = os.environ.get(f"{name}_FILE")
    if path and name in os.environ:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; use one.")
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as e:
            raise ImproperlyConfigured(f"{name}_FILE={path}: {e.strerror}") from e
    return os.environ.get(name, default)


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
    if not value.lstrip("-").isdigit() or int(value) < least:
        raise ImproperlyConfigured(f"{name} must be a whole number of {least} or more, not {value!r}.")
    return int(value)


def env_list(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in env(name, default).split(",") if part.strip()]


def services(data: Path) -> dict[str, str]:
    """Return what `manage.py up` wrote of its embedded servers, if they were started on this data directory."""
    try:
        found = json.loads((data / "services.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {str(k): str(v) for k, v in found.items()}


# The installation
DATA_DIR = Path(env("WORKBENCH_DATA", str(BASE_DIR / "var"))).resolve()
EMBEDDED = services(DATA_DIR)
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
    raise ImproperlyConfigured("SECRET_KEY is not set. Set it, or start with `manage.py up`, which makes one.")


SECRET_KEY = secret_key()
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")

INSTALLED_APPS = [
    "daphne",
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

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
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
            ],
        },
    }
]

# Services. Each pool stays small: the sum over all processes must stay below max_connections (doctor checks).
DATABASE_URL = env("DATABASE_URL", EMBEDDED.get("DATABASE_URL", ""))
REDIS_URL = env("REDIS_URL", EMBEDDED.get("REDIS_URL", ""))
CELERY_BROKER_URL = env("CELERY_BROKER_URL", EMBEDDED.get("CELERY_BROKER_URL", REDIS_URL))

DATABASES: dict[str, dict[str, Any]] = {}
if DATABASE_URL:
    DATABASES["default"] = {
        **dj_database_url.parse(DATABASE_URL),
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            "pool": {"min_size": 1, "max_size": env_int("DATABASE_POOL", 10, least=2), "timeout": 30},
            "options": "-c jit=off",
        },
    }

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "workbench" / "locale"]
TIME_ZONE = env("TIME_ZONE", "UTC")
USE_TZ = True
USE_I18N = True

STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
MEDIA_ROOT = DATA_DIR / "files"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
