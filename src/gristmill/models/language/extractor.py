"""What every extractor of entities and relations can do, and the extractor that works by rules alone."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from gristmill.models.language import extraction
from gristmill.models.language.entities import Extraction, TextPassage

if TYPE_CHECKING:  # the child processes import this file and need no queue
    from gristmill.processes import ProcessPool

PATIENCE = 60.0  # seconds for one call, because the first call in a child process loads the model …
PER_PASSAGE = 5.0  # … and more for each passage, which takes some milliseconds
MEMORY = 2 * 1024**3  # bytes


class Extractor(Protocol):
    """Draws entities and relations from passages; `version` changes whenever its answers may change."""

    @property
    def version(self) -> str: ...

    @property
    def batch(self) -> int:
        """How many passages one call should get: all of them wait for the slowest."""
        ...

    @property
    def waits(self) -> timedelta:
        """How long one call may wait for an LLM."""
        ...

    async def extract(self, passages: Sequence[TextPassage]) -> Sequence[Extraction | Exception]:
        """One answer per passage, in order; or the error that prevented this one, while the others are given."""
        ...


class RuleExtractor:
    """Works by rules and an English parse, in a child process."""

    version = extraction.VERSION
    batch = 64
    waits = timedelta(0)

    def __init__(self, pool: "ProcessPool") -> None:
        self._pool = pool

    async def extract(self, passages: Sequence[TextPassage]) -> list[Extraction]:
        """One answer per passage, in order."""
        if not passages:
            return []
        timeout = PATIENCE + PER_PASSAGE * len(passages)
        return await self._pool.run(extraction.extract_passages, list(passages), timeout=timeout, memory=MEMORY)
