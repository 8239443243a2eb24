"""Adds files: new ones, changed ones, and those that are known already."""

import asyncio
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from gristmill.db import Database, Tx
from gristmill.documents import blobs, store
from gristmill.documents.model import Document
from gristmill.documents.progress import failures, progress
from gristmill.documents.reading import Part, refusals, tidy
from gristmill.documents.urgency import ORDINARY, Urgency
from gristmill.errors import Permanent, Refused
from gristmill.ids import DocumentId
from gristmill.scopes import Scope, scope_id

LONGEST_URN = 2_000  # characters, all of them ASCII: an index takes 2,700, and parts add their places to it


@dataclass(frozen=True)
class Added:
    """What became of one file."""

    name: str
    urn: str
    document: DocumentId | None
    status: Literal["added", "changed", "unchanged", "failed", "cancelled", "refused"]  # unchanged, and so it had ended
    reason: str | None = None


def urn_of(path: Path) -> str:
    return Path(os.path.realpath(path)).as_uri()  # resolve() gives up on links that lead in a circle


def name_of(path: Path) -> str:
    """The name of a file as it can be shown: whatever bytes a file system allows in it."""
    return tidy.line(path.name) or "file"


async def add_file(db: Database, path: Path, scope: Scope, *, max_bytes: int, urgency: Urgency = ORDINARY) -> Added:
    """A new version if the file is new or has changed."""
    name, urn = name_of(path), urn_of(path)
    try:
        with _opened(path, max_bytes) as file:
            if len(urn) > LONGEST_URN:
                raise Permanent("its path is too long: move it to a folder that is less deep")
            return await _add_open(db, file, name, urn, scope, urgency)
    except OSError as error:
        return Added(name, urn, None, "refused", f"it cannot be read ({error.strerror or error})")
    except Permanent as error:
        return Added(name, urn, None, "refused", str(error))


def _opened(path: Path, max_bytes: int) -> BinaryIO:
    """Nothing of what is too large is read: a file of a few blocks may say that it has terabytes."""
    about = path.stat()
    mode = about.st_mode
    if stat.S_ISDIR(mode):
        os.listdir(path)  # says why, if it is closed to us
        raise Permanent("it is a link to a folder, which is not followed: add that folder itself")
    if not stat.S_ISREG(mode):  # whoever opens a pipe waits for a writer
        raise Permanent("it is neither a file nor a folder")
    if path.is_symlink():  # whoever may put one into a folder would read by us what is closed to him
        raise Permanent("it is a link to a file, which is not followed: add that file itself")
    if about.st_size > max_bytes:
        raise refusals.too_large(about.st_size, max_bytes)
    return open(path, "rb", opener=_unlinked)


def _unlinked(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)  # it may have become a link since


async def _add_open(db: Database, file: BinaryIO, name: str, urn: str, scope: Scope, urgency: Urgency) -> Added:
    hash_, size = await asyncio.to_thread(blobs.digest, file)  # whoever shows how far others are goes on meanwhile
    file.seek(0)
    async with db.transaction() as tx:
        within = await scope_id(tx, scope)
        last = await store.latest(tx, within, urn)
        if last is not None and last.hash == hash_ and last.has_bytes:
            return await _known(tx, name, urn, last)
        await blobs.keep(tx, hash_, size, iter(lambda: file.read(blobs.PIECE), b""))
        version = last.version + 1 if last else 1
        document = await store.create(tx, within, urn, hash_, name, version=version, urgency=urgency)
    return Added(name, urn, document, "changed" if last else "added")


async def _known(tx: Tx, name: str, urn: str, last: Any) -> Added:
    """Whoever adds again what has failed wants it to succeed: the same bytes would fail again, a retry may not."""
    unchanged = Added(name, urn, last.id, "unchanged", f"its content is that of document {last.id}")
    if last.completed_at is not None:
        return unchanged
    if died := await failures(tx, last.id, limit=1):
        retry = f"gristmill document retry {last.id} tries it again"
        return Added(name, urn, last.id, "failed", f"{died[0].error.rstrip('.')}: {retry}")
    (seen,) = await progress(tx, [last.id])
    if seen.status == "cancelled":
        return Added(name, urn, last.id, "cancelled", f"document {last.id} was cancelled: {advise_reindex(last.id)}")
    return unchanged


def advise_reindex(document: DocumentId) -> str:
    return f"gristmill document reindex {document} makes it anew"


async def add_again(tx: Tx, document: DocumentId) -> DocumentId:
    """A new version of a document from the same bytes: what is known already is not computed again."""
    known = (await store.load(tx, [document])).get(document)
    if known is None:
        raise _gone(document)
    if not known.phases:
        raise Refused(f"Document {document} was not read from a file but written down: whoever did can do so again.")
    if known.container is not None and not known.size:
        raise Refused(f"Document {document} has no bytes: reindex document {known.container}, in which it lies.")
    last = await store.latest(tx, known.scope, known.urn)
    known = await store.held(tx, known)
    if known is None:
        raise _gone(document)
    if last.id != document:
        raise Refused(f"Document {document} has a newer version, which would be undone: reindex document {last.id}.")
    return await store.create(
        tx, known.scope, known.urn, known.hash, known.name, version=last.version + 1, container=known.container
    )


def _gone(document: DocumentId) -> Refused:
    return Refused(f"There is no document {document}: gristmill documents lists them.")


async def add_part(tx: Tx, container: Document, part: Part, urgency: Urgency = ORDINARY) -> None:
    """What lies in a document (an attachment, a mail in a mailbox) is a document of its own."""
    urn = f"{container.urn}#{part.suffix}"
    last = await store.latest(tx, container.scope, urn)
    if last and (last.container_version or 0) > container.version:
        return  # a newer version of the container was opened before this one: its part is the newer one
    hash_ = blobs.hashed(part.data)
    if last and not part.refusal and _is_kept(last, container, hash_) and await _goes_on(tx, last):
        await store.keep_part(tx, container, urn)
        return
    await blobs.keep(tx, hash_, len(part.data), blobs.pieces_of(part.data))
    version = last.version + 1 if last else 1
    await store.create(
        tx,
        container.scope,
        urn,
        hash_,
        part.name,
        version=version,
        container=container.id,
        urgency=urgency,
        refusal=part.refusal,
    )


def _is_kept(last: Any, container: Document, hash_: bytes) -> bool:
    """The same bytes in the same place of a container that has changed; one that has not is being made anew."""
    return last.hash == hash_ and last.has_bytes and last.container_hash not in (None, container.hash)


async def _goes_on(tx: Tx, last: Any) -> bool:
    """Whether it is whole or will be: what has failed is tried again with its container."""
    if last.completed_at is not None:
        return True
    (seen,) = await progress(tx, [last.id])
    return not seen.ended
