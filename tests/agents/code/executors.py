"""What tests of executors share."""

import os

import pytest

from agents.providers.sandbox import walls

missing = walls.unavailable()
# a build machine has to have it; elsewhere it is an option
needs_bubblewrap = pytest.mark.skipif(bool(missing) and not os.environ.get("CI"), reason=missing or "it is there")
