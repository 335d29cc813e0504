"""The installation's servers for one command: those that `manage.py up` runs, or own ones for the duration."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from workbench.datadir import forget_services, lock, make_secret_key, open_data, write_services
from workbench.parts import ROOT, child_env, is_set, server_parts
from workbench.processes import CannotStart
from workbench.supervisor import Supervisor

START_PATIENCE_S = 20.0


@contextlib.contextmanager
def servers(data: Path) -> Iterator[None]:
    """Have database and Valkey for the length of the block; call it before Django's settings are read.

    Outside services that the environment names are used as they are. Raises CannotStart.
    """
    if is_set("DATABASE_URL") and is_set("REDIS_URL"):
        yield
        return
    open_data(data)
    with contextlib.ExitStack() as stack:
        if not _hold(data, stack):
            yield  # `up` runs here: settings find its servers in services.json
            return
        supervisor = Supervisor(report=lambda part, words: None)
        stack.callback(supervisor.shut_all)
        stack.callback(forget_services, data)
        if not is_set("SECRET_KEY"):
            make_secret_key(data)
        parts, urls = server_parts(data)
        for part in parts:
            supervisor.start(part)
        supervisor.wait(*parts)
        write_services(data, urls)
        _prepare(child_env(data, urls))
        yield


def _hold(data: Path, stack: contextlib.ExitStack) -> bool:
    """Take the data directory: True; or see that `up` has it and its servers answer: False."""
    until = time.monotonic() + START_PATIENCE_S
    while True:
        try:
            stack.enter_context(lock(data))
        except CannotStart:
            if (data / "services.json").exists():
                return False
            if time.monotonic() > until:
                raise
            time.sleep(0.1)  # `up` is on its way up
        else:
            return True


def _prepare(env: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "prepare", "--no-owner"],
        env=env,
        cwd=ROOT,
        check=False,
        stdout=subprocess.DEVNULL,
    )
    if done.returncode:
        raise CannotStart("The database could not be prepared.")
