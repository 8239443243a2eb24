"""`gristmill limiter`: what handlers take from before they call the outside."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

import typer
from rich.console import RenderableType

from gristmill.cli.output import Json, Misused, emit, make_table
from gristmill.cli.session import Session, blame_options, parse_optional, parse_value, run, session
from gristmill.durations import format_duration, parse_duration, parse_rate
from gristmill.queue import Limit, LimiterStatus, Rate, list_limiters, set_limit

app = typer.Typer(no_args_is_help=True)
Gap = tuple[timedelta, timedelta]


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="limiter", help=text)


@app.command("list")
def list_(json: Json = False) -> None:
    """All limiters, how much of them is taken, and when the next turn is.

    Example: gristmill limiter list
    """
    found = run(_load_limiters())
    emit(json, found, lambda: _limiters_table(found))


@app.command("set")
def set_(
    name: Annotated[str, typer.Argument(help="For example llm, or domain:example.org.")],
    concurrency: Annotated[str | None, typer.Option(help="How many at once, or none.")] = None,
    rate: Annotated[str | None, typer.Option(help="How many per period, such as 5/60s, or none.")] = None,
    gap: Annotated[str | None, typer.Option(help="Time between calls, such as 1s or 3s-5s (random), or none.")] = None,
    json: Json = False,
) -> None:
    """Change a limiter, or make it; an option that is not given stays as it is. Calls that already have a turn keep it.

    Example: gristmill limiter set llm --concurrency 5 --rate 5/60s --gap 1s
    """
    if concurrency is None and rate is None and gap is None:
        raise Misused(
            f"Nothing to set for {name}: give --concurrency 5, --rate 5/60s, --gap 1s, or none for any of them."
        )
    changed = run(_set_limiter(name, concurrency, rate, gap))
    emit(json, changed, lambda: _limiters_table([changed]))


async def _load_limiters() -> list[LimiterStatus]:
    async with session() as at, at.db.transaction() as tx:
        return await list_limiters(tx)


async def _set_limiter(name: str, concurrency: str | None, rate: str | None, gap: str | None) -> LimiterStatus:
    async with session() as at:
        old = await _load_limit(at, name)
        with blame_options(concurrency="--concurrency", rate="--rate", gap="--gap"):
            limit = _change_limit(old, concurrency, rate, gap)
        async with at.db.transaction() as tx:
            await set_limit(tx, name, limit)
            return next(one for one in await list_limiters(tx) if one.name == name)


def _change_limit(old: Limit, concurrency: str | None, rate: str | None, gap: str | None) -> Limit:
    return Limit(
        old.concurrency if concurrency is None else parse_optional(_parse_number, concurrency),
        old.rate if rate is None else parse_optional(_parse_rate, rate),
        old.gap if gap is None else (parse_optional(_parse_gap, gap) or Limit().gap),
    )


async def _load_limit(at: Session, name: str) -> Limit:
    async with at.db.transaction() as tx:
        return next((one.limit for one in await list_limiters(tx) if one.name == name), Limit())


def _parse_number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"“{text}” is neither a whole number nor none")
    return int(text)


def _parse_rate(text: str) -> Rate:
    return Rate(*parse_rate(text))


def _parse_gap(text: str) -> Gap:
    low, dash, high = text.partition("-")
    return parse_value(parse_duration, low), parse_value(parse_duration, high if dash else low)


def _limiters_table(found: Sequence[LimiterStatus]) -> RenderableType:
    rows = [
        (
            one.name,
            one.limit.concurrency,
            _format_rate(one.limit),
            _format_gap(one.limit.gap),
            one.held,
            one.recent,
            one.next_at,
        )
        for one in found
    ]
    columns = ("limiter", ">at once", "rate", "gap", ">held", ">recent", "next turn")
    return make_table(columns, rows, empty="There are no limiters yet; the first call that takes from one makes it.")


def _format_rate(limit: Limit) -> str | None:
    return f"{limit.rate.count}/{format_duration(limit.rate.period)}" if limit.rate else None


def _format_gap(gap: Gap) -> str | None:
    low, high = gap
    if not high:
        return None
    return format_duration(low) if low == high else f"{format_duration(low)}-{format_duration(high)}"
