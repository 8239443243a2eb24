"""Vectors in PostgreSQL's own form: to write their numbers out takes both sides longer than many a statement."""

import struct
from array import array
from dataclasses import dataclass

from psycopg import adapters
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format
from typing_extensions import override

HEADER = struct.Struct("!HH")  # how many numbers, and nothing


@dataclass(frozen=True, slots=True)
class Vector:
    """A parameter of a statement, of float32, little-endian, as embedders make it."""

    numbers: bytes


class _Dumper(Dumper):
    format = Format.BINARY  # of no type that we could name: the statement says `::vector`

    @override
    def dump(self, obj: Vector) -> Buffer:
        numbers = _swap_bytes(obj.numbers)
        return HEADER.pack(len(numbers) // 4, 0) + numbers


adapters.register_dumper(Vector, _Dumper)


def read_vector(sent: bytes) -> bytes:
    """As embedders make it, from what PostgreSQL sends."""
    return _swap_bytes(sent[HEADER.size :])


def _swap_bytes(numbers: bytes) -> bytes:
    """Each number of four bytes the other way round: the network's way, and back."""
    packed = array("f", numbers)
    packed.byteswap()
    return packed.tobytes()
