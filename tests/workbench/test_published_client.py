"""The published @ag-ui/client 1.0 against our server: runs the Node tests of tests/client.

They make a server and a database of their own. Needs node 20 and `npm ci` in tests/client; skipped without.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CLIENT = Path(__file__).resolve().parent.parent / "client"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
@pytest.mark.skipif(not (CLIENT / "node_modules").is_dir(), reason="run `npm ci` in tests/client first")
def test_a_third_party_client_works_over_websocket_and_sse() -> None:
    done = subprocess.run(
        ["node", "--test", "--test-timeout=120000", "test/"],
        cwd=CLIENT,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
