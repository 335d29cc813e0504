"""Times in a query."""

import re
from datetime import date, timedelta
from typing import Final

from agents.search.words import clean

_MONTHS: Final = "january february march april may june july august september october november december".split()
_DATE = re.compile(
    r"(?P<y>\d{4})(?:-(?P<m>\d{1,2})(?:-(?P<d>\d{1,2}))?(?!\d)|年(?:\s*(?P<m2>\d{1,2})月(?:\s*(?P<d2>\d{1,2})[日号])?)?)"
    rf"|(?:(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\s+)?(?P<month>{'|'.join(_MONTHS)})"
    r"(?:\s+(?P<d4>\d{1,2})(?:st|nd|rd|th)?(?!\d))?,?\s+(?P<y2>\d{4})"
    r"|\b(?P<y3>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)

_WHEN = re.compile(
    r"\b(?:when|how long|how often|(?:what|which) (?:date|day|week|month|year|time))\b"
    r"|什么时候|什么时间|何时|几[点号月]|哪[一]?[天年月日]|多久|哪个(?:月|星期|周)",
    re.IGNORECASE,
)


def asks_when(query: str) -> bool:
    """Return whether the query asks for a time."""
    return _WHEN.search(clean(query)) is not None


def dates_in(query: str) -> tuple[tuple[date, date], ...]:
    """Return the stretches of time that dates in the query mean: a day and five more, a month and five more, a year."""
    found = []
    for match in _DATE.finditer(clean(query)):
        part = match.groupdict()
        year = int(part["y"] or part["y2"] or part["y3"])
        month = int(part["m"] or part["m2"] or 0) or (_MONTHS.index(part["month"].lower()) + 1 if part["month"] else 0)
        day = int(part["d"] or part["d2"] or part["d3"] or part["d4"] or 0)
        try:
            start = date(year, month or 1, day or 1)
        except ValueError:
            continue
        days = 6 if day else 36 if month else 366
        found.append((start, start + timedelta(days=days)))
    return tuple(found)
