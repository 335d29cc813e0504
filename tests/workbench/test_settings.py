"""Settings by environment: what is read, what is refused, and that the docs say the same."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BARE = {"PATH": os.environ["PATH"], "SECRET_KEY": "x" * 50, "WORKBENCH_DATA": "/nonexistent"}


def load(ask: str = "0", **env: str) -> "subprocess.CompletedProcess[str]":
    """Load the settings module alone in a fresh interpreter and print what is asked of it."""
    return subprocess.run(
        [sys.executable, "-c", f"import workbench.settings as s; print({ask})"],
        env={k: v for k, v in {**BARE, **env}.items() if v != "unset"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def value(ask: str, **env: str) -> str:
    done = load(ask, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def read_settings() -> dict[str, str]:
    """Return every variable that settings.py reads, with its default where that is written out."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse((ROOT / "workbench" / "settings.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            name, *rest = [*node.args, *(k.value for k in node.keywords if k.arg == "default")]
            if node.func.id.startswith("env") and isinstance(name, ast.Constant):
                default = rest[0].value if rest and isinstance(rest[0], ast.Constant) else ""
                found[str(name.value)] = str(default).lower() if isinstance(default, bool) else str(default)
    return found


def documented() -> dict[str, str]:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `([A-Z_]+)` \| (?:`([^`]*)`)? ?\| \S", text)
    return dict(rows)


def test_the_table_in_the_docs_names_every_setting_with_its_default() -> None:
    read = read_settings() | {"WORKBENCH_DATA": "var"}
    assert len(read) > 30
    assert documented() == read


@pytest.mark.parametrize(("name", "wrong"), [
    ("DEBUG", "yes"), ("DATABASE_POOL", "many"), ("DATABASE_POOL", "1"), ("UPLOAD_MAX_MB", "-3"),
    ("UPLOAD_MAX_MB", "--3"), ("WEB_PROCESSES", "²"), ("TIME_ZONE", "Mars/Olympus"), ("TIME_ZONE", "../etc"),
    ("MODEL_READ_TIMEOUT_S", "0"), ("MODEL_READ_TIMEOUT_S", "nan"), ("MODEL_HTTP", "curl"), ("LOG_FORMAT", "xml"),
    ("DATABASE_URL", "mysql://u:secret-word@h/d"), ("REDIS_URL", "localhost:6379"), ("CELERY_BROKER_URL", "sqs://x"),
    ("PUBLIC_URL", "desk.example"), ("MODELS", "{"), ("MODELS", '{"name": "a"}'), ("MODELS", '[{"window": 1}]'),
    ("MODELS", '[{"name": "a", "windw": 1}]'), ("MODELS", '[{"name": "a", "window": "8k", "api_key": "secret-word"}]'),
    ("STORAGE_URL", "ftp://u:secret-word@h/x"), ("STORAGE_URL", "s3://key:secret-word@h/b/c"), ("PURGE_AFTER_S", "0"),
    ("STORAGE_URL", "/srv/files"), ("UPLOADS_PER_OWNER", "0"), ("MODELS", '[{"name": "a", "window": true}]'),
    ("MODELS", '[{"name": 7}]'),
])  # fmt: skip
def test_a_wrong_value_stops_the_start_with_its_name_and_keeps_secrets(name: str, wrong: str) -> None:
    done = load(**{name: wrong})
    assert done.returncode == 1
    assert f"ImproperlyConfigured: {name}" in done.stderr
    assert "secret-word" not in done.stderr.rpartition("ImproperlyConfigured")[2]


def test_a_value_may_stand_in_a_file(tmp_path: Path) -> None:
    word = tmp_path / "key"
    word.write_text("from a file\n")
    assert value("s.OPENAI_API_KEY", OPENAI_API_KEY_FILE=str(word)) == "from a file"
    assert "OPENAI_API_KEY_FILE" in load(OPENAI_API_KEY_FILE=str(tmp_path / "none")).stderr
    assert "both set" in load(OPENAI_API_KEY_FILE=str(word), OPENAI_API_KEY="x").stderr


def test_files_are_kept_in_the_data_directory_or_where_the_url_says(tmp_path: Path) -> None:
    ask = "s.STORAGES['artifacts']['OPTIONS'].get('location'), s.STORAGES['artifacts']['BACKEND'].rpartition('.')[2]"
    assert value(ask) == "/nonexistent/files FileSystemStorage"
    assert value(ask, STORAGE_URL="file:///srv/x") == "/srv/x FileSystemStorage"
    secret = tmp_path / "url"
    secret.write_text("s3://key:secret@minio:9000/bucket\n")
    assert value(ask, STORAGE_URL_FILE=str(secret)) == "S3Blobs"


def test_empty_means_not_set(tmp_path: Path) -> None:
    word = tmp_path / "key"
    word.write_text("from a file\n")
    assert value(
        "s.UPLOAD_TYPES[0], s.ALLOWED_HOSTS[0], s.TIME_ZONE", UPLOAD_TYPES="", ALLOWED_HOSTS="", TIME_ZONE=""
    ) == ("text/* localhost UTC")
    assert value("s.DATA_DIR.name", WORKBENCH_DATA="", SECRET_KEY="x") == "var"
    assert value("s.OPENAI_API_KEY", OPENAI_API_KEY="", OPENAI_API_KEY_FILE=str(word)) == "from a file"


def test_a_secret_key_is_needed_unless_debugging() -> None:
    assert "SECRET_KEY is not set" in load(SECRET_KEY="unset").stderr
    assert load(SECRET_KEY="unset", DEBUG="true").returncode == 0


def test_the_secret_key_of_the_data_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("kept here\n")
    assert value("s.SECRET_KEY", SECRET_KEY="unset", WORKBENCH_DATA=str(tmp_path)) == "kept here"


def test_plain_http_on_this_machine_can_sign_in_and_https_makes_cookies_secure() -> None:
    ask = "s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, s.SECURE_HSTS_SECONDS"
    assert value(ask, HSTS_SECONDS="60") == "False False 0"
    assert value(ask, HSTS_SECONDS="60", PUBLIC_URL="https://desk.example/") == "True True 60"
    ask = "s.ALLOWED_HOSTS[-1], s.CSRF_TRUSTED_ORIGINS"
    assert value(ask, PUBLIC_URL="https://desk.example:8443/") == "desk.example ['https://desk.example:8443']"


def test_two_installations_on_one_host_do_not_share_a_session_cookie() -> None:
    names = {value("s.SESSION_COOKIE_NAME", SECRET_KEY=key) for key in ("a" * 50, "b" * 50)}
    assert len(names) == 2


def test_celery_understands_the_socket_of_redis() -> None:
    assert value("s.CELERY_BROKER_URL", REDIS_URL="unix:///tmp/v.sock") == "redis+socket:///tmp/v.sock"
    assert value("s.CELERY_BROKER_URL", REDIS_URL="redis://h/1", CELERY_BROKER_URL="amqp://m//") == "amqp://m//"
    assert value("sorted(s.CELERY_BROKER_TRANSPORT_OPTIONS)[0]", CELERY_BROKER_URL="amqp://m//") == "interval_max"


def test_a_broken_services_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "services.json").write_text("{")
    done = load(WORKBENCH_DATA=str(tmp_path))
    assert f"{tmp_path}/services.json cannot be read" in done.stderr
