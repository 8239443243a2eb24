"""The databases of tests: each test has one of its own, as new. It is made, or cleared, while another test runs.

To make one is to copy a thousand files, and takes the server 26 ms with its end. Most tests write into a few tables, so
a database that was used is cleared if that is all that happened to it: the server counts the rows that were written in
each table, also in those of its own. Indexes that a test made are dropped. A test that changed anything else in the
schema, gathered statistics or did anything else that is not simply a row leaves a database that is dropped.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from server_sessions import SESSIONS, has_ended

OLDEST = 150_000  # older servers copy in one way only, and count rows later
CLEARED_AT_ONCE = 24  # tables; to drop the database costs no more
# bytes of a table whose rows are deleted: to truncate it costs the server a file for each index, and all kept sessions
# their plans, but the place of deleted rows stays taken
SMALL = 4 * 8192
OTHERS = """
  FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL (%s::int[])
"""
END_OTHERS = "SELECT count(pg_terminate_backend(pid, 10000))" + OTHERS
# one that ended by itself before it could be told to has gone, too
HAVE_OTHERS_GONE = "SELECT count(*) = 0" + OTHERS
WRITTEN = """
SELECT oid, relnamespace = 'pg_catalog'::regnamespace, pg_relation_size(oid) FROM pg_class
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
# the number of the next transaction: rows that are written later have this number, or one above
MOMENT = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
NEW_INDEXES = "SELECT indexrelid::regclass::text, indrelid FROM pg_index WHERE age(xmin) <= age(%s::xid)"
# of the server's own tables that know of an index: all rows, and those that are newer than a moment
INDEX_CATALOGS = " UNION ALL ".join(
    f"SELECT {name!r}::regclass::oid, count(*), count(*) FILTER (WHERE age(xmin) <= age(%(since)s::xid)) FROM {name}"
    for name in ("pg_class", "pg_attribute", "pg_index", "pg_depend")
)
# indexes of other kinds suffer from rows that are gone and still there
ODDLY_INDEXED = """
SELECT DISTINCT indrelid FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
 WHERE amname <> 'btree'
"""


@dataclass
class Schema:
    """What a cleared database must be like: the rows of the template, and who refers to whom."""

    names: dict[int, str]
    rows: dict[int, bytes]  # of the tables that are not empty
    referring: dict[int, set[int]]
    sequences: dict[int, tuple[int | None, int]]
    oddly_indexed: set[int]
    catalogs: dict[int, int]  # rows of those that know of an index

    @classmethod
    def read(cls, inside: psycopg.Connection) -> "Schema":
        names = dict(inside.execute(TABLES).fetchall())
        rows = {oid: copied for oid, name in names.items() if (copied := copy_out(inside, name))}
        referring: dict[int, set[int]] = {}
        for referred, by in inside.execute(REFERENCES):
            referring.setdefault(referred, set()).add(by)
        sequences = {oid: (last, start) for oid, last, start in inside.execute(SEQUENCES)}
        oddly_indexed = {oid for (oid,) in inside.execute(ODDLY_INDEXED)}
        catalogs = {oid: count for oid, count, _ in inside.execute(INDEX_CATALOGS, {"since": "3"})}  # type: ignore[arg-type]
        return cls(names, rows, referring, sequences, oddly_indexed, catalogs)

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
    insides: dict[str, psycopg.Connection] = field(default_factory=dict[str, psycopg.Connection])
    new_since: dict[str, str] = field(default_factory=dict[str, str])  # the moment when a database was last as new
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
        self.new_since[name] = ask(self.admin, MOMENT)
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

    def drop(self, name: str) -> None:
        """The server waits until the last connection has gone."""
        SESSIONS.end(self.find_url(name))
        if inside := self.insides.pop(name, None):
            inside.close()
        self.new_since.pop(name, None)
        drop(self.admin, name)

    def clear_or_drop(self, name: str) -> None:
        if self.clears and exists(self.admin, name) and self.clear(name):
            self.clean.append(name)
        else:
            self.drop(name)

    def find_url(self, name: str) -> str:
        """The URL by which tests connect to it."""
        return in_database(self.server, name, self.owner)

    def connect(self, name: str) -> psycopg.Connection:
        """A session that clears this database each time: a new one would have to read the catalogs first."""
        inside = self.insides.pop(name, None)
        if inside is not None and has_ended(inside.pgconn):
            inside = inside.close()
        if inside is None:
            inside = psycopg.connect(in_database(self.server, name), autocommit=True, prepare_threshold=0)
            inside.execute("SET session_replication_role = replica")  # no trigger, and nobody asks who refers to it
        self.insides[name] = inside
        return inside

    def clear(self, name: str) -> bool:
        """Whether it is as new again."""
        inside = self.connect(name)
        # whoever ends tells the server, as its last act, what it wrote
        kept = SESSIONS.list_pids(self.find_url(name))
        ask(inside, END_OTHERS, [kept])
        if not (ask(inside, HAVE_OTHERS_GONE, [kept]) and ask(inside, IS_PLAIN)):
            return False
        written = inside.execute(WRITTEN).fetchall()
        schema = self.read_schema()
        catalogs = {oid for oid, is_catalog, _ in written if is_catalog}
        tables = {oid: size for oid, is_catalog, size in written if not is_catalog}
        if not (tables.keys() <= schema.names.keys() and catalogs <= schema.catalogs.keys()):
            return False
        indexed = drop_new_indexes(inside, schema, self.new_since[name]) if catalogs else set[int]()
        if indexed is None or not empty(inside, schema, tables, indexed):
            return False
        self.new_since[name] = ask(inside, MOMENT)
        return True

    def read_schema(self) -> Schema:
        """Of a database that nobody has used: with the rows of the template."""
        if self.schema is None:
            name = self.make()
            with psycopg.connect(in_database(self.server, name), autocommit=True) as inside:
                self.schema = Schema.read(inside)
            drop(self.admin, name)
        return self.schema


def drop_new_indexes(inside: psycopg.Connection, schema: Schema, since: str) -> set[int] | None:
    """The tables on which they were; None if more is left in the catalogs than was in the template."""
    tables = set[int]()
    for name, table in inside.execute(NEW_INDEXES, [since]).fetchall():
        try:
            inside.execute(f"DROP INDEX {name}", prepare=False)
        except psycopg.errors.DependentObjectsStillExist:  # it is that of a constraint
            return None
        tables.add(table)
    left = inside.execute(INDEX_CATALOGS, {"since": since}).fetchall()  # type: ignore[arg-type]
    return tables if all(count == schema.catalogs[oid] and not new for oid, count, new in left) else None


def empty(inside: psycopg.Connection, schema: Schema, written: Mapping[int, int], indexed: set[int]) -> bool:
    """Whether all tables have the rows of the template again. Where an index was made, the server counted the rows."""
    large = {oid for oid, size in written.items() if size > SMALL or oid in schema.oddly_indexed} | indexed
    # rows of a table to which half of all others refer are few: these are deleted
    truncated = schema.list_with(oid for oid in large if len(schema.list_with([oid])) <= CLEARED_AT_ONCE)
    if len(truncated) > CLEARED_AT_ONCE or not indexed <= truncated:
        return False
    steps = [f"DELETE FROM {schema.names[oid]}" for oid in written if oid not in truncated]
    if truncated:
        steps.append(f"TRUNCATE {', '.join(schema.names[oid] for oid in truncated)}")
    for oid, last, _ in inside.execute(SEQUENCES).fetchall():
        before, start = schema.sequences[oid]
        if last != before:
            steps.append(f"SELECT setval({oid}::regclass, {before or start}, {before is not None})")
    inside.execute("; ".join(steps), prepare=False)  # type: ignore[arg-type]
    for oid in {*truncated, *written} & schema.rows.keys():
        copy_in(inside, schema.names[oid], schema.rows[oid])
    # what was counted until now must not be held against the next test
    inside.execute("SELECT pg_stat_force_next_flush()")
    inside.execute("SELECT pg_stat_reset()")
    return True


def ask(connection: psycopg.Connection, query: str, given: Sequence[Any] | None = None) -> Any:
    (answer,) = connection.execute(query, given).fetchone() or (None,)  # type: ignore[arg-type]
    return answer


def exists(admin: psycopg.Connection, name: str) -> bool:
    return ask(admin, "SELECT 1 FROM pg_database WHERE datname = %s", [name]) is not None


def drop(admin: psycopg.Connection, name: str) -> None:
    admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def in_database(url: str, name: str, user: str | None = None) -> str:
    """The same server, another database, and perhaps another user."""
    parts = urlsplit(url)
    place = parts.netloc if user is None or user == parts.username else f"{user}@{parts.netloc.rpartition('@')[2]}"
    return f"{parts.scheme}://{place}/{name}" + (f"?{parts.query}" if parts.query else "")
