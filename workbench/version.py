"""The one place that knows the version: pyproject.toml, read once."""

import functools
import tomllib
from pathlib import Path


@functools.cache
def version() -> str:
    """Return the product's version, such as "0.1.0"."""
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])
