"""Search with a model that stays loaded."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Self

from gristmill.db import Database
from gristmill.errors import GristmillError
from gristmill.knowledge.search import PER_DOCUMENT, Hits, search
from gristmill.models import Embedder, MiniLm, make_embedder
from gristmill.processes import ProcessPool
from gristmill.scopes import GLOBAL, Scope
from gristmill.settings import Settings

LONGEST_LOADING = 60.0  # seconds for a model to be loaded on a busy machine
RECYCLE_AFTER = 5_000  # questions until the child process is replaced: the one after that waits for the model again


class Finder:
    """Answers questions; its model is loaded once, by the first question or by `warm_up`. `async with` ends it."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        self._settings = settings.knowledge
        # one process: it embeds one question, while the words are looked up on the other cores
        self._pool = ProcessPool(1, nice=settings.queue.nice, recycle_after=RECYCLE_AFTER)
        self._embedder = make_embedder(settings.embedding, self._pool)
        self._built_in = MiniLm(self._pool)
        self._is_warm = False
        self._warming = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._embedder.close()
        await self._pool.close()

    @property
    def embedders(self) -> Sequence[Embedder]:
        """The embedder of the settings, and the built-in one: for texts that are to be found by the same models."""
        return [self._embedder, self._built_in]

    async def warm_up(self) -> None:
        """Load the built-in model, once; the models of endpoints are loaded by others.

        A question waits only a short time for its vector. A cold model takes longer than that, so it is loaded before.
        """
        async with self._warming:
            if self._is_warm or self._embedder.name != MiniLm.name:
                return
            with suppress(GristmillError, TimeoutError):  # without its vectors, search goes by words and says so
                async with asyncio.timeout(LONGEST_LOADING):
                    await self._embedder.embed_question("")
            self._is_warm = True

    async def find(
        self,
        query: str,
        scope: Scope | None = GLOBAL,
        *,
        alpha: float = 0.5,
        limit: int = 10,
        type: str | Sequence[str] | None = None,
        after: datetime | None = None,
        columns: Mapping[str, str] | None = None,
        expand: int = 0,
        per_document: int = PER_DOCUMENT,
    ) -> Hits:
        """The chunks that fit best, as `search` says."""
        if alpha:
            await self.warm_up()
        # While another model is being filled, vectors are those of the model before: most likely of the built-in one.
        return await search(
            self._db,
            self.embedders,
            query,
            scope,
            alpha=alpha,
            limit=limit,
            type=type,
            after=after,
            columns=columns,
            expand=expand,
            per_document=per_document,
            settings=self._settings,
        )
