"""Vectors in PostgreSQL's binary form: writing and reading them as text takes longer than many statements."""

import struct
from array import array
from dataclasses import dataclass

from psycopg import adapters
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format
from typing_extensions import override

HEADER = struct.Struct("!HH")  # the number of dimensions, and an unused field


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector as parameter of a statement: float32, little-endian, as embedders make it."""

    numbers: bytes


class _Dumper(Dumper):
    format = (
        Format.BINARY
    )  # without a type, because its number differs between databases: the statement says `::vector`

    @override
    def dump(self, obj: Vector) -> Buffer:
        numbers = _swap_bytes(obj.numbers)
        return HEADER.pack(len(numbers) // 4, 0) + numbers


adapters.register_dumper(Vector, _Dumper)


def read_vector(sent: bytes) -> bytes:
    """Turns the binary form that PostgreSQL sends into the bytes that embedders make."""
    return _swap_bytes(sent[HEADER.size :])


def _swap_bytes(numbers: bytes) -> bytes:
    """Reverses the four bytes of each number: to network order, and back."""
    packed = array("f", numbers)
    packed.byteswap()
    return packed.tobytes()
