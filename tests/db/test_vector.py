"""Vectors go to PostgreSQL and come back in its binary form."""

import struct

import pytest

from gristmill.db import Database, Vector, read_vector

NUMBERS = [0.0, -1.0, 0.1, 3.4e38, 1e-38, 1 / 3]


@pytest.mark.parametrize("prepared", [1, 8])  # the driver prepares a statement that it has seen a few times
async def test_a_vector_arrives_with_every_bit_and_comes_back_so(db: Database, prepared: int) -> None:
    sent = struct.pack("<6f", *NUMBERS)
    async with db.transaction() as tx:
        for _ in range(prepared):
            back = await tx.value("SELECT vector_send(%(vector)s::vector)", vector=Vector(sent))
            assert read_vector(back) == sent
        assert await tx.value("SELECT vector_dims(%(vector)s::vector)", vector=Vector(sent)) == 6


async def test_pairs_are_what_stands_in_the_second_column_by_the_first(db: Database) -> None:
    async with db.reading() as tx:
        assert await tx.pairs("SELECT n::bigint, n / 2.0::float8 FROM generate_series(1, 3) n", dict[int, float]) == {
            1: 0.5,
            2: 1,
            3: 1.5,
        }
        assert await tx.pairs("SELECT 1, 2 WHERE false", dict[int, int]) == {}
