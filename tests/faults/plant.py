"""A worker process for the tests of faults: `python plant.py --url … [--solo | --supervise N]`.

Every letter that is answered adds one to its row of the ledger, in its own write; every start of a handler is a line
in a file, which outlives whatever kills the process.
"""

import argparse
import asyncio
import ctypes
import os
import signal
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import ClassVar

import uvloop

from gristmill.doors import keep_doors_closed, load_for_good

if __name__ == "__main__":  # as the command does; in the tests themselves, the doors are open already
    keep_doors_closed()

with load_for_good():
    from gristmill.db import Database, Tx
    from gristmill.db.embedded import Embedded
    from gristmill.errors import Transient
    from gristmill.queue import Done, Worker, bind, current, on
    from gristmill.queue.worker.supervisor import Supervisor
    from gristmill.settings import LogSettings, QueueSettings
    from gristmill.telemetry import set_up_logs

LEDGER = "CREATE TABLE ledger (n bigint PRIMARY KEY, count int NOT NULL)"
ENTRY = "INSERT INTO ledger AS l (n, count) VALUES (%(n)s, 1) ON CONFLICT (n) DO UPDATE SET count = l.count + 1"


@dataclass(frozen=True)
class Grain:
    """Innocent: takes `seconds`, at times only the first time it begins, and fails as often as it is told to."""

    kind: ClassVar[str] = "mill.grain"
    n: int
    seconds: float = 0.0
    fails: int = 0
    once: bool = False


@dataclass(frozen=True)
class Flour:
    """Follows a grain, in another queue."""

    kind: ClassVar[str] = "bakery.flour"
    n: int


@dataclass(frozen=True)
class Poison:
    """Kills the process that runs it, after a while."""

    kind: ClassVar[str] = "mill.poison"
    n: int
    how: str
    after: float = 0.1


@dataclass(frozen=True)
class Hang:
    """Never ends: it awaits, or it holds the loop and with it the whole process."""

    kind: ClassVar[str] = "hang.loop"
    n: int
    busy: bool = False


@dataclass(frozen=True)
class HangInThread:
    kind: ClassVar[str] = "hang.thread"
    n: int


@dataclass(frozen=True)
class HangInProcess:
    kind: ClassVar[str] = "hang.process"
    n: int


class Starts:
    """The file in which every start is written down, and in another one every interruption: `n pid when`."""

    path: ClassVar[Path | None] = None

    @classmethod
    def note(cls, n: int, suffix: str = "") -> None:
        if cls.path is not None:
            handle = os.open(cls.path.with_suffix(suffix), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(handle, f"{n} {os.getpid()} {time.monotonic()}\n".encode())
            os.close(handle)

    @classmethod
    def noted(cls, n: int) -> bool:
        """Whether it began before."""
        lines = cls.path.read_text().splitlines() if cls.path is not None and cls.path.exists() else []
        return any(line.startswith(f"{n} ") for line in lines)


async def enter(tx: Tx, *, n: int) -> None:
    await tx.execute(ENTRY, n=n)


async def grind(letter: Grain) -> Done:
    again = letter.once and Starts.noted(letter.n)
    Starts.note(letter.n)
    if letter.seconds and not again:
        try:
            await asyncio.sleep(letter.seconds)
        except asyncio.CancelledError:
            Starts.note(letter.n, ".interrupted")
            raise
    if current().attempt <= letter.fails:
        raise Transient("the stone is dull")
    follow = (Flour(-letter.n),) if letter.n % 10 == 9 else ()
    return Done(write=partial(enter, n=letter.n), then=follow)


async def bake(letter: Flour) -> Done:
    return Done(write=partial(enter, n=letter.n))


async def poison(letter: Poison) -> Done:
    Starts.note(letter.n)
    await asyncio.sleep(letter.after)
    if letter.how == "segfault":
        ctypes.string_at(0)
    os.kill(os.getpid(), signal.SIGKILL)
    return Done()


async def hang(letter: Hang) -> Done:
    Starts.note(letter.n)
    while letter.busy:
        pass
    await asyncio.Event().wait()
    return Done()


def hang_in_thread(letter: HangInThread) -> None:
    Starts.note(letter.n)
    time.sleep(3600)


def hang_in_process(letter: HangInProcess) -> None:
    time.sleep(3600)


HANDLERS = bind(
    on(Grain, grind),
    on(Flour, bake),
    on(Poison, poison),
    on(Hang, hang),
    on(HangInThread, hang_in_thread),
    on(HangInProcess, hang_in_process, process=True),
)


def orders() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--name", default=None)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--starts", type=Path)
    parser.add_argument("--queues", default="mill,bakery")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--supervise", type=int, default=0)
    parser.add_argument("--solo", action="store_true")
    parser.add_argument("--stay", action="store_true", help="a solo worker that waits for more")
    parser.add_argument("--no-maintenance", action="store_true")
    for name, value in (("heartbeat", 0.2), ("lease", 3.0), ("rescue", 0.3), ("stall", 60.0), ("stop", 3.0)):
        parser.add_argument(f"--{name}", type=float, default=value)
    return parser.parse_args()


async def main() -> None:
    given = orders()
    Starts.path = given.starts
    set_up_logs(LogSettings(level="info", json_lines=True))
    spans = {
        name: timedelta(seconds=getattr(given, name)) for name in ("heartbeat", "lease", "rescue", "stall", "stop")
    }
    settings = QueueSettings(**spans, poll=timedelta(seconds=0.5))
    queues = given.queues.split(",")
    revive = Embedded(given.data).start if given.data else None
    async with Database(given.url, revive=revive) as db:
        if given.supervise:
            command = [word for word in sys.argv if not word.startswith("--supervise=")]
            mill = Supervisor(
                db,
                command,
                queues=queues,
                processes=given.supervise,
                grace=given.stop + 5,
                long=timedelta(seconds=0.5),
            )
        else:
            mill = Worker(
                db,
                HANDLERS,
                settings,
                queues=queues,
                concurrency=given.concurrency,
                name=given.name,
                solo=given.solo,
                until_idle=given.solo and not given.stay,
                maintenance=not given.no_maintenance,
            )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, mill.stop)
        await mill.run()


if __name__ == "__main__":
    uvloop.run(main())
