"""The tool that tells dates: what day it is, and which day is so many days, weeks or months from another."""

import calendar
from datetime import date, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.errors import Refused
from gristmill.qualifier import load_moment

A_WEEK = 7


class TellDate(Arguments):
    """From which day, and how far."""

    day: date | None = Field(default=None, description="The day to count from: 2027-05-03; none: today.")
    days: int = Field(default=0, ge=-40_000, le=40_000, description="So many days later; earlier if negative.")
    weeks: int = Field(default=0, ge=-5_000, le=5_000, description="And so many weeks.")
    months: int = Field(default=0, ge=-1_200, le=1_200, description="And so many months, before days are counted.")
    zone: str = Field(default="UTC", max_length=60, description="The time zone in which it is today: Europe/Berlin.")


async def tell_date(arguments: TellDate, context: ToolContext) -> ToolResult:
    async with context.db.reading() as tx:
        now = (await load_moment(tx)).astimezone(_find_zone(arguments.zone))
    found = move_date(arguments.day or now.date(), arguments)
    offset = f"{now:%z}"
    lines = [
        f"It is {found:%Y-%m-%d}, a {found:%A}, in week {found.isocalendar().week}.",
        f"Now it is {now:%Y-%m-%d %H:%M}, a {now:%A}, in {arguments.zone} ({offset[:3]}:{offset[3:5]}).",
        "The week from then on: "
        + ", ".join(f"{found + timedelta(days=n):%A %Y-%m-%d}" for n in range(A_WEEK) if found.year < date.max.year),
    ]
    return ToolResult("\n".join(lines), {"day": found.isoformat()})


def _find_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Refused(f"There is no time zone “{name}”: write for example Europe/Berlin.") from error


def move_date(day: date, by: TellDate) -> date:
    """A day so far from another; 31 January and a month is the last of February."""
    month = day.year * 12 + day.month - 1 + by.months
    year, month = divmod(month, 12)
    try:
        last = calendar.monthrange(year, month + 1)[1]
        return date(year, month + 1, min(day.day, last)) + timedelta(days=by.days, weeks=by.weeks)
    except (ValueError, OverflowError) as error:
        raise Refused("This day is in no year that has a calendar.") from error


TOOL = Tool(
    "tell_date", "What day it is, and which day is so far from another; weekdays and weeks.", TellDate, tell_date
)
