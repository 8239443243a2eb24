"""Turns rows into lines that COPY reads, and says of every other row why it became no record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from gristmill.records.guess import read_category
from gristmill.records.model import Fate, FilePlace, ImportPlan, Rejected
from gristmill.records.rows import Broken, Cells, write_value

LONGEST_SHOWN = 500  # characters of a cell of a rejected row that are kept
MOST_CELLS_SHOWN = 50
LONGEST_ID = 500
BETWEEN = "\x1f"  # cells: a character that no text has


@dataclass
class RowPortion:
    """Some rows of a file, ready for the database."""

    lines: list[bytes] = field(default_factory=list[bytes])
    rows: list[int] = field(default_factory=list[int])
    ids: list[str | None] = field(default_factory=list[str | None])
    hashes: list[str] = field(default_factory=list[str])  # of the text
    wholes: list[str] = field(default_factory=list[str])  # of all cells
    rejected: list[Rejected] = field(default_factory=list[Rejected])
    characters: int = 0
    size: int = 0  # of the lines, in bytes
    place: FilePlace = field(default_factory=FilePlace)
    is_last: bool = False


@dataclass(frozen=True)
class Owner:
    """Whose the records are, and when they were written."""

    scope: int
    document: int
    now: str


class Shaper:
    """Shapes the rows of one portion."""

    def __init__(self, plan: ImportPlan, owner: Owner) -> None:
        self._plan = plan
        self._columns = plan.columns
        self._text = [plan.columns.index(name) for name in plan.text]
        self._id = plan.columns.index(plan.id) if plan.id else None
        self._category = plan.columns.index(plan.category) if plan.category else None
        # one column of text stands in the record alone; of several, the single cells are needed to write them out again
        self._kept = [
            (place, name) for place, name in enumerate(plan.columns) if len(plan.text) > 1 or name not in plan.text
        ]
        self._wanted = [word.casefold() for word in plan.words if not word.startswith("-")]
        self._unwanted = [word[1:].strip().casefold() for word in plan.words if word.startswith("-")]
        self._head = f"{owner.scope}\t{owner.document}\t".encode()
        self._tail = f"\t{'t' if plan.embed else 'f'}\t{owner.now}\t{owner.now}\n".encode()
        self._known_ids: dict[str, int] = {}
        self._known_texts: dict[str, int] = {}
        self.portion = RowPortion()

    def take(self, row: int, cells: Cells | Broken) -> None:
        """Add a row to the portion, as a record or as a rejected row."""
        if isinstance(cells, Broken):
            self._reject(row, "invalid", cells.reason, [cells.text])
            return
        more: Mapping[str, Any] = {}
        if isinstance(cells, Mapping):
            more = {name: write_value(value) for name, value in cells.items() if name not in self._columns}
            cells = [write_value(cells.get(name)) for name in self._columns]
        wanted = len(self._columns)
        if len(cells) == wanted:
            self._shape(row, cells, more)
        elif any(cell.strip() for cell in cells[wanted:]):
            self._reject(row, "invalid", f"it has {len(cells):,} cells, and there are {wanted:,} columns", cells)
        else:  # cells that are missing at the end are empty
            self._shape(row, [*cells[:wanted], *[""] * (wanted - len(cells))], more)

    def _shape(self, row: int, cells: Sequence[str], more: Mapping[str, Any]) -> None:
        text = self._text
        content = (
            cells[text[0]].strip() if len(text) == 1 else "\n".join(filter(None, (cells[n].strip() for n in text)))
        )
        joined = BETWEEN.join(cells)
        if more:
            joined += BETWEEN + orjson.dumps(more).decode()
        if fault := self._find_fault(content, joined):
            self._reject(row, "invalid", fault, cells)
            return
        if unfit := self._find_unfit(content):
            self._reject(row, "filtered", unfit, cells)
            return
        hash_ = blake2b(content.encode(), digest_size=16).hexdigest()
        own = cells[self._id].strip() or None if self._id is not None else None
        if twin := self._find_twin(own, hash_):
            self._reject(row, "duplicate", twin, cells)
            return
        if own is not None:
            if len(own) > LONGEST_ID:
                self._reject(row, "invalid", f"its id has more than {LONGEST_ID} characters", cells)
                return
            self._known_ids[own] = row
        self._known_texts[hash_] = row
        self._write(row, cells, more, content, own, hash_, blake2b(joined.encode(), digest_size=16).hexdigest())

    def _find_fault(self, content: str, joined: str) -> str | None:
        """Why a row can be no record."""
        if not joined.isascii():
            try:
                joined.encode()
            except UnicodeEncodeError:
                return "it holds bytes that are no text in the encoding of the file"
        if "\0" in joined:
            return "it holds a NUL character"
        if not content:
            return "its text is empty"
        if len(content) < self._plan.min_length:
            return f"its text has {len(content)} characters, and {self._plan.min_length} are asked for"
        if len(joined) > self._plan.max_text:
            return f"it has {len(joined):,} characters, and {self._plan.max_text:,} are the most"
        if not content[0].isalnum() and not any(map(str.isalnum, content)):
            return "there is no word in its text"
        return None

    def _find_unfit(self, content: str) -> str | None:
        """The word that a row has or lacks."""
        if not self._wanted and not self._unwanted:
            return None
        folded = content.casefold()
        for word in self._unwanted:
            if word in folded:
                return f"it has the word “{word}”"
        if self._wanted and not any(word in folded for word in self._wanted):
            return "it has none of the words: " + ", ".join(self._wanted)
        return None

    def _find_twin(self, own: str | None, hash_: str) -> str | None:
        """The row of this portion that is the same."""
        if own is not None and (twin := self._known_ids.get(own)):
            return f"row {twin} has the same id"
        if self._plan.unique_text and (twin := self._known_texts.get(hash_)):
            return f"row {twin} has the same text"
        return None

    def _write(
        self,
        row: int,
        cells: Sequence[str],
        more: Mapping[str, Any],
        content: str,
        own: str | None,
        hash_: str,
        whole: str,
    ) -> None:
        columns: dict[str, Any] = {name: cells[place] for place, name in self._kept}
        if more:
            columns |= more
        category = read_category(cells[self._category]) if self._category is not None else None
        line = b"%s%d\t%s\t%s\t%s\t%s\t%s\t%s%s" % (
            self._head,
            row,
            hash_.encode(),
            whole.encode(),
            category.encode() if category else b"\\N",
            escape(own) if own is not None else b"\\N",
            escape(content),
            orjson.dumps(columns).replace(b"\\", b"\\\\"),
            self._tail,
        )
        portion = self.portion
        portion.lines.append(line)
        portion.size += len(line)
        portion.rows.append(row)
        portion.ids.append(own)
        portion.hashes.append(hash_)
        portion.wholes.append(whole)
        portion.characters += len(content)

    def _reject(self, row: int, why: Fate, reason: str, cells: Sequence[str]) -> None:
        self.portion.rejected.append(Rejected(row, why, reason, shorten_cells(cells)))


def shorten_cells(cells: Sequence[str]) -> list[str]:
    """Cells of a rejected row, as they are kept: short, and without what no database takes."""
    return [
        cell[:LONGEST_SHOWN].replace("\0", "␀").encode(errors="replace").decode() for cell in cells[:MOST_CELLS_SHOWN]
    ]


def escape(text: str) -> bytes:
    """A text as COPY reads it."""
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if "\n" in text:
        text = text.replace("\n", "\\n")
    if "\t" in text:
        text = text.replace("\t", "\\t")
    if "\r" in text:
        text = text.replace("\r", "\\r")
    return text.encode()


def read_cells(line: bytes, columns: Sequence[str], text: Sequence[str]) -> list[str]:
    """The cells of a line that was made for COPY, shortened."""
    *_, content, kept = line.decode().rstrip("\n").rsplit("\t", 3)[0].rsplit("\t", 2)
    found = orjson.loads(kept.replace("\\\\", "\\"))
    whole = content.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r").replace("\\\\", "\\")
    return shorten_cells([found.get(name, whole if name in text else "") for name in columns])
