"""Turns a row of the database into a record whose fields have types."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, cast

from gristmill.db import Row

Record = TypeVar("Record")


def to_record(kind: type[Record], row: Row) -> Record:
    """The record that this row holds, by the names of its columns; it leaves out columns that it has no field for."""
    return kind(*_fields_of(kind)(row))


@cache
def _fields_of(kind: type[Any]) -> Callable[[Row], tuple[Any, ...]]:
    names = [field.name for field in fields(kind)]
    return cast(Callable[[Row], tuple[Any, ...]], attrgetter(*names))
