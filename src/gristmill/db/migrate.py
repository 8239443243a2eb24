"""Brings a database to the schema this program knows: numbered files, forward only, each all or nothing."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from gristmill.errors import Refused

FOLDER = Path(__file__).parent / "migrations"
NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
OLDEST_SERVER = 14
OLDEST_VECTOR = (0, 8)  # of pgvector: older ones leave a filtered search with a part of what fits, or none
TWINS = {  # landed in two forms, by checksum the second; 0009 brings both to the same schema
    2: "7767d2cc1f01aa738d6ba2c89a28700a6e5230644c0194bedc0590df6d567718",
    3: "fef5cf6ce08b87e4294bb502e77ac40c87f146000654cade11f762296a7917d3",
}
LOCK = 0x6772_6973_746D  # "gristm": one number for every database, as advisory locks are per database

CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS gristmill_migration (
    number     int PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)"""
EXISTS = "SELECT to_regclass('gristmill_migration') IS NOT NULL"
APPLIED = "SELECT number, name, checksum FROM gristmill_migration ORDER BY number"
RECORD = "INSERT INTO gristmill_migration (number, name, checksum) VALUES (%s, %s, %s)"
VECTOR = """
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')
"""


@dataclass(frozen=True)
class Migration:
    """One file of the folder, or one row of the table."""

    number: int
    name: str
    checksum: str
    text: str = ""


@dataclass(frozen=True)
class SchemaState:
    """How a database compares with this program; a number is 0 when there is none."""

    current: int
    newest: int
    pending: tuple[str, ...]
    unknown: tuple[str, ...]
    changed: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return not self.pending and not self.unknown and not self.changed


def known(folder: Path = FOLDER) -> list[Migration]:
    """The migrations of this program, in order."""
    return [read(file) for file in sorted(folder.glob("*.sql"))]


def read(file: Path) -> Migration:
    match = NAME.fullmatch(file.name)
    if match is None:
        raise ValueError(f"{file.name} is no name for a migration: write NNNN_what_it_does.sql")
    text = file.read_text(encoding="utf-8")
    return Migration(int(match[1]), file.stem, hashlib.sha256(text.encode()).hexdigest(), text)


async def schema_state(connection: AsyncConnection[Any], migrations: Sequence[Migration] | None = None) -> SchemaState:
    """Compare without changing anything."""
    ours = known() if migrations is None else migrations
    applied = await applied_to(connection)
    done = {migration.number for migration in applied}
    newest = max((migration.number for migration in ours), default=0)
    return SchemaState(
        current=max(done, default=0),
        newest=newest,
        pending=tuple(migration.name for migration in ours if migration.number not in done),
        unknown=tuple(migration.name for migration in applied if migration.number > newest),
        changed=tuple(migration.name for migration in strange(ours, applied) if migration.number <= newest),
    )


async def migrate(connection: AsyncConnection[Any], migrations: Sequence[Migration] | None = None) -> list[str]:
    """Apply what is missing and return its names; of many that try at once, one does it."""
    ours = known() if migrations is None else migrations
    refuse_old_server(connection)
    if not missing(ours, await applied_to(connection)):
        return []
    await ensure_vector(connection)
    names: list[str] = []
    while name := await apply_next(connection, ours):
        names.append(name)
    return names


async def apply_next(connection: AsyncConnection[Any], ours: Sequence[Migration]) -> str | None:
    """One migration in one transaction; what is next is decided only once the lock is ours."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        await connection.execute(CREATE_TABLE)
        todo = missing(ours, await applied_to(connection))
        if not todo:
            return None
        await apply(connection, todo[0])
        return todo[0].name


async def apply(connection: AsyncConnection[Any], migration: Migration) -> None:
    try:
        # unprepared and without parameters, a whole file of statements goes to the server as it is
        await connection.execute(sql.SQL(cast(LiteralString, migration.text)), prepare=False)
    except psycopg.Error as error:
        reason = error.diag.message_primary or str(error)
        raise Refused(
            f"Migration {migration.name} failed ({reason}), and nothing of it was kept: "
            "mend the database or upgrade Gristmill, then try again."
        ) from error
    if connection.info.transaction_status != TransactionStatus.INTRANS:
        raise ValueError(f"{migration.name} ends its own transaction: leave BEGIN and COMMIT out")
    await connection.execute(RECORD, [migration.number, migration.name, migration.checksum])


async def applied_to(connection: AsyncConnection[Any]) -> list[Migration]:
    # a transaction even to read, so that a connection without autocommit is not left inside one
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(EXISTS)
        if (await cursor.fetchone()) != (True,):
            return []
        await cursor.execute(APPLIED)
        return [Migration(*row) for row in await cursor.fetchall()]


def missing(ours: Sequence[Migration], applied: Sequence[Migration]) -> list[Migration]:
    """What is left to apply, once it is certain that the past of the database is our past."""
    newest = max((migration.number for migration in ours), default=0)
    current = max((migration.number for migration in applied), default=0)
    if current > newest:
        raise Refused(f"The database was migrated by a newer Gristmill ({current:04} > {newest:04}): upgrade this one.")
    for migration in strange(ours, applied):
        raise Refused(
            f"Migration {migration.name} was changed after it was applied to this database: "
            "install the Gristmill that migrated it, or start with an empty database."
        )
    done = {migration.number for migration in applied}
    return [migration for migration in ours if migration.number not in done]


def strange(ours: Sequence[Migration], applied: Sequence[Migration]) -> list[Migration]:
    """What was applied and is not what we have under that number."""
    checksums = {migration.number: migration.checksum for migration in ours}
    return [
        migration
        for migration in applied
        if migration.checksum not in (checksums.get(migration.number), TWINS.get(migration.number))
    ]


def refuse_old_server(connection: AsyncConnection[Any]) -> None:
    found = connection.info.server_version // 10_000
    if found < OLDEST_SERVER:
        raise Refused(f"The server is PostgreSQL {found} and Gristmill needs {OLDEST_SERVER} or newer: upgrade it.")


def refuse_old_vector(version: str | None) -> None:
    if version is not None and tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST_VECTOR:
        raise Refused(
            f"The server has pgvector {version} and Gristmill needs 0.8 or newer: upgrade it there, then ask an "
            "administrator to run ALTER EXTENSION vector UPDATE."
        )


async def ensure_vector(connection: AsyncConnection[Any]) -> None:
    """The one thing a migration may need that an ordinary user cannot always create."""
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        # IF NOT EXISTS is no protection against another session that creates it at the same moment
        await cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        await cursor.execute(VECTOR)
        installed, available = await cursor.fetchone() or (None, None)
        refuse_old_vector(installed or available)
        if installed:
            return
        if not available:
            raise Refused(
                "The server does not have pgvector: install it there (on Debian, the package "
                "postgresql-NN-pgvector), then ask an administrator to run CREATE EXTENSION vector."
            )
        try:
            await cursor.execute("CREATE EXTENSION vector")
        except psycopg.Error as error:
            reason = error.diag.message_primary or str(error)
            raise Refused(
                f"This user may not install pgvector into the database ({reason}): "
                "ask an administrator to run CREATE EXTENSION vector."
            ) from error
