"""`manage.py doctor`: is everything that the workbench needs there, and what mends what is not."""

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from workbench import doctor
from workbench.version import version


class Command(BaseCommand):
    help = "Check everything the workbench needs. Exits 0 if all is well, else 1; each failing line says what mends it."
    requires_system_checks = []

    def get_version(self) -> str:
        return version()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print the findings as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = doctor.examine()
        if options["json"]:
            well = all(f.ok for f in findings)
            self.stdout.write(json.dumps({"ok": well, "version": version(), "checks": doctor.as_dicts(findings)}))
        else:
            for f in findings:
                self.stdout.write(f"{'ok  ' if f.ok else 'FAIL'}  {f.name:<12} {f.found}")
                if f.cure:
                    self.stdout.write(f"      {'':<12} {f.cure}")
        if not all(f.ok for f in findings):
            sys.exit(1)
