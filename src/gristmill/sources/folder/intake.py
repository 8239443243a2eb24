"""Adds files one by one, and tells the caller how far it is."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from gristmill.db import Database, outlast_outage
from gristmill.documents import ORDINARY, Taken, Urgency, add_file, name_of, of_arrival
from gristmill.errors import Unreachable
from gristmill.scopes import Scope
from gristmill.settings import Settings


def _ignore(_: str) -> None:
    """For callers that do not listen."""


def _show_nothing(_: int) -> AbstractContextManager[Callable[[str], None]]:
    return nullcontext(_ignore)


@dataclass(frozen=True)
class Reporter:
    """How a caller is told what happens; by default it is told nothing.

    `warn` takes a sentence for a person. `follow_files` takes the number of files that are added now; within its
    context, the function that it gives takes the name of each file before its turn.
    """

    warn: Callable[[str], None] = _ignore
    follow_files: Callable[[int], AbstractContextManager[Callable[[str], None]]] = _show_nothing


class FileIntake:
    """Adds files for one scope; a `patient` intake waits while the database cannot be reached."""

    def __init__(
        self, db: Database, settings: Settings, scope: Scope, reporter: Reporter | None = None, *, patient: bool = False
    ) -> None:
        self.reporter = reporter or Reporter()
        self.data = settings.data
        self._db = db
        self._scope = scope
        self._max_bytes = settings.documents.max_bytes
        self._patient = patient

    async def add_files(self, files: Sequence[Path], urgency: Urgency = ORDINARY) -> list[Taken]:
        """What became of each file. The first files have this urgency; the rest of many is a batch."""
        files = self._leave_out_data(files)
        added: list[Taken] = []
        new = 0
        with self.reporter.follow_files(len(files)) as tell:
            for file in files:
                tell(name_of(file))
                added.append(await self._add_file(file, of_arrival(new, urgency)))
                new += added[-1].status in ("added", "changed")
        return added

    def _leave_out_data(self, files: Sequence[Path]) -> Sequence[Path]:
        """Without the files of the data folder: the database would grow with every file of its own that is added."""
        ours = self.data.resolve()
        left = [file for file in files if not file.parent.resolve().is_relative_to(ours)]
        if len(left) < len(files):
            self.reporter.warn(f"The data folder {self.data} is left out ({len(files) - len(left):,} of the files).")
        return left

    async def _add_file(self, file: Path, urgency: Urgency) -> Taken:
        while True:
            try:
                return await add_file(self._db, file, self._scope, max_bytes=self._max_bytes, urgency=urgency)
            except Unreachable as error:
                if not self._patient:
                    raise
                await outlast_outage(self._db, self.reporter.warn, error)
