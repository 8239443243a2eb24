"""Workers, indexers and the server are killed while sources flow in, and servers fail; the end is as without that.

`make fault-sources` runs it with 5,000 items of all kinds, `SOURCE_ITEMS=6` with a few of each. `make test` leaves it
out: it waits for minutes, and on a machine with much other work its end is not sure.
"""

import asyncio
import os
import random
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from aiohttp import web
from calendar_server import PASSWORD as CALENDAR_PASSWORD
from calendar_server import a_radicale
from dovecot import PASSWORD, a_dovecot
from fake_server import Fault, fail_never, open_site
from test_documents import FACTS as DOCUMENT_FACTS
from test_documents import facts, strike, workers
from watch import until
from worlds import WORLDS, CalDavWorld, MailServerWorld, ProviderWorld, World

from gristmill.db import Database, Tx, open_database
from gristmill.db.embedded import Embedded
from gristmill.queue import set_queue
from gristmill.settings import Settings
from gristmill.sources import Wanted, add_source, get_source
from gristmill.sources.items import retry_set_aside
from gristmill.sources.poller import ask_for_poll

ITEMS = int(os.environ.get("SOURCE_ITEMS", "6"))  # of each kind
MAILS = ("imap", "pop3")
KINDS = ("eml", "maildir", "git", "transcripts", "ics", "markdown", "jira", "github", "gitlab", "confluence")
QUEUES = ("sources", "index", "documents", "ocr", "vector", "graph", "knowledge")
FAILING = 0.2  # of all calls of providers
ROUNDS = 6 if ITEMS < 100 else 30  # in which a worker, a child and the server are killed, in any order
PAUSE = (0.2, 1.5)  # seconds between two kills
LONGEST = 120.0 + 4.0 * ITEMS
FACTS: dict[str, LiteralString] = {
    **{name: DOCUMENT_FACTS[name] for name in ("pages", "chunks", "mentions", "relations", "nodes", "edges", "tasks")},
    "items": "SELECT s.name, i.external, i.state, i.type, i.urn, i.thread, i.sent, i.title, i.size, i.note"
    " FROM source_item i JOIN source s ON s.id = i.source",
    "documents": "SELECT urn, name, hash, type, title, pages, meta, written_at FROM document",
    "indexings": "SELECT s.name, i.external, t.outcome, count(*) FROM source_item i JOIN source s ON s.id = i.source"
    " JOIN task t ON t.kind = 'index.item' AND t.payload = jsonb_build_object('item', i.id, 'version', i.version)"
    " GROUP BY s.name, i.external, t.outcome",
    "links": "SELECT l.url, l.state, p.urn FROM link l JOIN link_place p ON p.link = l.id",
}
UNREADY = """
SELECT id FROM source
 WHERE error IS NOT NULL OR succeeded_at IS NULL OR waits_until IS NOT NULL OR listing IS NULL
    OR (listing ->> 'missing_count')::int + (listing ->> 'stale_count')::int + (listing ->> 'surplus_count')::int > 0
    OR EXISTS (SELECT FROM source_item i WHERE i.source = source.id AND i.state = 'SET_ASIDE')
"""
FAILED = "SELECT id FROM source WHERE error IS NOT NULL OR waits_until IS NOT NULL"  # they need not wait so long
IDLE = """
SELECT NOT EXISTS (SELECT FROM task WHERE outcome IS NULL AND queue = ANY (%(queues)s) AND kind <> 'sources.listen')
   AND NOT EXISTS (SELECT FROM source_item WHERE state IN ('NEW', 'INDEXING'))
   AND coalesce((SELECT bool_and(completed_at IS NOT NULL) FROM document), false)
"""


@asynccontextmanager
async def all_worlds(folder: Path) -> AsyncGenerator[dict[str, World]]:
    """A place outside of every kind, with items."""
    async with AsyncExitStack() as stack:
        dovecot = stack.enter_context(a_dovecot())
        worlds: dict[str, World] = {kind: MailServerWorld(dovecot, kind, getattr(dovecot, kind)) for kind in MAILS}
        worlds["caldav"] = CalDavWorld(stack.enter_context(a_radicale()))
        for kind in KINDS:
            (folder / kind).mkdir()
            worlds[kind] = await stack.enter_async_context(WORLDS[kind](folder / kind))
        for name, world in worlds.items():
            for n in range(ITEMS):
                await world.put(f"{name}-{n:04}", f"Anna Berg of Acme paid INV-{n}, see https://example.org/{n % 5}.")
        yield worlds


@pytest.mark.skipif("SOURCE_ITEMS" not in os.environ, reason="it takes minutes: make fault-sources")
async def test_a_run_amid_faults_ends_exactly_as_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    monkeypatch.setenv("CALENDAR_PASSWORD", CALENDAR_PASSWORD)
    monkeypatch.setenv("PROVIDER_TOKEN", "good")
    monkeypatch.setenv("GRISTMILL_QUEUE_KEEP", "1000000")  # or the janitor would remove what is compared
    async with all_worlds(tmp_path) as worlds, an_embedder() as url:
        # a model would take most of the time, and its vectors are not compared
        for name, value in (("KIND", "ollama"), ("URL", url), ("MODEL", "fake")):
            monkeypatch.setenv(f"GRISTMILL_EMBEDDING_{name}", value)
        calm = await ground(tmp_path, worlds, processes=2, disturbed=False)
        torn = await ground(tmp_path, worlds, processes=2, disturbed=True)
    assert calm["items"][0] >= len(worlds) * ITEMS
    for what in FACTS:
        assert calm[what][0] > 0, f"there are no {what}: nothing is compared"
        assert torn[what] == calm[what], f"the {what} differ"


@asynccontextmanager
async def an_embedder() -> AsyncGenerator[str]:
    """An endpoint that gives each text a vector, at once."""

    async def embed(request: web.Request) -> web.Response:
        texts: list[str] = (await request.json())["input"]
        return web.json_response({"embeddings": [[1.0, float(len(text)), *[0.5] * 30] for text in texts]})

    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/api/embed", embed)
    async with open_site(app) as url:
        yield url


async def ground(
    folder: Path, worlds: dict[str, World], *, processes: int, disturbed: bool
) -> dict[str, tuple[int, str]]:
    """Let all worlds flow into a mill of its own; how many facts of each kind came out, and their hash."""
    chance = random.Random(16)
    set_faults(worlds, make_fault(chance) if disturbed else fail_never)
    with tempfile.TemporaryDirectory(prefix="gristmill-faults-") as place:
        os.chmod(place, 0o711)
        settings = Settings(data=Path(place) / "data")
        server = Embedded(settings.data)
        try:
            await add_sources(settings, worlds)
            log = folder / ("torn.log" if disturbed else "calm.log")
            with workers(settings, processes, log, QUEUES) as supervisor:
                blows = asyncio.create_task(disturb(server, supervisor, chance) if disturbed else asyncio.sleep(0))
                # then the providers are well again: a listing of many pages would else hardly ever come to its end
                blows.add_done_callback(lambda _: set_faults(worlds, fail_never))
                try:
                    await until(lambda: is_over(server, blows), LONGEST, "all items")
                finally:
                    blows.cancel()
            return await facts(server, FACTS)
        finally:
            await asyncio.to_thread(server.stop, "immediate")


def set_faults(worlds: dict[str, World], fault: Fault) -> None:
    for world in worlds.values():
        if isinstance(world, ProviderWorld):
            world.server.fault = fault


def make_fault(chance: random.Random) -> Fault:
    return lambda request, call: web.Response(status=500) if chance.random() < FAILING else None


async def add_sources(settings: Settings, worlds: dict[str, World]) -> None:
    async with open_database(settings) as db, db.transaction() as tx:
        for name, world in worlds.items():
            await add_source(tx, Wanted(name, world.kind.name, world.options))
        for queue in QUEUES:  # what was killed comes back soon, however often
            await set_queue(tx, queue, retry_base="200ms", retry_cap="1s", max_attempts=50)


async def disturb(server: Embedded, supervisor: Any, chance: random.Random) -> None:
    """Kill, at random moments, a worker, one of its children or the whole server; nobody is told of it."""
    struck: set[str] = set()
    # a command that starts while its database dies ends with a sentence: nobody would be there to start it again
    await until(lambda: is_begun(server), 120, "the first document")
    for _ in range(ROUNDS):
        victims = ["worker", "child", "server"]
        chance.shuffle(victims)
        for victim in victims:
            await asyncio.sleep(chance.uniform(*PAUSE))
            await until(lambda: is_up(server), 120, "the server, which a worker starts again")
            assert supervisor.poll() is None, "the supervisor has ended"
            if strike(chance, victim, server, supervisor):
                struck.add(victim)
    assert struck == {"worker", "child", "server"}


async def is_begun(server: Embedded) -> bool:
    return await ask(server, lambda tx: tx.value("SELECT EXISTS (SELECT FROM document)")) is True


async def is_over(server: Embedded, blows: asyncio.Task[None]) -> bool:
    """Whether nobody strikes any more, and everything has come to its end."""
    were_struck = blows.done()
    if were_struck:
        blows.result()  # if it failed, nobody need wait for the items
    return await is_settled(server) and were_struck


async def is_up(server: Embedded) -> bool:
    return await ask(server, lambda tx: tx.value("SELECT true")) is True


async def is_settled(server: Embedded) -> bool:
    """Whether everything has come to its end; a source that failed is polled again, as a person would have it."""
    return await ask(server, look) is True


async def look(tx: Tx) -> bool:
    is_idle = await tx.value(IDLE, queues=list(QUEUES))
    unready = await tx.all(UNREADY if is_idle else FAILED)
    for row in unready:
        source = await get_source(tx, row.id)
        await retry_set_aside(tx, source)
        await ask_for_poll(tx, source)
        await ask_for_poll(tx, source, listing=True)
    await tx.flush()
    return is_idle and not unready


async def ask(server: Embedded, question: Callable[[Tx], Any]) -> Any:
    """None while the server is down: it is for the workers to start it again."""
    await asyncio.sleep(0.5)
    with suppress(psycopg.OperationalError):
        async with await Database(server.url()).connect("look") as connection:
            return await question(Tx(connection))
    return None
