"""Families of documents: a mail with its attachments, or a file with what lies in it, and which of them are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from gristmill.db import Tx, queries
from gristmill.documents.letters import OpenDocument, ReadPage
from gristmill.documents.model import document_of
from gristmill.ids import DocumentId, ScopeId

SQL = queries("gristmill.documents", "families.sql")


class FamilyMember(NamedTuple):
    """A document of a family, and whether its pages are read."""

    root: DocumentId
    depth: int  # the root has 0
    id: DocumentId
    scope: ScopeId
    urn: str
    version: int
    name: str
    type: str | None
    title: str | None
    meta: Mapping[str, Any]
    written_at: datetime | None
    added_at: datetime
    state: Literal["read", "unread", "failed"]
    error: str | None  # why pages of it are missing
    pages: int  # that have a text
    replaced: bool  # a newer version of it is read, too


@dataclass(frozen=True)
class Family:
    """A document that lies in no other, or in a mailbox, and all that lies in it."""

    root: FamilyMember
    members: Sequence[FamilyMember]  # the root first

    @property
    def is_read(self) -> bool:
        """Whether nothing more will come by itself."""
        return all(one.state != "unread" for one in self.members)

    @property
    def is_closed(self) -> bool:
        """Whether its file could not be opened at all: nobody knows what it is, and nothing lies in it."""
        return self.root.type is None and self.root.state == "failed" and len(self.members) == 1

    @property
    def failures(self) -> list[FamilyMember]:
        return [one for one in self.members if one.state == "failed"]


async def find_families(tx: Tx, documents: Sequence[DocumentId]) -> list[Family]:
    """The families that these documents belong to, each once. A mailbox is no family: each of its mails is."""
    rows = await tx.all(SQL["families"], FamilyMember, ids=list(set(documents)))
    families: dict[DocumentId, dict[str, FamilyMember]] = {}
    for row in rows:  # by depth and version: of two versions of a part, the newer one counts
        families.setdefault(row.root, {})[row.urn] = row
    return [Family(next(iter(found.values())), list(found.values())) for found in families.values()]


class _Dead(NamedTuple):
    owner: str
    died_at: datetime


async def find_unreadable(tx: Tx, since: datetime, *, limit: int = 1_000) -> tuple[list[DocumentId], datetime]:
    """The documents of which a page, or all of it, could not be read since then; and until when was looked."""
    kinds = [OpenDocument.kind, ReadPage.kind]
    rows = await tx.all(SQL["unreadable"], _Dead, since=since, kinds=kinds, limit=limit)
    found = [document for row in rows if (document := document_of(row.owner)) is not None]
    return list(dict.fromkeys(found)), rows[-1].died_at if rows else since
