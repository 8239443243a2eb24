"""The way in for files of records, the same for the command line, the API and the console."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from gristmill.db import Database, Tx
from gristmill.documents import stage
from gristmill.errors import Permanent, Refused
from gristmill.ids import DocumentId, TaskId
from gristmill.records.imports import draft_import, start_import
from gristmill.records.model import FilePreview, Options
from gristmill.records.readers import Readers
from gristmill.scopes import Scope
from gristmill.settings import Settings


@dataclass(frozen=True)
class Drafted:
    """A file that was looked at and is kept, ready to be loaded."""

    document: DocumentId
    preview: FilePreview


@dataclass(frozen=True)
class LoadingImport:
    """An import whose rows are being loaded by this task."""

    document: DocumentId
    task: TaskId
    preview: FilePreview


class TableIntake:
    """Looks at files and takes them in; `readers` are the child processes that open them."""

    def __init__(self, db: Database, settings: Settings, readers: Readers) -> None:
        self._db = db
        self._settings = settings
        self._readers = readers

    async def preview(self, path: Path, name: str, options: Options) -> FilePreview:
        """What a file looks like; what cannot be read is refused with one sentence."""
        if not await asyncio.to_thread(os.path.isfile, path):
            raise Refused(f"{name} is no file.")
        size, most = await asyncio.to_thread(os.path.getsize, path), self._settings.records.max_bytes
        if size > most:
            raise Refused(f"{name} has {size:,} bytes: the largest file is {most:,} (GRISTMILL_RECORDS_MAX_BYTES).")
        try:
            return await self._readers.preview(path, name, options)
        except Permanent as error:
            raise Refused(f"{name} cannot be imported. {error}") from error

    async def draft(
        self,
        path: Path,
        name: str,
        scope: Scope,
        options: Options,
        *,
        seen_from: Scope | None = None,
        note: Callable[[Tx, DocumentId], Awaitable[None]] | None = None,
    ) -> Drafted:
        """Keep a file whose preview a person wants to see first; `note` writes it down in the same transaction."""
        preview = await self.preview(path, name, options)
        with path.open("rb") as file:
            content = await stage(self._db, file)
        async with self._db.transaction(seen_from=seen_from) as tx:
            document = await draft_import(tx, scope, name, content, preview, self._settings.embedding)
            if note:
                await note(tx, document)
        return Drafted(document, preview)

    async def add(
        self, path: Path, name: str, scope: Scope, options: Options, *, seen_from: Scope | None = None
    ) -> LoadingImport:
        """Keep a file and send the letter that loads it."""
        drafted = await self.draft(path, name, scope, options, seen_from=seen_from)
        async with self._db.transaction(seen_from=seen_from) as tx:
            task = await start_import(tx, drafted.document)
        return LoadingImport(drafted.document, task, drafted.preview)
