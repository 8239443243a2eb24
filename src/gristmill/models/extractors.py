"""Those who draw entities and relations from passages: by rules alone, or with an LLM that adds to them."""

from collections.abc import Sequence
from typing import Protocol

from gristmill.models import extraction
from gristmill.models.entities import Extraction, Passage
from gristmill.queue import ProcessPool

PATIENCE = 60.0  # seconds for the first call of a child, which loads the model
PER_PASSAGE = 5.0  # … and for each passage; it takes some milliseconds
MEMORY = 2 * 1024**3


class Extractor(Protocol):
    """Draws from each passage what it names and says; `version` changes whenever its answers may."""

    @property
    def version(self) -> str: ...

    async def extract(self, passages: Sequence[Passage]) -> list[Extraction]:
        """One answer per passage, in order."""
        ...


class RuleExtractor:
    """Structure and an English parse, in a child process."""

    version = extraction.VERSION

    def __init__(self, pool: ProcessPool) -> None:
        self._pool = pool

    async def extract(self, passages: Sequence[Passage]) -> list[Extraction]:
        """One answer per passage, in order."""
        if not passages:
            return []
        timeout = PATIENCE + PER_PASSAGE * len(passages)
        return await self._pool.run(extraction.extract, list(passages), timeout=timeout, memory=MEMORY)
