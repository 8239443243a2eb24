"""`gristmill queue`: how queues stand and how they are set."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from gristmill.cli.elsewhere import is_elsewhere, remote
from gristmill.cli.output import (
    Json,
    Misused,
    emit,
    format_cell,
    is_narrow,
    make_facts,
    make_table,
    out,
    say_json,
    to_plain,
)
from gristmill.cli.session import Session, blame_options, parse_span, parse_value, run, session
from gristmill.durations import format_duration
from gristmill.errors import Refused
from gristmill.queue import QueueReport, check_settings, explain_standstill, list_queues, pause, resume, set_queue
from gristmill.wording import format_span

app = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The name of the queue.")]
NOTHING = "There are no queues yet: the first task that is sent to one makes it."


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="queue", help=text)


@app.command("list")
def list_(json: Json = False) -> None:
    """All queues: what waits, is blocked, runs, is done and is dead, and who serves them.

    A blocked task waits for other tasks: no worker would run it now. Blocked tasks and limits have a column only if
    there are any; limits and retries also need a wide screen. gristmill queue show always shows them.

    Example: gristmill queue list
    """
    if is_elsewhere():
        numbers = remote().fetch_queues()
        emit(json, to_plain(numbers), lambda: numbers_table(numbers))
        return
    found = run(_open_and_load())
    emit(json, [_as_dict(one) for one in found], lambda: _queues_table(found))


@app.command()
def show(name: Name, json: Json = False) -> None:
    """One queue: how it is set and how it stands.

    Example: gristmill queue show extract
    """
    found = run(_open_and_load_one(name))
    emit(json, found, lambda: _queue_view(found))


@app.command("set")
def set_(
    name: Name,
    rate: Annotated[str | None, typer.Option(help="How many may start in a period, such as 10/60s, or none.")] = None,
    concurrency: Annotated[str | None, typer.Option(help="How many tasks may run at once, or none.")] = None,
    max_attempts: Annotated[str | None, typer.Option(help="After so many attempts a task is dead, or never.")] = None,
    retry_base: Annotated[str | None, typer.Option(help="The wait after the first failure, such as 10s.")] = None,
    retry_cap: Annotated[str | None, typer.Option(help="The longest wait, such as 5min.")] = None,
    retries_first: Annotated[
        bool | None, typer.Option("--retries-first/--no-retries-first", help="Whether retries go before new work.")
    ] = None,
    timeout: Annotated[str | None, typer.Option(help="How long a task may run, such as 300s.")] = None,
    breaker: Annotated[
        str | None, typer.Option(help="The share of errors that opens the breaker, as 30%, or none.")
    ] = None,
    breaker_minimum: Annotated[int | None, typer.Option(min=1, help="… if there were so many tasks …")] = None,
    breaker_window: Annotated[str | None, typer.Option(help="… within this time, such as 60s.")] = None,
    breaker_reset: Annotated[str | None, typer.Option(help="How long it stays open, such as 5min.")] = None,
    keep: Annotated[
        str | None, typer.Option(help="How many finished tasks are kept; default: as the settings say.")
    ] = None,
    keep_for: Annotated[str | None, typer.Option(help="How long they are kept, such as 7d; or default.")] = None,
    clear_payload: Annotated[
        bool | None,
        typer.Option("--clear-payload/--no-clear-payload", help="Whether completed tasks lose their payload."),
    ] = None,
    json: Json = False,
) -> None:
    """Change a queue, for all workers at once; what is not given stays as it is.

    Example: gristmill queue set extract --rate 10/60s --concurrency 4 --breaker 30%
    """
    given: dict[str, Any] = {
        "rate": _or_none(rate),
        "concurrency": _parse_number(concurrency),
        "max_attempts": _parse_number(max_attempts, "never"),
        "retry_base": retry_base,
        "retry_cap": retry_cap,
        "retries_first": retries_first,
        "timeout": timeout,
        "breaker": _or_none(breaker),
        "keep": _parse_number(keep, "default"),
        "keep_for": _or_none(keep_for, "default"),
        "clear_payload": clear_payload,
        "breaker_minimum": breaker_minimum,
        "breaker_window": breaker_window,
        "breaker_reset": breaker_reset,
    }
    changes = {key: None if value is TAKEN_AWAY else value for key, value in given.items() if value is not None}
    if not changes:
        raise Misused(
            f"Nothing to change in {name}: give for example --rate 10/60s; gristmill queue show {name} shows more."
        )
    found = run(_set_queue(name, changes))
    emit(json, found, lambda: _queue_view(found))


@app.command("pause")
def pause_(name: Name, json: Json = False) -> None:
    """Claim nothing more of a queue; what runs goes on.

    Example: gristmill queue pause extract
    """
    found = run(_pause(name, True))
    emit(json, found, lambda: f"{name} is paused; {found.processing} still run, {_describe_waiting(found)}.")


@app.command("resume")
def resume_(name: Name, json: Json = False) -> None:
    """Let a paused queue go on.

    Example: gristmill queue resume extract
    """
    found = run(_pause(name, False))
    emit(json, found, lambda: f"{name} goes on; {_describe_waiting(found)}.")


@app.command()
def watch(
    for_: Annotated[str | None, typer.Option("--for", help="End after this long, such as 10s.")] = None,
    every: Annotated[str, typer.Option(help="How often to look.")] = "1s",
    json: Annotated[bool, typer.Option("--json", help="One JSON document a line, one line a look.")] = False,
) -> None:
    """Watch all queues live, until Ctrl-C.

    Example: gristmill queue watch --for 10s
    """
    length, pause_for = parse_span(for_), parse_value(_parse_seconds, every)
    run(_watch(length.total_seconds() if length else None, pause_for, json))


# --- values

TAKEN_AWAY = object()  # None means: not given


def _or_none(text: str | None, none: str = "none") -> Any:
    return TAKEN_AWAY if text == none else text


def _parse_number(text: str | None, none: str = "none") -> Any:
    if text is None or text == none:
        return _or_none(text, none)
    if not text.isdigit():
        raise Misused(f"“{text}” is neither a whole number nor {none}.")
    return int(text)


def _parse_seconds(text: str) -> float:
    found = parse_span(text)
    return max(0.1, found.total_seconds()) if found else 1.0


# --- work


async def _open_and_load() -> list[QueueReport]:
    async with session() as at:
        return await _load_reports(at)


async def _load_reports(at: Session) -> list[QueueReport]:
    async with at.db.transaction() as tx:
        return await list_queues(tx)


async def _load_report(at: Session, name: str) -> QueueReport:
    found = {one.name: one for one in await _load_reports(at)}
    if name not in found:
        near = get_close_matches(name, found, n=1)
        raise Refused(f"There is no queue “{name}”." + (f" Did you mean {near[0]}?" if near else ""))
    return found[name]


async def _open_and_load_one(name: str) -> QueueReport:
    async with session() as at:
        return await _load_report(at, name)


async def _set_queue(name: str, changes: dict[str, Any]) -> QueueReport:
    with blame_options(**{key: "--" + key.replace("_", "-") for key in changes}):
        check_settings(changes)
    async with session() as at:
        async with at.db.transaction() as tx:
            await set_queue(tx, name, **changes)
        return await _load_report(at, name)


async def _pause(name: str, paused: bool) -> QueueReport:
    async with session() as at:
        await _load_report(at, name)
        async with at.db.transaction() as tx:
            await (pause if paused else resume)(tx, name)
        return await _load_report(at, name)


async def _watch(length: float | None, every: float, as_json: bool) -> None:
    live = Live(console=out, auto_refresh=False) if out.is_terminal and not as_json else None
    async with session() as at:
        with live or nullcontext():
            loop = asyncio.get_running_loop()
            began, before = loop.time(), None
            while length is None or loop.time() - began < length:
                found = await _load_reports(at)
                _show_look(live, found, _measure_rates(before, found, every), as_json)
                before = found
                await asyncio.sleep(every)


def _show_look(live: Live | None, found: Sequence[QueueReport], rates: dict[str, float], as_json: bool) -> None:
    if as_json:
        say_json([{**_as_short_dict(one), "per_second": rates.get(one.name)} for one in found])
    elif live:
        live.update(_live_view(found, rates), refresh=True)
    else:
        out.print(_live_view(found, rates))


# --- views


def _measure_rates(before: Sequence[QueueReport] | None, now: Sequence[QueueReport], every: float) -> dict[str, float]:
    """How many tasks a second ended in each queue since the last look."""
    if before is None:
        return {}
    old = {one.name: _count_ended(one) for one in before}
    return {one.name: round((_count_ended(one) - old.get(one.name, 0)) / every, 1) for one in now}


def _count_ended(one: QueueReport) -> int:
    return sum(n for outcome, n in one.finished.items() if outcome != "retried")


def _describe_waiting(one: QueueReport) -> str:
    return f"{one.waiting} wait" + (f", {one.blocked} are blocked" if one.blocked.n else "")


def _as_dict(one: QueueReport) -> dict[str, Any]:
    return {**to_plain(one), "waiting": to_plain(one.waiting), "dead": one.dead}


def _as_short_dict(one: QueueReport) -> dict[str, Any]:
    return {
        "name": one.name,
        "paused": one.paused,
        "pending": one.pending,
        "waiting": one.waiting.n,
        "blocked": one.blocked.n,
        "processing": one.processing,
        "dead": one.dead,
        "finished": one.finished,
        "oldest": one.oldest,
        "breaker": one.breaker.state if one.breaker else None,
        "workers": one.workers,
    }


def numbers_table(found: Sequence[Any]) -> RenderableType:
    """The queues of a server elsewhere: how many tasks each holds of each status."""
    columns = ("pending", "processing", "completed", "failed", "skipped", "cancelled")
    rows = [(one.queue, *(getattr(one, name) for name in columns)) for one in found]
    return make_table(("queue", *(f">{name}" for name in columns)), rows, empty=NOTHING)


def _live_view(found: Sequence[QueueReport], rates: dict[str, float]) -> RenderableType:
    held = [f"{one.name}: {reason}" for one in found if (reason := explain_standstill(one))]
    return Group(_queues_table(found, rates), *(Text(line, style="yellow") for line in held))


def _queues_table(found: Sequence[QueueReport], rates: dict[str, float] | None = None) -> RenderableType:
    blocked, retried = any(one.blocked.n for one in found), not is_narrow()
    limited = retried and any(_format_limits(one) for one in found)
    columns = ["~queue", "state", ">waiting", *[">blocked"] * blocked, ">running", ">done"]
    columns += [*[">retried"] * retried, ">dead", "oldest", *["limits"] * limited, ">workers"]
    columns += [">ended"] if rates is not None else []
    rows: list[list[Any]] = []
    for one in found:
        done = one.finished["completed"] + one.finished["skipped"]
        dead = Text(f"{one.dead:,}", style="red" if one.dead else "")
        rows.append(
            [
                one.name,
                _format_state(one),
                str(one.waiting),
                *[str(one.blocked)] * blocked,
                one.processing,
                done,
                *[one.finished["retried"]] * retried,
                dead,
                one.oldest,
                *[_format_limits(one) or "–"] * limited,
                len(one.workers),
            ]
        )
        if rates is not None:
            rows[-1].append(f"{rates.get(one.name, 0):g}/s")
    return make_table(columns, rows, empty=NOTHING)


def _format_state(one: QueueReport) -> Text:
    if one.paused:
        return format_cell("paused")
    if one.breaker and one.breaker.state != "closed":
        return Text(f"breaker {one.breaker.state}", style="red")
    return Text("no worker", style="yellow") if one.waiting.n and not one.workers else Text("ok", style="green")


def _format_limits(one: QueueReport) -> str:
    settings = one.settings
    parts = [f"{settings['rate_count']}/{format_duration(settings['rate_period'])}"] if settings["rate_count"] else []
    parts += [f"{settings['concurrency']} at once"] if settings["concurrency"] else []
    return ", ".join(parts)


def _queue_view(one: QueueReport) -> RenderableType:
    settings = one.settings
    attempts = settings["max_attempts"]
    backoff = f"{format_duration(settings['retry_base'])} doubling to {format_duration(settings['retry_cap'])}"
    keep, keep_for = settings["keep"], settings["keep_for"]
    kept = [f"the last {keep:,}"] if keep is not None else []
    kept += [format_duration(keep_for)] if keep_for is not None else []
    return make_facts(
        [
            ("queue", one.name),
            ("state", _format_state(one)),
            ("held back", explain_standstill(one)),
            ("waiting", _explain_waiting(one)),
            ("running", one.processing),
            ("oldest", format_span(one.oldest) if one.oldest else None),
            ("dead", f"{one.dead:,}"),
            ("ended", ", ".join(f"{n:,} {outcome}" for outcome, n in one.finished.items() if n) or "nothing yet"),
            ("limits", _format_limits(one) or "–"),
            ("attempts", "as many as it takes" if attempts is None else attempts),
            ("backoff", backoff),
            ("retries first", settings["retries_first"]),
            ("time-out", format_duration(settings["timeout"])),
            ("breaker", _describe_breaker(one)),
            ("kept", ", ".join(kept) or "as the settings say"),
            ("payload", "cleared when completed" if settings["clear_payload"] else "kept"),
            ("workers", ", ".join(one.workers) or "none"),
        ]
    )


def _explain_waiting(one: QueueReport) -> str:
    parts = {"ready": one.ready, "scheduled": one.scheduled, "blocked": one.blocked, "suspects": one.suspects}
    return ", ".join(f"{n} {name}" for name, n in parts.items() if n.n) or "nothing"


def _describe_breaker(one: QueueReport) -> str:
    if one.breaker is None:
        return "none"
    settings = one.settings
    window = f"{settings['breaker_threshold']:.0%} errors of {settings['breaker_minimum']} tasks or more"
    window += f" within {format_duration(settings['breaker_window'])}"
    return f"{one.breaker.state} (opens at {window}, for {format_duration(settings['breaker_reset'])})"
