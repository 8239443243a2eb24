"""When schedules run next, most of all on the days when clocks change."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import Refused
from gristmill.queue.upkeep.cron import MACROS, parse

ZAGREB = "Europe/Zagreb"  # 2026: 02:00 → 03:00 on March 29, 03:00 → 02:00 on October 25
NEW_YORK = "America/New_York"  # 2026: 02:00 → 03:00 on March 8, 02:00 → 01:00 on November 1

SUNDAY = "(Sunday is 0, and 7 at the end of a range)"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def runs(expression: str, zone: str, since: str, until: str) -> list[str]:
    """All runs after `since` and before `until` (wall times of the zone), with their offset from UTC."""
    here = ZoneInfo(zone)
    plan = parse(expression, zone)
    now, end = (datetime.fromisoformat(text).replace(tzinfo=here).astimezone(UTC) for text in (since, until))
    found: list[str] = []
    while (run := plan.next(now)) is not None and run < end:
        found.append(run.astimezone(here).strftime("%m-%d %H:%M %z"))
        now = run
    return found


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("06:00", "2026-01-07 05:00", "2026-01-07 06:00"),
        ("06:00", "2026-01-07 06:00", "2026-01-08 06:00"),
        ("6:05", "2026-01-07 06:00:30", "2026-01-07 06:05"),
        ("@daily", "2026-01-07 05:00", "2026-01-08 00:00"),
        ("@Hourly", "2026-01-07 05:00", "2026-01-07 06:00"),
        ("@weekly", "2026-01-07 05:00", "2026-01-11 00:00"),
        ("@monthly", "2026-01-07 05:00", "2026-02-01 00:00"),
        ("@yearly", "2026-01-07 05:00", "2027-01-01 00:00"),
        ("0 3 * * 0", "2026-01-07 05:00", "2026-01-11 03:00"),
        ("0 3 * * sun", "2026-01-07 05:00", "2026-01-11 03:00"),
        ("0 3 * * 6-7", "2026-01-10 05:00", "2026-01-11 03:00"),
        ("*/15 * * * *", "2026-01-07 05:01", "2026-01-07 05:15"),
        ("10-20/5 * * * *", "2026-01-07 05:15", "2026-01-07 05:20"),
        ("0 0 L * *", "2026-02-07 05:00", "2026-02-28 00:00"),
        ("0 0 LW * *", "2026-01-07 05:00", "2026-01-30 00:00"),
        ("0 0 * * 5L", "2026-01-07 05:00", "2026-01-30 00:00"),
        ("0 0 * * MON#2", "2026-01-07 05:00", "2026-01-12 00:00"),
        ("0 0 29 2 *", "2026-01-07 05:00", "2028-02-29 00:00"),
        ("  0  6 * *\t* ", "2026-01-07 05:00", "2026-01-07 06:00"),
    ],
)
def test_the_next_run(expression, after, expected):
    assert parse(expression, "UTC").next(utc(after)) == utc(expected)


def test_a_time_of_day_is_meant_in_its_zone():
    assert parse("06:00", ZAGREB).next(utc("2026-01-07 00:00")) == utc("2026-01-07 05:00")
    assert parse("06:00", ZAGREB).next(utc("2026-07-07 00:00")) == utc("2026-07-07 04:00")


def test_two_day_fields_mean_either_unless_one_starts_with_a_star():
    assert parse("0 0 13 * FRI", "UTC").next(utc("2026-01-07 00:00")) == utc("2026-01-09 00:00")
    assert parse("0 0 */13 * FRI", "UTC").next(utc("2026-01-07 00:00")) == utc("2026-02-27 00:00")


def test_a_day_that_never_comes_is_none():
    assert parse("0 0 */30 2 MON#1", "UTC").next(utc("2026-01-07 00:00")) is not None
    assert parse("0 0 */30 2 MON#5", "UTC").next(utc("2026-01-07 00:00")) is None


@pytest.mark.parametrize(
    ("zone", "since", "until", "expected"),
    [
        pytest.param(
            ZAGREB,
            "2026-03-28 00:00",
            "2026-03-31 00:00",
            ["03-28 02:30 +0100", "03-29 03:00 +0200", "03-30 02:30 +0200"],
            id="Zagreb in spring",
        ),
        pytest.param(
            ZAGREB,
            "2026-10-24 00:00",
            "2026-10-27 00:00",
            ["10-24 02:30 +0200", "10-25 02:30 +0200", "10-26 02:30 +0100"],
            id="Zagreb in autumn",
        ),
        pytest.param(
            NEW_YORK,
            "2026-03-07 00:00",
            "2026-03-10 00:00",
            ["03-07 02:30 -0500", "03-08 03:00 -0400", "03-09 02:30 -0400"],
            id="New York in spring",
        ),
        pytest.param(
            NEW_YORK,
            "2026-10-31 00:00",
            "2026-11-03 00:00",
            ["10-31 02:30 -0400", "11-01 02:30 -0500", "11-02 02:30 -0500"],
            id="New York in autumn",
        ),
    ],
)
def test_half_past_two_comes_once_a_day(zone, since, until, expected):
    assert runs("30 2 * * *", zone, since, until) == expected
    assert runs("02:30", zone, since, until) == expected


def test_half_past_one_comes_once_in_new_york_in_autumn():
    expected = ["10-31 01:30 -0400", "11-01 01:30 -0400", "11-02 01:30 -0500"]
    assert runs("01:30", NEW_YORK, "2026-10-31 00:00", "2026-11-03 00:00") == expected


@pytest.mark.parametrize("minute", range(0, 120, 10))
def test_whoever_asks_while_the_hour_comes_again_is_told_the_next_day(minute):
    first_half_past_two = utc("2026-10-25 00:30")
    asked = first_half_past_two + timedelta(minutes=minute)
    assert parse("02:30", ZAGREB).next(asked) == utc("2026-10-26 01:30")


@pytest.mark.parametrize("expression", ["15,45 2 * * *", "0-59/20 2 * * *"])
def test_all_that_falls_into_the_gap_runs_once_after_it(expression):
    assert runs(expression, ZAGREB, "2026-03-29 00:00", "2026-03-30 00:00") == ["03-29 03:00 +0200"]


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        (ZAGREB, "2026-03-29 01:00"),
        (ZAGREB, "2026-10-25 01:00"),
        (NEW_YORK, "2026-03-08 07:00"),
        (NEW_YORK, "2026-11-01 06:00"),
    ],
)
def test_every_quarter_of_an_hour_goes_on_through_the_change(zone, change):
    plan = parse("*/15 * * * *", zone)
    now = utc(change) - timedelta(hours=3)
    for _ in range(24):
        run = plan.next(now)
        assert run == now + timedelta(minutes=15)
        now = run


def test_what_follows_real_time_may_miss_an_hour_or_see_it_twice():
    """As cron on Debian does; written here so that a change of cronsim does not go unnoticed."""
    assert runs("*/30 2 * * *", ZAGREB, "2026-03-29 00:00", "2026-03-30 00:00") == []
    autumn = runs("*/30 2 * * *", ZAGREB, "2026-10-25 00:00", "2026-10-26 00:00")
    assert autumn == ["10-25 02:00 +0200", "10-25 02:30 +0200", "10-25 02:00 +0100", "10-25 02:30 +0100"]


ZONES = st.sampled_from([ZAGREB, NEW_YORK, "UTC", "Africa/Cairo", "America/Santiago", "Asia/Kathmandu"])
EXPRESSIONS = st.sampled_from(
    ["02:30", "01:30", "00:00", "*/15 * * * *", "0 */2 * * *", "30 1-3 * * *", "*/30 2 * * *", "0 0 1 * MON"]
)
MOMENTS = st.integers(0, 280 * 24 * 60).map(lambda minutes: utc("2026-03-01 00:00") + timedelta(minutes=minutes))


@given(ZONES, EXPRESSIONS, MOMENTS, st.integers(0, 999))
def test_between_two_runs_everybody_is_told_the_same(zone, expression, moment, thousandths):
    plan = parse(expression, zone)
    run = plan.next(moment)
    assert run is not None
    assert run > moment
    assert plan.next(moment + (run - moment) * thousandths / 1000) == run


def pointed(expression: str) -> tuple[str, str]:
    """What the caret of the refusal points at, and the reason."""
    with pytest.raises(Refused) as refused:
        parse(expression, ZAGREB)
    sentence, shown, pointer = str(refused.value).split("\n")
    assert sentence == "This schedule cannot be read:"
    assert shown.strip() == expression.strip()
    caret, reason = pointer.split("^ ")
    return shown[len(caret) :], reason


@pytest.mark.parametrize(
    ("expression", "there", "reason"),
    [
        ("75 6 * * *", "75 6 * * *", "minute goes from 0 to 59"),
        ("0 24 * * *", "24 * * *", "hour goes from 0 to 23"),
        ("0 6 0 * *", "0 * *", "day of month goes from 1 to 31"),
        ("0 6 * 13 *", "13 *", "month goes from 1 to 12, or JAN to DEC"),
        ("0 6 * * FUN", "FUN", "day of week goes from 0 to 7, or SUN to SAT"),
        ("0 6 * * MON#6", "MON#6", "day of week goes from 0 to 7, or SUN to SAT"),
        ("0 6 * * 9L", "9L", "day of week goes from 0 to 7, or SUN to SAT"),
        ("1,2,x * * * *", "x * * * *", "minute goes from 0 to 59"),
        ("1*5 * * * *", "*5 * * * *", "minute goes from 0 to 59"),
        ("1,,2 * * * *", ",2 * * * *", "a number is missing: minute goes from 0 to 59"),
        ("5- * * * *", " * * * *", "a number is missing: minute goes from 0 to 59"),
        ("20-10 * * * *", "20-10 * * * *", "the range 20-10 of the minute runs backwards"),
        ("0 6 * * 5-1", "5-1", f"the range 5-1 of the day of week runs backwards {SUNDAY}"),
        ("*/0 * * * *", "0 * * * *", "a step of the minute goes from 1 to 59"),
        ("*/90 * * * *", "90 * * * *", "a step of the minute goes from 1 to 59"),
        ("0 6 * *", "", "only 4 of five fields: minute, hour, day of month, month, day of week"),
        ("0 6 * * * 5", "5", "more than five fields: minute, hour, day of month, month, day of week"),
        ("0 6 31 2,4 *", "31 2,4 *", "none of these months has that day"),
        ("25:00", "25:00", "hour goes from 0 to 23"),
        ("06:75", "75", "minute goes from 0 to 59"),
        ("6:5", "6:5", "a time of day is written HH:MM, for example 06:00"),
        ("noon", "noon", "this is no time; write for example 06:00, @daily or */15 * * * *"),
        ("", "", "it is empty; write for example 06:00, @daily or */15 * * * *"),
        ("@dayly", "@dayly", f"the known names are {', '.join(MACROS)}"),
        ("@daily 5", "5", "nothing may follow @daily"),
    ],
)
def test_a_mistake_is_pointed_at(expression, there, reason):
    assert pointed(expression) == (there, reason)


@given(st.text("0123456789*/-,LW#@: \tMONJAx²é", max_size=20))
def test_any_text_is_a_plan_or_refused(text):
    with suppress(Refused):  # and nothing else
        parse(text, "UTC").next(utc("2026-01-01 00:00"))


@pytest.mark.parametrize(
    ("zone", "meant"),
    [("Europe/Zagrb", "Europe/Zagreb"), ("europe/zagreb", "Europe/Zagreb"), ("New York", NEW_YORK)],
)
def test_an_unknown_time_zone_is_refused_with_what_was_meant(zone, meant):
    with pytest.raises(Refused, match=f"no time zone “{zone}”. Did you mean .*{meant}"):
        parse("06:00", zone)


@pytest.mark.parametrize("zone", ["", "Mars", "../secret", "/etc/passwd", "Europe"])
def test_what_is_no_time_zone_at_all_is_refused(zone):
    with pytest.raises(Refused, match="There is no time zone"):
        parse("06:00", zone)
