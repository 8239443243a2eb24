"""Looks at files and reads them in child processes, each call with a limit of time and memory."""

from pathlib import Path

from gristmill.errors import Permanent
from gristmill.processes import Crashed, OutOfMemory, ProcessPool, TimedOut
from gristmill.records import reading
from gristmill.records.model import FilePlace, FilePreview, ImportPlan, Options
from gristmill.records.shaping import Owner, RowPortion
from gristmill.settings import RecordsSettings


class Readers:
    """The child processes that read tables: the worst that a hostile file can do is to fail its own import."""

    def __init__(self, processes: ProcessPool, settings: RecordsSettings) -> None:
        self._processes = processes
        self._settings = settings

    async def preview(self, path: Path, name: str, options: Options) -> FilePreview:
        """What a file looks like, before anything of it is loaded."""
        try:
            return await self._processes.run(
                reading.preview,
                str(path),
                name,
                options,
                self._settings.max_text,
                timeout=self._settings.timeout.total_seconds(),
                memory=self._settings.memory,
            )
        except (OutOfMemory, TimedOut, Crashed) as error:
            raise self._explain(error) from error

    async def read_portion(self, path: Path, plan: ImportPlan, place: FilePlace, owner: Owner) -> RowPortion:
        """The next rows after a place."""
        try:
            return await self._processes.run(
                reading.read_portion,
                str(path),
                plan,
                place,
                owner,
                self._settings.batch,
                timeout=self._settings.timeout.total_seconds(),
                memory=self._settings.memory,
            )
        except (OutOfMemory, TimedOut) as error:
            raise self._explain(error) from error

    def _explain(self, error: Exception) -> Permanent:
        match error:
            case OutOfMemory():
                return Permanent(f"Reading the file takes more than {self._settings.memory >> 20:,} MB of memory.")
            case TimedOut():
                seconds = self._settings.timeout.total_seconds()
                return Permanent(f"Reading one batch of the file takes longer than {seconds:g} s.")
            case _:
                return Permanent("The file cannot be read: its reader crashed.")
