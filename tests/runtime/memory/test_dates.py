"""Times as people and models write them."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.runtime.memory.dates import Between, Period, Precision, find, read, resolve
from tests.runtime.memory.samples import AT, ZONE

ZONES = st.sampled_from([ZoneInfo(name) for name in ("UTC", "Asia/Shanghai", "America/New_York", "America/Sao_Paulo")])
EDGES = tuple(ZoneInfo(name) for name in ("Pacific/Kiritimati", "Pacific/Honolulu"))  # first and last to see a day
MOMENTS = st.integers(0, 3_700_000_000).map(lambda s: datetime.fromtimestamp(s, UTC))
WORDS = st.sampled_from(
    "tomorrow|last Friday|next month|in 3 weeks|two years ago|31 February|on 3 May|at 3pm|明天|下午三点|"
    "上周五|下个月31号|年底|2024-13-45|9999年12月31日|0000|三个月前|十月|一两点|at ٣ pm|25:00|"
    "0001-01-01|at 5 am|9999-12-31 20:00|\n|é|5".split("|")
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2024-05-07T10:30:00Z", "2024-05-07 18:30"),
        ("2024-05-07T10:30:00.5-05:00", "2024-05-07 23:30"),
        ("2024-05-07T10:30", "2024-05-07 10:30"),
        ("2024-05-07 10:30:59", "2024-05-07 10:30"),
        ("2024-05-07", "2024-05-07"),
        ("2 January 2006", "2006-01-02"),
        ("January 2, 2006", "2006-01-02"),
        ("2 Jan 2006", "2006-01-02"),
        ("Sept 2, 2006", "2006-09-02"),
        ("January 2006", "2006-01"),
        ("2024-05", "2024-05"),
        ("2024", "2024"),
        ("2024年5月7日", "2024-05-07"),
        ("2024年5月", "2024-05"),
        ("二十三", None),
        ("not a date", None),
        ("", None),
        ("2024-02-30", None),
        ("tomorrow", None),
        ("it was 2024", None),
    ],
)
def test_absolute_times_are_read_to_their_precision(text: str, words: str | None) -> None:
    found = read(text, ZONE)
    assert (found.words(ZONE) if found else None) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("today", "2026-03-11"),
        ("the day after tomorrow", "2026-03-13"),
        ("tomorrow at 3:15 pm", "2026-03-12 15:15"),
        ("9 am on Monday", "2026-03-16 09:00"),
        ("last Friday", "2026-03-06"),
        ("last Wednesday", "2026-03-04"),
        ("this Friday", "2026-03-13"),
        ("Friday", "2026-03-13"),
        ("next Friday", "2026-03-20"),
        ("next week", "week of 2026-03-16"),
        ("last month", "2026-02"),
        ("the end of next month", "2026-04-30"),
        ("in two weeks", "2026-03-25"),
        ("3 months ago", "2025-12"),
        ("14 April", "2026-04-14"),
        ("March 3", "2027-03-03"),
        ("明天", "2026-03-12"),
        ("大前天", "2026-03-08"),
        ("明天晚上八点半", "2026-03-12 20:30"),
        ("上周五", "2026-03-06"),
        ("下周三", "2026-03-18"),
        ("下下周一", "2026-03-23"),
        ("周日", "2026-03-15"),
        ("下个月3号", "2026-04-03"),
        ("上个月", "2026-02"),
        ("月底", "2026-03-31"),
        ("6月底", "2026-06-30"),
        ("明年二月末", "2027-02-28"),
        ("去年十月", "2025-10"),
        ("明年3月5日", "2027-03-05"),
        ("三天后", "2026-03-14"),
        ("两周前", "2026-02-25"),
        ("4月20号", "2026-04-20"),
        ("每周五", None),
        ("every Friday", None),
        ("31 February", None),
        ("下个月31号", None),
        ("room 304", None),
    ],
)
def test_relative_times_count_from_when_they_were_said(text: str, words: str | None) -> None:
    found = resolve(text, AT, ZONE)
    assert (found.words(ZONE) if found else None) == words


def test_times_in_a_text_about_the_past_are_behind() -> None:
    def days(text: str) -> list[str]:
        return [m.period.words(ZONE) for m in find(text, AT, ZONE, past=True)]

    assert days("I met Ana on Friday, and Li on 3 May") == ["2026-03-06", "2025-05-03"]
    assert days("周五我见了客户，5月3日又见了一次") == ["2026-03-06", "2025-05-03"]
    assert days("I moved in May") == ["2025-05"]


def test_tomorrow_said_two_minutes_before_midnight_is_the_first_of_january_whoever_reads_it_later() -> None:
    for zone in (ZONE, ZoneInfo("America/New_York")):
        said_at = datetime(2026, 12, 31, 23, 58, tzinfo=zone)
        for text in ("tomorrow", "明天"):
            (found,) = find(f"... {text}", said_at.astimezone(UTC), zone)
            assert found.period.words(zone) == "2027-01-01"
            assert found.period.start == datetime(2027, 1, 1, tzinfo=zone)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我明天一两点要开会", ["2026-03-12"]),
        ("tomorrow at 25:00", ["2026-03-12"]),
        ("tomorrow at ٣ pm", ["2026-03-12 15:00"]),
        ("0001-01-01 at 5 am", []),
        ("9999-12-31 20:00", []),
    ],
)
def test_a_time_of_day_that_is_none_leaves_the_day_and_what_is_no_time_everywhere_is_left_out(
    text: str, words: list[str]
) -> None:
    assert [mention.period.words(ZONE) for mention in find(text, AT, ZONE)] == words


def test_a_day_is_as_long_as_its_zone_makes_it() -> None:
    summer = read("2026-03-29", ZoneInfo("Europe/Berlin"))
    assert summer is not None
    assert summer.end - summer.start == timedelta(hours=23)


@given(st.lists(WORDS, max_size=5).map(" ".join) | st.text(max_size=40), MOMENTS, ZONES, st.booleans())
def test_whatever_is_read_does_not_fail_and_mentions_do_not_overlap(
    text: str, at: datetime, zone: ZoneInfo, past: bool
) -> None:
    end = 0
    for mention in find(text, at, zone, past=past):
        assert end <= mention.start < mention.end <= len(text)
        assert mention.period.start < mention.period.end
        assert all(mention.period.words(edge) for edge in EDGES)
        end = mention.end
    resolve(text, at, zone)
    Between.of(text, text, zone)


@given(st.dates(date(1000, 1, 1), date(9998, 12, 31)), ZONES)
def test_a_day_is_read_as_it_is_written_and_a_filter_before_it_reaches_to_its_last_minute(
    day: date, zone: ZoneInfo
) -> None:
    period = read(day.isoformat(), zone)
    assert period is not None
    assert period.words(zone) == day.isoformat()
    last = Period(start=period.end - timedelta(minutes=1), end=period.end, precision=Precision.MINUTE)
    after = Period(start=period.end, end=period.end + timedelta(minutes=1), precision=Precision.MINUTE)
    between = Between.of("", day.isoformat(), zone)
    assert between.lets(last)
    assert between.lets(None)
    assert not between.lets(after)


@given(MOMENTS, ZONES)
def test_neighbouring_days_are_neighbours_where_the_person_is(at: datetime, zone: ZoneInfo) -> None:
    def one(text: str) -> Period:
        (mention,) = find(text, at, zone)
        return mention.period

    today = at.astimezone(zone).date()
    assert one("today").start <= at < one("today").end
    assert one("tomorrow").words(zone) == one("明天").words(zone) == (today + timedelta(days=1)).isoformat()
    assert one("yesterday").words(zone) == one("昨天").words(zone) == (today - timedelta(days=1)).isoformat()
    assert date.fromisoformat(one("last Friday").words(zone)).weekday() == 4
    assert one("last Friday").end <= one("tomorrow").start
    assert one("下周三").start > one("today").start
