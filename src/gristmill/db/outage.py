"""Waits for a database that is away."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from gristmill.db.pool import Database
from gristmill.errors import GristmillError, NoSpace, Unreachable

PAUSE = 1.0  # seconds between attempts


async def outlast_outage(db: Database, warn: Callable[[str], None], error: Unreachable) -> None:
    """Say what is wrong with the database, start it again if it is ours, and let some time pass."""
    if isinstance(error, NoSpace):
        warn(f"The disk of the database at {db.shown} is full: this goes on when there is space again.")
    else:
        warn(f"The database at {db.shown} does not answer: this goes on when it is back.")
    with suppress(GristmillError):
        await db.revive()
    await asyncio.sleep(PAUSE)
