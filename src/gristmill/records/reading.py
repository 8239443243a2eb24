"""Looks at a file and reads its rows portion by portion; all of this runs in child processes with limits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gristmill.errors import Permanent
from gristmill.models import tokens
from gristmill.records.detect import SAMPLE, detect_dialect
from gristmill.records.guess import make_plan, name_columns
from gristmill.records.model import FilePlace, FilePreview, ImportPlan, Options
from gristmill.records.rows import Broken, Cells, Rows, SheetRows, open_rows, write_value
from gristmill.records.shaping import Owner, RowPortion, Shaper

SHOWN = 10  # rows of a preview
MOST_BYTES = 8 << 20  # of one portion


@dataclass
class _OpenFile:
    """A file that this process has open, for the portion that comes next."""

    path: str
    place: FilePlace
    rows: Rows
    left: Iterator[Cells | Broken]


_open: _OpenFile | None = None


def preview(path: str, name: str, options: Options, max_text: int) -> FilePreview:
    """What a file is, how its rows would be read, and how many there are about."""
    dialect = detect_dialect(Path(path), name, options)
    rows = open_rows(Path(path), dialect, FilePlace())
    left = iter(rows)
    found: list[Cells | Broken] = list(islice(left, SAMPLE + 1))
    taken, ended = rows.offset, next(left, None) is None
    rows.close()
    columns, rest = _name_columns(found, header=dialect.header)
    sample = [_as_cells(one, columns) for one in rest if not isinstance(one, Broken)]
    if not sample:
        raise Permanent("There are no rows in it, only a header." if found else "There are no rows in it.")
    plan = make_plan(dialect, columns, sample, options, max_text)
    shaper = Shaper(plan, Owner(0, 0, ""))
    for row, cells in enumerate(rest, 1 + dialect.header):
        shaper.take(row, cells)
    total = len(rest) if ended else max(len(rest), round(len(rest) * _measure(path, dialect.format) / max(1, taken)))
    share = total / len(rest)
    return FilePreview(
        plan=plan,
        rows=[[cell[:200] for cell in cells] for cells in sample[:SHOWN]],
        rejected=shaper.portion.rejected,
        looked_at=len(rest),
        estimated_rows=total,
        estimated_tokens=round(share * sum(_count_tokens(plan, cells) for cells in sample)),
    )


def _measure(path: str, format_: str) -> int:
    """The size of a file in the unit of its places."""
    if format_ != "xlsx":
        return Path(path).stat().st_size
    return SheetRows(Path(path), 0).height


def _name_columns(found: Sequence[Cells | Broken], *, header: bool) -> tuple[tuple[str, ...], list[Cells | Broken]]:
    """The names of the columns, and the rows without the header."""
    first = next((one for one in found if not isinstance(one, Broken)), None)
    if first is None:
        raise Permanent("No row of it can be read: " + (f"{found[0].reason}." if found else "it is empty."))  # type: ignore[union-attr]
    if isinstance(first, Mapping):
        named = [name for one in found if isinstance(one, Mapping) for name in one]
        return name_columns(list(dict.fromkeys(named)), header=True), list(found)
    names = name_columns(first, header=header)
    return names, [one for one in found if one is not first] if header else list(found)


def _as_cells(row: Cells | Broken, columns: Sequence[str]) -> Sequence[str]:
    assert not isinstance(row, Broken)
    return [write_value(row.get(name)) for name in columns] if isinstance(row, Mapping) else row


def _count_tokens(plan: ImportPlan, cells: Sequence[str]) -> int:
    places = [plan.columns.index(name) for name in plan.text]
    texts = [cells[place][:10_000].encode(errors="replace").decode() for place in places if place < len(cells)]
    return sum(map(tokens.count, texts))


def read_portion(path: str, plan: ImportPlan, place: FilePlace, owner: Owner, most: int) -> RowPortion:
    """The next rows after a place, at most so many.

    This process keeps the file open: the next portion goes on where this one ended. Another process finds its place by
    the number of the byte.
    """
    global _open
    file, _open = _open, None
    if file is None or file.path != path or file.place != place:
        if file is not None:
            file.rows.close()
        rows = open_rows(Path(path), plan.dialect, place)
        file = _OpenFile(path, place, rows, iter(rows))
        if place == FilePlace() and plan.dialect.header:
            next(file.left, None)
    first = 1 + (place.row or int(plan.dialect.header))
    row = first - 1
    shaper = Shaper(plan, owner)
    portion = shaper.portion
    for row, cells in enumerate(file.left, first):
        shaper.take(row, cells)
        if row - first + 1 >= most or portion.size > MOST_BYTES:
            break
    else:
        portion.is_last = True
    portion.place = FilePlace(file.rows.offset, row)
    if portion.is_last:
        file.rows.close()
    else:
        _open = _OpenFile(path, portion.place, file.rows, file.left)
    return portion
