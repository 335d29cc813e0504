#!/usr/bin/env python
"""The command line. `--data DIR` before or after any command names the data directory of the installation.

`up` starts servers and processes and needs no Django in the launcher itself. Commands that people need
borrow the servers: those of a running `up`, else their own for a moment.
"""

import contextlib
import os
import sys
from pathlib import Path

BORROWERS = frozenset({"ask", "changepassword", "createsuperuser", "owner", "token"})


def take_data_option(argv: list[str]) -> list[str]:
    """Return argv without `--data DIR`, whose value goes into WORKBENCH_DATA before settings are read."""
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--data":
            value = next(words, "")
            if not value or value.startswith("--"):
                sys.exit("--data needs a directory.")
            os.environ["WORKBENCH_DATA"] = os.path.abspath(value)
        elif word.startswith("--data="):
            os.environ["WORKBENCH_DATA"] = os.path.abspath(word.removeprefix("--data="))
        else:
            rest.append(word)
    return rest


def main(arguments: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    command = arguments[1] if len(arguments) > 1 else ""
    asks_only = bool({"--help", "-h", "--version"} & set(arguments))
    if command == "up":
        from workbench.up import main as up  # noqa: PLC0415  # each command loads what it needs

        sys.exit(up(arguments[2:]))
    if command in ("--version", "version"):
        from workbench.version import version  # noqa: PLC0415  # as above

        sys.exit(print(version()))
    with contextlib.ExitStack() as stack:
        if (command in BORROWERS or arguments[1:3] == ["bench", "recall"]) and not asks_only:
            borrow(stack)
        elif asks_only or command in ("help", "", "bench"):
            os.environ.setdefault("DEBUG", "true")  # words about commands, and measuring, need no secret key
        from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415  # as above
        from django.core.management import execute_from_command_line  # noqa: PLC0415  # as above

        try:
            execute_from_command_line(arguments)
        except ImproperlyConfigured as e:  # a setting, named in the message: no traceback is needed to mend it
            sys.exit(f"{e}")


def borrow(stack: contextlib.ExitStack) -> None:
    from workbench import borrow as borrowing  # noqa: PLC0415  # as above
    from workbench.processes import CannotStart  # noqa: PLC0415  # as above

    data = Path(os.environ.get("WORKBENCH_DATA") or Path(__file__).resolve().parent / "var").resolve()
    try:
        stack.enter_context(borrowing.servers(data))
    except CannotStart as e:
        sys.exit(f"{e}")


if __name__ == "__main__":
    main(take_data_option(sys.argv))
