"""What the demonstration grinds: a few letters, and the functions that answer them."""

import asyncio
import os
import random
import signal
from dataclasses import dataclass
from time import sleep  # noqa: TID251 it stands for a library that blocks
from typing import ClassVar

from gristmill.errors import Permanent, Transient
from gristmill.queue import Done, bind, current, on


@dataclass(frozen=True)
class ReadPage:
    """One page of a scanned book."""

    kind: ClassVar[str] = "demo-pages.read"
    page: int


@dataclass(frozen=True)
class BindBook:
    """Comes after all pages are read."""

    kind: ClassVar[str] = "demo-pages.bind"
    pages: int


@dataclass(frozen=True)
class Extract:
    """A call to something that allows five in two seconds."""

    kind: ClassVar[str] = "demo-extract.facts"
    item: int
    asked_by: str = "the batch"


@dataclass(frozen=True)
class Fetch:
    """Works at the third attempt."""

    kind: ClassVar[str] = "demo-flaky.fetch"
    item: int


@dataclass(frozen=True)
class Convert:
    """Will never work, for one of two reasons."""

    kind: ClassVar[str] = "demo-broken.convert"
    item: int


@dataclass(frozen=True)
class Render:
    """One of them takes its whole worker process down."""

    kind: ClassVar[str] = "demo-poison.render"
    item: int
    poisoned: bool = False


async def read_page(letter: ReadPage) -> Done:
    for line in range(1, 6):
        current().progress(line, 5, f"page {letter.page}, paragraph {line}")
        await asyncio.sleep(random.uniform(0.05, 0.12))
    return Done(result={"words": 180 + letter.page * 37 % 90})


async def bind_book(letter: BindBook) -> Done:
    return Done(result={"pages": letter.pages})


async def extract(letter: Extract) -> Done:
    await asyncio.sleep(0.1)
    return Done(result={"facts": letter.item % 4, "asked_by": letter.asked_by})


def fetch(letter: Fetch) -> Done:
    """A plain function: it runs in a thread."""
    sleep(0.05)
    if current().attempt < 3:
        raise Transient(f"connection to 192.0.2.{letter.item}:8080 was reset")
    return Done(result={"bytes": 1024 * letter.item})


async def convert(letter: Convert) -> Done:
    if letter.item % 2:
        raise Permanent(f"no password is known for the encrypted file /scans/2026/invoice-{4711 * letter.item}.pdf")
    raise Permanent(f"mail from sender{letter.item}@example.org has no text and no attachment")


async def render(letter: Render) -> Done:
    await asyncio.sleep(0.4)
    if letter.poisoned:
        os.kill(os.getpid(), signal.SIGKILL)  # as a crash in native code, or the system out of memory, would
    return Done(result={"pixels": 640 * 480})


handlers = bind(
    on(ReadPage, read_page),
    on(BindBook, bind_book),
    on(Extract, extract),
    on(Fetch, fetch),
    on(Convert, convert),
    on(Render, render),
)
