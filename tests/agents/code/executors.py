"""What tests of executors share."""

import os
import subprocess
import time

import pytest

from agents.providers.sandbox import walls

missing = walls.unavailable()
# a build machine has to have it; elsewhere it is an option
needs_bubblewrap = pytest.mark.skipif(bool(missing) and not os.environ.get("CI"), reason=missing or "it is there")


def ended(command: str, within_s: float = 2.0) -> bool:
    """Return whether no process runs this command; the kernel takes a moment to end what is in a sandbox."""
    until = time.monotonic() + within_s
    while subprocess.run(["pgrep", "-f", f"^{command}"], check=False, capture_output=True).returncode == 0:
        if time.monotonic() > until:
            return False
    return True
