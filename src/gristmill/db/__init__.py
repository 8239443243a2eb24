"""The database: where it is, how to talk to it, and what its tables look like."""

from gristmill.db.pool import Connection, Database, open_database
from gristmill.db.sql import Query, queries
from gristmill.db.tx import Row, Tx

__all__ = ["Connection", "Database", "Query", "Row", "Tx", "open_database", "queries"]
