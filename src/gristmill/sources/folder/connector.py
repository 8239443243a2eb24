"""A folder as a connector: every file of a kind is an item, known by its path, marked by its time and size."""

import asyncio
import errno
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from gristmill.errors import Permanent, Transient
from gristmill.sources.model import Batch, Checkpoint, Connector, ConnectorContext, Listed, RawItem
from gristmill.sources.store import check_external
from gristmill.wording import format_count

PORTION = 500  # files that are looked at together
LARGE = 16 << 20  # bytes that are handed over together


@dataclass(frozen=True)
class FoundFile:
    """A file that is an item."""

    path: Path
    external: str
    mark: str | None
    note: dict[str, Any]


Complain = Callable[[OSError], None]  # told of folders that cannot be read
Find = Callable[[Path, Complain], Iterator[FoundFile]]


@dataclass(frozen=True)
class FolderConnector:
    """`find` says which files of the folder are items."""

    root: Path
    find: Find
    context: ConnectorContext

    async def check(self) -> str:
        n = len(await asyncio.to_thread(self.find_all))
        return f"{self.root} has {format_count(n, 'item')}."

    async def changes(self, checkpoint: Checkpoint) -> AsyncIterator[Batch]:
        """Files whose time or size is another than before; the folder itself is the checkpoint."""
        async for files in self._portions(everything=False):
            listed = {file.external: file for file in files}
            unlike = await self.context.known.find_unlike([Listed(one.external, one.mark) for one in files])
            async for items in self._read([listed[one.external] for one in unlike]):
                yield Batch({}, items)
        yield Batch({})

    async def list_ids(self) -> AsyncIterator[Sequence[Listed]]:
        async for files in self._portions():
            yield [Listed(file.external, file.mark) for file in files]

    async def fetch(self, ids: Sequence[str]) -> AsyncIterator[RawItem]:
        wanted = set(ids)
        async for files in self._portions():
            async for items in self._read([file for file in files if file.external in wanted]):
                for item in items:
                    yield item

    async def _portions(self, *, everything: bool = True) -> AsyncIterator[Sequence[FoundFile]]:
        files = iter(await asyncio.to_thread(self.find_all if everything else self.find_readable))
        while some := list(islice(files, PORTION)):
            yield some

    def find_all(self) -> list[FoundFile]:
        """All files, or an error: what lies in a folder that cannot be read is not gone."""
        return self._find(refuse_unreadable)

    def find_readable(self) -> list[FoundFile]:
        """All files but those in folders that cannot be read: they do not stop a poll, and the listing reports them."""
        return self._find(lambda error: None)

    def _find(self, complain: Complain) -> list[FoundFile]:
        if not self.root.is_dir():
            raise Transient(f"There is no folder {self.root}: is it mounted?")
        return list(self.find(self.root, complain))

    async def _read(self, files: Sequence[FoundFile]) -> AsyncIterator[list[RawItem]]:
        some, size = list[RawItem](), 0
        for file in files:
            item = await asyncio.to_thread(read_item, file, self.context.max_bytes)
            if item is None:
                continue
            some.append(item)
            size += len(item.content)
            if size >= LARGE:
                yield some
                some, size = [], 0
        if some:
            yield some


def read_item(file: FoundFile, max_bytes: int) -> RawItem | None:
    """The file as an item; None if it has gone meanwhile."""
    try:
        content = read_regular(file.path, max_bytes)
    except FileNotFoundError:
        return None
    except OSError as error:
        return RawItem(file.external, b"", file.mark, file.note, explain_unread(error))
    except Permanent as error:
        return RawItem(file.external, b"", file.mark, file.note, str(error))
    return RawItem(file.external, content, file.mark, file.note)


def explain_unread(error: OSError) -> str:
    if error.errno == errno.ELOOP:  # so the system calls a link that must not be followed
        return "It is a link, and links are not followed."
    return f"It cannot be read ({error.strerror or error})."


def read_regular(path: Path, max_bytes: int) -> bytes:
    """The bytes of a plain file: no link is followed, no pipe is waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise Permanent("It is not a plain file.")
        if about.st_size > max_bytes:
            raise Permanent(f"It has {about.st_size:,} bytes, more than the {max_bytes:,} of documents.max_bytes.")
        return file.read(max_bytes + 1)


def mark_file(path: Path) -> str | None:
    try:
        about = path.stat(follow_symlinks=False)
    except OSError:
        return None
    return f"{about.st_mtime_ns}:{about.st_size}:{about.st_ino}"


def find_by_suffix(*suffixes: str) -> Find:
    """Files with one of these endings, at any depth; hidden ones are left out."""

    def find(root: Path, complain: Complain) -> Iterator[FoundFile]:
        for folder, inner, names in os.walk(root, onerror=complain):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            for name in sorted(names):
                if name.lower().endswith(suffixes) and not name.startswith("."):
                    path = Path(folder, name)
                    yield FoundFile(path, name_within(path, root), mark_file(path), {})

    return find


def refuse_unreadable(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):  # it went while we looked
        raise Transient(f"The folder {error.filename} cannot be read ({error.strerror}).") from error


def name_within(path: Path, root: Path) -> str:
    """The path of a file within a folder, as text: whatever bytes a file system allows in it."""
    within = os.fsencode(path.relative_to(root)).decode("utf-8", "backslashreplace")
    return check_external(within.replace("\0", ""))


def open_folder(path: str, find: Find, context: ConnectorContext) -> AbstractAsyncContextManager[Connector]:
    return nullcontext(FolderConnector(Path(path).expanduser(), find, context))
