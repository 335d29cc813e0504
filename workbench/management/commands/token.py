"""`manage.py token`: an API token for another frontend or a script."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from workbench import tokens
from workbench.models import ApiToken
from workbench.version import version


class Command(BaseCommand):
    help = "Make an API token and print it once. Only its hash is stored."
    requires_system_checks = []

    def get_version(self) -> str:
        return version()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", required=True, help="the user name the token acts for")
        parser.add_argument("--name", default="token", help="what it is for, shown in lists")
        parser.add_argument(
            "--scope",
            choices=ApiToken.Scope.values,
            default=ApiToken.Scope.RUN.value,
            help="run: start, follow and stop runs, read history (default); read: follow and read only",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user {options['user']!r}. `manage.py createsuperuser` makes one.")
        _, secret = tokens.make_token(owner_id=user.pk, name=options["name"], scope=options["scope"])
        self.stdout.write(secret)
