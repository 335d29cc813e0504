"""`manage.py help up`. The command itself is workbench/up.py, which manage.py runs without loading Django."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from workbench import up


class Command(BaseCommand):
    help = "Start the workbench: PostgreSQL, Valkey, the web server and a worker."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("words", nargs=argparse.REMAINDER, help="--host, --port, --only, --no-beat")

    def handle(self, *args: Any, **options: Any) -> None:
        if code := up.main(options["words"]):
            raise CommandError("The workbench did not start.", returncode=code)
