"""What templates know besides their values: icons and colours of states, numbers, times, bars, charts."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from jinja2 import Environment

from gristmill.durations import format_duration
from gristmill.web.assets import link_asset
from gristmill.web.console import charts
from gristmill.web.console.markdown import draw_markdown
from gristmill.web.limits import write_gap
from gristmill.wording import format_count, format_nth, format_span, show_unseen

SPANS = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (86_400 * 60, 86_400, "d"))


@dataclass(frozen=True)
class StatusLook:
    """How a status looks: one of the five colours, an icon and a word, so that it is readable without colour."""

    colour: str
    icon: str
    word: str


LOOKS = {
    "pending": StatusLook("waiting", "waiting", "waiting"),
    "waiting": StatusLook("waiting", "waiting", "waiting"),
    "processing": StatusLook("running", "running", "running"),
    "running": StatusLook("running", "running", "running"),
    "completed": StatusLook("done", "done", "done"),
    "done": StatusLook("done", "done", "done"),
    "failed": StatusLook("failed", "failed", "failed"),
    "dead": StatusLook("failed", "failed", "dead"),
    "skipped": StatusLook("paused", "skipped", "skipped"),
    "paused": StatusLook("paused", "paused", "paused"),
    "cancelled": StatusLook("paused", "cancelled", "cancelled"),
    "warn": StatusLook("paused", "warning", "warning"),
}


@dataclass(frozen=True)
class BarPart:
    """A piece of a bar, in percent."""

    colour: str
    start: float
    width: float


def look_of(status: str) -> StatusLook:
    return LOOKS.get(status) or StatusLook("waiting", "info", status)


def lay_out(parts: Iterable[tuple[str, int]], total: int) -> list[BarPart]:
    """The pieces of a bar one after another; a piece that is not empty stays visible."""
    laid: list[BarPart] = []
    start = 0.0
    for colour, n in parts:
        if n > 0 and total > 0 and start < 100:
            width = min(100 - start, max(1.5, n * 100 / total))
            laid.append(BarPart(colour, round(start, 2), round(width, 2)))
            start += width
    return laid


def is_within(path: str, entry: str) -> bool:
    """Whether a page belongs to an entry of the menu."""
    return path == entry or (entry != "/" and path.startswith(f"{entry}/"))


def tell_now() -> datetime:
    """For showing alone: whatever decides something asks the database."""
    return datetime.fromtimestamp(time.time(), UTC)


def format_ago(moment: datetime, now: datetime | None = None) -> str:
    """`4 s ago`, `in 12 min`, a date when it is long ago: as times.js writes it."""
    seconds = ((now or tell_now()) - moment).total_seconds()
    for below, size, unit in SPANS:
        if abs(seconds) < 1:
            return "now"
        if abs(seconds) < below:
            span = f"{int(abs(seconds) // size)} {unit}"
            return f"{span} ago" if seconds > 0 else f"in {span}"
    return f"{moment:%Y-%m-%d}"


def format_exact(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="seconds")


def format_number(n: int | float) -> str:
    return f"{n:,}" if isinstance(n, int) else f"{n:,.1f}"


def format_json(value: Any) -> str:
    """Payloads and results as people read them."""
    if isinstance(value, str):
        return value
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def format_compact(value: Any) -> str:
    """The same on one line."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def format_span_or(value: timedelta | None, otherwise: str = "–") -> str:
    return otherwise if value is None else format_span(value)


def equip(environment: Environment) -> None:
    """Give templates these functions and filters."""
    environment.globals |= {  # pyright: ignore[reportAttributeAccessIssue] jinja2 types it as a plain dict of anything
        "asset": link_asset,
        "look_of": look_of,
        "lay_out": lay_out,
        "is_within": is_within,
        "now": lambda: tell_now().isoformat(),
        "charts": charts,
        "counted": format_count,
    }
    environment.filters |= {
        "ago": format_ago,
        "exact": format_exact,
        "count": format_number,
        "nth": format_nth,
        "pretty": format_json,
        "compact": format_compact,
        "span": format_span_or,
        "duration": format_duration,
        "gap": write_gap,
        "visible": show_unseen,
        "markdown": draw_markdown,
    }
