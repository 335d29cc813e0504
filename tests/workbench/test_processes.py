"""Processes that end with whoever started them."""

import os
import subprocess
import sys
from pathlib import Path

from tests.workbench.installation import gone

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = """
import subprocess, sys
command = [sys.executable, "-c", sys.argv[1]]
worker = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, text=True)
print(worker.stdout.readline(), flush=True)
input()
"""
WORKER = """
import os, signal, subprocess, sys, threading
from workbench.processes import end_after
signal.signal(signal.SIGQUIT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
threading.Thread(target=end_after, args=(os.getppid(),), kwargs={"grace_s": 0.1}, daemon=True).start()
print(os.getpid(), child.pid, flush=True)
threading.Event().wait()
"""


def test_a_worker_that_waits_for_ever_ends_with_its_children_after_its_launcher() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as launcher:
        assert launcher.stdout is not None
        pids = [int(pid) for pid in launcher.stdout.readline().split()]
        assert len(pids) == 2 and all(os.path.exists(f"/proc/{pid}") for pid in pids)
        launcher.kill()
    assert gone(pids)
