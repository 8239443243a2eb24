"""Runs endless loops side by side, and ends them for certain."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

AGAIN = 1.0  # seconds until a loop that did not end is cancelled again


async def run_together(*loops: Coroutine[Any, Any, None]) -> None:
    """Run until one of them fails or we are cancelled; then all of them end."""
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await end_tasks(tasks)


async def end_tasks(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel them until they have ended, whatever happens to us meanwhile.

    Once is not enough: before Python 3.12, `wait_for` loses a cancellation that comes together with what it waits for,
    and the driver waits that way for every answer of the database.
    """
    interrupted = False
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        try:
            await asyncio.wait(running, timeout=AGAIN)
        except asyncio.CancelledError:
            interrupted = True
    for task in tasks:
        if not task.cancelled():
            task.exception()  # read it, or asyncio would log that nobody did
    if interrupted:
        raise asyncio.CancelledError
