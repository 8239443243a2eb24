"""Files that come over HTTP: streamed to the disk, looked at in a child process, and taken in."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import UploadFile

from gristmill.errors import Refused
from gristmill.processes import ProcessPool
from gristmill.records.intake import TableIntake
from gristmill.records.model import Options
from gristmill.records.readers import Readers
from gristmill.serving import Services

LONGEST_NAME = 200


@asynccontextmanager
async def open_intake(services: Services) -> AsyncGenerator[TableIntake]:
    processes = ProcessPool(1, nice=services.settings.queue.nice)
    try:
        yield TableIntake(services.db, services.settings, Readers(processes, services.settings.records))
    finally:
        await processes.close()


@asynccontextmanager
async def keep_upload(upload: UploadFile) -> AsyncGenerator[Path]:
    """The file on the disk, where a child process can open it, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="gristmill-upload-") as folder:
        path = Path(folder) / "table"
        await asyncio.to_thread(copy_upload, upload, path)
        yield path


def copy_upload(upload: UploadFile, path: Path) -> None:
    with path.open("wb") as file:
        shutil.copyfileobj(upload.file, file, 1 << 20)


def name_upload(upload: UploadFile) -> str:
    """The name of an uploaded file without its folders."""
    name = Path((upload.filename or "").replace("\\", "/")).name.strip()
    if not name or not name.isprintable():
        raise Refused("The file has no name: send it as a file, with its name.")
    return name[-LONGEST_NAME:]


def read_options(
    text: list[str] | None = None,
    id: str | None = None,
    filter: str = "",
    min_length: int = 0,
    rank_by: str | None = None,
    category: str | None = None,
    embed: bool = True,
    unique_text: bool = True,
) -> Options:
    """The options of a form; an empty field is one that nobody filled."""
    return Options(
        text=tuple(name for name in text or () if name),
        id=id or None,
        words=tuple(word for word in filter.split(",") if word.strip()),
        min_length=min_length,
        rank_by=rank_by or None,
        category=category or None,
        embed=embed,
        unique_text=unique_text,
    )
