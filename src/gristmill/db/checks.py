"""What the doctor asks about the database itself: server, extension, disk, clocks, open transactions, schema."""

import shutil
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from gristmill.db.migrate import SchemaState, schema_state
from gristmill.db.pool import Connection
from gristmill.db.sql import queries
from gristmill.db.tx import Tx
from gristmill.settings import Settings
from gristmill.telemetry import Check, Finding, find_by_check
from gristmill.wording import format_span

SQL = queries("gristmill.db", "checks.sql")
OLDEST = 140_000
SLOW = 0.05  # seconds for one question to the database
SKEW = 2.0  # seconds between this machine's clock and the database's
GB = 2**30
FULL = 64 * 2**20  # bytes: with less, PostgreSQL soon cannot add to its log, which grows by 16 MB at a time


class ServerFacts(NamedTuple):
    """A PostgreSQL server; `folder` is None for those who may not know it."""

    version: str
    number: int
    size: int
    local: bool
    folder: str | None


class Extension(NamedTuple):
    """The versions of pgvector: of the one in this database, and of the one that the server could install."""

    installed: str | None
    available: str | None


class LongTransaction(NamedTuple):
    """A transaction that has been open for long."""

    who: str
    age: timedelta


async def examine_database(connection: Connection, settings: Settings) -> tuple[list[Check], SchemaState]:
    """Everything that can be asked of any database, also of one without our schema; and how that schema stands."""
    tx = Tx(connection)
    server, extension = await tx.one(SQL["server"], ServerFacts), await tx.one(SQL["vector"], Extension)
    assert server is not None
    assert extension is not None
    latency, ahead = await _measure_time(tx)
    schema = await schema_state(connection)
    checks = [
        judge_server(server, latency),
        judge_extension(extension),
        judge_disk(*_measure_disk(settings, server)),
        judge_clocks(ahead),
        judge_transactions(await tx.all(SQL["long_transactions"], LongTransaction)),
        judge_schema(schema),
    ]
    return checks, schema


async def find_machine_troubles(tx: Tx, settings: Settings) -> list[Finding]:
    """What alarms ask about the machine of the database: disk and clock."""
    _, ahead = await _measure_time(tx)
    server = await tx.one(SQL["server"], ServerFacts)
    assert server is not None
    disk = judge_disk(*_measure_disk(settings, server))
    return [*find_by_check("disk", disk), *find_by_check("clock", judge_clocks(ahead))]


async def _measure_time(tx: Tx) -> tuple[float, float]:
    """How long the quickest of three questions took, and how far the database's clock is ahead of ours."""
    tries: list[tuple[float, float]] = []
    for _ in range(3):
        began = time.time()
        theirs = await tx.only_value(SQL["time"], float)
        took = time.time() - began
        tries.append((took, theirs - began - took / 2))
    return min(tries)


def _measure_disk(settings: Settings, server: ServerFacts) -> tuple[str, int | None, int]:
    """The folder whose disk matters, with its free and its whole size; None if the disk cannot be seen from here."""
    known = (
        settings.data if not settings.database_url else Path(server.folder) if server.local and server.folder else None
    )
    if known is None or not known.exists():
        return "the server", None, 0
    usage = shutil.disk_usage(known)
    return str(known), usage.free, usage.total


def explain_full_disk(data: Path) -> str | None:
    """The sentence for a person who waits, if the disk of the data folder is full; None if it is not."""
    free = shutil.disk_usage(data).free if data.exists() else FULL
    if free >= FULL:
        return None
    return f"The disk of {data} is full ({free / 2**20:,.0f} MB are free): this goes on when there is space again."


# --- judgements


def judge_server(server: ServerFacts, latency: float) -> Check:
    sentence = (
        f"PostgreSQL {server.version} answers in {latency * 1000:.1f} ms and stores {server.size / 2**20:,.0f} MB."
    )
    if server.number < OLDEST:
        return Check("database", "fail", f"PostgreSQL {server.version} is too old.", "Upgrade it to 14 or newer.")
    if latency > SLOW:
        return Check("database", "warn", sentence, "It is far away or busy: move the workers closer to it.")
    return Check("database", "ok", sentence)


def judge_extension(row: Extension) -> Check:
    if row.installed:
        return Check("extension", "ok", f"pgvector {row.installed} is installed.")
    if row.available:
        advice = "Run gristmill db migrate, or have an administrator run CREATE EXTENSION vector."
        return Check("extension", "warn", f"pgvector {row.available} is there but not installed.", advice)
    advice = "Install it on the server, on Debian the package postgresql-NN-pgvector."
    return Check("extension", "fail", "The server does not have pgvector.", advice)


def judge_disk(where: str, free: int | None, total: int) -> Check:
    if free is None:
        return Check("disk", "ok", "The disk of the server cannot be seen from here.")
    sentence = f"{free / GB:,.1f} GB of {total / GB:,.1f} GB are free at {where}."
    if free < GB or free < total * 0.05:
        return Check("disk", "warn", sentence, "Free some space: a full disk stops every queue.")
    return Check("disk", "ok", sentence)


def judge_clocks(ahead: float) -> Check:
    sentence = f"The database's clock is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine's."
    if abs(ahead) > SKEW:
        return Check("clocks", "warn", sentence, "Let both follow a time server; schedules follow the database.")
    return Check("clocks", "ok", sentence if abs(ahead) >= 0.1 else "This machine and the database agree on the time.")


def judge_transactions(rows: Sequence[LongTransaction]) -> Check:
    if not rows:
        return Check("transactions", "ok", "No transaction is open for longer than 10 min.")
    oldest = ", ".join(f"{row.who} for {format_span(row.age)}" for row in rows[:5])
    advice = "End them: as long as they are open, dead rows stay and everything gets slower."
    return Check("transactions", "warn", f"Open for too long: {oldest}.", advice)


def judge_schema(schema: SchemaState) -> Check:
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
