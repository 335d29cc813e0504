#!/usr/bin/env python
"""Django's command line. `--data DIR` before or after any command names the data directory of the installation."""

import os
import sys


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


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    arguments = take_data_option(sys.argv)
    from django.core.management import execute_from_command_line

    execute_from_command_line(arguments)
