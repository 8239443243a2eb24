"""Clears what sources kept on this machine, clones of repositories, once the sources are gone."""

import asyncio
import shutil
from pathlib import Path

from gristmill.db import Column, Tx
from gristmill.ids import SourceId
from gristmill.settings import Settings
from gristmill.sources.store import SQL

FOLDER = "sources"  # in the data folder; each source has a folder in it that is named by its number


async def clear_folder(data: Path, source: SourceId) -> None:
    """Remove the folder of one source that is gone."""
    await asyncio.to_thread(shutil.rmtree, data / FOLDER / str(source), ignore_errors=True)


async def clear_folders(tx: Tx, settings: Settings) -> None:
    """Remove the folders of all sources that are gone: they may have been removed on another machine."""
    found = await asyncio.to_thread(find_folders, settings.data / FOLDER)  # first: a source may be added meanwhile
    if not found:
        return
    known = set(await tx.values(SQL["find_known"], Column[SourceId], ids=found))
    for source in found:
        if source not in known:
            await clear_folder(settings.data, source)


def find_folders(folder: Path) -> list[SourceId]:
    if not folder.is_dir():
        return []
    return sorted(SourceId(int(one.name)) for one in folder.iterdir() if one.name.isascii() and one.name.isdigit())
