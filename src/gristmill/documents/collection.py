"""A document that another room fills: its chunks hang on it, and go with it."""

from gristmill.db import Tx, queries
from gristmill.documents.blobs import Staged, drop_unused_bytes, hash_of, keep_bytes, lock_bytes
from gristmill.documents.written import SQL as WRITTEN
from gristmill.ids import DocumentId, ScopeId

SQL = queries("gristmill.documents", "collection.sql")
NOTHING = b""


async def open_collection(tx: Tx, scope: ScopeId, content: Staged, *, urn: str, name: str, type: str) -> DocumentId:
    """A document of this type, with the bytes that its chunks will be made of."""
    await keep_bytes(tx, content)
    made = await tx.only_value(
        WRITTEN["make_document"],
        int,
        scope=scope,
        urn=urn,
        version=1,
        hash=content.hash,
        name=name,
        title=None,
        type=type,
        meta="{}",
        written_at=None,
        container=None,
    )
    return DocumentId(made)


async def drop_content(tx: Tx, document: DocumentId) -> None:
    """Drop the bytes of such a document: whoever fills it needs them no more."""
    old = await tx.value(SQL["hash_of"], bytes, document=document)
    if old is None:
        return
    await lock_bytes(tx, [old])
    await keep_bytes(tx, NOTHING)
    await tx.execute(SQL["exchange_bytes"], document=document, hash=hash_of(NOTHING))
    await drop_unused_bytes(tx, [old])
