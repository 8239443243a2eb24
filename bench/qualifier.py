"""Measures how well and how fast items are decided: `make bench-qualifier`.

The items, dates and sentences are those of `tests/data/qualifier`; the intents are those of the corpus email-intent. No
LLM is asked. The last line is JSON.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # or bench/queue.py would stand in for the standard library's queue

import argparse  # noqa: E402
import asyncio  # noqa: E402
import json  # noqa: E402
import shutil  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import AsyncIterator, Iterator, Sequence  # noqa: E402
from contextlib import asynccontextmanager  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from datetime import datetime, timedelta  # noqa: E402
from statistics import median  # noqa: E402
from typing import Any  # noqa: E402

from bench.reading_texts import ME, find_false_dates, load_rows, make_about, measure_dates  # noqa: E402
from bench.train_intent import measure_intent  # noqa: E402

from gristmill.db import Database, Embedded, open_database  # noqa: E402
from gristmill.ids import WorkItemId  # noqa: E402
from gristmill.models import ModelPool  # noqa: E402
from gristmill.qualifier import DecisionReplayWish, Route, replay, set_profile  # noqa: E402
from gristmill.qualifier.casework import make_case  # noqa: E402
from gristmill.qualifier.deciding import decide  # noqa: E402
from gristmill.qualifier.executor import Checkpoint, ExecutorResult  # noqa: E402
from gristmill.qualifier.idle import RequestNotes  # noqa: E402
from gristmill.qualifier.letters import QualifyItem, RunInBackground  # noqa: E402
from gristmill.qualifier.model import ItemMemory, ItemMessage, WorkItem  # noqa: E402
from gristmill.qualifier.profiles import find_own_addresses  # noqa: E402
from gristmill.qualifier.qualification import qualify_many  # noqa: E402
from gristmill.qualifier.reading import ItemWording, ScopeTerms  # noqa: E402
from gristmill.qualifier.room import bind_engine  # noqa: E402
from gristmill.qualifier.routing import apply_route  # noqa: E402
from gristmill.qualifier.store import ItemDraft, get_item, make_item  # noqa: E402
from gristmill.queue import Handlers, Worker, bind, send_many  # noqa: E402
from gristmill.rooms import Tools  # noqa: E402
from gristmill.scopes import Scope, scope_id  # noqa: E402
from gristmill.settings import Settings  # noqa: E402

ITEMS, INTERRUPTS = 4_000, 30
WORK = ("now", "later", "decompose")
LEAD = timedelta(days=2)
Row = dict[str, Any]


# --- how well


@dataclass(frozen=True)
class Judged:
    """An item of the data set, what was expected, and what was decided."""

    row: Row
    route: Route
    path: Sequence[str]

    @property
    def to(self) -> str:
        """A text that falls into parts is worked on now."""
        return "now" if self.route.to == "decompose" else self.route.to

    @property
    def is_right(self) -> bool:
        expected = self.row["expected"]
        if self.to != expected["to"]:
            return False
        day = self.route.deadline.date().isoformat() if self.route.deadline else None
        return expected["deadline"] is None or day == expected["deadline"]

    @property
    def is_lost(self) -> bool:
        """Whether something that was to be done would be put away."""
        return self.row["expected"]["to"] in WORK and self.to not in WORK


def judge_items(name: str = "items.jsonl") -> Iterator[Judged]:
    for row in load_rows(name):
        about = make_about(row)
        new = None if row["new"] is None else [(start, stop) for start, stop in row["new"]]
        case = make_case(ItemWording(row["text"], new, about), ScopeTerms(about.written_at, LEAD, ME))
        verdict = decide(case)
        yield Judged(row, verdict.route, [step.sentence for step in verdict.path])


def measure_decisions(*, tell: bool = False) -> dict[str, float]:
    judged = list(judge_items())
    if tell:
        for one in judged:
            if not one.is_right:
                expected = one.row["expected"]
                print(
                    f"{one.row['id']}: {one.to} {one.route.deadline} instead of {expected['to']} {expected['deadline']}"
                )
                print(f"    {' '.join(one.path)}\n    {one.row['text'][:300]!r}")
    return {
        "decisions_right": round(sum(one.is_right for one in judged) / len(judged), 4),
        "payments_lost": sum(one.is_lost for one in judged),
    }


# --- how fast


@dataclass(frozen=True)
class House:
    """A database and the handlers of the qualifier."""

    db: Database
    tools: Tools

    def bind(self, executor: Any = None) -> Handlers:
        async def qualify(texts: Any) -> Any:
            return await qualify_many(self.tools, texts)

        return bind(*bind_engine(self.tools, qualify, find_own_addresses, executor))


@asynccontextmanager
async def open_house() -> AsyncIterator[House]:
    """An embedded PostgreSQL with its ordinary settings, gone afterwards."""
    data = Path(tempfile.mkdtemp(prefix="gristmill-bench-"))
    settings = Settings(data=data)
    quiet = settings.qualifier.model_copy(update={"quiet": timedelta(0)})
    settings = settings.model_copy(update={"qualifier": quiet})
    try:
        async with open_database(settings, size=8) as db, ModelPool(settings) as models:
            yield House(db, Tools(db, settings, models))
    finally:
        Embedded(data).stop("immediate")
        shutil.rmtree(data, ignore_errors=True)


async def add_items(house: House, n: int) -> list[WorkItemId]:
    """Items of the data set, again and again; each round is of another client: its numbers are those of the first."""
    rows = load_rows("items.jsonl")
    async with house.db.transaction() as tx:
        clients = [Scope(f"acme {at}") for at in range(1 + n // len(rows))]
        scopes = [await scope_id(tx, client) for client in clients]
        for client in clients:
            await set_profile(tx, client, "bench", names=ME.names, addresses=ME.addresses)
        return [await make_item(tx, _make_new(rows[at % len(rows)], scopes[at // len(rows)], at)) for at in range(n)]


def _make_new(row: Row, scope: Any, n: int) -> ItemDraft:
    text = row["text"].partition("\n\n")[2] or row["text"]
    note = {"subject": row["subject"], "sender": row["sender"], "headers": row["headers"], "fields": row["fields"]}
    return ItemDraft(
        scope,
        row["type"],
        row["subject"],
        "ready_for_qualification",
        "It came in.",
        "bench",
        text=f"{text}\n{n}",
        note=note,
        written_at=datetime.fromisoformat(row["written"]),
    )


async def measure_throughput(n: int) -> dict[str, float]:
    """Items a minute by one worker: read from the database, decided, and written with everything that follows.

    Then the same items are decided again by a replay.
    """
    async with open_house() as house:
        ids = await add_items(house, n)
        async with house.db.transaction() as tx:
            await send_many(tx, [QualifyItem(one) for one in ids])
        only = {kind: one for kind, one in house.bind().items() if kind == QualifyItem.kind}
        began = time.perf_counter()
        worker = asyncio.create_task(Worker(house.db, only, house.tools.settings.queue, until_idle=True).run())
        await worker
        taken = time.perf_counter() - began
        async with house.db.reading() as tx:
            decided = await tx.value("SELECT count(*) FROM decision")
            first = await tx.value("SELECT min(decided_at) FROM decision")
        assert decided == n, f"only {decided} of {n} items were decided"
        began = time.perf_counter()
        report = await replay(house.db, house.tools.settings.qualifier, DecisionReplayWish(first), processes=2)
        again = time.perf_counter() - began
        assert (report.looked_at, report.changed) == (n, 0), report
        return {"items_per_min": round(60 * n / taken), "replayed_per_min": round(60 * n / again)}


class Sleeper:
    """An executor that works until it is interrupted, and notes when that was."""

    name = "sleeper"

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def check(self) -> None:
        """It always takes work."""

    async def run(
        self, item: WorkItem, memory: ItemMemory | None, messages: Sequence[ItemMessage], checkpoint: Checkpoint
    ) -> ExecutorResult:
        await checkpoint.save(1, {"step": 1})
        self.begun.set()
        await asyncio.Event().wait()
        return ExecutorResult("")


async def measure_interrupts(times: int) -> dict[str, float]:
    """Milliseconds from a person's request to the moment when the item is back in line and its slot is free."""
    async with open_house() as house:
        sleeper = Sleeper()
        only = {kind: one for kind, one in house.bind(sleeper).items() if kind == RunInBackground.kind}
        (id_,) = await add_items(house, 1)
        async with house.db.transaction() as tx:
            item = await get_item(tx, id_)
            await apply_route(tx, item, Route("now"), decision=None, why="bench", by="bench")
        working = asyncio.create_task(Worker(house.db, only, house.tools.settings.queue).run())
        found: list[float] = []
        for _ in range(times):
            await asyncio.wait_for(sleeper.begun.wait(), 30)
            sleeper.begun.clear()
            began = time.perf_counter()
            await RequestNotes(house.db, "bench").note_request()
            await wait_until_free(house, id_)
            found.append(1000 * (time.perf_counter() - began))
        working.cancel()
        await asyncio.wait({working})
        return {"interrupt_ms": round(median(found), 1), "interrupt_max_ms": round(max(found), 1)}


async def wait_until_free(house: House, id_: WorkItemId) -> None:
    while True:
        async with house.db.reading() as tx:
            if (await get_item(tx, id_)).state != "running":
                return
        await asyncio.sleep(0.001)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=ITEMS, help="how many items are decided for the throughput")
    parser.add_argument("--tell", action="store_true", help="print the decisions that are wrong")
    options = parser.parse_args()
    found: dict[str, Any] = {"intent_f1": measure_intent(), **measure_decisions(tell=options.tell)}
    found |= asyncio.run(measure_throughput(options.items))
    found |= asyncio.run(measure_interrupts(INTERRUPTS))
    found |= {**measure_dates(), "false_dates": len(find_false_dates())}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
