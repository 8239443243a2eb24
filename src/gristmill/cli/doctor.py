"""`gristmill doctor`: looks at everything a queue needs, and says what to do."""

import shutil
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer
from rich.console import RenderableType

from gristmill.cli.output import Json, emit, err, span, table
from gristmill.cli.queues import held_back
from gristmill.cli.session import load, run
from gristmill.db import Connection, Database, Embedded, SchemaState, Tx, plainly, queries, schema_state
from gristmill.documents import counted
from gristmill.errors import GristmillError
from gristmill.queue import QueueReport, dead, list_queues
from gristmill.settings import Settings
from gristmill.telemetry import set_up_logs

SQL = queries("gristmill.cli", "doctor.sql")
OLDEST = 140_000
SLOW = 0.05  # seconds for one question to the database
SKEW = 2.0  # seconds between this machine's clock and the database's
SILENT = 0.3  # the share of chunks in which an LLM may find nothing
FEWEST_ANSWERS = 10
GB = 2**30
Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; `advice` is what to do about it."""

    name: str
    verdict: Verdict
    sentence: str
    advice: str = ""


def doctor(json: Json = False) -> None:
    """Check settings, database, schema, workers, clocks, disk, models, dead letters, breakers and long transactions.

    Ends with 1 if anything fails. Example: gristmill doctor --json
    """
    with err.status("Looking …"):
        checks = run(_checks())
    failed = any(check.verdict == "fail" for check in checks)
    emit(json, {"healthy": not failed, "checks": checks}, lambda: _view(checks))
    if failed:
        raise typer.Exit(1)


def register(root: typer.Typer, text: str) -> None:
    root.command("doctor")(doctor)


async def _checks() -> list[Check]:
    """As far as one can look: what needs the database is left out when there is none."""
    found: list[Check] = []
    try:
        settings = load()
        set_up_logs(settings.log)
        found.append(Check("settings", "ok", "All settings can be read."))
    except GristmillError as error:
        return [Check("settings", "fail", str(error), "Mend it, then ask again.")]
    try:
        with plainly():
            found += [check async for check in _look(settings)]
    except GristmillError as error:
        # the advice that everybody else gives is to ask us
        sentence = str(error).replace(": run gristmill doctor.", ".")
        advice = "Start the server, or mend GRISTMILL_DATABASE_URL." if settings.database_url else ""
        found.append(Check("database", "fail", sentence, advice))
    return found


async def _look(settings: Settings) -> AsyncGenerator[Check]:
    url = settings.database_url or Embedded(settings.data).start()
    async with await Database(url).connect("doctor") as connection:
        tx = Tx(connection)
        server = await tx.one(SQL["server"])
        latency, skew = await _timed(tx)
        yield database(server, latency)
        yield extension(await tx.one(SQL["vector"]))
        yield disk(*_space(settings, server))
        yield clocks(skew)
        yield transactions(await tx.all(SQL["long_transactions"]))
        schema = await schema_state(connection)
        yield migrations(schema)
        if schema.fits:
            async for check in _look_at_queues(connection, settings):
                yield check


async def _look_at_queues(connection: Connection, settings: Settings) -> AsyncGenerator[Check]:
    tx = Tx(connection)
    reports = await list_queues(tx)
    yield workers(await tx.one(SQL["workers"]), reports)
    yield breakers(reports)
    yield extraction(await tx.one(SQL["extraction"]))
    yield dead_letters(await dead.stats(tx, threshold=settings.queue.dead_alert), settings.queue.dead_alert)


async def _timed(tx: Tx) -> tuple[float, float]:
    """How long the quickest of three questions took, and how far the database's clock is ahead of ours."""
    tries: list[tuple[float, float]] = []
    for _ in range(3):
        began = time.time()
        theirs = await tx.value(SQL["time"])
        took = time.time() - began
        tries.append((took, theirs - began - took / 2))
    return min(tries)


def _space(settings: Settings, server: Any) -> tuple[str, int | None, int]:
    """The folder whose disk matters, and how much of it is free; None if that cannot be seen from here."""
    known = (
        settings.data if not settings.database_url else Path(server.folder) if server.local and server.folder else None
    )
    if known is None or not known.exists():
        return "the server", None, 0
    usage = shutil.disk_usage(known)
    return str(known), usage.free, usage.total


# --- what it means


def database(server: Any, latency: float) -> Check:
    told = f"PostgreSQL {server.version} answers in {latency * 1000:.1f} ms and stores {server.size / 2**20:,.0f} MB."
    if server.number < OLDEST:
        return Check("database", "fail", f"PostgreSQL {server.version} is too old.", "Upgrade it to 14 or newer.")
    if latency > SLOW:
        return Check("database", "warn", told, "It is far away or busy: move the workers closer to it.")
    return Check("database", "ok", told)


def extension(row: Any) -> Check:
    if row.installed:
        return Check("extension", "ok", f"pgvector {row.installed} is installed.")
    if row.available:
        advice = "Run gristmill db migrate, or have an administrator run CREATE EXTENSION vector."
        return Check("extension", "warn", f"pgvector {row.available} is there but not installed.", advice)
    advice = "Install it on the server, on Debian the package postgresql-NN-pgvector."
    return Check("extension", "fail", "The server does not have pgvector.", advice)


def migrations(schema: SchemaState) -> Check:
    if schema.older:
        return Check(
            "migrations", "fail", "The database was made before the first release.", "Start with an empty one."
        )
    if schema.unknown:
        names = ", ".join(schema.unknown)
        return Check("migrations", "fail", f"The schema is newer than this program ({names}).", "Upgrade Gristmill.")
    if schema.changed:
        names = ", ".join(schema.changed)
        return Check(
            "migrations",
            "fail",
            f"Migrations were changed after they were applied here ({names}).",
            "Install the Gristmill that migrated this database, or start with an empty one.",
        )
    if schema.pending:
        names = ", ".join(schema.pending)
        return Check(
            "migrations", "warn", f"Not all migrations are applied yet ({names}).", "Run gristmill db migrate."
        )
    return Check("migrations", "ok", f"The schema is up to date ({schema.applied} migrations).")


def workers(row: Any, reports: Sequence[QueueReport]) -> Check:
    told = f"{row.live} live, {row.silent} silent, {row.lost} lost within the last hour."
    unserved = [one.name for one in reports if one.waiting.n and not one.workers and not one.paused]
    if unserved:
        sentence = f"{told[:-1]}; tasks wait where nobody serves: {', '.join(unserved)}."
        return Check(
            "workers",
            "warn",
            sentence,
            f"Run gristmill worker, or for these alone gristmill worker --queues {','.join(unserved)}.",
        )
    if row.silent:
        return Check("workers", "warn", told, "Their tasks are taken back as soon as any worker runs.")
    if row.lost:
        return Check("workers", "warn", told, "Look at their logs and at gristmill dead clusters.")
    return Check("workers", "ok", told)


def breakers(reports: Sequence[QueueReport]) -> Check:
    open_ = [one for one in reports if one.breaker and one.breaker.state != "closed"]
    if not open_:
        return Check("breakers", "ok", "No breaker is open.")
    told = "; ".join(f"{one.name}: {held_back(one) or 'its breaker is half-open'}" for one in open_)
    return Check("breakers", "warn", f"{told}.", "Mend what these queues call; they try again by themselves.")


def extraction(row: Any) -> Check:
    """A model that answers with nothing fails silently: nobody else would notice."""
    if not row.asked:
        return Check("extraction", "ok", "No LLM was asked about chunks; rules draw the graph.")
    told = f"The LLM found nothing in {row.silent} of the last {row.asked} chunks it was asked about."
    if row.asked >= FEWEST_ANSWERS and row.silent > row.asked * SILENT:
        advice = "Try gristmill router with that model by hand: it may be too small, or answer in the wrong form."
        return Check("extraction", "warn", told, advice)
    return Check("extraction", "ok", told)


def dead_letters(stats: dead.DeadStats, threshold: int) -> Check:
    told = f"{counted(stats.total, 'dead letter')}; {threshold} raise an alarm."
    if stats.alert:
        return Check("dead letters", "warn", told, "Run gristmill dead clusters, mend the cause, then dead replay.")
    return Check("dead letters", "ok", told)


def clocks(ahead: float) -> Check:
    told = f"The database's clock is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine's."
    if abs(ahead) > SKEW:
        return Check("clocks", "warn", told, "Let both follow a time server; schedules follow the database.")
    return Check("clocks", "ok", told if abs(ahead) >= 0.1 else "This machine and the database agree on the time.")


def disk(where: str, free: int | None, total: int) -> Check:
    if free is None:
        return Check("disk", "ok", "The disk of the server cannot be seen from here.")
    told = f"{free / GB:,.1f} GB of {total / GB:,.1f} GB are free at {where}."
    if free < GB or free < total * 0.05:
        return Check("disk", "warn", told, "Free some space: a full disk stops every queue.")
    return Check("disk", "ok", told)


def transactions(rows: Sequence[Any]) -> Check:
    if not rows:
        return Check("transactions", "ok", "No transaction is open for longer than 10 min.")
    told = ", ".join(f"{row.who} for {span(row.age)}" for row in rows[:5])
    advice = "End them: as long as they are open, dead rows stay and everything gets slower."
    return Check("transactions", "warn", f"Open for too long: {told}.", advice)


def _view(checks: Sequence[Check]) -> RenderableType:
    rows = [(check.verdict, check.name, f"{check.sentence} {check.advice}".strip()) for check in checks]
    return table(("", "", ""), rows, empty="")
