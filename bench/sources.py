"""`make bench-sources`: mails through poller, indexer and reading beside a bare IMAP fetch; commits; unchanged items.

The last line is JSON: mails_per_s, bare_imap_ratio, unchanged_writes, commits_per_s. The ratio is mails a second from a
local Dovecot until their pages are read (embedding off, and nobody qualifies them), divided by those of a bare fetch of
the same mails. Unchanged writes are the rows that a poll and a listing of 100,000 unchanged files write, beside the row
of their source.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)
sys.path.append(str(ROOT / "tests" / "sources"))

import asyncio  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import AsyncIterator  # noqa: E402
from contextlib import asynccontextmanager  # noqa: E402
from time import perf_counter  # noqa: E402

import uvloop  # noqa: E402
from dovecot import PASSWORD, Dovecot, a_dovecot  # noqa: E402
from farm import a_mail  # noqa: E402
from rich.console import Console  # noqa: E402

from gristmill.app import ROOMS  # noqa: E402
from gristmill.db import Database, open_database  # noqa: E402
from gristmill.db.embedded import Embedded  # noqa: E402
from gristmill.models import ModelPool  # noqa: E402
from gristmill.queue import Worker  # noqa: E402
from gristmill.rooms import Tools, bind_rooms  # noqa: E402
from gristmill.settings import Settings  # noqa: E402
from gristmill.sources import Wanted, add_source, compare_ids, get_source  # noqa: E402
from gristmill.sources.kinds import KINDS  # noqa: E402
from gristmill.sources.listing import Comparison  # noqa: E402
from gristmill.sources.model import Source  # noqa: E402
from gristmill.sources.opening import Opener  # noqa: E402
from gristmill.sources.store import PollPlace, keep_batch  # noqa: E402

MAILS = int(os.environ.get("MAILS", "5000"))
COMMITS = int(os.environ.get("COMMITS", "5000"))
UNCHANGED = int(os.environ.get("UNCHANGED", "100000"))
WAY = ("sources.", "index.", "documents.", "ocr.")  # poller, indexer and reading; what comes behind is left for later
PORTION = 500
SENTENCE = "The mill grinds what it is given, and nothing is lost. "
WRITTEN = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::int FROM pg_stat_user_tables WHERE relname <> 'source'"
KNOWN = """
INSERT INTO source_item (source, scope, external, mark, hash, state, urn)
SELECT %(source)s, 1, external, mark, '', 'INDEXED', external
  FROM unnest(%(externals)s::text[], %(marks)s::text[]) AS l (external, mark) RETURNING 1
"""
err = Console(stderr=True, highlight=False)


@asynccontextmanager
async def a_database(folder: Path) -> AsyncIterator[tuple[Database, Settings]]:
    await asyncio.to_thread(folder.chmod, 0o755)  # started by root, the server runs as another user
    settings = Settings(data=folder / "data")
    try:
        async with open_database(settings, size=8) as db:
            yield db, settings
    finally:
        await asyncio.to_thread(Embedded(settings.data).stop)


def fill_mailbox(server: Dovecot) -> None:
    client = server.client("bench")
    for n in range(MAILS):
        client.append(
            "INBOX", a_mail(n, f"Mail {n}: " + "The mill grinds what it is given, and nothing is lost. " * 40)
        )
    client.logout()


def fetch_bare(server: Dovecot) -> float:
    """Mails a second of a plain fetch."""
    began = perf_counter()
    client = server.client("bench")
    client.select_folder("INBOX", readonly=True)
    uids = client.search()
    for start in range(0, len(uids), PORTION):
        client.fetch(uids[start : start + PORTION], ["BODY.PEEK[]"])
    client.logout()
    return MAILS / (perf_counter() - began)


async def grind(db: Database, settings: Settings, wanted: Wanted, documents: int) -> float:
    """Seconds until all items of a source are read."""
    async with ModelPool(settings) as models:
        handlers = {
            kind: handler
            for kind, handler in bind_rooms(ROOMS, Tools(db, settings, models, ROOMS)).items()
            if kind.startswith(WAY)
        }
        began = perf_counter()
        async with db.transaction() as tx:
            await add_source(tx, wanted)
        worker = Worker(db, handlers, settings.queue, maintenance=False)
        running = asyncio.create_task(worker.run())
        while await count_pages(db) < documents:  # noqa: ASYNC110 the database tells nobody
            await asyncio.sleep(0.1)
        took = perf_counter() - began
        worker.stop()
        await running
    return took


async def count_pages(db: Database) -> int:
    async with db.reading() as tx:
        return await tx.value("SELECT count(*)::int FROM page WHERE number = 1")


async def measure_mails(folder: Path) -> tuple[float, float]:
    with a_dovecot() as server:
        err.print(f"Filling a mailbox with {MAILS:,} mails …")
        fill_mailbox(server)
        bare = fetch_bare(server)
        os.environ["MAIL_PASSWORD"] = PASSWORD
        options = {"host": "127.0.0.1", "port": server.imap, "security": "none", "user": "bench", "idle": False}
        wanted = Wanted("bench", "imap", {**options, "password": "env:MAIL_PASSWORD"})
        async with a_database(folder) as (db, settings):
            mill = MAILS / await grind(db, settings, wanted, MAILS)
    return mill, mill / bare


def make_history(folder: Path) -> None:
    """A repository of many small commits, by `git fast-import`."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch", "main", str(folder)], check=True)
    lines = list[str]()
    for n in range(COMMITS):
        body = f"line {n}\n" * 5
        lines.append(f"commit refs/heads/main\ncommitter Anna <anna@acme.test> {1_700_000_000 + n} +0000\n")
        message = f"Change file {n % 50} for PROJ-{n}\n"
        lines.append(f"data {len(message)}\n{message}M 100644 inline file{n % 50}.txt\ndata {len(body)}\n{body}\n")
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input="".join(lines).encode(), check=True)


async def measure_commits(folder: Path) -> float:
    """Commits a second until all are handed on."""
    repository = folder / "repository"
    make_history(repository)
    async with a_database(folder) as (db, settings), ModelPool(settings) as models:
        handlers = {
            kind: handler
            for kind, handler in bind_rooms(ROOMS, Tools(db, settings, models, ROOMS)).items()
            if kind.startswith(("sources.", "index."))
        }
        began = perf_counter()
        async with db.transaction() as tx:
            await add_source(tx, Wanted("history", "git", {"url": str(repository)}))
        worker = Worker(db, handlers, settings.queue, maintenance=False)
        running = asyncio.create_task(worker.run())
        while await count_indexed(db) < COMMITS:  # noqa: ASYNC110 as above
            await asyncio.sleep(0.1)
        took = perf_counter() - began
        worker.stop()
        await running
    return COMMITS / took


async def count_indexed(db: Database) -> int:
    async with db.reading() as tx:
        return await tx.value("SELECT coalesce(sum(n), 0)::int FROM source_tally WHERE state = 'INDEXED'")


async def measure_unchanged(folder: Path) -> int:
    """Rows that a poll and a listing write, when a folder has what it had."""
    mails = folder / "mails"
    mails.mkdir()
    for n in range(UNCHANGED):
        (mails / f"{n}.eml").touch()
    async with a_database(folder) as (db, settings):
        async with db.transaction() as tx:
            source = await add_source(tx, Wanted("many", "eml", {"path": str(mails)}))
        opener = Opener(db, KINDS, settings.data / "sources", settings.documents.max_bytes)
        async with opener.open(source) as connector:
            async for listed in connector.list_ids():
                externals, marks = [one.external for one in listed], [one.mark for one in listed]
                async with db.transaction() as tx:
                    await tx.all(KNOWN, source=source.id, externals=externals, marks=marks)
        await poll_unchanged(opener, source)  # which moves the checkpoint
        before = await count_writes(db)
        seen = await poll_unchanged(opener, source)
        assert (seen.there, seen.agrees) == (UNCHANGED, True)
        return await count_writes(db) - before


async def poll_unchanged(opener: Opener, source: Source) -> Comparison:
    """What the poller and the lister do, without the queue around them."""
    async with opener.db.reading() as tx:
        source = await get_source(tx, source.id)
    async with opener.open(source) as connector:
        async for batch in connector.changes(source.checkpoint or {}):
            place = PollPlace(source.step, source.checkpoint)
            async with opener.db.transaction() as tx:
                await keep_batch(tx, source, batch, place)
                source = await get_source(tx, source.id)
        return await compare_ids(opener.db, source, connector)


async def count_writes(db: Database) -> int:
    await asyncio.sleep(1.5)  # a session tells its counts when it has been idle for a second
    async with db.reading() as tx:
        await tx.one("SELECT pg_stat_force_next_flush()")
        return await tx.value(WRITTEN)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        mails, ratio = await measure_mails(Path(folder))
        err.print(f"  {mails:,.0f} mails/s, {ratio:.0%} of a bare fetch")
    with tempfile.TemporaryDirectory() as folder:
        commits = await measure_commits(Path(folder))
        err.print(f"  {commits:,.0f} commits/s")
    with tempfile.TemporaryDirectory() as folder:
        writes = await measure_unchanged(Path(folder))
        err.print(f"  {writes:,} rows written for {UNCHANGED:,} unchanged items")
    figures = {"mails_per_s": round(mails, 1), "bare_imap_ratio": round(ratio, 3)}
    print(json.dumps({**figures, "unchanged_writes": writes, "commits_per_s": round(commits, 1)}))


if __name__ == "__main__":
    uvloop.run(main())  # as workers do
