"""The bytes of documents: kept in the database, once for each content."""

import asyncio
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import BinaryIO, NamedTuple, cast
from uuid import UUID

from gristmill.db import Database, Tx, queries
from gristmill.errors import Permanent, Transient

SQL = queries("gristmill.documents", "blobs.sql")
PIECE = 1 << 20
PORTION = 16  # pieces that are written in one transaction: a large file must not hold one open for minutes
ABANDONED = timedelta(days=1)  # staged bytes that no document has after so long were left behind

LEFT_TOO_LONG = "the staged bytes were left too long and have been removed: stage them again"


@dataclass(frozen=True)
class Staged:
    """Bytes that are in the database, and stay there until a document takes them in or a day has passed."""

    hash: bytes
    size: int
    pin: UUID


class _Begun(NamedTuple):
    """Bytes that are arriving."""

    pin: UUID
    blob: int


def hash_of(content: Staged | bytes) -> bytes:
    return content.hash if isinstance(content, Staged) else hashlib.sha256(content).digest()


def digest(file: BinaryIO) -> tuple[bytes, int]:
    """The hash and the size of the bytes in a file."""
    sum_, size = hashlib.sha256(), 0
    while piece := file.read(PIECE):
        sum_.update(piece)
        size += len(piece)
    return sum_.digest(), size


async def stage(db: Database, source: BinaryIO | AsyncIterable[bytes]) -> Staged:
    """Bring bytes of any size into the database, a portion in each transaction, before they are taken in.

    Bytes that are there already are not brought again: of a file, which can be read twice, the hash is reckoned first.
    """
    if isinstance(source, AsyncIterable):
        return await _bring(db, source)
    if not source.seekable():
        return await _bring(db, _pieces_of(source))
    hash_, size = await asyncio.to_thread(digest, source)  # the loop goes on meanwhile
    async with db.transaction() as tx:
        pin = await tx.value(SQL["pin"], UUID, hash=hash_)
    if pin is not None:
        return Staged(hash_, size, pin)
    source.seek(0)
    staged = await _bring(db, _pieces_of(source))
    if staged.hash != hash_:  # half of it may be old and half new; its bytes go when they have been left for a day
        raise Permanent("the file changed while it was read: add it again")
    return staged


async def _pieces_of(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, PIECE):
        yield piece


async def _bring(db: Database, source: AsyncIterable[bytes]) -> Staged:
    """Write the bytes as they come. Their hash is known at the end; until then no other program can find them."""
    sum_, size, n = hashlib.sha256(), 0, 0
    async with db.transaction() as tx:
        begun = await tx.one(SQL["begin_staging"], _Begun)
    assert begun is not None
    async for pieces in _portions(source):
        async with db.transaction() as tx:
            if await tx.one(SQL["renew"], pin=begun.pin) is None:
                raise Transient(LEFT_TOO_LONG)
            for piece in pieces:
                sum_.update(piece)
                size += len(piece)
                await tx.execute(SQL["add_piece"], blob=begun.blob, n=n, bytes=piece)
                await tx.flush()  # one at a time is in memory
                n += 1
    staged = Staged(sum_.digest(), size, begun.pin)
    async with db.transaction() as tx:
        await _finish_staging(tx, staged, begun)
    return staged


async def _portions(source: AsyncIterable[bytes]) -> AsyncIterator[list[bytes]]:
    """The bytes cut into pieces of one size, whatever sizes they come in."""
    pieces, rest = list[bytes](), bytearray()
    async for some in source:
        rest += some
        while len(rest) >= PIECE:
            pieces.append(bytes(rest[:PIECE]))
            del rest[:PIECE]
            if len(pieces) == PORTION:
                yield pieces
                pieces = []
    if rest:
        pieces.append(bytes(rest))
    if pieces:
        yield pieces


async def _finish_staging(tx: Tx, staged: Staged, begun: _Begun) -> None:
    """Put the pieces under their hash, unless another stager brought the same bytes first."""
    kept = await tx.value(SQL["keep_blob"], int, hash=staged.hash, size=staged.size)
    await tx.execute(SQL["hand_pieces"], staged=begun.blob, kept=kept)
    await tx.execute(SQL["move_pin"], pin=staged.pin, kept=kept)
    await tx.execute(SQL["drop_staging"], staged=begun.blob)


async def keep_bytes(tx: Tx, *contents: Staged | bytes) -> None:
    """Let these bytes be there when a document of this transaction refers to them.

    In the order of their hashes: every transaction takes its locks in this order.
    """
    for is_staged, run in groupby(sorted(contents, key=hash_of), key=lambda one: isinstance(one, Staged)):
        if is_staged:
            for content in run:
                await _claim(tx, cast(Staged, content))
            continue
        for some in _divide_by_size(cast(Iterable[bytes], run)):
            await tx.one(SQL["keep_bytes"], contents=some)


def _divide_by_size(contents: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Contents that one statement carries."""
    some, size = list[bytes](), 0
    for content in contents:
        if some and size + len(content) > PORTION * PIECE:
            yield some
            some, size = [], 0
        some.append(content)
        size += len(content)
    if some:
        yield some


async def _claim(tx: Tx, content: Staged) -> None:
    if not await tx.value(SQL["claim"], pin=content.pin, hash=content.hash) and not await _hold_seen(tx, content):
        raise Transient(LEFT_TOO_LONG)


async def release(tx: Tx, content: Staged) -> None:
    """Give staged bytes up: no document is to have them."""
    await tx.one(SQL["release"], pin=content.pin, hash=content.hash)


async def _hold_seen(tx: Tx, content: Staged) -> bool:
    """Whether a document that the caller sees has these bytes: then the caller may use them without a pin.

    The bytes are held before the question is asked: the document may be removed meanwhile, and its bytes with it.
    """
    await hold_bytes(tx, content.hash)
    return await tx.only_value(SQL["has_document"], bool, hash=content.hash)


async def hold_bytes(tx: Tx, hash_: bytes) -> None:
    """Keep the bytes of a document from being removed while this transaction gives them to another one."""
    await tx.one(SQL["hold"], hash=hash_)


async def lock_bytes(tx: Tx, hashes: Sequence[bytes]) -> None:
    """Lock bytes before their documents are removed. Every transaction takes these locks in the same order."""
    await tx.one(SQL["lock"], hashes=list(hashes))


async def drop_unused_bytes(tx: Tx, hashes: Sequence[bytes]) -> None:
    await tx.one(SQL["drop_unused"], hashes=list(hashes))


async def clear_staged(db: Database) -> None:
    """Remove bytes that were staged long ago and that no document took in: the program died, or did not need them."""
    async with db.transaction() as tx:
        await tx.execute(SQL["forget_claims"])
        left = await tx.values(SQL["unpin_abandoned"], int, age=ABANDONED)
        if left:
            await tx.execute(SQL["drop_unfinished"], blobs=left)
            await tx.one(SQL["drop_abandoned"], blobs=left)
