"""The rows of a file, one after the other, from any place on: CSV, JSON lines, or the first sheet of a workbook."""

import csv
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Protocol, cast

import orjson

from gristmill.errors import Permanent
from gristmill.records.lines import Lines
from gristmill.records.model import Dialect, FilePlace

LONGEST_CELL = 16 << 20  # characters; a quote that never closes is noticed after so many
MOST_BROKEN = 100  # rows whose quotes never close, before the whole file is given up
csv.field_size_limit(LONGEST_CELL)


@dataclass(frozen=True)
class Broken:
    """A row that cannot be read."""

    reason: str
    text: str


Cells = Sequence[str] | Mapping[str, Any]


class Rows(Protocol):
    """Iterates over the rows of one file; a row of JSON lines has names."""

    def __iter__(self) -> Iterator[Cells | Broken]: ...

    @property
    def offset(self) -> int:
        """Where the next row begins."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


def open_rows(path: Path, dialect: Dialect, place: FilePlace) -> Rows:
    """The rows after this place; before the first place the header, if there is one, is the first row."""
    if dialect.format == "xlsx":
        return SheetRows(path, place.offset)
    lines = Lines(path.open("rb"), dialect.encoding, place.offset or dialect.begins_at)
    return JsonRows(lines) if dialect.format == "jsonl" else CsvRows(lines, dialect)


class CsvRows:
    """Rows of CSV. A quote that never closes costs its own line, and the reader goes on with the next one."""

    def __init__(self, lines: Lines, dialect: Dialect) -> None:
        self._lines = lines
        self._source = iter(lines)
        self._dialect = dialect
        self._taken: list[str] = []  # the lines of the row that is being read
        self._again: deque[str] = deque()  # lines that are to be read once more
        self._ended = False
        self._broken = 0

    def __iter__(self) -> Iterator[Sequence[str] | Broken]:
        while not self._ended:
            try:
                for row in self._make_reader(self._feed()):
                    if (len(self._taken) > 1 or self._ended) and not self._is_sound():
                        yield self._give_up_row()
                        break
                    self._taken.clear()
                    if row:
                        yield row
            except csv.Error:
                yield self._give_up_row()

    @property
    def offset(self) -> int:
        waiting = "".join(self._again)
        return self._lines.place - (self._lines.measure(waiting) if waiting else 0)

    def close(self) -> None:
        self._lines.close()

    def _make_reader(self, lines: Iterator[str], *, strict: bool = False) -> Iterator[list[str]]:
        return csv.reader(lines, delimiter=self._dialect.delimiter, quotechar=self._dialect.quote, strict=strict)

    def _feed(self) -> Iterator[str]:
        taken = self._taken
        while self._again:
            line = self._again.popleft()
            taken.append(line)
            yield line
        for line in self._source:
            taken.append(line)
            yield line
        self._ended = True

    def _is_sound(self) -> bool:
        """Whether the quotes of a row of several lines, or of the last row, are as they should be.

        The usual reader forgives: a quote that never closes would swallow the rows up to the next quote, unnoticed.
        """
        try:
            return len(list(self._make_reader(iter(self._taken), strict=True))) <= 1
        except csv.Error:
            return False

    def _give_up_row(self) -> Broken:
        self._broken += 1
        if self._broken > MOST_BROKEN:
            raise Permanent(
                f"Its quotes are broken beyond repair: in more than {MOST_BROKEN} rows a quote opens and never closes."
            )
        first, *others = self._taken
        self._again.extendleft(reversed(others))
        self._taken.clear()
        self._ended = False
        return Broken("a quote opens in it and never closes", first)


class JsonRows:
    """Rows of JSON lines: an object each."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[Mapping[str, Any] | Broken]:
        for line in self._lines:
            if line.strip():
                yield self._read_line(line)

    @property
    def offset(self) -> int:
        return self._lines.place

    def close(self) -> None:
        self._lines.close()

    def _read_line(self, line: str) -> Mapping[str, Any] | Broken:
        try:
            found = orjson.loads(line)
        except orjson.JSONDecodeError:
            return Broken("it is no JSON", line.rstrip("\r\n"))
        if not isinstance(found, dict):
            return Broken("it is no JSON object", line.rstrip("\r\n"))
        return cast("Mapping[str, Any]", found)


class SheetRows:
    """Rows of the first sheet of a workbook (XLSX, XLS, ODS)."""

    def __init__(self, path: Path, skip: int) -> None:
        import python_calamine  # noqa: PLC0415 only workbooks need it

        calamine: Any = python_calamine  # its types name unknown ones
        try:
            sheet = calamine.load_workbook(str(path)).get_sheet_by_index(0)
            self._rows: Iterator[list[Any]] = iter(sheet.iter_rows())
            self.height: int = sheet.height
        except Exception as error:
            raise Permanent(f"The workbook cannot be read: {error}.") from error
        self.offset = 0
        while self.offset < skip and next(self._rows, None) is not None:
            self.offset += 1

    def __iter__(self) -> Iterator[Sequence[str]]:
        for row in self._rows:
            self.offset += 1
            cells = [write_value(cell) for cell in row]
            if any(cells):
                yield cells

    def close(self) -> None:
        """Nothing is open: the sheet is in memory."""


def write_value(value: Any) -> str:
    """A value as text: as a person would write it into a cell."""
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case int() | float():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case _:
            return orjson.dumps(value).decode()
