"""Times as people and models write them, in English and Chinese, read in a person's time zone.

`read` takes an absolute time that is the whole text, `find` finds times in a text; what is relative ("tomorrow",
"上周五") counts from when the text was said, in the zone of who said it. Weeks begin on Monday. "last Friday" is the
nearest one before; "next Friday" that of next week; "on Friday" and "3 May" are ahead unless the text tells of the
past. What cannot be read is None or left out, never an error.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Final

_FIRST: Final = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
_LAST: Final = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)


class Precision(StrEnum):
    YEAR = "year"
    MONTH = "month"
    WEEK = "week"
    DAY = "day"
    MINUTE = "minute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A stretch of time. start: inclusive, end: exclusive; both in UTC, and at least a day away from the first and the
    last that there is, so that every time zone has them. Raises ValueError if that is not so."""

    start: datetime
    end: datetime
    precision: Precision

    def __post_init__(self) -> None:
        if self.start.utcoffset() != timedelta(0) or self.end.utcoffset() != timedelta(0) or self.end <= self.start:
            raise ValueError("a period begins before it ends, both in UTC")
        if self.start < _FIRST or self.end > _LAST:
            raise ValueError("no time that every zone has")

    def holds(self, other: "Period") -> bool:
        """Return whether the other lies within this one."""
        return self.start <= other.start and other.end <= self.end

    def words(self, zone: tzinfo) -> str:
        """Return the time as exactly as it is known: "2026", "2026-03", "week of 2026-03-09", "2026-03-11 15:00"."""
        day = self.start.astimezone(zone).replace(tzinfo=None).isoformat(" ", "minutes")
        match self.precision:
            case Precision.YEAR:
                return day[:4]
            case Precision.MONTH:
                return day[:7]
            case Precision.WEEK:
                return f"week of {day[:10]}"
            case Precision.DAY:
                return day[:10]
            case Precision.MINUTE:
                return day


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A time in a text: the characters from start to end."""

    start: int
    end: int
    period: Period


@dataclass(frozen=True, slots=True)
class Between:
    """A filter. after: inclusive; before: exclusive; None = open."""

    after: datetime | None = None
    before: datetime | None = None

    @classmethod
    def of(cls, after: str, before: str, zone: tzinfo) -> "Between":
        """Return the filter that these texts mean: `before` reaches to the end of its period; unreadable = open."""
        first, last = read(after, zone), read(before, zone)
        return cls(first.start if first else None, last.end if last else None)

    def lets(self, period: Period | None) -> bool:
        """Return whether something of this time passes; what has no time always does."""
        if period is None:
            return True
        return (self.after is None or period.end > self.after) and (self.before is None or period.start < self.before)


@dataclass(frozen=True, slots=True)
class _Span:
    """Days from first to before last, local."""

    first: date
    last: date
    precision: Precision


@dataclass(frozen=True, slots=True)
class _When:
    """What a relative time is relative to."""

    today: date
    past: bool


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
)
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SMALL: Final = dict(zip("one two three four five six seven eight nine ten".split(), range(1, 11), strict=True))
_DIGITS: Final = dict(zip("零一二三四五六七八九", range(10), strict=True)) | {"〇": 0, "两": 2}
_N: Final = r"(?:\d{1,3}|[一二两三四五六七八九十]{1,3})"
_COUNT: Final = r"(?P<n>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_UNIT: Final = r"(?P<unit>days?|weeks?|months?|years?)"
_ZH_DAY: Final = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
_ZH_STEP: Final = {"上上": -2, "上": -1, "": 0, "这": 0, "本": 0, "下": 1, "下下": 2}
_ZH_YEAR: Final = {"前": -2, "去": -1, "今": 0, "明": 1, "后": 2}
_EN_STEP: Final = {"last": -1, "this": 0, "next": 1}

_Reading = Callable[["re.Match[str]", _When], "_Span | None"]


def read(text: str, zone: tzinfo) -> Period | None:
    """Return the absolute time that the text is, None if it is none.

    RFC 3339, ISO with T or a blank, YYYY-MM-DD, YYYY-MM, YYYY, "2 January 2006", "January 2, 2006", with short months
    too, "January 2006", 2006年1月2日 and its beginnings. Without an offset it is local to the zone.
    """
    text = text.strip()
    if found := _CLOCK.fullmatch(text):
        return _instant(found, zone)
    for pattern, reading in _ABSOLUTE:
        if (found := pattern.fullmatch(text)) and (span := _taken(reading, found, _NO_WHEN)):
            return _period(span, zone)
    return None


def resolve(text: str, said_at: datetime, zone: tzinfo) -> Period | None:
    """Return the time that the text is, absolute or relative to when it was said; None if it is none."""
    text = text.strip()
    return read(text, zone) or next((m.period for m in find(text, said_at, zone) if m.end - m.start == len(text)), None)


def find(text: str, said_at: datetime, zone: tzinfo, *, past: bool = False) -> tuple[Mention, ...]:
    """Return the times in the text, in order, none within another. past: the text tells of what has happened."""
    when = _When(said_at.astimezone(zone).date(), past)
    found: list[Mention] = []
    for match in _CLOCK.finditer(text):
        if period := _instant(match, zone):
            found.append(Mention(start=match.start(), end=match.end(), period=period))
    for pattern, reading in (*_ABSOLUTE[:-1], *_RELATIVE):
        for match in pattern.finditer(text):
            if (span := _taken(reading, match, when)) and (mention := _mention(text, match, span, zone)):
                found.append(mention)
    found.sort(key=lambda m: (m.start - m.end, m.start))
    kept: list[Mention] = []
    for mention in found:
        if all(mention.end <= other.start or other.end <= mention.start for other in kept):
            kept.append(mention)
    return tuple(sorted(kept, key=lambda m: m.start))


def _taken(reading: _Reading, match: "re.Match[str]", when: _When) -> _Span | None:
    try:
        return reading(match, when)
    except (ValueError, OverflowError):  # the 31st of February, the year 0
        return None


def _period(span: _Span, zone: tzinfo) -> Period | None:
    try:
        start, end = (datetime(d.year, d.month, d.day, tzinfo=zone).astimezone(UTC) for d in (span.first, span.last))
        return Period(start=start, end=end, precision=span.precision)
    except (ValueError, OverflowError):
        return None


def _mention(text: str, match: "re.Match[str]", span: _Span, zone: tzinfo) -> Mention | None:
    """Return the mention, with the time of day that stands beside it."""
    if span.precision is Precision.DAY and (timed := _timed(text, match, span.first, zone)):
        return timed
    whole = _period(span, zone)
    return Mention(start=match.start(), end=match.end(), period=whole) if whole else None


def _timed(text: str, match: "re.Match[str]", first: date, zone: tzinfo) -> Mention | None:
    """Return the mention of a day with the time of day beside it; None if none can be read there."""
    start, end = match.span()
    clock = _AFTER_EN.match(text, end) or _AFTER_ZH.match(text, end)
    beside = clock or _BEFORE_EN.search(text[:start])
    if beside is None:
        return None
    try:
        day = datetime(first.year, first.month, first.day, tzinfo=zone)
        at = (day + timedelta(minutes=_minutes(beside))).astimezone(UTC)
        period = Period(start=at, end=at + timedelta(minutes=1), precision=Precision.MINUTE)
    except (ValueError, OverflowError):  # 一两点, 25:00
        return None
    return Mention(start=min(start, beside.start()), end=max(end, beside.end()), period=period)


def _minutes(match: "re.Match[str]") -> int:
    """Return the minutes since midnight of a time of day. Raises ValueError if it is none."""
    part = match.groupdict()
    hour, minute = _number(part["hour"] or ""), _number(part.get("minute") or "0")
    if part.get("half"):
        minute = 30
    half_day = (part.get("ampm") or "").lower().replace(".", "")
    if half_day in ("pm", "下午", "傍晚", "晚上", "晚") and hour < 12:
        hour += 12
    elif (half_day == "am" and hour == 12) or (half_day == "凌晨" and hour == 12):
        hour = 0
    if not (0 <= hour < 24 and 0 <= minute < 60):
        raise ValueError("no time of day")
    return hour * 60 + minute


def _instant(match: "re.Match[str]", zone: tzinfo) -> Period | None:
    try:
        day = datetime.fromisoformat(f"{match['date'].replace('/', '-')}T{match['time'][:5]}")
        offset = match["offset"]
        if offset:
            sign = -1 if offset[0] == "-" else 1
            ahead = 0 if offset in "Zz" else sign * (int(offset[1:3]) * 60 + int(offset[-2:]))
            at = (day - timedelta(minutes=ahead)).replace(tzinfo=UTC)
        else:
            at = day.replace(tzinfo=zone).astimezone(UTC)
        return Period(start=at, end=at + timedelta(minutes=1), precision=Precision.MINUTE)
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> int:
    """Return the number that digits, an English or a Chinese word stand for, 0 to 99. Raises ValueError."""
    text = text.lower()
    if text.isascii() or text.isdecimal():
        return 1 if text in ("a", "an") else _SMALL[text] if text in _SMALL else int(text)
    tens, ten, ones = text.rpartition("十")
    if ten:
        return (_digit(tens) if tens else 1) * 10 + (_digit(ones) if ones else 0)
    return _digit(text)


def _digit(text: str) -> int:
    if text not in _DIGITS:
        raise ValueError(text)
    return _DIGITS[text]


def _year(year: int) -> _Span:
    return _Span(date(year, 1, 1), date(year + 1, 1, 1), Precision.YEAR)


def _month(year: int, month: int) -> _Span:
    """Return a month; months before 1 and past 12 are those of other years."""
    first = date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)
    after = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    return _Span(first, after, Precision.MONTH)


def _day(day: date) -> _Span:
    return _Span(day, day + timedelta(days=1), Precision.DAY)


def _last_day(span: _Span) -> _Span:
    return _day(span.last - timedelta(days=1))


def _week(day: date) -> _Span:
    monday = day - timedelta(days=day.weekday())
    return _Span(monday, monday + timedelta(days=7), Precision.WEEK)


def _shifted(day: date, months: int) -> date:
    """Return the same day some months later, or the last of a shorter month."""
    span = _month(day.year, day.month + months)
    return min(span.first.replace(day=1) + timedelta(days=day.day - 1), span.last - timedelta(days=1))


def _nearest(when: _When, month: int, day: int) -> _Span:
    """Return the day of no said year that is meant: ahead, or behind in a text about the past; today counts."""
    for year in (when.today.year + n for n in ((0, -1) if when.past else (0, 1))):
        found = date(year, month, day)
        if (found <= when.today) if when.past else (found >= when.today):
            return _day(found)
    raise ValueError("no such day")


def _written(match: "re.Match[str]", when: _When) -> _Span:
    """Read a date of which year, month and day may be given by name or number."""
    part = match.groupdict()
    name = part.get("month")
    month = _MONTHS.index(name[:3].lower()) + 1 if name else _number(part.get("m") or "0")
    day = _number(part.get("d") or "0")
    if not part.get("y"):
        return _nearest(when, month, day)
    year = int(part["y"])
    return _day(date(year, month, day)) if day else _month(year, month) if month else _year(year)


def _named_month(match: "re.Match[str]", when: _When) -> _Span:
    month = _MONTHS.index(match["month"][:3].lower()) + 1
    ahead = month >= when.today.month
    year = when.today.year + (-1 if when.past and month > when.today.month else 0 if when.past or ahead else 1)
    return _month(year, month)


def _en_day(match: "re.Match[str]", when: _When) -> _Span:
    word = " ".join(match[0].lower().split())
    steps = {"yesterday": -1, "last night": -1, "tomorrow": 1}
    far = {"the day after tomorrow": 2, "day after tomorrow": 2, "the day before yesterday": -2}
    return _day(when.today + timedelta(days=(steps | far | {"day before yesterday": -2}).get(word, 0)))


def _en_weekday(match: "re.Match[str]", when: _When) -> _Span:
    wanted, step = _DAYS.index(match["day"].lower()), (match["step"] or "").lower()
    ahead = (wanted - when.today.weekday()) % 7
    if step == "next":
        return _day(_week(when.today).last + timedelta(days=wanted))
    if step == "last":
        return _day(when.today - timedelta(days=(-ahead) % 7 or 7))
    if when.past and step != "this":
        return _day(when.today - timedelta(days=(-ahead) % 7))
    return _day(when.today + timedelta(days=ahead))


def _stepped(unit: str, step: int, today: date) -> _Span:
    if unit == "week":
        return _week(today + timedelta(days=7 * step))
    return _month(today.year, today.month + step) if unit == "month" else _year(today.year + step)


def _en_unit(match: "re.Match[str]", when: _When) -> _Span:
    step = _EN_STEP.get((match["step"] or "this").lower(), 0)
    span = _stepped(match["unit"].lower(), step, when.today)
    return _last_day(span) if match["endof"] else span


def _counted(number: int, unit: str, today: date) -> _Span:
    """Return the day so many units from today; months and years only as exactly as they were said."""
    if unit in ("day", "week"):
        return _day(today + timedelta(days=number * (7 if unit == "week" else 1)))
    if unit == "month":
        later = _shifted(today, number)
        return _month(later.year, later.month)
    return _year(today.year + number)


def _en_counted(match: "re.Match[str]", when: _When) -> _Span:
    number = _number(match["n"])
    back = match[0].lower().endswith(("ago", "earlier"))
    return _counted(-number if back else number, match["unit"].lower().rstrip("s"), when.today)


def _zh_day(match: "re.Match[str]", when: _When) -> _Span:
    return _day(when.today + timedelta(days=_ZH_DAY[match["step"]]))


def _zh_week(match: "re.Match[str]", when: _When) -> _Span:
    step, named = match["step"] or "", match["day"]
    week = _week(when.today + timedelta(days=7 * _ZH_STEP[step]))
    if not named:
        if not step:
            raise ValueError("no week is meant")
        return week
    wanted = 6 if named in "日天" else "一二三四五六".index(named)
    if step:
        return _day(week.first + timedelta(days=wanted))
    ahead = (wanted - when.today.weekday()) % 7
    return _day(when.today + timedelta(days=ahead if not when.past else -((-ahead) % 7)))


def _zh_month(match: "re.Match[str]", when: _When) -> _Span:
    span = _month(when.today.year, when.today.month + _ZH_STEP[match["step"] or ""])
    if match["d"]:
        return _day(span.first.replace(day=_number(match["d"])))
    return _last_day(span) if match["endof"] else span


def _zh_month_end(match: "re.Match[str]", when: _When) -> _Span:
    month, today = _number(match["m"]), when.today
    if not 1 <= month <= 12:
        raise ValueError("no such month")
    step = -1 if when.past and month > today.month else 1 if not when.past and month < today.month else 0
    return _last_day(_month(today.year + step, month))


def _zh_year(match: "re.Match[str]", when: _When) -> _Span:
    year = when.today.year + (_ZH_YEAR[match["step"]] if match["step"] else 0)
    if match["endof"]:
        return _last_day(_year(year))
    if not match["m"]:
        return _year(year)
    month = _month(year, _number(match["m"]))
    if match["last"]:
        return _last_day(month)
    return _day(month.first.replace(day=_number(match["d"]))) if match["d"] else month


def _zh_counted(match: "re.Match[str]", when: _When) -> _Span:
    unit = {"天": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year"}[match["unit"]]
    number = _number(match["n"])
    return _counted(-number if match["way"] == "前" else number, unit, when.today)


def _pattern(text: str) -> "re.Pattern[str]":
    return re.compile(text, re.IGNORECASE)


_NO_WHEN: Final = _When(date(2000, 1, 1), False)
_CLOCK = _pattern(
    r"(?<!\d)(?P<date>\d{4}[-/]\d\d[-/]\d\d)[T ](?P<time>\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)\s?"
    r"(?P<offset>[zZ]|[+-]\d\d:?\d\d)?(?!\d)"
)
_AFTER_EN = _pattern(
    r",?\s+(?:(?:at|around|by|@)\s+)?(?:(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<ampm>[ap]\.?m\b\.?))"
)
_AFTER_ZH = re.compile(
    rf"\s*(?P<ampm>凌晨|早上|上午|中午|下午|傍晚|晚上|晚)?\s*(?P<hour>{_N})(?:[点點时]|[:：](?=\d))"
    rf"(?:(?P<half>半)|(?P<minute>\d\d|{_N}(?=分)))?分?"
)
_BEFORE_EN = _pattern(r"\b(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<ampm>[ap]\.?m\.?)\s+(?:on\s+)?$")
_ORD: Final = r"(?:st|nd|rd|th)?"
_ABSOLUTE: Final[tuple[tuple["re.Pattern[str]", _Reading], ...]] = (
    (_pattern(r"(?<![\d-])(?P<y>\d{4})[-/](?P<m>\d{1,2})[-/](?P<d>\d{1,2})(?![\d-])"), _written),
    (_pattern(rf"\b(?:the\s+)?(?P<d>\d{{1,2}}){_ORD}\s+(?:of\s+)?{_MONTH},?\s+(?P<y>\d{{4}})\b"), _written),
    (_pattern(rf"\b{_MONTH}\s+(?P<d>\d{{1,2}}){_ORD},?\s+(?P<y>\d{{4}})\b"), _written),
    (_pattern(rf"(?<!\d )\b{_MONTH},?\s+(?P<y>\d{{4}})\b"), _written),
    (_pattern(rf"(?P<y>\d{{4}})\s*年(?:\s*(?P<m>{_N})\s*月(?:份|\s*(?P<d>{_N})\s*[日号])?)?"), _written),
    (_pattern(r"(?<![\d-])(?P<y>(?:19|20)\d\d)-(?P<m>\d\d)(?![\d-])"), _written),
    (_pattern(r"(?P<y>\d{4})"), _written),  # only as the whole of a text
)
_RELATIVE: Final[tuple[tuple["re.Pattern[str]", _Reading], ...]] = (
    (_pattern(rf"\b(?:the\s+)?(?P<d>\d{{1,2}}){_ORD}\s+(?:of\s+)?{_MONTH}(?!\w)"), _written),
    (_pattern(rf"\b{_MONTH}\s+(?P<d>\d{{1,2}}){_ORD}(?![\d:.]|\s*[ap]m\b)"), _written),
    (_pattern(rf"(?<=\bin )(?:late |early )?{_MONTH}(?!\s+\d)"), _named_month),
    (_pattern(r"(?<=\bin )(?P<y>(?:19|20)\d\d)\b(?!-)"), _written),
    (
        _pattern(
            r"\b(?:(?:the\s+)?day\s+(?:after\s+tomorrow|before\s+yesterday)|today|tonight|tomorrow|yesterday|"
            r"last\s+night"
            r"|this\s+(?:morning|afternoon|evening))\b"
        ),
        _en_day,
    ),
    (_pattern(rf"(?<!every )(?<!each )\b(?:(?P<step>last|this|next)\s+)?(?P<day>{'|'.join(_DAYS)})\b"), _en_weekday),
    (
        _pattern(r"\b(?P<endof>(?:the\s+)?end\s+of\s+)(?:the\s+)?(?P<step>last|this|next)?\s*(?P<unit>month|year)\b"),
        _en_unit,
    ),
    (_pattern(r"\b(?P<endof>)(?P<step>last|this|next)\s+(?P<unit>week|month|year)\b"), _en_unit),
    (_pattern(rf"\bin\s+{_COUNT}\s+{_UNIT}\b(?!\s+ago)"), _en_counted),
    (_pattern(rf"\b{_COUNT}\s+{_UNIT}\s+(?:ago|from\s+now)\b"), _en_counted),
    (re.compile(rf"(?<![\d年])(?P<m>{_N})\s*月\s*(?P<d>{_N})\s*[日号]"), _written),
    (re.compile(r"(?P<step>大前|前|昨|今|明|大后|后)[天日晚早](?!报)"), _zh_day),
    (
        re.compile(
            r"(?<![每\d一二两三四五六七八九十])(?P<step>上上|上|这|本|下下|下)?个?(?:周|星期|"
            r"礼拜)(?P<day>[一二三四五六日天])?(?!末|年|期)"
        ),
        _zh_week,
    ),
    (re.compile(rf"(?P<step>上上|上|这|本|下下|下)个?月(?P<endof>底|末)?(?:(?P<d>{_N})[日号])?"), _zh_month),
    (re.compile(r"(?<![上下这本个\d一二三四五六七八九十])(?P<step>)(?P<d>)月(?P<endof>[底末])"), _zh_month),
    (re.compile(rf"(?<![\d年])(?P<m>{_N})月[底末]"), _zh_month_end),
    (
        re.compile(
            rf"(?P<step>前|去|今|明|后)年(?P<endof>年?底)?(?:\s*(?P<m>{_N})月(?:份|(?P<d>{_N})[日号]|(?P<last>[底末]))?)?"
        ),
        _zh_year,
    ),
    (re.compile(r"(?<![去今明前后\d])(?P<step>)(?P<m>)(?P<d>)(?P<last>)年(?P<endof>底)"), _zh_year),
    (re.compile(rf"(?P<n>{_N})\s*个?(?P<unit>天|周|星期|礼拜|月|年)(?:之|以)?(?P<way>前|后)"), _zh_counted),
)
