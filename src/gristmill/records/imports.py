"""Imports: a file is looked at, kept and loaded; its report says what became of its rows."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
import orjson

from gristmill.db import Column, Database, Tx, queries
from gristmill.documents import Staged, open_collection, remove
from gristmill.errors import Refused, Unknown
from gristmill.ids import ChunkId, DocumentId, ScopeId, TaskId
from gristmill.knowledge import chunks
from gristmill.models import compute_cost
from gristmill.queue import cancel, send_many
from gristmill.records.letters import ingest_letter
from gristmill.records.model import FilePreview, Import, ImportPlan, Rejected, RowCounts
from gristmill.scopes import Scope, scope_id
from gristmill.settings import EmbeddingSettings

SQL = queries("gristmill.records", "store.sql")
TYPE = "record"  # of the document that an import is
EXAMPLES = 3  # rejected rows of each kind in a report
REMOVED_AT_ONCE = 5_000
ENDLESS = 2**63 - 1


@dataclass(frozen=True)
class StoredImport:
    """A row of `data_import`, with the names of its client and project."""

    id: DocumentId
    scope: ScopeId
    client: str
    project: str
    name: str
    state: str
    plan: ImportPlan
    hash: bytes
    size: int
    file_offset: int
    file_row: int
    loaded: int
    updated: int
    duplicate: int
    filtered: int
    invalid: int
    estimated_rows: int
    estimated_tokens: int
    estimated_cost: float
    tokens: int
    cost: float
    error: str | None
    task: TaskId | None
    created_at: datetime
    finished_at: datetime | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan", msgspec.convert(self.plan, ImportPlan))  # the database has it as JSON

    @property
    def counts(self) -> RowCounts:
        return RowCounts(self.loaded, self.updated, self.duplicate, self.filtered, self.invalid)


@dataclass(frozen=True)
class RemovedImport:
    """What the removal of an import removed."""

    records: int
    chunks: int
    tasks: int


async def draft_import(
    tx: Tx, scope: Scope, name: str, content: Staged, preview: FilePreview, settings: EmbeddingSettings
) -> DocumentId:
    """Keep a file and what was found out about it; nothing is loaded before `start_import`."""
    own = await scope_id(tx, scope)
    document = await open_collection(tx, own, content, urn=f"import:{uuid4()}", name=name, type=TYPE)
    await tx.execute(
        SQL["make_import"],
        document=document,
        scope=own,
        name=name,
        plan=_write_plan(preview.plan),
        hash=content.hash,
        size=content.size,
        rows=preview.estimated_rows,
        tokens=preview.estimated_tokens if preview.plan.embed else 0,
        cost=compute_cost(preview.estimated_tokens, settings.price) if preview.plan.embed else 0.0,
    )
    return document


async def start_import(tx: Tx, document: DocumentId, plan: ImportPlan | None = None) -> TaskId:
    """Send the letter that loads a draft, by the plan that was found or by another one."""
    found = await load_stored(tx, document)
    (task,) = await send_many(tx, [ingest_letter(document, found.scope)])
    chosen = _write_plan(plan or found.plan)
    if await tx.value(SQL["start_import"], document=document, plan=chosen, task=task) is None:
        raise Refused(f"Import {document} has been started already.")
    return task


def _write_plan(plan: ImportPlan) -> str:
    return orjson.dumps(asdict(plan)).decode()


async def find_import(tx: Tx, document: DocumentId) -> StoredImport | None:
    return await tx.one(SQL["load_import"], StoredImport, document=document)


async def load_stored(tx: Tx, document: DocumentId) -> StoredImport:
    found = await find_import(tx, document)
    if found is None:
        raise Unknown(f"There is no import {document}.", listed_by="gristmill records ls")
    return found


async def load_report(tx: Tx, document: DocumentId) -> Import:
    """An import, with the first examples of each kind of rejected row."""
    found = await load_stored(tx, document)
    rows = await tx.all(SQL["first_rejected"], Rejected, document=document, most=EXAMPLES)
    examples: dict[str, list[str]] = {}
    for one in rows:
        examples.setdefault(one.why, []).append(f"row {one.row}: {one.reason}")
    return replace(_report(found), examples=examples)


async def list_imports(
    tx: Tx, scopes: Sequence[ScopeId] | None = None, *, before: int | None = None, most: int = 50
) -> list[Import]:
    """The newest first."""
    asked: dict[str, Any] = {"before": ENDLESS if before is None else before, "most": most}
    if scopes is None:
        found = await tx.all(SQL["list_imports"], StoredImport, **asked)
    else:
        found = await tx.all(SQL["list_imports_of_scopes"], StoredImport, scopes=list(scopes), **asked)
    return [_report(one) for one in found]


def _report(found: StoredImport) -> Import:
    return Import(
        id=found.id,
        scope=found.scope,
        client=found.client,
        project=found.project,
        name=found.name,
        state=found.state,  # type: ignore[arg-type]  the table has a check
        plan=found.plan,
        size=found.size,
        offset=found.file_offset,
        row=found.file_row,
        estimated_rows=found.estimated_rows,
        counts=found.counts,
        estimated_tokens=found.estimated_tokens,
        estimated_cost=found.estimated_cost,
        tokens=found.tokens,
        cost=found.cost,
        error=found.error,
        task=found.task,
        created_at=found.created_at,
        finished_at=found.finished_at,
    )


async def list_rejected(tx: Tx, document: DocumentId, *, after: int = 0, most: int = 1_000) -> list[Rejected]:
    """Rows that became no record, in the order of the file."""
    return await tx.all(SQL["list_rejected"], Rejected, document=document, after=after, most=most)


class _RemovedRow(NamedTuple):
    records: int
    chunks: list[ChunkId]


async def remove_import(
    db: Database,
    document: DocumentId,
    *,
    seen_from: Scope | None = None,
    tell: Callable[[int], None] = lambda _: None,
    note: Callable[[Tx, StoredImport], Awaitable[None]] | None = None,
) -> RemovedImport:
    """Remove an import with its records, their vectors and terms; if it is interrupted, ask for it again.

    Many transactions: a large import must not hold one open for minutes. The import itself goes last. `note` writes
    down the removal in the transaction with which it begins.
    """
    async with db.transaction(seen_from=seen_from) as tx:
        found = await load_stored(tx, document)
        if await tx.one(SQL["lock_import"], document=document) is None:  # it is seen, and locked by its owner alone
            raise Refused(f"Import {document} is everybody's: it can be seen from here, but not removed.")
        if note:
            await note(tx, found)
        if found.task is not None:
            await cancel(tx, [found.task], reason="its import is being removed")
    records = removed = 0
    while True:
        async with db.transaction(seen_from=seen_from) as tx:
            gone = await tx.one(SQL["remove_portion"], _RemovedRow, document=document, most=REMOVED_AT_ONCE)
            assert gone is not None
            await chunks.remove(tx, gone.chunks)
        records, removed = records + gone.records, removed + len(gone.chunks)
        tell(records)
        if not gone.records:
            break
    async with db.transaction(seen_from=seen_from) as tx:
        await tx.one(SQL["lock_import"], document=document)  # every writer locks the import before the document
        rest = await remove(tx, [document])
    return RemovedImport(records, removed + rest.chunks, rest.tasks)


async def remove_old_drafts(db: Database) -> int:
    """Files that somebody looked at and never loaded go after a day."""
    async with db.transaction() as tx:
        drafts = await tx.values(SQL["old_drafts"], Column[DocumentId], most=100)
    for one in drafts:
        with suppress(Unknown):
            await remove_import(db, one)
    return len(drafts)
