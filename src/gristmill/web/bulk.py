"""Runs bulk actions on tasks: some portions in each task of the queue, until all are done or somebody stops it."""

import time

from gristmill.db import Database
from gristmill.queue import Bulk, Done, Envelope, RunBulk, Unique, current, run_portion

SLICE = 10.0  # seconds of portions in one task: others get their turn, and a killed worker loses little


async def run_bulk(letter: RunBulk, *, db: Database) -> Done:
    until = time.monotonic() + SLICE
    while True:
        bulk = await run_portion(db, letter.bulk)
        if not bulk.is_open:
            return Done(result={"status": bulk.status, "changed": bulk.changed, "undone": bulk.undone})
        current().progress(bulk.changed + bulk.refused, bulk.expected, _describe(bulk))
        if time.monotonic() >= until:
            return Done(then=(Envelope(letter, foreground=True, unique=Unique(f"bulk:{letter.bulk}")),))


def _describe(bulk: Bulk) -> str:
    doing = f"{bulk.undone:,} undone" if bulk.status == "undoing" else f"{bulk.changed:,} changed"
    return f"{doing}, {bulk.examined:,} looked at"
