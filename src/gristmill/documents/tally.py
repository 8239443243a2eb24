"""Keeps the count of documents short: each change adds a row, and many rows become one."""

from gristmill.db import Tx, queries
from gristmill.ids import ScopeId

SQL = queries("gristmill.documents", "tally.sql")
MOST = 256  # rows of a scope that are as well added up by whoever asks


async def fold_tally(tx: Tx, scope: ScopeId, *, most: int = MOST) -> None:
    """Make one row of the counts of a scope if there are many."""
    await tx.execute(SQL["fold_tally"], scope=scope, most=most)
