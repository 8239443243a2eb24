"""What an import is: the file as it was understood, what was asked of it, and what became of its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NewType

from gristmill.ids import DocumentId, ScopeId, TaskId

RecordId = NewType("RecordId", int)
Format = Literal["csv", "jsonl", "xlsx"]
Fate = Literal["filtered", "invalid", "duplicate"]  # of a row that became no record
TOP, BOTTOM = "TOP_10", "BOTTOM_10"


@dataclass(frozen=True)
class Options:
    """What a person asks of an import; what is left out is guessed."""

    text: tuple[str, ...] = ()  # columns
    id: str | None = None  # a column; "" for none, whatever it looks like
    words: tuple[str, ...] = ()  # only rows with one of these; a word after a minus drops its rows
    min_length: int = 0  # characters of text
    rank_by: str | None = None
    category: str | None = None  # the column that says TOP_10 or BOTTOM_10
    embed: bool = True
    unique_text: bool = True  # a row whose text is known is a duplicate, whatever its id
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None


@dataclass(frozen=True)
class Dialect:
    """How a file writes its rows."""

    format: Format
    encoding: str = "utf-8"
    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    begins_at: int = 0  # bytes of a mark before the text


@dataclass(frozen=True)
class ImportPlan:
    """How the rows of a file become records."""

    dialect: Dialect
    columns: tuple[str, ...]
    text: tuple[str, ...]
    id: str | None
    category: str | None
    rank_by: str | None
    words: tuple[str, ...] = ()
    min_length: int = 0
    embed: bool = True
    unique_text: bool = True
    max_text: int = 1_000_000  # characters


@dataclass(frozen=True)
class FilePlace:
    """How far a file has been read: where the next row begins, and the number of the last one."""

    offset: int = 0  # bytes; of a sheet: rows
    row: int = 0


@dataclass(frozen=True)
class Rejected:
    """A row that became no record, and why."""

    row: int
    why: Fate
    reason: str
    cells: Sequence[str]


@dataclass(frozen=True)
class FilePreview:
    """What a file looks like before it is loaded."""

    plan: ImportPlan
    rows: Sequence[Sequence[str]]  # the first ones
    rejected: Sequence[Rejected]  # of the rows that were looked at
    looked_at: int
    estimated_rows: int
    estimated_tokens: int


@dataclass(frozen=True)
class RowCounts:
    """What became of the rows of an import."""

    loaded: int = 0
    updated: int = 0
    duplicate: int = 0
    filtered: int = 0
    invalid: int = 0

    @property
    def rejected(self) -> int:
        return self.duplicate + self.filtered + self.invalid

    @property
    def total(self) -> int:
        return self.loaded + self.updated + self.rejected


@dataclass(frozen=True)
class Import:
    """An import, as its report shows it. It is a document, too: the number of both is the same."""

    id: DocumentId
    scope: ScopeId
    client: str
    project: str
    name: str
    state: Literal["draft", "waiting", "loading", "loaded", "failed"]
    plan: ImportPlan
    size: int
    offset: int
    row: int
    estimated_rows: int
    counts: RowCounts
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    estimated_tokens: int = 0
    estimated_cost: float = 0.0
    tokens: int = 0
    cost: float = 0.0
    error: str | None = None
    task: TaskId | None = None
    created_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True)
class Record:
    """A row as it is kept."""

    id: RecordId
    scope: ScopeId
    client: str
    project: str
    document: DocumentId  # its import
    row: int
    external_id: str | None
    category: str | None
    content: str
    columns: Mapping[str, Any]
    searchable: bool
    trouble: str | None
    created_at: datetime
    updated_at: datetime
