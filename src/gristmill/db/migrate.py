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
LOCK_WAIT = "5s"  # for a table that others use: as long as we wait, everybody else waits behind us
ATTEMPTS = 12
REPLACED = re.compile(r"Use DROP FUNCTION (.+) first")  # what the server says of a function that it cannot replace
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
    functions text[] NOT NULL,
    PRIMARY KEY (room, name)
);
ALTER TABLE gristmill_definition ADD COLUMN IF NOT EXISTS version text"""
FOUND = """
SELECT to_regclass('gristmill_migration') IS NOT NULL,
       EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('gristmill_migration') AND attname = 'room')
"""
APPLIED = "SELECT room, number, name, checksum FROM gristmill_migration ORDER BY applied_at, room, number"
# a database that was made before definitions had a version has no such column
DEFINED = "SELECT room, name, checksum, functions, to_jsonb(one) ->> 'version' FROM gristmill_definition one"
VIEWS = "SELECT DISTINCT unnest(views) FROM gristmill_definition"
RECORD = "INSERT INTO gristmill_migration (room, number, name, checksum) VALUES (%s, %s, %s, %s)"
FORGET = "DELETE FROM gristmill_definition"
DEFINE = """
INSERT INTO gristmill_definition (room, name, checksum, views, functions, version) VALUES (%s, %s, %s, %s, %s, %s)
"""
# functions that are created now look for tables here, and for temporary ones of a caller last of all
PIN_SEARCH_PATH = """
SELECT set_config('search_path', (SELECT string_agg(quote_ident(name), ', ') FROM unnest(current_schemas(false)) name)
                                 || ', pg_temp', true)
"""
SHARE_VIEW = "SELECT share(%s, 'SELECT')"
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
    unknown: tuple[str, ...] = ()  # migrations and definitions of a newer program
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
    functions: frozenset[str] = frozenset()
    version: str | None = None  # of the program that applied the definitions
    older: bool = False


async def schema_state(connection: AsyncConnection[Any], schema: Schema | None = None) -> SchemaState:
    """Compare without changing anything."""
    ours = schema or read_schema()
    applied = await read_applied(connection)
    outdated = find_outdated(ours, applied, await look_at_server(connection))
    newer = outdated if is_older(ours.version, applied.version) else []
    return SchemaState(
        applied=len(applied.migrations),
        pending=tuple(map(str, (*find_missing(ours, applied), *(() if newer else outdated)))),
        unknown=tuple(map(str, (*find_unknown(ours, applied), *newer))),
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
    for _ in range(ATTEMPTS):
        try:
            return await apply_all(connection, ours)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            continue  # whoever waits behind us for these tables has its turn first
    raise Refused("The tables are in use by long transactions: end them (gristmill doctor names them), then try again.")


async def find_work(connection: AsyncConnection[Any], ours: Schema) -> tuple[list[Migration], list[Definition]] | None:
    """The migrations and the definitions to apply; None if the database has them all."""
    applied = await read_applied(connection)
    refuse_strange(ours, applied)
    missing = find_missing(ours, applied)
    outdated = find_outdated(ours, applied, await look_at_server(connection))
    if outdated and is_older(ours.version, applied.version):
        raise Refused(
            f"The functions and views of the database are of Gristmill {applied.version}, and this is {ours.version}: "
            "upgrade this one."
        )
    return (missing, outdated) if missing or outdated else None


async def apply_all(connection: AsyncConnection[Any], ours: Schema) -> list[str]:
    """Everything in one transaction; what is to be done is decided only when the lock is ours."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        work = await find_work(connection, ours)
        if work is None:
            return []
        missing, outdated = work
        await connection.execute(CREATE_TABLES, prepare=False)  # several statements at once
        await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT}'")
        await connection.execute(PIN_SEARCH_PATH)
        renews_views = bool(missing) or any(one.name == "views" for one in outdated)
        if renews_views:
            await drop_views(connection)
        for one in missing:
            await apply(connection, one)
            await connection.execute(RECORD, [one.room, one.number, one.name, one.checksum])
        await apply_definitions(connection, ours, outdated, renews_views=renews_views)
        return [str(one) for one in (*missing, *outdated)]


async def apply_definitions(
    connection: AsyncConnection[Any], ours: Schema, outdated: Sequence[Definition], *, renews_views: bool
) -> None:
    """Apply anew what has changed; of views all, because one may look at another."""
    before, server = (await read_applied(connection)).functions, await look_at_server(connection)
    for one in ours.definitions:
        if one in outdated or (renews_views and one.name == "views"):
            await (apply_functions if one.name == "functions" else apply)(connection, one)
    if renews_views and "share" in functions_of(ours):
        for view in (view for one in ours.definitions for view in one.views):
            await connection.execute(SHARE_VIEW, [view])
    await connection.execute(FORGET)
    for one in ours.definitions:
        mark = mark_of(one, server)
        await connection.execute(DEFINE, [one.room, one.name, mark, one.views, one.functions, ours.version])
    for name in before - functions_of(ours):
        await connection.execute(sql.SQL("DROP FUNCTION IF EXISTS {}").format(sql.Identifier(name)))


async def apply_functions(connection: AsyncConnection[Any], file: Definition) -> None:
    """A function whose parameters or results changed cannot be replaced: the server names it, and we drop it first."""
    while True:
        try:
            async with connection.transaction():
                await run_file(connection, file)
            return
        except psycopg.errors.InvalidFunctionDefinition as error:
            found = REPLACED.search(error.diag.message_hint or "")
            if found is None:
                raise explain_failure(file, error) from error
            await connection.execute(sql.SQL(cast(LiteralString, f"DROP FUNCTION {found[1]}")))
        except psycopg.Error as error:
            raise explain_failure(file, error) from error


def functions_of(schema: Schema) -> frozenset[str]:
    return frozenset(name for one in schema.definitions for name in one.functions)


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
    try:
        await run_file(connection, file)
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
        raise
    except psycopg.Error as error:
        raise explain_failure(file, error) from error


def explain_failure(file: Migration | Definition, error: psycopg.Error) -> Refused:
    reason = error.diag.message_primary or str(error)
    return Refused(
        f"Migration {file} failed ({reason}), and nothing was changed: "
        "mend the database or upgrade Gristmill, then try again."
    )


async def run_file(connection: AsyncConnection[Any], file: Migration | Definition) -> None:
    text = file.text
    if connection.info.server_version < INVOKER_VIEWS:
        text = text.replace(" WITH (security_invoker)", "")  # such a server is only used without row-level security
    # unprepared and without parameters, a whole file of statements goes to the server as it is
    await connection.execute(sql.SQL(cast(LiteralString, text)), prepare=False)
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
        rows = await cursor.fetchall()
        functions = frozenset(name for row in rows for name in row[3])
        version = next((row[4] for row in rows), None)  # all of them were written down at once
        return Applied(migrations, frozenset(row[:3] for row in rows), functions, version)


@dataclass(frozen=True)
class ServerTraits:
    """What definitions depend on beside their text."""

    has_tenant: bool
    has_invoker_views: bool


async def look_at_server(connection: AsyncConnection[Any]) -> ServerTraits:
    return ServerTraits(await has_tenant(connection), connection.info.server_version >= INVOKER_VIEWS)


def mark_of(definition: Definition, server: ServerTraits) -> str:
    """Its checksum, and what it was applied for: with the role or without, with views of the caller's rights or not."""
    match definition.name:
        case "access" | "views" if server.has_tenant:
            return f"{definition.checksum} {TENANT} {server.has_invoker_views}"
        case "views":
            return f"{definition.checksum} {server.has_invoker_views}"
        case _:
            return definition.checksum


def find_missing(ours: Schema, applied: Applied) -> list[Migration]:
    done = {(migration.room, migration.number) for migration in applied.migrations}
    return [migration for migration in ours.migrations if (migration.room, migration.number) not in done]


def find_outdated(ours: Schema, applied: Applied, server: ServerTraits) -> list[Definition]:
    """The definitions that the database does not have in this form."""
    return [one for one in ours.definitions if (one.room, one.name, mark_of(one, server)) not in applied.definitions]


def is_older(version: str, than: str | None) -> bool:
    """Whether a program is older than the one that applied the definitions, and must leave them as they are.

    During an upgrade, programs of both versions start. The older ones must not take back what the newer ones need.
    """
    return than is not None and read_version(version) < read_version(than)


def read_version(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


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
