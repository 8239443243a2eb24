"""Takes in files: finds them, reads their bytes, and hands them over."""

import asyncio
import os
import stat
from pathlib import Path, PurePath
from typing import BinaryIO

from gristmill.db import Database
from gristmill.documents.blobs import PIECE, Staged, stage
from gristmill.documents.reading import refusals, tidy
from gristmill.documents.take_in import LONGEST_URN, Item, Taken, take_in
from gristmill.documents.urgency import ORDINARY, Urgency
from gristmill.errors import Permanent
from gristmill.scopes import Scope


def urn_of(path: Path) -> str:
    return Path(os.path.realpath(path)).as_uri()  # resolve() gives up on links that lead in a circle


def name_of(path: PurePath) -> str:
    """The name of a file as it can be shown: whatever bytes a file system allows in it."""
    return tidy.to_line(path.name) or "file"


async def add_file(db: Database, path: Path, scope: Scope, *, max_bytes: int, urgency: Urgency = ORDINARY) -> Taken:
    """A new version if the file is new or has changed."""
    name, urn = name_of(path), urn_of(path)
    try:
        with _open_file(path, max_bytes) as file:
            if len(urn) > LONGEST_URN:
                raise Permanent("its path is too long: move it to a folder that is less deep")
            item = Item(urn, name, await _read_content(db, file), scope, urgency=urgency)
    except OSError as error:
        return Taken(name, urn, None, "refused", f"it cannot be read ({error.strerror or error})")
    except Permanent as error:
        return Taken(name, urn, None, "refused", str(error))
    async with db.transaction() as tx:
        return await take_in(tx, item)


async def _read_content(db: Database, file: BinaryIO) -> bytes | Staged:
    """The bytes of a small file, which go with its document in one transaction; a large one is staged before."""
    content = await asyncio.to_thread(file.read, PIECE + 1)  # the loop goes on while the disk is slow
    if len(content) <= PIECE:
        return content
    file.seek(0)
    return await stage(db, file)


def _open_file(path: Path, max_bytes: int) -> BinaryIO:
    """Nothing of a file that is too large is read: one of a few blocks may say that it has terabytes."""
    about = path.stat()
    mode = about.st_mode
    if stat.S_ISDIR(mode):
        os.listdir(path)  # says why, if it is closed to us
        raise Permanent("it is a link to a folder, which is not followed: add that folder itself")
    if not stat.S_ISREG(mode):  # a pipe, for example: to open one means to wait for its writer
        raise Permanent("it is neither a file nor a folder")
    if path.is_symlink():  # a link could lead to a file that its maker may not read, but we may
        raise Permanent("it is a link to a file, which is not followed: add that file itself")
    if about.st_size > max_bytes:
        raise refusals.too_large(about.st_size, max_bytes)
    return open(path, "rb", opener=_open_no_link)


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)  # it may have become a link since
