"""Copies of documents' bytes on this machine's disk, where parsers can open them."""

import asyncio
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from gristmill.db import Database, Tx, queries
from gristmill.documents.blobs import clear_staged
from gristmill.documents.disk_space import COMING, remove_oldest
from gristmill.errors import Permanent

SQL = queries("gristmill.documents", "spool.sql")
SHARE = 16  # a spool is looked through when it may have grown by this part of its limit
BATCHES = 4  # that share its space
SWEEP = 3600  # seconds after which copies of removed documents go, also of those that another machine removed
COPY = re.compile("[0-9a-f]{64}")


class _Piece(NamedTuple):
    """A part of the bytes of a document."""

    bytes: bytes


async def load_piece(tx: Tx, hash_: bytes, n: int) -> bytes:
    """A part of the bytes with this hash, counted from 0."""
    pieces = await tx.all_binary(SQL["piece"], _Piece, hash=hash_, n=n)
    if not pieces:
        raise Permanent("the bytes of this document were not kept: add its file again")
    return pieces[0].bytes


async def clear_copies(db: Database, folder: Path) -> None:
    """Remove the copies of bytes that are in the database no more."""
    for name in await find_unwanted(db, _find_copies(folder)):
        (folder / name).unlink(missing_ok=True)


async def find_unwanted(db: Database, hashes: Collection[str]) -> set[str]:
    """Those of these hashes, written in hexadecimal digits, whose bytes are in the database no more."""
    async with db.transaction() as tx:
        rows = await tx.values(SQL["wanted"], bytes, hashes=[bytes.fromhex(one) for one in hashes])
    return set(hashes).difference(hash_.hex() for hash_ in rows)


def _find_copies(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if COPY.fullmatch(name)]
    except FileNotFoundError:  # nothing was read here yet
        return []


class Spool:
    """Fetches copies when they are asked for; the oldest go when it gets too large."""

    def __init__(self, db: Database, folder: Path, limit: int) -> None:
        self._db = db
        self._folder = folder
        self._limit = limit
        self._unseen = limit  # bytes that came since we last looked
        self._coming: dict[bytes, asyncio.Task[Path]] = {}
        self._arriving: dict[bytes, int] = {}  # the sizes of the copies that are coming
        self._readers: Counter[bytes] = Counter()  # how many are about to read each
        self._swept: float | None = None

    @property
    def space(self) -> int:
        """How many bytes one batch may bring: a few are at work at the same time."""
        return self._limit // BATCHES

    @contextmanager
    def hold(self, hashes: Collection[bytes]) -> Generator[None]:
        """Copies that a batch is about to read are not removed before: not by this worker, though others may."""
        self._readers.update(hashes)
        try:
            yield
        finally:
            self._readers.subtract(hashes)

    async def fetch(self, hash_: bytes, size: int) -> Path:
        """The path of a copy, which is there for as long as nobody needs the space."""
        await self._sweep()
        path = self._folder / hash_.hex()
        if self._is_here(path, size):
            return path
        if hash_ not in self._coming:  # the pages of one document ask for it at the same time
            self._coming[hash_] = asyncio.create_task(self._fetch(hash_, size, path))
            self._coming[hash_].add_done_callback(lambda _: self._coming.pop(hash_, None))
        return await asyncio.shield(self._coming[hash_])

    def _is_here(self, path: Path, size: int) -> bool:
        """Whether the copy is whole; if so, it counts as used now.

        Only its time of use changes. A reader that keeps the file open would open it again if its time of writing did.
        """
        try:
            about = path.stat()
            os.utime(path, ns=(time.time_ns(), about.st_mtime_ns))
        except FileNotFoundError:
            return False
        return about.st_size == size  # a machine that lost its power may have lost the end of it

    async def _sweep(self) -> None:
        now = time.monotonic()
        if self._swept is None or now - self._swept > SWEEP:
            self._swept = now
            await clear_copies(self._db, self._folder)
            await clear_staged(self._db)

    async def _fetch(self, hash_: bytes, size: int, path: Path) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._arriving[hash_] = size
        try:
            self._make_space(size)
            return await self._copy(hash_, size, path)
        finally:
            del self._arriving[hash_]

    async def _copy(self, hash_: bytes, size: int, path: Path) -> Path:
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=COMING, delete=False) as file:
            try:
                async with self._db.transaction() as tx:
                    n = 0
                    while file.tell() < size:
                        file.write(await load_piece(tx, hash_, n))
                        n += 1
                file.flush()
                os.replace(file.name, path)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(file.name)
                raise
        return path

    def _make_space(self, size: int) -> None:
        """Remove the oldest copies if there are too many bytes.

        Not for every file: with many small ones, looking at all of them costs more than fetching one.
        """
        self._unseen += size
        if self._unseen < self._limit // SHARE:
            return
        self._unseen = 0
        wanted = {hash_.hex() for hash_, readers in self._readers.items() if readers > 0}
        remove_oldest(self._folder, self._limit, coming=sum(self._arriving.values()), wanted=wanted)
