"""What tests of the command line have in common."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill.db import Database, Tx

EXAMPLES = Path(__file__).parents[2] / "examples"
MILL = f"{EXAMPLES}/mill.py:handlers"
SLOW = """
import asyncio
from dataclasses import dataclass
from typing import ClassVar

from gristmill.queue import bind, on


@dataclass(frozen=True)
class Sleep:
    kind: ClassVar[str] = "slow.sleep"
    seconds: float


async def sleep(letter):
    await asyncio.sleep(letter.seconds)


handlers = bind(on(Sleep, sleep))
"""
PATIENCE = 120.0  # seconds for what comes true sooner wherever it comes true at all


@dataclass(frozen=True)
class Said:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Said]


def within(url: str, work: Callable[[Tx], Awaitable[Any]]) -> Any:
    """Do something in one transaction."""

    async def run_work() -> Any:
        async with Database(url) as db, db.transaction() as tx:
            return await work(tx)

    return asyncio.run(run_work())


def wait_until(is_true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)
