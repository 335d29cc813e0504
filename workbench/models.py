from django.db import models

from agents.models.owned import Owned


class ApiToken(Owned):
    """A key for other frontends. Only the SHA-256 of the token is stored; the token itself is shown once."""

    class Scope(models.TextChoices):
        RUN = "run"  # start, follow and stop runs, read history
        READ = "read"  # follow runs and read history

    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=12)  # the first characters, so that a person knows which one it is
    scope = models.CharField(max_length=8, choices=Scope.choices, default=Scope.RUN)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class SignInLink(Owned):
    """A one-time way in for the owner of a fresh installation. GET shows a button, POST uses the link up."""

    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"for {self.owner_id}, until {self.expires_at:%Y-%m-%d %H:%M}"
