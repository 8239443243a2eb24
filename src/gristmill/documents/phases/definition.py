"""The phases that documents go through, as the database defines them, and the letters about their units."""

from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Any, Literal

from gristmill.db import Tx, queries
from gristmill.ids import DocumentId
from gristmill.queue import Letter

SQL = queries("gristmill.documents.phases", "definition.sql")

# the names of the phases that this program brings; a handler asks for the one behind its own
OCR, SPLIT, VECTOR, GRAPH = "ocr", "split", "vector", "graph"
Unit = Literal["page", "chunk"]


@dataclass(frozen=True)
class Phase:
    """A row of `phase_kind`: each phase works on the results of the phase before."""

    name: str
    ordinal: int
    label: str
    unit: Unit
    kind: str  # of the letter about one unit
    shown: bool

    @property
    def queue(self) -> str:
        return queue_of_kind(self.kind)


async def list_phases(tx: Tx) -> list[Phase]:
    """All phases, in their order."""
    return await tx.all(SQL["list_phases"], Phase)


def queue_of_kind(kind: str) -> str:
    return kind.partition(".")[0]


def write_letter(kind: str, document: DocumentId, page: int, ordinal: int | None) -> Letter:
    """The letter about a page, or about a chunk of it, whichever phase it goes to."""
    place = (document, page) if ordinal is None else (document, page, ordinal)
    return _letter_class(kind, len(place))(*place)


@cache
def _letter_class(kind: str, fields: int) -> Any:
    """A class with the fields that every letter about a unit has; handlers read it as their own class."""
    names = ("document", "page", "ordinal")[:fields]
    return make_dataclass("UnitLetter", [(name, int) for name in names], frozen=True, namespace={"kind": kind})
