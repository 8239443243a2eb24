"""Counts days, weeks and months on the calendar."""

from calendar import monthrange
from datetime import date, timedelta

FRIDAY = 4


def get_monday(day: date) -> date:
    """The Monday of a day's week."""
    return day - timedelta(days=day.weekday())


def find_next_weekday(weekday: int, today: date) -> date:
    """The next such weekday behind a day."""
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


def add_workdays(day: date, count: int) -> date:
    """The day so many days from Monday to Friday later."""
    weeks, rest = divmod(count, 5)
    day += timedelta(days=7 * weeks)
    while rest or day.weekday() > FRIDAY:
        day += timedelta(days=1)
        rest -= rest > 0 and day.weekday() <= FRIDAY
    return day


def add_months(day: date, count: int) -> date:
    """The same day so many months later, or the last day of a month that is too short."""
    years, month = divmod(day.month - 1 + count, 12)
    year = day.year + years
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
