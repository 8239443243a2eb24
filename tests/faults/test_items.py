"""Workers and the server are killed while items are decided and executed, and what becomes of them is the same."""

import asyncio
import json
import os
import random
import subprocess
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, LiteralString

import pytest
from test_documents import holds, strike, workers
from watch import until

from gristmill.db import Database, Tx, open_database
from gristmill.db.embedded import Embedded
from gristmill.qualifier import set_profile
from gristmill.qualifier.letters import QualifyItem
from gristmill.qualifier.store import ItemDraft, make_item
from gristmill.queue import send_many, set_queue
from gristmill.scopes import Scope, scope_id
from gristmill.settings import Settings

ROWS = Path(__file__).parents[1] / "data" / "qualifier" / "items.jsonl"
ITEMS, KILLS = 400, 8
PAUSE = (0.3, 1.2)  # seconds between them
LONGEST = 60.0
QUEUES = ("qualify", "execution", "background")
FACTS: dict[str, LiteralString] = {
    "items": "SELECT title, type, state, outcome, urgency, deadline, scheduled_at, error, origin IS NULL AS own"
    " FROM item",
    "decisions": "SELECT i.title, d.author, d.route, d.standing, d.urgency, d.deadline, d.scheduled_at, d.path"
    " FROM decision d JOIN item i ON i.id = d.item",
    "memories": "SELECT i.title, m.summary, m.routing, m.reason, m.data"
    " FROM item_memory m JOIN item i ON i.id = m.item",
    "results": "SELECT i.title, r.by, r.summary, r.reply, r.asked FROM item_result r JOIN item i ON i.id = r.item",
    "endings": "SELECT i.title, e.state, e.outcome, count(*) FROM item_event e JOIN item i ON i.id = e.item"
    " WHERE e.state IN ('done', 'completed', 'scheduled', 'error') GROUP BY i.id, i.title, e.state, e.outcome",
    "tally": "SELECT state, outcome, foreground, sum(n) FROM item_tally GROUP BY state, outcome, foreground"
    " HAVING sum(n) <> 0",
}
OPEN = "'ready_for_qualification', 'qualifying', 'ready_for_execution', 'dispatched', 'running', 'waiting_for_children'"


async def test_killing_engines_and_the_server_loses_no_item_and_executes_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRISTMILL_QUALIFIER_QUIET", "0s")  # nobody asks anything here
    calm = await work_off(tmp_path / "calm.log", engines=1, disturbed=False)
    torn = await work_off(tmp_path / "torn.log", engines=2, disturbed=True)
    for what in FACTS:
        assert calm[what], f"there are no {what}: nothing is compared"
        assert sorted({*calm[what]} ^ {*torn[what]}) == [], f"the {what} differ"
        assert torn[what] == calm[what]


async def work_off(log: Path, *, engines: int, disturbed: bool) -> dict[str, list[str]]:
    """Decide about all items and execute them in a mill of its own; what came out."""
    with tempfile.TemporaryDirectory(prefix="gristmill-faults-") as place:
        os.chmod(place, 0o711)
        settings = Settings(data=Path(place) / "data")
        server = Embedded(settings.data)
        try:
            async with open_database(settings) as db, db.transaction() as tx:
                await bring_items(tx)
            with workers(settings, 1, log, QUEUES) as first:
                if engines == 1:
                    await until(lambda: ended(server), LONGEST, "all items")
                else:
                    with workers(settings, 1, log, QUEUES) as second:
                        if disturbed:
                            await disturb(server, [first, second])
                        await until(lambda: ended(server), LONGEST, "all items")
            await check_books(server)
            return await read_rows(server)
        finally:
            await asyncio.to_thread(server.stop, "immediate")


async def bring_items(tx: Tx) -> None:
    """The items of the data set, again and again, each of a client of its own: whether one that joins another comes
    before or after the work on that one is a matter of time."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in ROWS.read_text("utf-8").splitlines()]
    clients = [Scope(f"client {n}") for n in range(ITEMS)]
    scopes = [await scope_id(tx, one) for one in clients]
    for client in clients[: len(rows)]:
        await set_profile(tx, client, "test", names=["Anna Novak"], addresses=["anna.novak@mill.example"])
    for queue in QUEUES:  # what was killed comes back soon, however often
        await set_queue(tx, queue, retry_base="200ms", retry_cap="1s", max_attempts=50)
    ids = [
        await make_item(
            tx,
            ItemDraft(
                scopes[n],
                row["type"],
                f"{row['subject']} / {n}",
                "ready_for_qualification",
                "It came in.",
                "test",
                text=f"Case no. {n}0815-{n}\n\n{row['text']}",
                note={
                    "sender": row["sender"],
                    "headers": row["headers"],
                    "fields": row["fields"],
                    "subject": f"No. {n}",
                },
                written_at=datetime.fromisoformat(row["written"]),
            ),
        )
        for n in range(ITEMS)
        for row in [rows[n % len(rows)]]
    ]
    await send_many(tx, [QualifyItem(one) for one in ids])


async def disturb(server: Embedded, supervisors: list[subprocess.Popen[bytes]]) -> None:
    """Kill a worker of one of the engines or the whole server, amid deciding and amid executing."""
    chance = random.Random(17)
    victims = ["worker", "server"] * (KILLS // 2)
    await until(lambda: holds(server, "SELECT EXISTS (SELECT FROM decision)"), 60, "the first decision")
    struck: set[str] = set()
    amid: set[str] = set()
    for victim in victims:
        await until(lambda: holds(server, "SELECT true"), 60, "the server, which a worker starts again")
        for name, state in (("deciding", "ready_for_qualification"), ("executing", "ready_for_execution")):
            if await holds(server, f"SELECT EXISTS (SELECT FROM item WHERE state = '{state}')"):
                amid.add(name)
        if not await ended(server) and strike(chance, victim, server, chance.choice(supervisors)):
            struck.add(victim)
        await asyncio.sleep(chance.uniform(*PAUSE))
    assert struck == {"worker", "server"}, "there was too little work to disturb"
    assert amid == {"deciding", "executing"}


async def ended(server: Embedded) -> bool:
    return await holds(server, f"SELECT NOT EXISTS (SELECT FROM item WHERE state IN ({OPEN}))")


async def check_books(server: Embedded) -> None:
    """No item without a decision, none executed twice, none left behind with a task, and every change has its event."""
    for question in (
        f"SELECT count(*) = {ITEMS} FROM item WHERE origin IS NULL AND parent IS NULL",
        "SELECT NOT EXISTS (SELECT FROM item i WHERE origin IS NULL AND parent IS NULL"
        " AND (SELECT count(*) FROM decision WHERE item = i.id) <> 1)",
        "SELECT NOT EXISTS (SELECT FROM item_result GROUP BY item HAVING count(*) > 1)",
        "SELECT NOT EXISTS (SELECT FROM item_event WHERE state = 'completed' GROUP BY item HAVING count(*) > 1)",
        "SELECT NOT EXISTS (SELECT FROM item i WHERE state = 'completed'"
        " AND NOT EXISTS (SELECT FROM item_result WHERE item = i.id)"
        " AND NOT EXISTS (SELECT FROM item WHERE parent = i.id))",
        "SELECT NOT EXISTS (SELECT FROM item i WHERE state <> (SELECT state FROM item_event WHERE item = i.id"
        " ORDER BY id DESC LIMIT 1))",
        "SELECT NOT EXISTS (SELECT FROM task WHERE outcome IS NULL AND kind IN ('qualify.item', 'background.run',"
        " 'execution.run'))",
    ):
        assert await holds(server, question), question


async def read_rows(server: Embedded) -> dict[str, list[str]]:
    """What came out, in order."""
    async with await Database(server.url()).connect("facts") as connection:
        tx = Tx(connection)
        return {what: sorted(repr(tuple(row)) for row in await tx.all(query)) for what, query in FACTS.items()}
