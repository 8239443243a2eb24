# pyright: strict, reportUnnecessaryTypeIgnoreComment=error
"""What the type checker says of handlers: right uses pass, and each wrong use is an error that is expected here.

Nobody runs this file. A test gives it to basedpyright, which complains of an expected error that does not come.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from gristmill.queue import Answer, Done, Letter, Skip, bind, on


@dataclass(frozen=True)
class Grind:
    kind: ClassVar[str] = "mill.grind"
    grain: int = 0


@dataclass(frozen=True)
class Bake:
    kind: ClassVar[str] = "oven.bake"
    loaf: int = 0


class NoLetter:
    """It has no kind."""


# --- one letter


async def grind(letter: Grind) -> Done:
    return Done(result=letter.grain)


def grind_in_a_thread(letter: Grind) -> int:
    return letter.grain


async def grind_with_a_tool(letter: Grind, *, stones: int) -> Answer:
    return Done(result=letter.grain * stones) if stones else Skip("no stones")


async def bake(letter: Bake) -> None: ...


async def bake_with_a_tool(letter: Bake, *, ovens: int) -> None: ...


async def log(letter: Letter) -> None: ...


async def grind_or_bake(letter: Grind | Bake) -> None: ...


async def two_letters(letter: Grind, other: Grind) -> None: ...


bind(
    on(Grind, grind),
    on(Grind, grind_in_a_thread, process=True, memory=2**20),
    on(Grind, partial(grind_with_a_tool, stones=2)),
    on(Grind, log),
    on(Grind, grind_or_bake),
    on(Bake, grind_or_bake),
)
on(Grind, bake)  # pyright: ignore[reportArgumentType]
on(Grind, partial(bake_with_a_tool, ovens=1))  # pyright: ignore[reportArgumentType]
on(Grind, grind_with_a_tool)  # pyright: ignore[reportArgumentType] a tool is missing
on(Grind, two_letters)  # pyright: ignore[reportArgumentType]
on(NoLetter, log)  # pyright: ignore[reportArgumentType]


# --- a batch


async def grind_all(letters: Sequence[Grind]) -> list[Done | Exception]:
    return [Done(result=letter.grain) for letter in letters]


def grind_list(letters: list[Grind]) -> list[int]:
    return [letter.grain for letter in letters]


async def grind_all_with_a_tool(letters: Sequence[Grind], *, stones: int) -> Sequence[Answer]:
    return [Done(result=letter.grain * stones) for letter in letters]


async def bake_all(letters: Sequence[Bake]) -> Sequence[Answer]:
    return [Done() for _ in letters]


async def count_all(letters: Sequence[Grind]) -> int:
    return len(letters)


on(Grind, grind_all, batch=8)
on(Grind, grind_list, batch=8, process=True)
on(Grind, partial(grind_all_with_a_tool, stones=2), batch=8)
on(Grind, bake_all, batch=8)  # pyright: ignore[reportArgumentType, reportCallIssue]
on(Grind, grind_all)  # pyright: ignore[reportArgumentType] without `batch` it gets one letter
on(Grind, grind, batch=8)  # pyright: ignore[reportArgumentType, reportCallIssue] with `batch` it gets a list
on(Grind, count_all, batch=8)  # pyright: ignore[reportArgumentType, reportCallIssue] one answer for each letter


# --- a stream


async def grind_one_by_one(letters: Sequence[Grind]) -> AsyncGenerator[tuple[int, Answer | Exception]]:
    for place, letter in enumerate(letters):
        yield place, Done(result=letter.grain)


async def grind_with_a_tool_one_by_one(letters: Sequence[Grind], *, stones: int) -> AsyncIterator[tuple[int, Answer]]:
    for place, letter in enumerate(letters):
        yield place, Done(result=letter.grain * stones)


async def bake_one_by_one(letters: Sequence[Bake]) -> AsyncIterator[tuple[int, Answer]]:
    for place, _ in enumerate(letters):
        yield place, Done()


async def without_places(letters: Sequence[Grind]) -> AsyncIterator[Answer]:
    for letter in letters:
        yield Done(result=letter.grain)


on(Grind, grind_one_by_one, batch=8)
on(Grind, partial(grind_with_a_tool_one_by_one, stones=2), batch=8)
on(Grind, bake_one_by_one, batch=8)  # pyright: ignore[reportArgumentType, reportCallIssue]
on(Grind, without_places, batch=8)  # pyright: ignore[reportArgumentType, reportCallIssue]
on(Grind, grind_one_by_one)  # pyright: ignore[reportArgumentType] a stream takes a batch
