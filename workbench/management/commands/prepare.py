"""`manage.py prepare`: once per release, for installations that start their processes in another way than `up`."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from workbench import prepare
from workbench.version import version


class Command(BaseCommand):
    help = "Bring database, schema, translations and static files up to date. Safe on several machines at once."
    requires_system_checks = []

    def get_version(self) -> str:
        return version()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-owner", action="store_true", help="make no owner")
        parser.add_argument("--answer", type=int, help=argparse.SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            prepare.run(owner=not options["no_owner"], answer=options["answer"])
        except prepare.NoDatabase as e:
            raise CommandError(str(e)) from e
