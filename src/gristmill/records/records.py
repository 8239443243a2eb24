"""Records as people list, read, write out and remove them."""

import csv
import io
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec
import orjson

from gristmill.db import Database, Tx, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge import chunks, lexicon
from gristmill.queue import send_many
from gristmill.records.imports import list_rejected, load_stored
from gristmill.records.model import ImportPlan, Record, RecordId
from gristmill.scopes import Scope, find_scope, visible

SQL = queries("gristmill.records", "records.sql")
PORTION = 1_000
MOST_TALLIED = 256  # rows of counts of an import: if there are more, they are added up
LOOKED_AT, MOST_COLUMNS = 50, 500  # imports of a scope, and columns of all of them, that are named
# A spreadsheet would compute what begins like this. A plain number is only a number.
FORMULA = re.compile(r"\s*[=+\-@\t\r]")
NUMBER = re.compile(r"[-+]?\d+([.,]\d+)*")


@dataclass(frozen=True)
class EmbeddingProgress:
    """How many records of an import can be found."""

    searchable: int
    waiting: int
    troubled: int


async def find_project(tx: Tx, scope: Scope) -> ScopeId:
    found = await find_scope(tx, scope)
    if found is None:
        raise Unknown(f"There is nothing in {scope}: gristmill records ls lists what there is.")
    return found


async def list_records(
    tx: Tx,
    scopes: Sequence[ScopeId] | None = None,
    *,
    document: DocumentId | None = None,
    category: str | None = None,
    after: int = 0,
    most: int = 50,
) -> list[Record]:
    """The oldest first, behind the record with the id `after`; of one import in the order of its rows, behind a row.

    Each list has an index that begins where it is asked to: what a portion costs does not grow with the records.
    """
    asked: dict[str, Any] = {"after": after, "most": most}
    if document is not None and category is not None:
        return await tx.all(SQL["rows_of_category"], Record, document=document, category=category, **asked)
    if document is not None:
        return await tx.all(SQL["rows_of_import"], Record, document=document, **asked)
    if category is not None:
        among = await tx.value(SQL["all_scopes"], list[ScopeId]) if scopes is None else list(scopes)
        return await tx.all(SQL["oldest_of_category"], Record, scopes=among, category=category, **asked)
    if scopes is not None:
        return await tx.all(SQL["oldest_of_scopes"], Record, scopes=list(scopes), **asked)
    return await tx.all(SQL["oldest_of_all"], Record, **asked)


async def load_record(tx: Tx, record: RecordId) -> Record:
    found = await tx.one(SQL["load_record"], Record, record=record)
    if found is None:
        raise Unknown(f"There is no record {record}.", listed_by="gristmill records ls")
    return found


async def load_embedding_progress(tx: Tx, document: DocumentId) -> EmbeddingProgress:
    found = await tx.one(SQL["embedding_progress"], EmbeddingProgress, document=document)
    assert found is not None
    return found


async def fold_tally(tx: Tx, document: DocumentId, *, most: int = MOST_TALLIED) -> None:
    """Make one row of the counts of an import if there are many."""
    await tx.execute(SQL["fold_tally"], document=document, most=most)


async def list_columns(tx: Tx, scope: Scope | None) -> list[str]:
    """The columns of the newest imports that are seen from a scope, by name; without a scope, of all clients."""
    scopes = None if scope is None else await visible(tx, scope)
    return await tx.values(SQL["columns"], str, scopes=scopes, imports=LOOKED_AT, most=MOST_COLUMNS)


async def _load_plans(tx: Tx, scopes: Sequence[ScopeId]) -> list[ImportPlan]:
    return [msgspec.convert(one, ImportPlan) for one in await tx.values(SQL["plans"], object, scopes=list(scopes))]


def _join_columns(plans: Sequence[ImportPlan]) -> list[str]:
    return list(dict.fromkeys(name for plan in plans for name in plan.columns))


class _RemovedRow(NamedTuple):
    records: int
    chunks: list[ChunkId]
    scopes: list[ScopeId]


async def remove_records(tx: Tx, ids: Sequence[RecordId]) -> int:
    """Remove single records, with their vectors and terms; how many there were."""
    gone = await tx.one(SQL["remove_records"], _RemovedRow, ids=list(ids))
    if gone is None or not gone.records:
        raise Unknown("There is no such record.", listed_by="gristmill records ls")
    await chunks.remove(tx, gone.chunks)
    await send_many(tx, [lexicon.fold_letter(scope) for scope in gone.scopes])
    return gone.records


# --- writing out


async def export_records(
    db: Database,
    *,
    document: DocumentId | None = None,
    scope: Scope | None = None,
    format: Literal["csv", "jsonl"] = "csv",
    seen_from: Scope | None = None,
) -> AsyncIterator[bytes]:
    """The records of an import, or of a project, piece by piece; no transaction is open in between."""
    if (document is None) == (scope is None):
        raise Refused("Say which records: those of an import, or those of a project.")
    async with db.transaction(seen_from=seen_from) as tx:
        if document is not None:
            plans = [(await load_stored(tx, document)).plan]
            project = None
        else:
            assert scope is not None
            project = await find_project(tx, scope)
            plans = await _load_plans(tx, [project])
    columns = _join_columns(plans)
    texts = {name for plan in plans for name in plan.text}
    if format == "csv":
        yield write_csv([[*columns, "category"]])
    after = 0
    while True:
        async with db.transaction(seen_from=seen_from) as tx:
            some = await _next_records(tx, document, project, after)
        if not some:
            return
        after = some[-1].row if document is not None else some[-1].id
        rows = [_restore_cells(one, columns, texts) for one in some]
        yield write_csv(rows) if format == "csv" else _write_jsonl(columns, rows, some)


async def _next_records(tx: Tx, document: DocumentId | None, project: ScopeId | None, after: int) -> list[Record]:
    scopes = None if project is None else [project]
    return await list_records(tx, scopes, document=document, after=after, most=PORTION)


def _restore_cells(record: Record, columns: Sequence[str], texts: set[str]) -> list[str]:
    """The cells as they stood in the file: the text is kept apart from the others."""
    cells = [str(record.columns.get(name, record.content if name in texts else "")) for name in columns]
    return [*cells, record.category or ""]


def _write_jsonl(columns: Sequence[str], rows: Sequence[Sequence[str]], records: Sequence[Record]) -> bytes:
    found = (
        {**record.columns, **dict(zip([*columns, "category"], cells, strict=True))}
        for record, cells in zip(records, rows, strict=True)
    )
    return b"".join(orjson.dumps(one) + b"\n" for one in found)


def write_csv(rows: Sequence[Sequence[str]]) -> bytes:
    """Rows of CSV that a spreadsheet shows and never computes."""
    text = io.StringIO()
    csv.writer(text).writerows([[defuse(cell) for cell in row] for row in rows])
    return text.getvalue().encode()


def defuse(cell: str) -> str:
    """A cell that begins like a formula gets an apostrophe before it, as spreadsheets write text."""
    return f"'{cell}" if FORMULA.match(cell) and not NUMBER.fullmatch(cell.strip()) else cell


async def export_rejected(
    db: Database, document: DocumentId, *, seen_from: Scope | None = None
) -> AsyncIterator[bytes]:
    """The rows that became no record, with the reason before their cells."""
    async with db.transaction(seen_from=seen_from) as tx:
        plan = (await load_stored(tx, document)).plan
    yield write_csv([["row", "why", "reason", *plan.columns]])
    after = 0
    while True:
        async with db.transaction(seen_from=seen_from) as tx:
            some = await list_rejected(tx, document, after=after, most=PORTION)
        if not some:
            return
        after = some[-1].row
        yield write_csv([[str(one.row), one.why, one.reason, *one.cells] for one in some])
