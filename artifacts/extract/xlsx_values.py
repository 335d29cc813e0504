"""Numbers as a sheet means them: dates, times and percentages are numbers with a format."""

import math
import re
from datetime import datetime, timedelta

from lxml import etree

from artifacts.extract.office import child, children, value

_DATES = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))  # formats without a text
_PERCENT = frozenset((9, 10))
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_DAYS_1904 = 1462
_MOST_DAYS = 2_958_465  # the end of the year 9999


class Formats:
    """The number formats of a workbook."""

    def __init__(self, styles: etree._Element | None, book: etree._Element | None) -> None:
        own = children(child(styles, "numFmts"), "numFmt")
        written = {value(entry, "numFmtId"): value(entry, "formatCode") for entry in own}
        ids = [value(entry, "numFmtId") for entry in children(child(styles, "cellXfs"), "xf")]
        self._kinds = [_kind(id_, written.get(id_, "")) for id_ in ids]
        self._offset = _DAYS_1904 if value(child(book, "workbookPr"), "date1904") in ("1", "true") else 0

    def shown(self, number: str, style: str) -> str:
        """Return a stored number as text."""
        at = int(style) if style.isdigit() else 0
        kind = self._kinds[at] if at < len(self._kinds) else ""
        try:
            amount = float(number)
        except ValueError:
            return number[:64]
        if kind == "date" and 0 <= amount + self._offset < _MOST_DAYS:
            return _date(amount + self._offset)
        if not math.isfinite(amount):
            return number[:64]
        if kind == "percent":
            return _plain(amount * 100) + "%"
        return _plain(amount)


def _kind(id_: str, code: str) -> str:
    if code:
        signs = _LITERAL.sub("", code.split(";")[0]).lower()
        if "general" not in signs and any(sign in signs for sign in "ymdhs"):
            return "date"
        return "percent" if "%" in signs else ""
    number = int(id_) if id_.isdigit() else 0
    return "date" if number in _DATES else "percent" if number in _PERCENT else ""


def _date(days: float) -> str:
    """Return a day as 2024-05-31, with the time if there is one; a time alone as 09:30."""
    seconds = round(days % 1 * 86_400)
    if days < 1:
        return _time(seconds)
    moment = datetime(1899, 12, 30) + timedelta(days=int(days), seconds=seconds)  # noqa: DTZ001 - sheets know no zones
    return moment.strftime("%Y-%m-%d") + (" " + _time(seconds) if 0 < seconds < 86_400 else "")


def _time(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    return f"{hours:02d}:{rest // 60:02d}" + (f":{rest % 60:02d}" if rest % 60 else "")


def _plain(amount: float) -> str:
    """Return a number without the noise of its binary form."""
    return f"{amount:.0f}" if amount == int(amount) and abs(amount) < 1e15 else f"{amount:.15g}"
