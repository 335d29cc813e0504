"""`manage.py owner`: a fresh way in for the owner."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandParser

from workbench import prepare
from workbench.version import version


class Command(BaseCommand):
    help = "Print a fresh sign-in link for the owner. It works once, for 15 minutes; earlier unused ones end now."
    requires_system_checks = []

    def get_version(self) -> str:
        return version()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--address", default="", help="what the link begins with (PUBLIC_URL, else this machine)")

    def handle(self, *args: Any, **options: Any) -> None:
        users = get_user_model().objects
        owner = users.filter(is_superuser=True, is_active=True).order_by("id").first()
        if owner is None:
            owner = users.create_superuser(prepare.OWNER, password=None)
        address = options["address"].rstrip("/") or settings.PUBLIC_URL or settings.EMBEDDED.get("ADDRESS", "")
        self.stdout.write((address or "http://127.0.0.1:8000") + prepare.link_path(owner.pk))
        if not address:
            self.stderr.write(
                f"No `manage.py up` runs on {settings.DATA_DIR}: the link works once one does, at its address. "
                "Another directory: --data DIR."
            )
