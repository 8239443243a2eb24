"""Vectors are made once per text and model, and each model has an index of its own."""

import asyncio
from dataclasses import replace

import pytest
from shelf import chunked, placed, searchable

from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.knowledge import search, vectors
from gristmill.models import FakeEmbedder
from gristmill.queue import Done, Skip
from gristmill.tasks import FillVectors


class Renamed(FakeEmbedder):
    """The same under another name."""

    name = "another"


async def test_the_first_model_is_current_and_a_second_waits_until_it_is_filled(db: Database) -> None:
    async with db.transaction() as tx:
        assert await vectors.current_model(tx) is None
        first = await vectors.register(tx, FakeEmbedder())
        second = await vectors.register(tx, Renamed())
        assert await vectors.register(tx, FakeEmbedder()) == first
        assert (first.current, second.current) == (True, False)
        assert await vectors.current_model(tx) == first
        indexes = await tx.all(
            "SELECT indexdef FROM pg_indexes WHERE tablename = 'embedding' AND indexdef LIKE '%%hnsw%%'"
        )
    assert len(indexes) == 2
    assert f"WHERE (model = {first.id})" in indexes[0].indexdef


async def test_a_model_that_many_register_at_once_is_one(db: Database) -> None:
    async def register() -> vectors.Model:
        async with db.transaction() as tx:
            return await vectors.register(tx, FakeEmbedder())

    assert len(set(await asyncio.gather(*(register() for _ in range(4))))) == 1


async def test_vectors_too_long_for_an_index_are_refused(db: Database) -> None:
    class Endless(FakeEmbedder):
        dimensions = 4096

    async with db.transaction() as tx:
        with pytest.raises(Refused, match=r"4,096 numbers"):
            await vectors.register(tx, Endless())


async def test_a_vector_is_known_by_the_text_it_was_made_of_bit_for_bit(db: Database) -> None:
    embedder = FakeEmbedder()
    async with db.transaction() as tx:
        (chunk,) = await chunked(tx, await placed(tx), "The mill grinds slowly.")
        model = await vectors.register(tx, embedder)
        other = await vectors.register(tx, Renamed())
        await searchable(tx, chunk, model=model.id, embedder=embedder)
        found = await vectors.known(tx, model.id, [chunk.hash, b"x" * 32])
        assert await vectors.known(tx, other.id, [chunk.hash]) == {}
    (vector,) = await embedder.embed([chunk.embedded])
    assert found == {chunk.hash: vector}


async def test_another_model_is_filled_in_the_background_and_then_takes_over(db: Database) -> None:
    old, new = FakeEmbedder(), Renamed()
    async with db.transaction() as tx:
        found = await chunked(
            tx, await placed(tx), "\n\n".join(f"# Part {n}\n\n{'The mill. ' * 60}" for n in range(70))
        )
        first = await vectors.register(tx, old)
        for chunk in found:
            await searchable(tx, chunk, model=first.id, embedder=old)
    async with db.transaction() as tx:
        second = await vectors.register(tx, new)
        assert await vectors.register(tx, new) == second
        assert await tx.value("SELECT count(*) FROM task WHERE kind = 'knowledge.fill'") == 1
    portions = 0
    answer: object = None
    while not isinstance(answer, Done):
        hits = await search(db, [new, old], "mill", alpha=1.0)
        assert hits  # from the old vectors, until the new ones are complete
        assert hits.note is None
        answer = await vectors.fill_vectors(FillVectors(second.id), db=db, embedder=new)
        portions += 1
    assert portions > 2
    async with db.transaction() as tx:
        assert answer.write
        await answer.write(tx)
    async with db.transaction() as tx:
        current = await vectors.current_model(tx)
        assert current == replace(second, current=True)
        assert await tx.value("SELECT count(DISTINCT model) FROM embedding") == 1
        assert await tx.value("SELECT count(*) FROM embedding") == len(found)
        assert await tx.value("SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'embedding_near%%'") == 1
    assert (await search(db, new, "mill", alpha=1.0)).note is None


async def test_a_model_that_is_no_longer_wanted_is_not_filled(db: Database) -> None:
    async with db.transaction() as tx:
        await vectors.register(tx, FakeEmbedder())
        second = await vectors.register(tx, Renamed())
    answer = await vectors.fill_vectors(FillVectors(second.id), db=db, embedder=FakeEmbedder())
    assert isinstance(answer, Skip)
