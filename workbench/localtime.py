"""Times as the person who looks at the page lives them: the browser tells its time zone in a cookie."""

import functools
import zoneinfo
from collections.abc import Callable
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _


def in_own_time(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Run a view in the time zone of the `tz` cookie; without a valid one, in the installation's."""

    @functools.wraps(view)
    def inner(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        with timezone.override(zone_of(request)):
            return view(request, *args, **kwargs)

    return inner


def zone_of(request: HttpRequest) -> zoneinfo.ZoneInfo | None:
    """Return the zone the browser named, or None."""
    name = request.COOKIES.get("tz", "")
    if not name or len(name) > 64:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def brief(at: datetime) -> str:
    """Return a time of today as a clock shows it, another as its day."""
    local = timezone.localtime(at)
    today = timezone.localdate()
    if local.date() == today:
        return local.strftime("%H:%M")
    return date_format(local, _("j M") if local.year == today.year else _("j M Y"))
