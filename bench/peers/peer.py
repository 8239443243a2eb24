"""What every contender can do, and the command line by which the harness asks it to."""

import asyncio
import os
import random
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import uvloop
from bench.board import Board

PATIENCE = 5.0  # seconds in which one job sent to an idle worker must have started
Send = Callable[[], Awaitable[None]]


class Peer(Protocol):
    """A queue under test."""

    async def install(self, url: str) -> None:
        """Create its tables in an empty database."""
        ...

    async def load(self, url: str, count: int) -> None:
        """Enqueue that many no-op jobs."""
        ...

    async def work(self, url: str, noted: Callable[[], None], released: Callable[[], Awaitable[None]]) -> None:
        """Connect, wait to be released, then run jobs until the process is ended; handlers call `noted`."""
        ...

    def sender(self, url: str) -> AbstractAsyncContextManager[Send]:
        """A connected sender: each call commits one job."""
        ...


async def released() -> None:
    """Say that this worker is ready and wait for the harness; from then on, end when the harness is gone."""
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    threading.Thread(target=_end_with_harness, daemon=True).start()


def _end_with_harness() -> None:
    sys.stdin.read()
    os._exit(0)


async def send_one_by_one(send: Send, board: Board, samples: int) -> AsyncIterator[str]:
    """One job at a time into an idle queue; nanoseconds from its send and from its commit to its start."""
    for _ in range(samples):
        before = board.total()
        began = time.time_ns()
        await send()
        committed = time.time_ns()
        await _started(board, before)
        start = board.last_start()
        yield f"{start - began} {start - committed}"
        await asyncio.sleep(random.uniform(0.002, 0.020))


async def _started(board: Board, before: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while board.total() == before:
        if time.monotonic() > deadline:
            raise TimeoutError(f"a job did not start within {PATIENCE:.0f} s")
        await asyncio.sleep(0.0005)


async def _sends(peer: Peer, url: str, board: Path, samples: int) -> None:
    async with peer.sender(url) as send:
        await released()
        async for line in send_one_by_one(send, Board(board), samples):
            print(line, flush=True)


def main(peer: Peer) -> None:
    """install URL | load URL COUNT | work URL BOARD SLOT | send URL BOARD SAMPLES"""
    match sys.argv[1:]:
        case ["install", url]:
            job = peer.install(url)
        case ["load", url, count]:
            job = peer.load(url, int(count))
        case ["work", url, board, slot]:
            job = peer.work(url, Board(Path(board)).note(int(slot)), released)
        case ["send", url, board, samples]:
            job = _sends(peer, url, Path(board), int(samples))
        case _:
            raise SystemExit(main.__doc__)
    uvloop.run(job)
