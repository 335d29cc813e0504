"""Time zones by their IANA names, as browsers tell them."""

import zoneinfo
from typing import Final

NAME_CHARS: Final = 64


def zone_named(name: str) -> zoneinfo.ZoneInfo | None:
    """Return the zone of this name, None = there is none."""
    if not name or len(name) > NAME_CHARS:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None
