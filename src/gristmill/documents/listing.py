"""Lists of documents: the newest that fit a filter, in portions whose cost does not grow with what is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from gristmill.db import Column, Query, Tx, queries
from gristmill.documents.progress import ENDLESS, Progress, load_progress
from gristmill.errors import Refused, Unknown
from gristmill.ids import DocumentId, ScopeId
from gristmill.scopes import Scope, visible

SQL = queries("gristmill.documents", "listing.sql")
STATUSES = ("pending", "processing", "completed", "failed", "cancelled")
SCANNED = 20_000  # documents whose names one portion looks through …
SCANNED_DEAD = 2_000  # … and of those with dead letters, each of which is a look into an index
JUDGED = 500  # documents whose status is asked for at a time …
ROUNDS = 4  # … and how often in one portion


@dataclass(frozen=True)
class DocumentFilter:
    """Which documents are meant; every part that is not None must fit."""

    client: str | None = None
    project: str | None = None
    status: str | None = None
    type: str | None = None
    name: str | None = None  # a part of the name or of the title, in any case of letters
    container: DocumentId | None = None  # the parts of this document …
    top: bool = False  # … or only documents that lie in no other


@dataclass(frozen=True)
class DocumentPortion:
    """Some of the documents that fit; `next` is where to go on, also if few of those looked at fit. None at the end."""

    documents: Sequence[Progress]
    next: DocumentId | None


@dataclass(frozen=True)
class DocumentLink:
    """A document by name."""

    id: DocumentId
    name: str
    type: str | None


class _Candidates(NamedTuple):
    ids: list[DocumentId]  # that fit, as far as their rows tell
    last: DocumentId | None  # that was looked at
    cut: bool  # there may be more


async def find_documents(
    tx: Tx, wanted: DocumentFilter, *, before: DocumentId | None = None, limit: int = 50
) -> DocumentPortion:
    """The newest documents that fit, from the one before `before` on."""
    if wanted.status is not None and wanted.status not in STATUSES:
        raise Refused(f"“{wanted.status}” is no status of a document: there are {', '.join(STATUSES)}.")
    scopes = await _scopes_of(tx, wanted)
    judged = wanted.status not in (None, "completed")
    found: list[Progress] = []
    for _ in range(ROUNDS if judged else 1):
        seen = await _find_candidates(tx, wanted, scopes, before, JUDGED if judged else limit + 1)
        fitting = [one for one in reversed(await load_progress(tx, seen.ids)) if _fits(one, wanted)]
        found += fitting[: limit + 1 - len(found)]
        if len(found) > limit:
            return DocumentPortion(found[:limit], found[limit - 1].id)
        if not seen.cut:
            return DocumentPortion(found, None)
        before = seen.last
    return DocumentPortion(found, before)


def _fits(one: Progress, wanted: DocumentFilter) -> bool:
    return wanted.status is None or one.status == wanted.status


async def _scopes_of(tx: Tx, wanted: DocumentFilter) -> list[ScopeId]:
    """The scopes that are looked through: the database shows no others to a client anyway, but would look at them."""
    seen = tx.seen_from
    scopes = {"client": wanted.client, "project": wanted.project}
    named = await tx.only_value(SQL["scopes_of"], list[ScopeId], **scopes)
    if seen is None:
        return named
    own = set(await visible(tx, Scope(seen.client, seen.project)))
    return [scope for scope in named if scope in own]


async def _find_candidates(
    tx: Tx, wanted: DocumentFilter, scopes: Sequence[ScopeId], before: DocumentId | None, most: int
) -> _Candidates:
    everywhere = tx.seen_from is None and wanted.client is None and wanted.project is None
    statement = _choose_statement(wanted, everywhere=everywhere)
    sifted = wanted.name or wanted.top or (wanted.type is not None and statement is not SQL["of_type"])
    scanned = SCANNED_DEAD if wanted.status == "failed" else SCANNED
    given: dict[str, Any] = {
        "scopes": list(scopes),
        "everywhere": everywhere,
        "before": ENDLESS if before is None else before,
        "type": wanted.type,
        "container": wanted.container,
        "top": wanted.top,
        "name": (wanted.name or "").lower(),
        "completed": wanted.status == "completed",
        "scan": max(scanned, most) if sifted or wanted.status == "completed" else most,
        "most": most,
    }
    row = await tx.one(statement, _Candidates, **given)
    assert row is not None
    if len(row.ids) == most:  # what was looked at behind the last of them is looked at again
        return _Candidates(row.ids, row.ids[-1], True)
    return row


def _choose_statement(wanted: DocumentFilter, *, everywhere: bool) -> Query:
    """The statement whose index leaves the fewest documents to look at; `everywhere`: in all scopes."""
    if wanted.container is not None:
        return SQL["parts"]
    if wanted.status == "failed":
        return SQL["failed"]
    if wanted.status not in (None, "completed"):
        return SQL["incomplete"]
    if wanted.type is not None:
        return SQL["of_type"]
    return SQL["newest"] if everywhere else SQL["newest_of_scopes"]


# --- other orders

Order = Literal["oldest", "name", "-name"]
ORDERS: dict[Order, Query] = {"oldest": SQL["oldest"], "name": SQL["by_name"], "-name": SQL["by_name_falling"]}


@dataclass(frozen=True)
class ListPlace:
    """The document behind which a portion of an ordered list begins."""

    id: DocumentId
    name: str  # as it is sorted


@dataclass(frozen=True)
class OrderedPortion:
    """As DocumentPortion, in another order."""

    documents: Sequence[Progress]
    next: ListPlace | None


class _Ordered(NamedTuple):
    ids: list[DocumentId]  # that fit, as far as their rows tell …
    names: list[str]  # … and their names, as they are sorted
    last_id: DocumentId | None  # that was looked at
    last_name: str | None
    cut: bool


async def order_documents(
    tx: Tx, wanted: DocumentFilter, order: Order, *, start: ListPlace | None = None, limit: int = 50
) -> OrderedPortion:
    """The first documents that fit, by age or by name, behind `start`: of all that there are, by an index."""
    scopes = await _scopes_of(tx, wanted)
    judged = wanted.status not in (None, "completed")
    at = start
    found: list[tuple[Progress, ListPlace]] = []
    for _ in range(ROUNDS if judged else 1):
        seen = await _read_ordered(tx, wanted, order, scopes, at, JUDGED if judged else limit + 1)
        loaded = {one.id: one for one in await load_progress(tx, seen.ids)}
        spots = [ListPlace(*place) for place in zip(seen.ids, seen.names, strict=True)]
        found += [(loaded[one.id], one) for one in spots if one.id in loaded and _fits(loaded[one.id], wanted)]
        if len(found) > limit:
            return OrderedPortion([one for one, _ in found[:limit]], found[limit - 1][1])
        if not seen.cut or seen.last_id is None:
            return OrderedPortion([one for one, _ in found], None)
        at = ListPlace(seen.last_id, seen.last_name or "")
    return OrderedPortion([one for one, _ in found], at)


async def _read_ordered(
    tx: Tx, wanted: DocumentFilter, order: Order, scopes: Sequence[ScopeId], at: ListPlace | None, most: int
) -> _Ordered:
    sifted = any((wanted.name, wanted.top, wanted.type, wanted.container, wanted.status == "completed"))
    row = await tx.one(
        ORDERS[order],
        _Ordered,
        scopes=list(scopes),
        id=at.id if at else 0,
        after=at.name if at else "",
        step=0 if at else 1,  # from the end of a scope: before the first name of the next one
        type=wanted.type,
        container=wanted.container,
        top=wanted.top,
        name=(wanted.name or "").lower(),
        completed=wanted.status == "completed",
        scan=max(SCANNED, most) if sifted else most,
        most=most,
    )
    assert row is not None
    if len(row.ids) == most:  # what was looked at behind the last of them is looked at again
        return row._replace(last_id=row.ids[-1], last_name=row.names[-1], cut=True)
    return row


# --- the tree


async def list_containers(tx: Tx, document: DocumentId) -> list[DocumentLink]:
    """The documents that this one lies in, the outermost first."""
    return await tx.all(SQL["containers"], DocumentLink, id=document)


async def find_containers(tx: Tx, ids: Sequence[DocumentId]) -> set[DocumentId]:
    """Those of these documents that others lie in."""
    return set(await tx.values(SQL["with_any_part"], Column[DocumentId], ids=list(ids)))


async def load_one(tx: Tx, document: DocumentId) -> Progress:
    """How far one document is."""
    found = await load_progress(tx, [document])
    if not found:
        raise Unknown(f"There is no document {document}.", listed_by="gristmill documents")
    return found[0]
