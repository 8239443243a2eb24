"""Says what is waited for when a model takes its time: nobody should stare at a terminal that says nothing."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
FIRST, NEXT = 5.0, 15.0  # seconds until a person is told what is waited for, and until that is told again


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing has come for so many seconds."""

    seconds: int


def describe_silence(model: str, where: str, seconds: int) -> str:
    """One sentence for the person who waits."""
    at = f" at {where}" if where else ""
    return f"The model {model}{at} has not answered for {seconds} s."


async def notice_silence(pieces: AsyncGenerator[T], first: float = FIRST) -> AsyncGenerator[T | Silence]:
    """The pieces as they come, and a Silence whenever the first one is late; later ones come by themselves.

    One task reads the pieces from beginning to end: a library that has begun a request in one task may not be able to
    go on in another. Closing this generator ends the request.
    """
    waiting: asyncio.Queue[T | BaseException | None] = asyncio.Queue(maxsize=1)
    reader = asyncio.create_task(_pump(pieces, waiting))
    passed = 0.0
    try:
        while True:
            try:
                async with asyncio.timeout(first if not passed else NEXT):
                    piece = await waiting.get()
            except TimeoutError:
                passed += first if not passed else NEXT
                yield Silence(round(passed))
                continue
            if piece is None:
                return
            if isinstance(piece, BaseException):
                raise piece
            yield piece
            break
        while (piece := await waiting.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)


async def _pump(pieces: AsyncGenerator[T], waiting: "asyncio.Queue[T | BaseException | None]") -> None:
    last: BaseException | None = None
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                await waiting.put(piece)
    except Exception as error:  # noqa: BLE001 whoever reads the pieces gets it
        last = error
    await waiting.put(last)


async def wait_aloud(work: Awaitable[T], say: Callable[[int], Awaitable[None]], first: float = FIRST) -> T:
    """The result of some work; `say` is told the seconds while it takes long. Cancelled, it ends the work."""
    task = asyncio.ensure_future(work)
    passed = 0.0
    try:
        while True:
            pause = first if not passed else NEXT
            done, _ = await asyncio.wait([task], timeout=pause)
            if done:
                return task.result()
            passed += pause
            await say(round(passed))
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
