"""Keeps the server's sessions of closed connections for the next connections to the same database.

A new session costs the server more than most tests ask of it: it forks, reads the catalogs, plans each statement and
compiles each function anew. In a worker a session serves for hours, and here, too: a connection that is closed leaves
its session to the next connection that would begin the same one. Before that, the session forgets all but its plans.
A session ends with its connection where it cannot forget, and where its user left it in the middle of anything.
"""

import os
import select
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from psycopg import pq
from psycopg.abc import ConnParam
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus, TransactionStatus
from typing_extensions import override

from gristmill.db import pool
from gristmill.db.pool import Connection

MOST = 12  # sessions that wait for a connection, of each database
# It says whether somebody else prepared statements: psycopg knows its own, and goes on with them.
# The server learns which rows were written: `databases` asks for it.
FORGET = b"""
SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; CLOSE ALL; DISCARD TEMP; DISCARD SEQUENCES;
SELECT EXISTS (SELECT FROM pg_prepared_statements WHERE from_sql), pg_advisory_unlock_all(), pg_stat_force_next_flush()
"""
Terms = Mapping[str, Any]  # all that a server is told when a session begins
Place = tuple[Any, ...]


def place_of(terms: Terms) -> Place:
    """A database, and the way to it: nothing is kept that goes through a proxy of a test."""
    return tuple(terms.get(name) for name in ("host", "hostaddr", "port", "dbname"))


@dataclass
class Kept:
    """A session that waits, and the statements that it has prepared."""

    terms: Terms
    pgconn: pq.abc.PGconn
    prepared: Any


@dataclass
class Sessions:
    """The sessions that wait, of the databases that this process lends to its tests."""

    is_open: bool = False
    process: int = field(default_factory=os.getpid)
    _lent: set[Place] = field(default_factory=set[Place])
    _waiting: dict[Place, list[Kept]] = field(default_factory=dict[Place, list[Kept]])

    def lend(self, url: str) -> None:
        """A test has this database from now on."""
        self._lent.add(place_of(conninfo_to_dict(url)))

    def give_back(self, url: str) -> None:
        self._lent.discard(place_of(conninfo_to_dict(url)))

    def keep_those_with(self, terms: Terms) -> bool:
        """Whether a test of this process has the database; a copy of the process shares its connections with it."""
        return self.is_open and os.getpid() == self.process and place_of(terms) in self._lent

    def put(self, kept: Kept) -> None:
        waiting = self._waiting.setdefault(place_of(kept.terms), [])
        waiting.append(kept)
        if len(waiting) > MOST:
            waiting.pop(0).pgconn.finish()

    def take(self, terms: Terms) -> Kept | None:
        """The session of these terms that was used last; those that the server ended are put away."""
        waiting = self._waiting.get(place_of(terms), [])
        for kept in reversed(waiting):
            if kept.terms == terms:
                waiting.remove(kept)
                if not has_ended(kept.pgconn):
                    return kept
                kept.pgconn.finish()
        return None

    def list_pids(self, url: str) -> list[int]:
        """The server's processes that wait for a connection to this database."""
        return [kept.pgconn.backend_pid for kept in self._waiting.get(place_of(conninfo_to_dict(url)), [])]

    def end(self, url: str) -> None:
        """Before its database is dropped."""
        for kept in self._waiting.pop(place_of(conninfo_to_dict(url)), []):
            kept.pgconn.finish()


SESSIONS = Sessions()


def has_ended(pgconn: pq.abc.PGconn) -> bool:
    """Whether the server hung up: a session that waits hears nothing but its farewell."""
    look = select.poll()
    look.register(pgconn.socket, select.POLLIN)
    return bool(look.poll(0))


class KeptConnection(Connection):
    """A connection that goes on with a session that another one left, and leaves its own, where it may."""

    _terms: Terms = {}  # noqa: RUF012 nobody changes it

    @override
    @classmethod
    async def connect(
        cls, conninfo: str = "", *, autocommit: bool = False, prepare_threshold: int | None = 5, **given: ConnParam
    ) -> Self:
        terms = conninfo_to_dict(conninfo, **given)
        kept = SESSIONS.take(terms) if SESSIONS.keep_those_with(terms) else None
        if kept is None:
            made = await super().connect(conninfo, autocommit=autocommit, prepare_threshold=prepare_threshold, **given)
        else:
            made = cls(kept.pgconn)
            made._autocommit, made._prepared, made.prepare_threshold = autocommit, kept.prepared, prepare_threshold
        made._terms = terms
        return made

    @override
    async def close(self) -> None:
        if self.closed or not self._forget():
            return await super().close()
        SESSIONS.put(Kept(self._terms, self.pgconn, self._prepared))
        self.pgconn = pq.PGconn()  # one that leads nowhere: this connection is closed
        self._closed = True
        return None

    def _forget(self) -> bool:
        """Whether the session is as new. The loop waits for it: whoever closes a connection is not cancelled in it."""
        is_idle = self.pgconn.transaction_status == TransactionStatus.IDLE and not self.lock.locked()
        if not is_idle or self._pipeline or self.has_ended or not SESSIONS.keep_those_with(self._terms):
            return False
        last = self.pgconn.exec_(FORGET)
        while self.pgconn.notifies():  # said to the one who listened before
            pass
        return last.status == ExecStatus.TUPLES_OK and last.get_value(0, 0) == b"f"


def keep_sessions() -> None:
    pool.Connection = KeptConnection
    SESSIONS.is_open = True
