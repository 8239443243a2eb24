"""Tables in any format and encoding, and a small house that loads and embeds them in the test's own process."""

import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from gristmill.db import Database
from gristmill.documents import Spool
from gristmill.ids import DocumentId
from gristmill.knowledge.letters import FillVectors, FoldTerms
from gristmill.models import Embedder, FakeEmbedder
from gristmill.processes import ProcessPool
from gristmill.queue import Done, Handler, Worker, bind, on
from gristmill.records import Import, IngestData, LoadingImport, Options, Readers, TableIntake, Vectorize, load_report
from gristmill.records.credit import probe_credit
from gristmill.records.letters import ProbeCredit
from gristmill.records.load import ingest_data
from gristmill.records.vectorize import vectorize
from gristmill.scopes import Scope
from gristmill.settings import RecordsSettings, Settings

ACME = Scope("acme", "reviews")


def table(rows: Iterable[Sequence[object]], **dialect: Any) -> str:
    """These rows as CSV."""
    text = io.StringIO()
    csv.writer(text, **dialect).writerows(rows)
    return text.getvalue()


def reviews(n: int, start: int = 1) -> str:
    """A table of so many reviews, each different."""
    rows = [
        (f"r{i}", f"Review number {i}: the mill grinds {i} sacks of grain", i % 5 + 1) for i in range(start, start + n)
    ]
    return table([("task_id", "text", "rating"), *rows])


@dataclass
class House:
    """`add` a file, `work` until nothing is left, and read the `report`."""

    db: Database
    folder: Path
    processes: ProcessPool
    settings: Settings = field(default_factory=Settings)
    embedder: Embedder = field(default_factory=FakeEmbedder)

    def with_settings(self, **changes: Any) -> "House":
        records = RecordsSettings(**changes)
        return replace(self, settings=self.settings.model_copy(update={"records": records}))

    @property
    def readers(self) -> Readers:
        return Readers(self.processes, self.settings.records)

    @property
    def intake(self) -> TableIntake:
        return TableIntake(self.db, self.settings, self.readers)

    @property
    def handlers(self) -> list[Handler]:
        records = self.settings.records
        spool = Spool(self.db, self.folder / "spool", 1 << 30)
        loading = partial(ingest_data, db=self.db, readers=self.readers, spool=spool, settings=records)
        provider = self.settings.embedding
        embedding = partial(vectorize, db=self.db, embedders=[self.embedder], settings=records, provider=provider)
        probing = partial(probe_credit, db=self.db, embedder=self.embedder, settings=self.settings.embedding)
        return [on(IngestData, loading), on(Vectorize, embedding), on(ProbeCredit, probing), *_idle()]

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    async def add(
        self, content: str | bytes, scope: Scope = ACME, *, name: str = "reviews.csv", **options: Any
    ) -> LoadingImport:
        return await self.intake.add(self.file(name, content), name, scope, Options(**options))

    async def work(self, **options: Any) -> None:
        await Worker(self.db, bind(*self.handlers), self.settings.queue, until_idle=True, **options).run()

    async def load(
        self, content: str | bytes, scope: Scope = ACME, *, name: str = "reviews.csv", **options: Any
    ) -> Import:
        """Add a file, and load and embed it."""
        started = await self.add(content, scope, name=name, **options)
        await self.work()
        return await self.report(started.document)

    async def report(self, document: DocumentId) -> Import:
        async with self.db.transaction() as tx:
            return await load_report(tx, document)

    async def records(self, columns: str = "content") -> list[Any]:
        """Some columns of all records, in their order."""
        async with self.db.transaction() as tx:
            rows = await tx.all(f"SELECT {columns} FROM data_records ORDER BY scope, import, row")  # pyright: ignore[reportArgumentType]
        return [row[0] if len(row) == 1 else tuple(row) for row in rows]


def _idle() -> list[Handler]:
    async def fold(_: FoldTerms) -> Done:
        return Done()

    async def fill(_: FillVectors) -> Done:
        return Done()

    return [on(FoldTerms, fold), on(FillVectors, fill)]


@asynccontextmanager
async def open_house(db: Database, folder: Path) -> AsyncIterator[House]:
    processes = ProcessPool(2)
    try:
        yield House(db, folder, processes, Settings(data=folder))
    finally:
        await processes.close()
