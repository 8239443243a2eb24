"""Brings a database to the schema that this program knows, in one transaction: all of it or nothing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, cast

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from gristmill.db.roles import TENANT, ensure_tenant, has_tenant
from gristmill.db.schema import Definition, Migration, Schema, read_schema
from gristmill.errors import Refused

OLDEST_SERVER = 14
OLDEST_VECTOR = (0, 8)  # of pgvector: an older one finds only some of the rows that pass a filter, or none
INVOKER_VIEWS = 150_000  # the first server whose views can run with the rights of the user who asks
LOCK = 0x6772_6973_746D  # "gristm": one number for every database, as advisory locks are per database

CREATE_TABLES = """
CREATE TABLE IF NOT EXISTS gristmill_migration (
    room       text NOT NULL,
    number     int NOT NULL,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (room, number)
);
CREATE TABLE IF NOT EXISTS gristmill_definition (
    room     text NOT NULL,
    name     text NOT NULL,
    checksum text NOT NULL,
    views    text[] NOT NULL,
    PRIMARY KEY (room, name)
)"""
FOUND = """
SELECT to_regclass('gristmill_migration') IS NOT NULL,
       EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('gristmill_migration') AND attname = 'room')
"""
APPLIED = "SELECT room, number, name, checksum FROM gristmill_migration ORDER BY applied_at, room, number"
DEFINED = "SELECT room, name, checksum FROM gristmill_definition"
VIEWS = "SELECT DISTINCT unnest(views) FROM gristmill_definition"
RECORD = "INSERT INTO gristmill_migration (room, number, name, checksum) VALUES (%s, %s, %s, %s)"
FORGET = "DELETE FROM gristmill_definition"
DEFINE = "INSERT INTO gristmill_definition (room, name, checksum, views) VALUES (%s, %s, %s, %s)"
VECTOR = """
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')
"""
OLDER = (
    "The database was made by a Gristmill from before the first release, and cannot be taken over: start with an empty "
    "one (another folder in GRISTMILL_DATA, or another database in GRISTMILL_DATABASE_URL) and add the documents again."
)


@dataclass(frozen=True)
class SchemaState:
    """How a database compares with this program."""

    applied: int  # migrations
    pending: tuple[str, ...] = ()  # migrations and definitions that this program has, and the database has not
    unknown: tuple[str, ...] = ()  # migrations of a newer program
    changed: tuple[str, ...] = ()  # migrations that differ from those of this program
    older: bool = False  # made before the first release

    @property
    def fits(self) -> bool:
        return not (self.pending or self.unknown or self.changed or self.older)


@dataclass(frozen=True)
class Applied:
    """What a database says of its own schema."""

    migrations: Sequence[Migration] = ()
    definitions: frozenset[tuple[str, str, str]] = frozenset()
    older: bool = False


async def schema_state(connection: AsyncConnection[Any], schema: Schema | None = None) -> SchemaState:
    """Compare without changing anything."""
    ours = schema or read_schema()
    applied = await read_applied(connection)
    tenant = await has_tenant(connection)
    return SchemaState(
        applied=len(applied.migrations),
        pending=tuple(map(str, (*find_missing(ours, applied), *find_outdated(ours, applied, tenant=tenant)))),
        unknown=tuple(map(str, find_unknown(ours, applied))),
        changed=tuple(map(str, find_changed(ours, applied))),
        older=applied.older,
    )


async def migrate(
    connection: AsyncConnection[Any], schema: Schema | None = None, *, row_security: bool = True
) -> list[str]:
    """Apply what is missing and return its names; of many that try at once, one does it."""
    ours = schema or read_schema()
    refuse_old_server(connection, row_security=row_security)
    if row_security:
        await ensure_tenant(connection)
    if not await find_work(connection, ours):
        return []
    await ensure_vector(connection)
    return await apply_all(connection, ours)


async def find_work(connection: AsyncConnection[Any], ours: Schema) -> tuple[list[Migration], list[Definition]] | None:
    """The migrations and the definitions to apply; None if the database has them all."""
    applied = await read_applied(connection)
    refuse_strange(ours, applied)
    missing = find_missing(ours, applied)
    outdated = find_outdated(ours, applied, tenant=await has_tenant(connection))
    return (missing, outdated) if missing or outdated else None


async def apply_all(connection: AsyncConnection[Any], ours: Schema) -> list[str]:
    """Everything in one transaction; what is to be done is decided only when the lock is ours."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        work = await find_work(connection, ours)
        if work is None:
            return []
        missing, outdated = work
        await connection.execute(CREATE_TABLES, prepare=False)  # two statements at once
        await drop_views(connection)
        await connection.execute(FORGET)
        tenant = await has_tenant(connection)
        for one in missing:
            await apply(connection, one)
            await connection.execute(RECORD, [one.room, one.number, one.name, one.checksum])
        for one in ours.definitions:
            await apply(connection, one)
            await connection.execute(DEFINE, [one.room, one.name, mark_of(one, tenant=tenant), one.views])
        return [str(one) for one in (*missing, *outdated)]


async def drop_views(connection: AsyncConnection[Any]) -> None:
    """A view may stand in the way of a migration, and cannot be replaced by one with other columns."""
    names = [row[0] for row in await (await connection.execute(VIEWS)).fetchall()]
    if not names:
        return
    listed = sql.SQL(", ").join(map(sql.Identifier, names))
    try:
        await connection.execute(sql.SQL("DROP VIEW IF EXISTS {}").format(listed))
    except psycopg.errors.DependentObjectsStillExist as error:
        raise Refused(
            f"The views of Gristmill cannot be renewed ({error.diag.message_detail or error}): drop what you built on "
            "them, migrate, and make it again."
        ) from error


async def apply(connection: AsyncConnection[Any], file: Migration | Definition) -> None:
    text = file.text
    if connection.info.server_version < INVOKER_VIEWS:
        text = text.replace(" WITH (security_invoker)", "")  # such a server is only used without row-level security
    try:
        # unprepared and without parameters, a whole file of statements goes to the server as it is
        await connection.execute(sql.SQL(cast(LiteralString, text)), prepare=False)
    except psycopg.Error as error:
        reason = error.diag.message_primary or str(error)
        raise Refused(
            f"Migration {file} failed ({reason}), and nothing was changed: "
            "mend the database or upgrade Gristmill, then try again."
        ) from error
    if connection.info.transaction_status != TransactionStatus.INTRANS:
        raise ValueError(f"{file} ends its own transaction: leave BEGIN and COMMIT out")


async def read_applied(connection: AsyncConnection[Any]) -> Applied:
    # a transaction even to read, so that a connection without autocommit is not left inside one
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(FOUND)
        there, has_rooms = await cursor.fetchone() or (False, False)
        if not there:
            return Applied()
        if not has_rooms:
            return Applied(older=True)
        await cursor.execute(APPLIED)
        migrations = [Migration(*row) for row in await cursor.fetchall()]
        await cursor.execute(DEFINED)
        return Applied(migrations, frozenset(await cursor.fetchall()))


def mark_of(definition: Definition, *, tenant: bool) -> str:
    """Its checksum; access rules are applied anew, too, when the role that they are for has come."""
    return f"{definition.checksum} {TENANT}" if tenant and definition.name == "access" else definition.checksum


def find_missing(ours: Schema, applied: Applied) -> list[Migration]:
    done = {(migration.room, migration.number) for migration in applied.migrations}
    return [migration for migration in ours.migrations if (migration.room, migration.number) not in done]


def find_outdated(ours: Schema, applied: Applied, *, tenant: bool) -> list[Definition]:
    """The definitions that the database does not have in this form."""
    return [
        one for one in ours.definitions if (one.room, one.name, mark_of(one, tenant=tenant)) not in applied.definitions
    ]


def find_unknown(ours: Schema, applied: Applied) -> list[Migration]:
    known = {(migration.room, migration.number) for migration in ours.migrations}
    return [migration for migration in applied.migrations if (migration.room, migration.number) not in known]


def find_changed(ours: Schema, applied: Applied) -> list[Migration]:
    """The applied migrations that are not what we have under that number."""
    known = {(migration.room, migration.number): migration.checksum for migration in ours.migrations}
    return [one for one in applied.migrations if known.get((one.room, one.number), one.checksum) != one.checksum]


def refuse_strange(ours: Schema, applied: Applied) -> None:
    """The past of the database must be our own past."""
    if applied.older:
        raise Refused(OLDER)
    for migration in find_unknown(ours, applied):
        raise Refused(f"The database was migrated by a newer Gristmill ({migration}): upgrade this one.")
    for migration in find_changed(ours, applied):
        raise Refused(
            f"Migration {migration} was changed after it was applied to this database: "
            "install the Gristmill that migrated it, or start with an empty database."
        )


def refuse_old_server(connection: AsyncConnection[Any], *, row_security: bool) -> None:
    number = connection.info.server_version
    found = number // 10_000
    if found < OLDEST_SERVER:
        raise Refused(f"The server is PostgreSQL {found} and Gristmill needs {OLDEST_SERVER} or newer: upgrade it.")
    if row_security and number < INVOKER_VIEWS:
        raise Refused(
            f"PostgreSQL {found} cannot keep clients apart in views: upgrade it to {INVOKER_VIEWS // 10_000} or newer, "
            "or set GRISTMILL_ROW_SECURITY=false if all who use this database may see everything."
        )


def refuse_old_vector(version: str | None) -> None:
    if version is not None and tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST_VECTOR:
        raise Refused(
            f"The server has pgvector {version} and Gristmill needs 0.8 or newer: upgrade it there, then ask an "
            "administrator to run ALTER EXTENSION vector UPDATE."
        )


async def ensure_vector(connection: AsyncConnection[Any]) -> None:
    """The one extension that a migration needs, and that an ordinary user cannot always create."""
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
