"""Where prometheus-client keeps the figures of this process. Must be said before it is imported."""

import os
from pathlib import Path


def keep_in(directory: Path) -> None:
    """Make the directory if need be, and have figures kept there from now on."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
