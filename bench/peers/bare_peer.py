"""The limit: our own claim and complete statements in a plain loop, with nothing between them."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import psycopg
from bench.peers import gristmill_peer
from bench.peers.peer import Send, main

from gristmill.db import array
from gristmill.queue.letters import Envelope, lane
from gristmill.queue.settle import SQL as SETTLE
from gristmill.queue.worker.claimer import SQL as CLAIMER
from gristmill.scopes import GLOBAL_ID

BATCH = 1_000
WORKER = """
INSERT INTO worker (name, process, queues, concurrency, lease_for)
VALUES ('bare', 'bench', '{bench}', 1, '1 hour') RETURNING id
"""

install = gristmill_peer.install
load = gristmill_peer.load


async def work(url: str, noted: Callable[[], None], released: Callable[[], Awaitable[None]]) -> None:
    with psycopg.connect(
        url, autocommit=True, prepare_threshold=0, options="-c plan_cache_mode=force_custom_plan"
    ) as connection:
        (worker,) = connection.execute(WORKER).fetchone() or ()
        await released()
        drain(connection, worker, noted)


def drain(connection: psycopg.Connection, worker: int, noted: Callable[[], None]) -> None:
    """Claim a batch, complete it, and start the next claim at the lowest place of the last."""
    mark, lease = 0, 0
    line = lane(Envelope(gristmill_peer.Noop(0)))
    while True:
        lease += 1
        rows = connection.execute(
            CLAIMER["claim"],
            {
                "queues": ["bench"],
                "lanes": [line],
                "marks": [mark],
                "limits": [BATCH],
                "starts": [BATCH],
                "n": BATCH,
                "worker": worker,
                "lease": lease,
                "starting": BATCH,
            },
        ).fetchall()
        if not rows:
            mark = 0
            continue
        mark = min(row[1] for row in rows)
        for _ in rows:
            noted()
        n = len(rows)
        connection.execute(
            SETTLE["complete"],
            {
                "worker": worker,
                "n": n,
                "ids": array(row[0] for row in rows),
                "leases": array([lease] * n),
                "queues": ["bench"],
                "scopes": [GLOBAL_ID],
                "completed": [n],
                "prunable": [n],
            },
        )


@asynccontextmanager
async def sender(url: str) -> AsyncIterator[Send]:
    async with gristmill_peer.sender(url) as send:
        yield send


if __name__ == "__main__":
    main(sys.modules[__name__])
