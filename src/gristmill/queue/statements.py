"""The queue's named statements, and PostgreSQL array literals for them."""

from collections.abc import Iterable

from gristmill.db import queries

SQL = queries("gristmill.queue", "queue.sql")
LEASE_LOST = "GM001"  # what fence() raises
CHANNEL = "gristmill"


def array(numbers: Iterable[int]) -> str:
    """An array literal: five times faster than adapting a list, and claims carry hundreds."""
    return "{" + ",".join(map(str, numbers)) + "}"
