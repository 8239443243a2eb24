"""Calls that block, in a thread of their own and one after the other: for libraries without asynchronous calls."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self, TypeVar

R = TypeVar("R")


class OneThread:
    """`async with OneThread() as thread: await thread.run(function, …)`."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="source")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        # a call that hangs ends with its own time-out: nobody waits for it here
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def run(self, function: Callable[..., R], *args: Any) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *args)

    async def open(self, make: Callable[..., R], *args: Any, close: Callable[[R], None]) -> R:
        """As `run`, for something that must be closed: if the caller is cancelled, it is closed once it is open."""
        opening = self._pool.submit(make, *args)
        try:
            return await asyncio.wrap_future(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(lambda done: _close_opened(done, close))
            raise


def _close_opened(done: Future[R], close: Callable[[R], None]) -> None:
    if not done.cancelled() and done.exception() is None:
        close(done.result())
