"""Vectors are made once per text and model, and each model has an index of its own."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from shelf import chunked, placed, searchable

from gristmill.db import Database, Vector
from gristmill.errors import Refused
from gristmill.knowledge import Embedders, search, terms_of, vectors
from gristmill.knowledge.letters import FillVectors
from gristmill.models import Embedder, FakeEmbedder
from gristmill.queue import Done, Envelope, Skip, Worker, bind, on
from gristmill.scopes import GLOBAL, Scope, scope_id


class Renamed(FakeEmbedder):
    """The same embedder under another name."""

    name = "another"


@pytest.fixture
def portions(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many chunks one letter fills: some portions of a few, that few need be made."""
    monkeypatch.setattr(vectors, "PORTION", 8)
    monkeypatch.setattr(vectors, "PORTIONS", 4)
    return 32


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
        found = await vectors.find_vectors(tx, model.id, [chunk.hash, b"x" * 32])
        assert await vectors.find_vectors(tx, other.id, [chunk.hash]) == {}
    (vector,) = await embedder.embed([chunk.text_to_embed])
    assert found == {chunk.hash: vector}


async def test_another_model_is_filled_in_the_background_and_then_takes_over(db: Database, portions: int) -> None:
    old, new = FakeEmbedder(), Renamed()
    await stored(db, old, *("The mill. " * 60 + str(n) for n in range(portions + 1)))
    async with db.transaction() as tx:
        second = await vectors.register(tx, new)
        assert await vectors.register(tx, new) == second
        assert await tx.value("SELECT count(*) FROM task WHERE kind = 'knowledge.fill'") == 1
    letter, letters = FillVectors(new.name), 0
    while (letter := await filled_on(db, new, letter)) is not None:
        hits = await search(db, [new, old], "mill", alpha=1.0)
        assert hits[0].similarity  # from the old vectors, until the new ones are complete
        assert f"{new.name} takes the place of {old.name}" in (hits.note or "")
        letters += 1
    assert letters == 1  # one letter fills all portions but the last chunk
    async with db.transaction() as tx:
        assert await vectors.current_model(tx) == replace(second, current=True)
        assert await tx.value("SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'embedding_near%%'") == 1
    assert await models_of_chunks(db) == {(new.name,)}
    assert (await search(db, new, "mill", alpha=1.0)).note is None


async def test_filling_goes_on_where_it_stopped_and_sees_in_the_end_to_what_was_written_behind_it(
    db: Database, portions: int
) -> None:
    old, new = FakeEmbedder(), Renamed()
    await stored(db, old, *("The mill. " * 60 + str(n) for n in range(portions + 1)))
    letter = await filled_on(db, new, FillVectors(new.name))
    assert letter is not None
    async with db.transaction() as tx:
        last = await tx.value(
            "SELECT max(chunk) FROM embedding JOIN embedding_model m ON m.id = model WHERE NOT current"
        )
        assert letter.after == last
        await tx.execute(
            "DELETE FROM embedding WHERE chunk IN (SELECT min(chunk) FROM embedding) AND model IN"
            " (SELECT id FROM embedding_model WHERE NOT current)"
        )
    asked = len(new.embedded)
    while (letter := await filled_on(db, new, letter)) is not None:
        pass
    assert len(new.embedded) == asked + 2  # the last chunk, and the one behind
    assert await models_of_chunks(db) == {(new.name,)}


async def test_a_worker_fills_portion_after_portion_and_ends(db: Database, portions: int) -> None:
    old, new = FakeEmbedder(), Renamed()
    await stored(db, old, *("The mill. " * 60 + str(n) for n in range(portions + 1)))
    async with db.transaction() as tx:
        await vectors.choose_model(tx, new.name)
    handlers = bind(on(FillVectors, partial(vectors.fill_vectors, db=db, embedder=new)))
    await Worker(db, handlers, until_idle=True, maintenance=False).run()
    assert await models_of_chunks(db) == {(new.name,)}
    assert len(new.embedded) == portions + 1


async def test_going_back_to_a_model_before_the_other_took_over_leaves_no_chunk_without_a_vector(db: Database) -> None:
    first, second = FakeEmbedder(), Renamed()
    await stored(db, first, "The mill grinds slowly.")
    await stored(db, second, "The bearing runs hot.")  # it gets a vector of the second model alone
    await stored(db, first, "The miller sleeps.")
    await filled(db, first)
    assert await models_of_chunks(db) == {(first.name,)}
    assert {hit.similarity is not None for hit in await search(db, first, "bearing", alpha=1.0)} == {True}


async def test_going_there_and_back_with_chunks_coming_all_the_time_leaves_one_vector_each(db: Database) -> None:
    first, second = FakeEmbedder(), Renamed()
    for n, embedder in enumerate((first, second, first, second, second, first)):
        await stored(db, embedder, f"Note {n} of the mill.")
        if n in (1, 3):
            await vectors.fill_vectors(FillVectors(embedder.name), db=db, embedder=embedder)
    await filled(db, first)
    assert await models_of_chunks(db) == {(first.name,)}
    async with db.transaction() as tx:
        assert await tx.value("SELECT count(*) FROM embedding") == 6
        assert await tx.value("SELECT count(*) FROM embedding_model") == 1


async def test_what_a_worker_with_the_old_model_writes_last_is_not_dropped_with_that_model(db: Database) -> None:
    old, new = FakeEmbedder(), Renamed()
    await stored(db, old, "The mill.")

    class Meanwhile(Renamed):
        """Another worker goes on with the old model while this one fills the new."""

        async def embed(self, texts: Sequence[str]) -> list[bytes]:
            await stored(db, old, f"Written beside {len(self.embedded)}.") if len(self.embedded) < 3 else None
            return await super().embed(texts)

    await filled(db, Meanwhile())
    assert await models_of_chunks(db) == {(new.name,)}
    async with db.transaction() as tx:
        assert await tx.value("SELECT count(*) FROM embedding") > 1


async def test_old_models_go_when_no_search_runs_and_never_keep_one_waiting(db: Database) -> None:
    new = Renamed()
    await stored(db, FakeEmbedder(), "The mill.")
    async with db.transaction() as tx:
        model = (await vectors.register(tx, new)).id
        await tx.execute("UPDATE embedding SET model = %(model)s", model=model)
    async with asyncio.timeout(60), db.transaction() as searching:  # otherwise a fault would wait for ever
        await searching.all("SELECT FROM embedding")
        assert not await retired(db, model)
        async with db.transaction() as tx:
            assert await tx.value("SELECT count(*) FROM embedding_model") == 2
            assert await tx.value("SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'embedding_near%%'") == 2
    assert await retired(db, model)
    async with db.transaction() as tx:
        assert await tx.value("SELECT array_agg(name) FROM embedding_model") == [new.name]
        assert await tx.value("SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'embedding_near%%'") == 1


async def test_a_vector_of_the_old_model_that_is_being_written_is_not_dropped_with_it(db: Database) -> None:
    new = Renamed()
    await stored(db, FakeEmbedder(), "The mill.")
    async with db.transaction() as tx:
        model = (await vectors.register(tx, new)).id
        await tx.execute("UPDATE embedding SET model = %(model)s", model=model)
    async with asyncio.timeout(60), db.transaction() as writing:
        await writing.execute("INSERT INTO embedding SELECT 1, chunk, scope, vector FROM embedding")
        await writing.flush()
        assert not await retired(db, model)
    assert not await retired(db, model)
    assert await models_of_chunks(db) == {(new.name, FakeEmbedder.name)}


async def test_what_comes_while_a_model_is_filled_gets_a_vector_of_the_current_one_where_that_is_available(
    db: Database,
) -> None:
    old, new = FakeEmbedder(), Renamed()
    await stored(db, old, "The mill grinds slowly.")
    await stored(db, [new, old], "The bearing runs hot.")
    hits = await search(db, [new, old], "bearing", alpha=1.0)
    assert [hit.text for hit in hits][:1] == ["The bearing runs hot."]
    await filled(db, new)
    assert await models_of_chunks(db) == {(new.name,)}


async def test_a_search_says_what_is_found_by_words_alone_while_a_model_is_filled(db: Database) -> None:
    old, new = FakeEmbedder(), Renamed()
    await stored(db, old, "The mill grinds slowly.")
    await stored(db, new, "The bearing runs hot.")
    hits = await search(db, [new, old], "bearing")
    assert [(hit.text, hit.similarity) for hit in hits][:1] == [("The bearing runs hot.", None)]
    assert hits.note == "another takes the place of fake: until it has, what was added since is found by words alone."
    await filled(db, new)
    assert (await search(db, new, "bearing")).note is None


async def test_workers_that_start_with_another_model_begin_to_fill_it_without_any_new_chunk(db: Database) -> None:
    async def fills() -> list[str]:
        async with db.transaction() as tx:
            rows = await tx.all("SELECT payload ->> 'model' AS model FROM task WHERE kind = 'knowledge.fill'")
        return [row.model for row in rows]

    async with db.transaction() as tx:
        await vectors.choose_model(tx, "fake")
    await stored(db, FakeEmbedder(), "The mill.")
    async with db.transaction() as tx:
        await vectors.choose_model(tx, "fake")
    assert await fills() == []
    async with db.transaction() as tx:
        await vectors.choose_model(tx, "another")
        await vectors.choose_model(tx, "another")
    assert await fills() == ["another"]


async def test_a_model_that_is_no_longer_wanted_is_not_filled(db: Database) -> None:
    async with db.transaction() as tx:
        await vectors.register(tx, FakeEmbedder())
        await vectors.register(tx, Renamed())
    answer = await vectors.fill_vectors(FillVectors("another"), db=db, embedder=FakeEmbedder())
    assert isinstance(answer, Skip)


# --- hands


async def stored(db: Database, embedders: Embedders, *texts: str) -> None:
    """Chunks as the task of their vectors makes them searchable."""
    async with db.transaction() as tx:
        document = await placed(tx)
        found = [chunk for n, text in enumerate(texts, 1) for chunk in await chunked(tx, document, text, page=n)]
    made = await vectors.make_vectors(db, embedders, {chunk.hash: chunk.text_to_embed for chunk in found})
    async with db.transaction() as tx:
        for chunk in found:
            await vectors.make_searchable(tx, chunk, made[chunk.hash], terms_of(chunk.text_to_embed, chunk.language))


async def filled(db: Database, embedder: Embedder) -> None:
    letter = FillVectors(embedder.name)
    while (letter := await filled_on(db, embedder, letter)) is not None:
        pass


async def filled_on(db: Database, embedder: Embedder, letter: FillVectors) -> FillVectors | None:
    """The next letter; None if nothing is left to do."""
    answer = await vectors.fill_vectors(letter, db=db, embedder=embedder)
    if not isinstance(answer, Done):
        return letter
    letters = [one.letter for one in answer.then if isinstance(one, Envelope)]
    return next((one for one in letters if isinstance(one, FillVectors)), None)


async def retired(db: Database, model: int) -> bool:
    async with db.transaction() as tx:
        return await tx.value(vectors.SQL["drop_other_models"], model=model)


async def models_of_chunks(db: Database) -> set[tuple[str, ...]]:
    """The sets of models of which a chunk has vectors."""
    async with db.transaction() as tx:
        rows = await tx.all(
            """SELECT DISTINCT array_remove(array_agg(m.name ORDER BY m.name), NULL) AS names FROM chunk c
                 LEFT JOIN embedding e ON e.chunk = c.id LEFT JOIN embedding_model m ON m.id = e.model GROUP BY c.id"""
        )
    return {tuple(row.names) for row in rows}


async def test_a_filter_that_leaves_few_documents_looks_at_few(db: Database) -> None:
    async with db.transaction() as tx:
        scope = await scope_id(tx, GLOBAL)
        await tx.execute("INSERT INTO blob VALUES (sha256('x'), 1)")
        await tx.execute(
            """INSERT INTO document (scope, urn, version, hash, name, type, written_at, pages, task, opening)
               SELECT %(scope)s, 'test:' || n, 1, sha256('x'), 'x', CASE WHEN n %% 5000 = 0 THEN 'rare' ELSE 'pdf' END,
                      '2020-01-01'::timestamptz + n * interval '1 min', 1, 0, 0 FROM generate_series(1, 20000) n""",
            scope=scope,
        )
        await tx.execute("ANALYZE document")
        since = await tx.value("SELECT max(written_at) - interval '2 minutes' FROM document")
        asked = {"scopes": [scope], "types": ["rare"], "after": since, "most": 4001}
        for name in ("few_chunks_of_type", "few_chunks_since"):
            plan = await tx.value("EXPLAIN (ANALYZE, FORMAT JSON) " + vectors.SQL[name], **asked)
            assert looked_at(plan[0]["Plan"]) < 100, name


async def test_the_plan_of_the_index_is_kept_however_many_scopes_there_are(db: Database) -> None:
    embedder = FakeEmbedder()
    (near,) = await embedder.embed(["mill"])
    async with db.transaction() as tx:
        model = await vectors.register(tx, embedder)
        scopes = [await scope_id(tx, Scope(f"client {n}")) for n in range(20)]
        for n, scope in enumerate(scopes):  # most of them are the first one's
            await tx.execute(
                """WITH b AS (INSERT INTO blob VALUES (sha256(%(name)s::bytea), 0)), d AS (
                     INSERT INTO document (scope, urn, version, hash, name, type, pages, task, opening)
                     VALUES (%(scope)s, %(name)s, 1, sha256(%(name)s::bytea), '', 'text', 1, 0, 0) RETURNING id
                   ), c AS (
                     INSERT INTO chunk (scope, document, page, ordinal, start, stop, tokens, text, hash)
                     SELECT %(scope)s, d.id, 1, n, 0, 0, 1, '', '' FROM d, generate_series(1, %(size)s) n RETURNING id
                   )
                   INSERT INTO embedding (model, chunk, scope, vector)
                   SELECT %(model)s, c.id, %(scope)s, %(vector)s::vector FROM c""",
                name=f"test:{n}",
                scope=scope,
                size=50 if n else 3_000,
                model=model.id,
                vector=Vector(near),
            )
    async with await db.connect("test") as connection:
        await connection.execute("ANALYZE embedding")
    one = Database(db.url, size=1)
    async with one, one.reading() as tx:
        for _ in range(20):
            await vectors.find_nearest(tx, model, near, scopes[:1], 1_000_000, vectors.Filter(), 100)
        plans = await tx.all(
            "SELECT generic_plans FROM pg_prepared_statements WHERE statement LIKE '%%hnsw.ef_search%%'"
        )
    assert [row.generic_plans > 0 for row in plans] == [True]


def looked_at(plan: dict[str, Any]) -> int:
    """The rows of documents that a plan reads, with those that its filters drop."""
    here = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return (here if plan.get("Relation Name") == "document" else 0) + sum(map(looked_at, plan.get("Plans", [])))
