"""Draws entities and relations from passages: what every extractor can do, and the one that works by rules alone."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from gristmill.models.language import extraction
from gristmill.models.language.entities import Extraction, Passage

if TYPE_CHECKING:  # the child processes import this file and need no queue
    from gristmill.queue import ProcessPool

PATIENCE = 60.0  # seconds for the first call of a child, which loads the model
PER_PASSAGE = 5.0  # … and for each passage; it takes some milliseconds
MEMORY = 2 * 1024**3


class Extractor(Protocol):
    """Draws from each passage what it names and says; `version` changes whenever its answers may."""

    @property
    def version(self) -> str: ...

    @property
    def batch(self) -> int:
        """How many passages one call should take: what one of them waits for, all of them do."""
        ...

    @property
    def waits(self) -> timedelta:
        """How long one call may wait for somebody else's answer."""
        ...

    async def extract(self, passages: Sequence[Passage]) -> Sequence[Extraction | Exception]:
        """One answer per passage, in order; or what kept it from being given, while those of others are."""
        ...


class RuleExtractor:
    """Structure and an English parse, in a child process."""

    version = extraction.VERSION
    batch = 64
    waits = timedelta(0)

    def __init__(self, pool: "ProcessPool") -> None:
        self._pool = pool

    async def extract(self, passages: Sequence[Passage]) -> list[Extraction]:
        """One answer per passage, in order."""
        if not passages:
            return []
        timeout = PATIENCE + PER_PASSAGE * len(passages)
        return await self._pool.run(extraction.extract_passages, list(passages), timeout=timeout, memory=MEMORY)
