"""Waits for a database that is away."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from gristmill.db.pool import Database
from gristmill.errors import GristmillError

PAUSE = 1.0  # seconds between attempts


async def outlast_outage(db: Database, warn: Callable[[str], None]) -> None:
    """Say that the database does not answer, start it again if it is ours, and let some time pass."""
    warn(f"The database at {db.shown} does not answer: this goes on when it is back.")
    with suppress(GristmillError):
        await db.revive()
    await asyncio.sleep(PAUSE)
