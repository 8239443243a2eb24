"""The databases of tests: each test has one of its own, as new. It is made, or cleared, while another test runs.

To make one is to copy a thousand files, and takes the server 26 ms with its end. Most tests write into a few tables, so
a database that was used is cleared if that is all that happened to it: the server counts the rows that were written in
each table, also in those of its own. A test that changed the schema, gathered statistics or did anything else that is
not simply a row leaves a database that is dropped.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from server_sessions import SESSIONS

OLDEST = 150_000  # older servers copy in one way only, and count rows later
CLEARED_AT_ONCE = 24  # tables; to drop the database costs no more
END_OTHERS = """
SELECT bool_and(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL (%s::int[])
"""
WRITTEN = """
SELECT oid, relnamespace = 'pg_catalog'::regnamespace FROM pg_class
 WHERE relkind IN ('r', 'm') AND NOT relisshared
   AND pg_stat_get_tuples_inserted(oid) + pg_stat_get_tuples_updated(oid) + pg_stat_get_tuples_deleted(oid) > 0
"""
# of a database itself, and beside it
IS_PLAIN = """
SELECT datconnlimit = -1 AND datallowconn AND NOT datistemplate AND datname LIKE 'gristmill_test_%'
   AND NOT EXISTS (SELECT FROM pg_db_role_setting s WHERE s.setdatabase = d.oid)
   AND NOT EXISTS (SELECT FROM pg_prepared_xacts WHERE database = datname)
  FROM pg_database d WHERE datname = current_database()
"""
TABLES = """
SELECT oid, oid::regclass::text FROM pg_class
 WHERE relkind = 'r' AND NOT relisshared AND relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
"""
REFERENCES = "SELECT DISTINCT confrelid, conrelid FROM pg_constraint WHERE contype = 'f' AND confrelid <> conrelid"
SEQUENCES = "SELECT seqrelid, pg_sequence_last_value(seqrelid), seqstart FROM pg_sequence"


@dataclass
class Schema:
    """What a cleared database must be like: the rows of the template, and who refers to whom."""

    names: dict[int, str]
    rows: dict[int, bytes]  # of the tables that are not empty
    referring: dict[int, set[int]]
    sequences: dict[int, tuple[int | None, int]]

    @classmethod
    def read(cls, inside: psycopg.Connection) -> "Schema":
        names = dict(inside.execute(TABLES).fetchall())
        rows = {oid: copied for oid, name in names.items() if (copied := copy_out(inside, name))}
        referring: dict[int, set[int]] = {}
        for referred, by in inside.execute(REFERENCES):
            referring.setdefault(referred, set()).add(by)
        sequences = {oid: (last, start) for oid, last, start in inside.execute(SEQUENCES)}
        return cls(names, rows, referring, sequences)

    def list_with(self, tables: Iterable[int]) -> set[int]:
        """These tables, and all that refer to them: the server empties them together or not at all."""
        found, left = set[int](), list(tables)
        while left:
            table = left.pop()
            if table not in found:
                found.add(table)
                left += self.referring.get(table, ())
        return found


def copy_out(inside: psycopg.Connection, name: str) -> bytes:
    with inside.cursor() as cursor, cursor.copy(f"COPY {name} TO STDOUT") as out:  # type: ignore[arg-type]
        return b"".join(bytes(part) for part in out)


def copy_in(inside: psycopg.Connection, name: str, rows: bytes) -> None:
    with inside.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as into:  # type: ignore[arg-type]
        into.write(rows)


@dataclass
class Databases:
    """Prepares the database of the next test, and puts away that of the last one, while a test runs."""

    thread: ThreadPoolExecutor
    admin: psycopg.Connection
    server: str
    owner: str
    template: str
    clean: list[str] = field(default_factory=list)
    made: int = 0
    next: Future[str] = field(init=False)
    put_away: Future[None] | None = None

    def __post_init__(self) -> None:
        self.copies_files = self.clears = self.admin.info.server_version >= OLDEST
        if self.clears:
            is_superuser = self.admin.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
            self.clears = is_superuser == (True,)
        self.schema: Schema | None = None
        self.next = self.thread.submit(self.prepare)

    def prepare(self) -> str:
        """A database as new."""
        return self.clean.pop() if self.clean else self.make()

    def make(self) -> str:
        name = f"gristmill_test_{uuid4().hex[:12]}"
        named = map(sql.Identifier, (name, self.owner, self.template))
        clone = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(*named)
        # by copying files, which in memory takes less than half the time of the default; 14 knows no choice
        self.admin.execute(clone + sql.SQL(" STRATEGY FILE_COPY") if self.copies_files else clone)
        self.made += 1
        return name

    def take(self) -> str:
        name, self.next = self.next.result(), self.thread.submit(self.prepare)
        return name

    def give_back(self, name: str) -> None:
        """Only one is put away at a time: disks are finite."""
        self.wait()
        self.put_away = self.thread.submit(self.clear_or_drop, name)

    def wait(self) -> None:
        if self.put_away is not None:
            self.put_away.result()

    def close(self) -> None:
        self.wait()
        for name in (self.next.result(), *self.clean):
            self.drop(name)

    def find_url(self, name: str) -> str:
        """The URL by which tests connect to it."""
        return in_database(self.server, name, self.owner)

    def drop(self, name: str) -> None:
        """The server waits until the last connection has gone."""
        SESSIONS.end(self.find_url(name))
        drop(self.admin, name)

    def clear_or_drop(self, name: str) -> None:
        if self.clears and exists(self.admin, name) and self.clear(name):
            self.clean.append(name)
        else:
            self.drop(name)

    def clear(self, name: str) -> bool:
        """Whether it is as new again."""
        with psycopg.connect(in_database(self.server, name), autocommit=True) as inside:
            # whoever ends tells the server, as its last act, what it wrote
            ended = inside.execute(END_OTHERS, [SESSIONS.list_pids(self.find_url(name))]).fetchone()
            if ended == (False,) or inside.execute(IS_PLAIN).fetchone() != (True,):
                return False
            written = inside.execute(WRITTEN).fetchall()
            if any(is_catalog for _, is_catalog in written):
                return False
            schema = self.read_schema()
            tables = [oid for oid, _ in written]
            if not all(oid in schema.names for oid in tables):
                return False
            return self.empty(inside, schema, tables)

    def read_schema(self) -> Schema:
        """Of a database that nobody has used: with the rows of the template."""
        if self.schema is None:
            name = self.make()
            with psycopg.connect(in_database(self.server, name), autocommit=True) as inside:
                self.schema = Schema.read(inside)
            drop(self.admin, name)
        return self.schema

    def empty(self, inside: psycopg.Connection, schema: Schema, written: Sequence[int]) -> bool:
        # rows of a table to which half of all others refer are few: these are deleted
        crowded = [one for one in written if len(schema.list_with([one])) > CLEARED_AT_ONCE]
        together = schema.list_with(one for one in written if one not in crowded)
        if len(together) > CLEARED_AT_ONCE:
            return False
        inside.execute("SET session_replication_role = replica")  # no trigger, and nobody asks who refers to it
        if together:
            inside.execute(sql.SQL("TRUNCATE {}").format(sql.SQL(", ").join(list_names(schema, together))))
        for name in list_names(schema, crowded):
            inside.execute(sql.SQL("DELETE FROM {}").format(name))
        for oid in {*together, *crowded} & schema.rows.keys():
            copy_in(inside, schema.names[oid], schema.rows[oid])
        for oid, last, _ in inside.execute(SEQUENCES).fetchall():
            before, start = schema.sequences[oid]
            if last != before:
                inside.execute("SELECT setval(%s::regclass, %s, %s)", [oid, before or start, before is not None])
        # what was counted until now must not be held against the next test
        inside.execute("SELECT pg_stat_force_next_flush()")
        inside.execute("SELECT pg_stat_reset()")
        return True


def list_names(schema: Schema, tables: Iterable[int]) -> list[sql.SQL]:
    return [sql.SQL(schema.names[oid]) for oid in tables]  # type: ignore[arg-type]


def exists(admin: psycopg.Connection, name: str) -> bool:
    return admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is not None


def drop(admin: psycopg.Connection, name: str) -> None:
    admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def in_database(url: str, name: str, user: str | None = None) -> str:
    """The same server, another database, and perhaps another user."""
    parts = urlsplit(url)
    place = parts.netloc if user is None or user == parts.username else f"{user}@{parts.netloc.rpartition('@')[2]}"
    return f"{parts.scheme}://{place}/{name}" + (f"?{parts.query}" if parts.query else "")
