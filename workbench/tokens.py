"""Secrets that open a door: API tokens and one-time sign-in links. Only their SHA-256 is stored.

Both are 256 random bits, so a plain hash is enough: there is nothing to guess. Functions here are sync; call them
through `database_sync_to_async` from async code.
"""

import datetime as dt
import hashlib
import secrets

from django.db.models import Q
from django.utils import timezone

from workbench.models import ApiToken, SignInLink

LINK_LIFETIME = dt.timedelta(minutes=15)
SEEN_EVERY = dt.timedelta(minutes=1)  # last_used_at is for people: one write a minute is enough
PREFIX = "wb_"


def digest(secret: str) -> str:
    """Return the SHA-256 of a secret as 64 hex digits: what is stored and looked up."""
    return hashlib.sha256(secret.encode()).hexdigest()


def make_token(*, owner_id: int, name: str, scope: str = ApiToken.Scope.RUN) -> tuple[ApiToken, str]:
    """Store a new API token and return its row and the token itself, which cannot be read again.

    The token is made of [A-Za-z0-9_-], so that it fits a header and a WebSocket subprotocol.
    """
    secret = PREFIX + secrets.token_urlsafe(32)
    row = ApiToken.objects.of(owner_id).create(
        owner_id=owner_id, name=name[:100], scope=scope, digest=digest(secret), prefix=secret[:8]
    )
    return row, secret


def find_token(secret: str) -> ApiToken | None:
    """Return the token's row with its owner loaded, or None: unknown, revoked, or its owner may not sign in."""
    if not secret.startswith(PREFIX) or len(secret) > 200:
        return None
    row = (
        ApiToken.objects.of_everyone()
        .select_related("owner")
        .filter(digest=digest(secret), revoked_at=None, owner__is_active=True)
        .first()
    )
    if row is None:
        return None
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - SEEN_EVERY)
    if row.last_used_at is None or row.last_used_at < now - SEEN_EVERY:
        ApiToken.objects.of_everyone().filter(stale, pk=row.pk).update(last_used_at=now)
    return row


def make_link(*, owner_id: int) -> str:
    """Store a new sign-in link and return its secret. It works once, for 15 minutes; older unused ones end now."""
    now = timezone.now()
    secret = secrets.token_urlsafe(32)
    SignInLink.objects.of(owner_id).filter(used_at=None, expires_at__gt=now).update(expires_at=now)
    SignInLink.objects.of(owner_id).create(owner_id=owner_id, digest=digest(secret), expires_at=now + LINK_LIFETIME)
    return secret


def link_works(secret: str) -> bool:
    """Say whether the link would still sign somebody in. Uses nothing up: mail scanners and previews send GETs."""
    return SignInLink.objects.of_everyone().filter(_open_link(secret)).exists()


def use_link(secret: str) -> int | None:
    """Use the link up and return its owner's id, or None. Of two who press at once, one gets in."""
    row = SignInLink.objects.of_everyone().filter(_open_link(secret)).first()
    if row is None:
        return None
    # the condition stands on the updated row itself: the second of two waits for the first and then finds nothing
    won = SignInLink.objects.of_everyone().filter(pk=row.pk, used_at=None).update(used_at=timezone.now())
    return row.owner_id if won else None


def _open_link(secret: str) -> Q:
    return Q(digest=digest(secret), used_at=None, expires_at__gt=timezone.now(), owner__is_active=True)
