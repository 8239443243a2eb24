"""Limits of queues and limiters: as people read them, and as they type them into a form."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from gristmill.durations import format_duration, parse_duration, parse_rate
from gristmill.errors import Refused
from gristmill.queue import Limit, QueueReport, Rate

NUMBERS = ("concurrency", "max_attempts")


def describe_limits(queue: QueueReport) -> list[str]:
    """`10 in 60s`, `4 at once`: what is set for a queue."""
    settings, said = queue.settings, list[str]()
    if settings["rate_count"]:
        said.append(f"{settings['rate_count']} in {format_duration(settings['rate_period'])}")
    if settings["concurrency"]:
        said.append(f"{settings['concurrency']} at once")
    if settings["breaker_threshold"]:
        said.append(f"breaker at {settings['breaker_threshold']:.0%}")
    return said


def read_settings_form(given: Mapping[str, str]) -> dict[str, Any]:
    """What a form sets for a queue; an empty field takes a limit away. The queue checks the values."""
    return {name: read_value(name, text) for name, text in given.items()}


def read_value(name: str, text: str) -> str | int | None:
    if not text:
        return None
    if name not in NUMBERS:
        return text
    if not text.isdecimal():
        raise Refused(f"{name} is wrong: “{text}” is not a whole number.")
    return int(text)


def read_limit(given: Mapping[str, str]) -> Limit:
    """What a form, or a program, sets for a limiter."""
    try:
        rate = given.get("rate")
        concurrency = read_value("concurrency", given.get("concurrency", ""))
        return Limit(
            concurrency if isinstance(concurrency, int) else None,
            Rate(*parse_rate(rate)) if rate else None,
            read_gap(given.get("gap", "")),
        )
    except ValueError as error:
        raise Refused(f"{error}.") from error


def read_gap(text: str) -> tuple[timedelta, timedelta]:
    """`1s`, or `3s-5s` for a random time between the two."""
    if not text:
        return timedelta(0), timedelta(0)
    least, _, most = text.partition("-")
    return parse_duration(least), parse_duration(most or least)


def write_gap(limit: Limit) -> str:
    least, most = limit.gap
    if not most:
        return ""
    return format_duration(least) if least == most else f"{format_duration(least)}-{format_duration(most)}"
