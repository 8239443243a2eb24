"""The order of a table, kept in the address: `?sort=-depth` is the deepest first."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from fastapi import Request

T = TypeVar("T")
Columns = Mapping[str, Callable[[T], Any]]  # the value of a row in each column that it can be ordered by


@dataclass(frozen=True)
class Sort:
    """The column that a table is ordered by, and the address of the page."""

    key: str
    falling: bool
    path: str
    others: Sequence[tuple[str, str]]  # the other parameters of the address: they stay

    def link(self, key: str) -> str:
        """The address of the same table, ordered by this column; the other way round if it already is."""
        falling = not self.falling if key == self.key else False
        return f"{self.path}?{urlencode([*self.others, ('sort', f'-{key}' if falling else key)])}"


def read_sort(request: Request, columns: Iterable[str], otherwise: str) -> Sort:
    """What the address asks for, or the usual order; a column that does not exist is not an error."""
    asked = request.query_params.get("sort", otherwise)
    wanted = asked if asked.lstrip("-") in set(columns) else otherwise
    others = [
        (name, value)
        for name, value in request.query_params.multi_items()
        if name not in ("sort", "by", "cursor", "start")
    ]  # “by” is the order that static/tables.js made
    return Sort(wanted.lstrip("-"), wanted.startswith("-"), request.url.path, others)


def sort_rows(rows: Iterable[T], sort: Sort, columns: Columns[T]) -> list[T]:
    """Rows in the order that was asked for; those without a value come last."""
    value_of, all_rows = columns[sort.key], list(rows)
    known = [row for row in all_rows if value_of(row) is not None]
    unknown = [row for row in all_rows if value_of(row) is None]
    return [*sorted(known, key=value_of, reverse=sort.falling), *unknown]
