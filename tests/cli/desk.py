"""What tests of the command line have in common."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from gristmill.db import Database, Tx

EXAMPLES = Path(__file__).parents[2] / "examples"
MILL = f"{EXAMPLES}/mill.py:handlers"


def within(url: str, work: Callable[[Tx], Awaitable[Any]]) -> Any:
    """Do something in one transaction."""

    async def done() -> Any:
        async with Database(url) as db, db.transaction() as tx:
            return await work(tx)

    return asyncio.run(done())
