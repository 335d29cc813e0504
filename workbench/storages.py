"""STORAGE_URL in, an entry of Django's STORAGES out. Standard library only."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

S3 = "artifacts.s3.S3Blobs"
FILES = "django.core.files.storage.FileSystemStorage"
_KNOWN = ("region", "tls", "prefix")


def by_url(url: str, default: Path) -> dict[str, Any]:
    """Return the storage that a URL names; "" = files in the default folder.

    file:///srv/files, s3://bucket (key, region and endpoint as AWS's own variables say), or
    s3://KEY:SECRET@host:port/bucket with a server of one's own. Options: ?region=eu-central-1, ?tls=0 (plain http),
    ?prefix=folder. Raises ValueError with what is wrong, without the URL.
    """
    scheme = url.partition("://")[0] if url else "file"
    if scheme == "file":
        return _files(_folder(url) if url else default)
    if scheme == "s3":
        return {"BACKEND": S3, "OPTIONS": _s3(url)}
    raise ValueError("must start with file:// or s3://")


def _folder(url: str) -> Path:
    parts = urlsplit(url)
    folder = Path(unquote(parts.path))
    if parts.netloc or not folder.is_absolute() or folder == Path("/"):
        raise ValueError("must name a folder by its whole path: file:///srv/files")
    return folder


def _files(folder: Path) -> dict[str, Any]:
    options = {"location": str(folder), "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
    return {"BACKEND": FILES, "OPTIONS": options}


def _s3(url: str) -> dict[str, Any]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("has a port that is none") from None
    wanted = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(set(wanted) - set(_KNOWN)):
        raise ValueError(f"knows no {unknown[0]!r}; known are {', '.join(_KNOWN)}")
    if wanted.get("tls", "1") not in ("0", "1"):
        raise ValueError("has a tls that is neither 0 nor 1")
    path = parts.path.strip("/")
    options: dict[str, Any] = {
        "region_name": wanted.get("region") or None,
        "location": wanted.get("prefix", "").strip("/"),
    }
    if not path:  # s3://bucket
        if parts.username or port:
            raise ValueError("names no bucket: s3://KEY:SECRET@host:port/bucket")
        bucket = parts.hostname or ""
    else:
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        address = f"{host}:{port}" if port else host
        options["endpoint_url"] = f"{'http' if wanted.get('tls') == '0' else 'https'}://{address}"
        options["addressing_style"] = "path"
        bucket = path
    if not bucket or "/" in bucket:
        raise ValueError("must name one bucket: s3://bucket or s3://KEY:SECRET@host:port/bucket")
    if bool(parts.username) != bool(parts.password):
        raise ValueError("has a key without its secret, or a secret without its key")
    if parts.username and parts.password:
        options |= {"access_key": unquote(parts.username), "secret_key": unquote(parts.password)}
    return options | {"bucket_name": bucket}
