"""The bytes of documents: kept in the database, once for each content, and on disk where they are read."""

import asyncio
import hashlib
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gristmill.db import Database, Tx, queries
from gristmill.errors import Permanent

SQL = queries("gristmill.documents", "blobs.sql")
PIECE = 1 << 20
SHARE = 16  # a spool is looked through when it may have grown by this part of its limit
BATCHES = 4  # that share its room
COMING = "coming-"  # how the name of a copy begins until it is whole
ABANDONED = 3600  # seconds after its last byte, a copy that is not whole has lost its writer
SWEEP = 3600  # seconds after which copies of what was removed go, also where nobody removed it
COPY = re.compile("[0-9a-f]{64}")


def digest(file: BinaryIO) -> tuple[bytes, int]:
    """The hash and the size of what is in a file."""
    sum_, size = hashlib.sha256(), 0
    while piece := file.read(PIECE):
        sum_.update(piece)
        size += len(piece)
    return sum_.digest(), size


def hashed(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def pieces_of(data: bytes) -> Iterator[bytes]:
    view = memoryview(data)
    return (bytes(view[start : start + PIECE]) for start in range(0, len(data), PIECE))


async def keep(tx: Tx, hash_: bytes, size: int, pieces: Iterable[bytes]) -> None:
    """Keep these bytes, unless they are kept already."""
    await tx.execute(SQL["insert_blob"], hash=hash_, size=size)
    if size == 0 or await tx.value(SQL["has_pieces"], hash=hash_):
        return
    sum_ = hashlib.sha256()
    for n, piece in enumerate(pieces):
        sum_.update(piece)
        await tx.execute(SQL["insert_piece"], hash=hash_, n=n, bytes=piece)
        await tx.flush()
    if sum_.digest() != hash_:
        raise Permanent("the file changed while it was read: add it again")


async def clear_copies(db: Database, folder: Path) -> None:
    """Remove the copies of what is in the database no more."""
    copies = _copies_in(folder)
    async with db.transaction() as tx:
        kept = {row.hash.hex() for row in await tx.all(SQL["kept"], hashes=[bytes.fromhex(name) for name in copies])}
    for name in copies:
        if name not in kept:
            (folder / name).unlink(missing_ok=True)


def _copies_in(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if COPY.fullmatch(name)]
    except FileNotFoundError:  # nothing was read here yet
        return []


class Spool:
    """Copies of blobs on this machine's disk, where parsers can open them; the oldest go when it gets too large."""

    def __init__(self, db: Database, folder: Path, limit: int) -> None:
        self._db = db
        self._folder = folder
        self._limit = limit
        self._unseen = limit  # bytes that came since we last looked
        self._coming: dict[bytes, asyncio.Task[Path]] = {}
        self._arriving: dict[bytes, int] = {}  # the sizes of those that are coming
        self._held: Counter[bytes] = Counter()
        self._swept: float | None = None

    @property
    def room(self) -> int:
        """What one batch may bring: a few are at work at the same time."""
        return self._limit // BATCHES

    @contextmanager
    def held(self, hashes: Collection[bytes]) -> Generator[None]:
        """What somebody is about to read is not removed before: not by this worker, though others may."""
        self._held.update(hashes)
        try:
            yield
        finally:
            self._held.subtract(hashes)

    async def file(self, hash_: bytes, size: int) -> Path:
        """Where the bytes are, for as long as nobody needs the room."""
        await self._sweep()
        path = self._folder / hash_.hex()
        if self._is_here(path, size):
            return path
        if hash_ not in self._coming:  # the pages of one document ask for it at the same time
            self._coming[hash_] = asyncio.create_task(self._fetch(hash_, size, path))
            self._coming[hash_].add_done_callback(lambda _: self._coming.pop(hash_, None))
        return await asyncio.shield(self._coming[hash_])

    def _is_here(self, path: Path, size: int) -> bool:
        """A copy that is, was used just now. When it was written stays: whoever has it open would open it again."""
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

    async def _fetch(self, hash_: bytes, size: int, path: Path) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._arriving[hash_] = size
        try:
            self._make_room(size)
            return await self._written(hash_, size, path)
        finally:
            del self._arriving[hash_]

    async def _written(self, hash_: bytes, size: int, path: Path) -> Path:
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=COMING, delete=False) as file:
            try:
                async with self._db.transaction() as tx:
                    n = 0
                    while file.tell() < size:  # whoever kept them may have cut them otherwise
                        pieces = await tx.all_binary(SQL["piece"], hash=hash_, n=n)
                        if not pieces:
                            raise Permanent("the bytes of this document were not kept: add its file again")
                        file.write(pieces[0].bytes)
                        n += 1
                file.flush()
                os.replace(file.name, path)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(file.name)
                raise
        return path

    def _make_room(self, size: int) -> None:
        """Not for every file: with many small ones, looking at all of them costs more than fetching one."""
        self._unseen += size
        if self._unseen < self._limit // SHARE:
            return
        self._unseen = 0
        known = sorted(self._lying())
        used = sum(bytes_ for _, bytes_, _ in known) + sum(self._arriving.values())
        held = {hash_.hex() for hash_, readers in self._held.items() if readers > 0}
        for _, bytes_, entry in known:
            if used <= self._limit:
                return
            if entry.name in held:
                continue
            entry.unlink(missing_ok=True)
            used -= bytes_

    def _lying(self) -> list[tuple[float, int, Path]]:
        """When each file was last used, and its size; other workers fetch and remove while we look.

        What another is still writing is not ours to remove."""
        found: list[tuple[float, int, Path]] = []
        for entry in self._folder.iterdir():
            with suppress(FileNotFoundError):
                about = entry.stat()
                if not entry.name.startswith(COMING) or time.time() - about.st_mtime > ABANDONED:
                    found.append((about.st_atime, about.st_size, entry))
        return found
