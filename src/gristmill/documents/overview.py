"""What a board shows of many documents: the ones that matter most just now, and how many there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gristmill.db import Column, Tx, queries
from gristmill.documents.intake import urn_of
from gristmill.documents.progress import (
    ENDLESS,
    Progress,
    Tally,
    count_documents,
    list_at_work,
    list_documents,
    load_progress,
)
from gristmill.ids import DocumentId
from gristmill.scopes import Scope

SQL = queries("gristmill.documents", "overview.sql")


@dataclass(frozen=True)
class Overview:
    """Documents that workers are busy with, documents with errors and the newest; the tally counts all."""

    documents: Sequence[Progress]
    tally: Tally


async def load_overview(tx: Tx, most: int) -> Overview:
    """Of all documents, at most so many of each kind; the count comes from counters, however many there are."""
    dead = await tx.values(SQL["dead_documents"], Column[DocumentId], before=ENDLESS, most=most)
    chosen = await load_progress(tx, [*(await list_at_work(tx))[:most], *dead])
    newest = await list_documents(tx, limit=most)
    return Overview(list({one.id: one for one in [*newest, *chosen]}.values()), await count_documents(tx))


async def load_overview_of(tx: Tx, scope: Scope, folder: Path | None, most: int) -> Overview:
    """Of the documents that lie in this very scope and, if one is given, come from this folder; parts included."""
    ours = {"client": scope.client, "project": scope.project, "prefix": _prefix_of(folder)}
    chosen = await tx.values(SQL["choose_documents"], Column[DocumentId], most=most, **ours)
    (tally,) = await tx.all(SQL["count_documents"], Tally, **ours)
    return Overview((await load_progress(tx, chosen))[::-1], tally)


def _prefix_of(folder: Path | None) -> str:
    """How the URNs of all files below this folder begin."""
    return "" if folder is None else urn_of(folder).rstrip("/") + "/"
