"""The database: where it runs, how to talk to it, and how its tables are made."""

from gristmill.db.checks import examine_database, explain_full_disk, find_machine_troubles
from gristmill.db.embedded import Embedded, EmbeddedStatus
from gristmill.db.migrate import SchemaState, schema_state
from gristmill.db.migrate import migrate as bring_up_to_date
from gristmill.db.notices import Notices
from gristmill.db.outage import outlast_outage
from gristmill.db.pool import Connection, Database, Viewpoint, open_database, plainly, without_secret
from gristmill.db.programs import programs_for
from gristmill.db.rejections import explain_rejection
from gristmill.db.sql import Query, array, bytes_array, escape_for_copy, queries, text_array, with_numbers
from gristmill.db.tx import Column, Tx
from gristmill.db.vector import Vector, read_vector

__all__ = [
    "Column",
    "Connection",
    "Database",
    "Embedded",
    "EmbeddedStatus",
    "Notices",
    "Query",
    "SchemaState",
    "Tx",
    "Vector",
    "Viewpoint",
    "array",
    "bring_up_to_date",
    "bytes_array",
    "escape_for_copy",
    "examine_database",
    "explain_full_disk",
    "explain_rejection",
    "find_machine_troubles",
    "open_database",
    "outlast_outage",
    "plainly",
    "programs_for",
    "queries",
    "read_vector",
    "schema_state",
    "text_array",
    "with_numbers",
    "without_secret",
]
