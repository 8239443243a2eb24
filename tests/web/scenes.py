"""What the console is shown with: tasks that wait, run, fail and are done; names as ugly as people make them."""

import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

from gristmill.db import Database, Tx
from gristmill.documents import Item, take_in
from gristmill.durations import parse_rate
from gristmill.ids import TaskId
from gristmill.queue import (
    Envelope,
    Limit,
    Rate,
    add_schedule,
    open_group,
    seal,
    send,
    send_many,
    set_limit,
    set_queue,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "queue"))
from engine import buried, claimed, ground, registered

LONG = "an-invoice-with-a-name-that-somebody-made-by-putting-everything-they-knew-into-it-" * 3
RTL = "חוזה עם הטחנה של אלדרמור 2026 – עותק סופי (3).pdf"
EMOJI = "🧾🌾 receipt 👩🏽‍🌾 final FINAL (copy) ✅.png"
MARKUP = '<img src=x onerror="alert(1)"> & "quotes".html'
UGLY = (LONG[:200], RTL, EMOJI, MARKUP, "ﷺ" * 30, "a" * 120)
WORDY = "every-quarter-of-an-hour-with-a-name-that-is-as-long-as-allowed"
ERRORS = (
    "The page is blank: the scan holds no ink.",
    f"Cannot open {LONG[:200]}: it ends after 12 of 80 bytes",
    "ConnectionRefusedError: [Errno 111] Connect call failed ('127.0.0.1', 11434) " + "x" * 300,
    f"שגיאה בקריאת הקובץ {EMOJI}",
)


@dataclass(frozen=True)
class Extract:
    """A letter that says whatever a page must be able to show."""

    kind: ClassVar[str] = "extract.read"
    name: str = ""
    page: int = 0


@dataclass(frozen=True)
class Summarise:
    kind: ClassVar[str] = "llm.summarise"
    name: str = ""


@dataclass(frozen=True)
class Scene:
    """The tasks that pages of one task are shown with."""

    waiting: TaskId
    dead: TaskId
    group: TaskId
    blocked: TaskId


async def set_scene(db: Database, *, documents: bool = True, children: int = 260) -> Scene:
    """Something of everything, with ugly names."""
    async with db.transaction() as tx:
        await set_limits(tx)
        await make_history(tx)
        await send_many(tx, [Extract(name, page) for page, name in enumerate(UGLY * 3)])
        await ground(tx, 18, queues=("extract",))
        for place, error in enumerate(ERRORS):
            await send_many(tx, [Extract(UGLY[place], page) for page in range(3 + place * 4)])
            dead = (await buried(tx, 3 + place * 4, error, queues=("extract",)))[-1]
        waiting = (await send_many(tx, [Extract(name, 1) for name in UGLY * 4]))[-1]
        await claimed(tx, await registered(tx, "extract", "llm", name="mill-1:4711"), 3, queues=("extract",))
        await send(tx, Summarise(RTL), delay=timedelta(hours=3))
        blocked = await send(tx, Summarise(EMOJI), after=waiting)
        group = await grow_tree(tx, children)
        await add_schedules(tx)
        if documents:
            await add_documents(tx)
    return Scene(waiting, dead, group, blocked)


async def set_limits(tx: Tx) -> None:
    await set_queue(tx, "extract", rate="10/60s", concurrency=4, breaker="30%")
    await set_queue(tx, "llm", concurrency=1)
    await set_limit(tx, "llm", Limit(2, Rate(*parse_rate("5/60s")), (timedelta(seconds=3), timedelta(seconds=5))))


async def grow_tree(tx: Tx, children: int) -> TaskId:
    group = await open_group(tx, label=LONG[:120])
    inner = await open_group(tx, label=RTL, parent=group)
    await send_many(tx, [Envelope(Summarise(name), parent=inner) for name in UGLY])
    await send_many(tx, [Envelope(Summarise(str(place)), parent=group) for place in range(children)])
    await seal(tx, inner)
    await seal(tx, group)
    return group


async def add_schedules(tx: Tx) -> None:
    payload = ("extract.read", "extract", {"name": EMOJI})
    await add_schedule(tx, "nightly", payload, cron="0 3 * * *", zone="Europe/Prague")
    await add_schedule(tx, WORDY, payload, cron="*/15 * * * *")
    await add_schedule(tx, "afterwards", payload, follows="nightly", delay=timedelta(minutes=10))


async def add_documents(tx: Tx) -> None:
    for place, name in enumerate(UGLY):
        await take_in(tx, Item(f"file:///{place}", name, f"Text of {name}".encode()))


HISTORY = """
INSERT INTO queue_sample (queue, scope, at, opened, completed, failed, skipped, cancelled, retried, dead)
SELECT q, 1, date_trunc('minute', clock()) - m * interval '1 minute', n, n, f, 0, 0, 0, f
  FROM unnest(ARRAY['extract', 'llm']) q, generate_series(1, 55) m,
       LATERAL (SELECT (40 + 30 * sin(m / 6.0) + mod(m, 7))::int AS n, (mod(m, 11) = 0)::int * 3 AS f) v
 WHERE m NOT BETWEEN 20 AND 25
"""


async def make_history(tx: Tx) -> None:
    """An hour of work, with a pause in it."""
    await tx.execute(HISTORY)
