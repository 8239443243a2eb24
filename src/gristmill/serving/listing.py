"""Lists over HTTP: a portion of rows, and a cursor for the next one."""

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, Generic, TypeVar

import msgspec
from fastapi import Query
from pydantic import BaseModel

from gristmill.serving.problems import Problem

T = TypeVar("T")
Cursor = Annotated[str | None, Query(description="`next` of the portion before; none: the first.", max_length=500)]


class Listing(BaseModel, Generic[T]):
    """A portion of a list; `next` is None at its end."""

    items: Sequence[T]
    next: str | None = None


def write_cursor(*last: int | str) -> str:
    """An opaque text of the values that the last row is ordered by."""
    return base64.urlsafe_b64encode(msgspec.json.encode(last)).rstrip(b"=").decode()


def read_cursor(cursor: str | None, *kinds: type[int] | type[str]) -> tuple[int | str, ...] | None:
    """The values that `write_cursor` was given; None for the first portion."""
    if cursor is None:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        values = msgspec.json.decode(text, type=list[int | str])
    except (binascii.Error, ValueError, msgspec.DecodeError):
        values = []
    if [type(value) for value in values] != list(kinds):
        raise Problem(422, "The cursor cannot be read: use `next` of the portion before as it is.")
    return tuple(values)
