"""Times as the person who looks at the page lives them: the browser tells its time zone in a cookie."""

import functools
from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from agents.runtime.zones import zone_named


def in_own_time(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Run a view in the time zone of the `tz` cookie; without a valid one, in the installation's."""

    @functools.wraps(view)
    def inner(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        with timezone.override(zone_of(request)):
            return view(request, *args, **kwargs)

    return inner


def zone_of(request: HttpRequest) -> ZoneInfo | None:
    """Return the zone the browser named, or None."""
    return zone_named(request.COOKIES.get("tz", ""))


def brief(at: datetime) -> str:
    """Return a time of today as a clock shows it, another as its day."""
    local = timezone.localtime(at)
    today = timezone.localdate()
    if local.date() == today:
        return local.strftime("%H:%M")
    return date_format(local, _("j M") if local.year == today.year else _("j M Y"))
