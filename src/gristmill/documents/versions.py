"""The versions of a source: those that are documents, and the texts of those that were replaced."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from gristmill.db import Tx, queries
from gristmill.errors import Unknown
from gristmill.ids import DocumentId, ScopeId

SQL = queries("gristmill.documents", "versions.sql")
KEPT = 10  # versions of a source whose texts are kept
LONGEST = 10_000_000  # characters of a version whose text is kept
PAGE_BREAK = "\f"


@dataclass(frozen=True)
class SourceVersion:
    """A version of a source; `document` is None if a newer one took its place and only its text is left."""

    version: int
    document: DocumentId | None
    name: str
    title: str | None
    type: str | None
    added_at: datetime
    replaced_at: datetime | None
    pages: int | None


class ScopedUrn(NamedTuple):
    """A source of documents, by its scope and its URN."""

    scope: ScopeId
    urn: str


async def list_versions(tx: Tx, document: DocumentId) -> list[SourceVersion]:
    """All versions of the source of this document, the newest first."""
    return await tx.all(SQL["list_versions"], SourceVersion, id=document)


async def load_version_pages(tx: Tx, document: DocumentId, version: int) -> list[str]:
    """The pages of a version of the same source as this document."""
    text = await tx.value(SQL["load_version_text"], str, id=document, version=version)
    if text is None:
        raise Unknown(f"There is no version {version} of document {document}, or its text was not kept.")
    return text.split(PAGE_BREAK)


async def keep_texts(tx: Tx, replaced: Sequence[DocumentId]) -> None:
    """Keep the texts of versions that are about to be removed, unless the newer one is made of the same bytes."""
    await tx.execute(SQL["keep_texts"], ids=list(replaced), longest=LONGEST)
    await tx.execute(SQL["forget_oldest"], ids=list(replaced), kept=KEPT)


async def sources_of(tx: Tx, documents: Sequence[DocumentId]) -> list[ScopedUrn]:
    return await tx.all(SQL["sources_of"], ScopedUrn, ids=list(documents))


async def forget_texts(tx: Tx, sources: Sequence[ScopedUrn]) -> None:
    """Forget the texts of sources that have no document any more."""
    if sources:
        await tx.execute(SQL["forget_texts"], scopes=[one.scope for one in sources], urns=[one.urn for one in sources])
