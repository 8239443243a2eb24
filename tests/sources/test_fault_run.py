"""A fault run: pollers and indexers are killed at random, a server fails; the end is as without faults."""

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from dovecot import PASSWORD
from farm import Farm, a_farm
from kills import Killed, KilledAt
from worlds import FeedWorld, ProviderWorld, World, a_world

from gristmill.db import Database
from gristmill.documents import Limits
from gristmill.queue import Done, Skip
from gristmill.scopes import Scope
from gristmill.sources.indexer import Indexer
from gristmill.sources.kinds import KINDS
from gristmill.sources.letters import IndexItem, RemoveItem
from gristmill.sources.model import Source

NAMES = (
    *("feed", "eml", "maildir", "imap", "pop3", "git", "transcripts", "ics"),
    *("jira", "github", "gitlab", "confluence"),
)
ITEMS = 12  # of each world
MOST_ROUNDS = 400
CALM, STORM = Scope("calm"), Scope("storm")
ENDS = """
SELECT s.kind, i.external, i.state, i.type, i.urn, i.thread, i.sent, i.removed
  FROM source_item i JOIN source s ON s.id = i.source JOIN scope p ON p.id = i.scope
 WHERE p.client = %(client)s ORDER BY s.kind, i.external
"""
DOCUMENTS = """
SELECT d.urn, d.name, d.hash, d.given - 'written_at' AS given, max(d.version) OVER (PARTITION BY d.urn) AS version
  FROM document d JOIN scope p ON p.id = d.scope WHERE p.client = %(client)s ORDER BY d.urn, d.version
"""
OPEN = "SELECT payload FROM task WHERE outcome IS NULL AND kind = %(kind)s AND scope = %(scope)s ORDER BY id"
CLOSE = """
WITH done AS (DELETE FROM ticket WHERE id IN (SELECT id FROM task WHERE kind = %(kind)s AND scope = %(scope)s))
UPDATE task SET outcome = 'completed', finished_at = clock()
 WHERE kind = %(kind)s AND scope = %(scope)s AND outcome IS NULL
"""


@pytest.fixture
async def worlds(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[list[World]]:
    monkeypatch.setenv("FEED_KEY", "good")
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    monkeypatch.setenv("PROVIDER_TOKEN", "good")
    async with AsyncExitStack() as stack:
        opened: list[World] = []
        for name in NAMES:
            folder = tmp_path / name
            folder.mkdir()
            world = await stack.enter_async_context(a_world(name, folder, request))
            monkeypatch.setitem(KINDS, world.kind.name, world.kind)  # pyright: ignore[reportArgumentType]
            opened.append(world)
        yield opened


class Storm:
    """Ends whatever it runs at an await that chance chooses, again and again, until it comes to its end."""

    def __init__(self, farm: Farm, chance: random.Random) -> None:
        self._farm = farm
        self._chance = chance
        self._hands = farm.by_hand(KINDS)
        self.kills = 0

    async def poll(self, source: Source) -> None:
        await self._until_done(lambda: self._hands.poll(source))

    async def compare(self, source: Source) -> None:
        await self._until_done(lambda: self._hands.compare(source))

    async def _until_done(self, start: Any) -> None:
        for n in range(MOST_ROUNDS):
            try:
                answer = await KilledAt(self._chance.randint(1, 40 + 20 * n), start())
            except Killed:
                self.kills += 1
                continue
            if isinstance(answer, Done):
                if answer.write is not None:
                    async with self._farm.db.transaction() as tx:
                        await answer.write(tx)
                return
        raise AssertionError("it never came to its end")

    async def index(self, scope: int) -> None:
        """Every letter is answered; some answers are lost before they are settled, and the letter comes again."""
        indexer = Indexer(
            self._farm.db,
            KINDS,
            self._farm.models.reading_processes,
            60.0,
            1 << 30,
            Limits(),
            self._farm.settings.fetch,
        )
        for kind, letter in (("index.item", IndexItem), ("index.remove", RemoveItem)):
            rows = await self._farm.rows(OPEN, kind=kind, scope=scope)
            letters: list[Any] = [letter(**row.payload) for row in rows]
            while letters:
                some = self._chance.sample(letters, min(len(letters), 7))
                answers: list[Any] = (
                    await indexer.index(some) if kind == "index.item" else [await indexer.remove(one) for one in some]
                )
                for one, answer in zip(some, answers, strict=True):
                    if self._chance.random() < 0.3:
                        self.kills += 1
                        continue
                    await self._settle(answer)
                    letters.remove(one)
            async with self._farm.db.transaction() as tx:
                await tx.execute(CLOSE, kind=kind, scope=scope)

    async def _settle(self, answer: Any) -> None:
        assert isinstance(answer, Done | Skip), answer
        if answer.write is not None:
            async with self._farm.db.transaction() as tx:
                await answer.write(tx)


async def test_a_run_amid_faults_ends_exactly_as_one_without(db: Database, tmp_path: Path, worlds: list[World]) -> None:
    chance = random.Random(16)
    async with a_farm(db, tmp_path) as farm:
        for world in worlds:
            for n in range(ITEMS):
                await world.put(f"{world.kind.name}-{n:02}")
        calm = [await farm.add(world.kind.name, CALM, name=world.kind.name, **world.options) for world in worlds]
        await farm.work()
        servers = [world.server for world in worlds if isinstance(world, FeedWorld | ProviderWorld)]
        for server in servers:
            server.fault = lambda request, n: web.Response(status=500) if chance.random() < 0.2 else None
        storm = Storm(farm, chance)
        stormy = [await farm.add(world.kind.name, STORM, name=world.kind.name, **world.options) for world in worlds]
        async with db.transaction() as tx:
            await tx.execute(CLOSE, kind="sources.poll", scope=stormy[0].scope)
        for source in stormy:
            await storm.poll(source)
        await storm.index(stormy[0].scope)
        for server in servers:
            server.fault = lambda request, n: None
        for world in worlds:
            for n in range(3):
                await world.drop(f"{world.kind.name}-{n:02}")
            await world.put(f"{world.kind.name}-late")
        for source in calm:
            await farm.poll(source)
            await farm.compare(source)
        for server in servers:
            server.fault = lambda request, n: web.Response(status=503) if chance.random() < 0.2 else None
        for source in stormy:
            await storm.poll(source)
            await storm.compare(source)
        await storm.index(stormy[0].scope)
        assert storm.kills > 100
        assert await farm.rows(ENDS, client="storm") == await farm.rows(ENDS, client="calm")
        assert await farm.rows(DOCUMENTS, client="storm") == await farm.rows(DOCUMENTS, client="calm")
        assert len(await farm.rows(DOCUMENTS, client="calm")) == len(worlds) * (ITEMS - 2)
