"""Durations and rates as people write them: `90s`, `5 min`, `1h30m`, `10/60s`."""

import re
from datetime import timedelta

UNITS = {
    "ms": 0.001,
    "s": 1,
    "sec": 1,
    "m": 60,
    "min": 60,
    "h": 3600,
    "d": 86400,
    "day": 86400,
    "days": 86400,
    "w": 604800,
}
PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


def parse_duration(text: str) -> timedelta:
    """Read `90s`, `5 min`, `1h30m` or a bare number of seconds."""
    seconds, at = 0.0, 0
    while match := PART.match(text, at):
        unit = match[2].lower() or "s"
        if unit not in UNITS:
            raise ValueError(
                f"“{text}” is not a duration: “{match[2]}” is no unit; write for example 90s, 5min, 2h or 7d"
            )
        seconds, at = seconds + float(match[1]) * UNITS[unit], match.end()
    if at == 0 or text[at:].strip():
        raise ValueError(f"“{text}” is not a duration; write for example 90s, 5min, 2h or 7d")
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(f"“{text}” is too long for a duration") from None


def parse_rate(text: str) -> tuple[int, timedelta]:
    """Read `10/60s`: ten within any sixty seconds."""
    count, _, period = text.partition("/")
    if not count.strip().isdigit() or int(count) < 1 or not period.strip():
        raise ValueError(f"“{text}” is not a rate; write for example 10/60s: at most ten starts within sixty seconds")
    # `5/min` reads as "per one minute"
    window = parse_duration(period if period.strip()[0].isdigit() else f"1{period.strip()}")
    if window <= timedelta(0):
        raise ValueError(f"“{text}” is not a rate: its period must be longer than zero")
    return int(count), window


def format_duration(value: timedelta) -> str:
    """Write a duration in the shortest way; `parse_duration` reads it back, rounded if it is long and odd."""
    seconds = value.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    return (
        f"{seconds:g}s" if seconds < 600 else f"{seconds / 60:.0f}min" if seconds < 7200 else f"{seconds / 3600:.1f}h"
    )
