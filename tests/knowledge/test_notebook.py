"""What agents write down is kept once, found at once, and stays with its client."""

from itertools import pairwise

import pytest

from gristmill.db import Database
from gristmill.documents import remove
from gristmill.errors import Refused
from gristmill.knowledge import GLOBAL, Scope, graph, index_document, search_hybrid, store_chunk
from gristmill.knowledge.lexicon import FEW
from gristmill.knowledge.notebook import LENGTH, OVERLAP, parts
from gristmill.models import FakeEmbedder

ACME, OTHER = Scope("acme"), Scope("other")
EMBEDDER = FakeEmbedder()


async def rows(db: Database, query: str) -> list[object]:
    async with db.transaction() as tx:
        return [tuple(row) for row in await tx.all(query)]


async def test_a_chunk_is_kept_linked_and_found(db: Database) -> None:
    first = await store_chunk(
        db, EMBEDDER, "wiki:7", "The mill belongs to Ann.", "wiki::7", entity_types=["page"],
        graph_refs=["person::ann"], scope=ACME,
    )  # fmt: skip
    second = await store_chunk(db, EMBEDDER, "wiki:7", "It grinds at night.", "wiki::7", scope=ACME)
    again = await store_chunk(db, EMBEDDER, "wiki:7", "The mill belongs to Ann.", "wiki::7", scope=ACME)
    assert first == again != second
    hits = await search_hybrid(db, EMBEDDER, "mill", scope=ACME)
    assert hits[0].chunk == first
    assert hits[0].urn == "wiki:7"
    assert await rows(db, "SELECT text FROM page") == [("The mill belongs to Ann.\n\nIt grinds at night.",)]
    assert await rows(
        db, "SELECT substr(p.text, c.start + 1, c.stop - c.start) = c.text FROM chunk c JOIN page p USING (document)"
    ) == [(True,), (True,)]
    assert set(await rows(db, "SELECT key FROM mention WHERE chunk = 1")) == {("wiki::7",), ("person::ann",)}


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
async def test_what_is_written_down_stays_with_its_client(db: Database, alpha: float) -> None:
    await store_chunk(db, EMBEDDER, "a", "The secret mill.", "note::a", scope=ACME)
    await index_document(db, EMBEDDER, "b", "The secret mill, again.", "B", "x", scope=ACME)
    for scope in (OTHER, GLOBAL):
        assert await search_hybrid(db, EMBEDDER, "secret mill", alpha, scope=scope) == []
    assert len(await search_hybrid(db, EMBEDDER, "secret mill", alpha, scope=ACME)) == 2


async def test_a_text_takes_the_place_of_the_one_before(db: Database) -> None:
    first = await index_document(db, EMBEDDER, "memo", "The old mill.", "Memo", "desk", related_docs=["a", "b"])
    assert await index_document(db, EMBEDDER, "memo", "The old mill.", "Memo", "desk") == first
    second = await index_document(db, EMBEDDER, "memo", "The new mill.", "Memo", "desk")
    assert second != first
    assert [hit.text for hit in await search_hybrid(db, EMBEDDER, "mill", 0.0)] == ["The new mill."]
    assert await rows(db, "SELECT version, type, meta ->> 'location' FROM document") == [(2, "document", "desk")]


async def test_terms_that_are_written_down_one_by_one_are_gathered_now_and_then(db: Database) -> None:
    await store_chunk(db, EMBEDDER, "wiki:1", "The first.", "wiki::1")
    await rows(db, f"SELECT setval('chunk_id_seq', {FEW - 2})")
    for n in range(3):
        await store_chunk(db, EMBEDDER, f"wiki:{n}", f"The mill number {n}.", f"wiki::{n}", scope=ACME)
    asked = (
        "SELECT s.client FROM task t JOIN scope s ON s.id = (t.payload ->> 'scope')::int WHERE kind = 'knowledge.fold'"
    )
    assert await rows(db, asked) == [("acme",)]


async def test_types_narrow_the_search(db: Database) -> None:
    for type in ("MAIL", "WIKI", "CODE"):
        await index_document(db, EMBEDDER, type, f"The mill in {type}.", type, "x", knowledge_type=type)
    found = await search_hybrid(db, EMBEDDER, "mill", 0.0, knowledge_types=["MAIL", "CODE"])
    assert {hit.type for hit in found} == {"mail", "code"}


async def test_a_large_text_is_divided_by_length_with_some_overlap(db: Database) -> None:
    text = " ".join(f"word{n}" for n in range(8_000))
    spans = list(parts(text))
    assert all(stop - start <= LENGTH for start, stop in spans)
    assert all(before[1] - after[0] == OVERLAP for before, after in pairwise(spans))
    assert (spans[0][0], spans[-1][1]) == (0, len(text))
    await index_document(db, EMBEDDER, "large", text, "Large", "x")
    assert await rows(db, "SELECT count(*)::int FROM chunk") == [(len(spans),)]
    assert (await search_hybrid(db, EMBEDDER, "word7999"))[0].stop == len(text)


async def test_nothing_is_refused(db: Database) -> None:
    with pytest.raises(Refused, match="needs a URN"):
        await store_chunk(db, EMBEDDER, " ", "x", "note::x")
    with pytest.raises(Refused, match="nothing to keep"):
        await index_document(db, EMBEDDER, "x", " ", "X", "x")
    with pytest.raises(Refused, match="needs its client"):
        await store_chunk(db, EMBEDDER, "x", "x", "note::x", scope=Scope(project="p"))


async def test_what_was_stated_of_a_node_goes_with_its_last_evidence(db: Database) -> None:
    await store_chunk(db, EMBEDDER, "wiki:7", "It grinds at night.", "wiki::7", scope=ACME)
    await store_chunk(db, EMBEDDER, "wiki:8", "It rests by day.", "wiki::7", scope=ACME)
    async with db.transaction() as tx:
        await graph.create_node_with_rag_links(tx, ACME, "wiki::9", "page", {"title": "never had evidence"})
        first, second = [row.id for row in await tx.all("SELECT id FROM document ORDER BY id")]
        assert ((await remove(tx, [first])).nodes, (await graph.counts(tx, ACME)).nodes) == (0, 2)
        assert ((await remove(tx, [second])).nodes, (await graph.counts(tx, ACME)).nodes) == (1, 1)


async def test_what_was_stated_of_a_text_goes_or_stays_with_the_chunk_that_shows_it(db: Database) -> None:
    await index_document(db, EMBEDDER, "memo", "The old mill.", "Memo", "desk", scope=ACME)
    async with db.transaction() as tx:
        chunk = await tx.value("SELECT id FROM chunk")
        await graph.create_node_with_rag_links(tx, ACME, "ticket::7", "ticket", {}, [chunk])
    await index_document(db, EMBEDDER, "memo", "# A\n\nThe new mill.", "Memo", "desk", scope=ACME)
    assert await rows(db, "SELECT key FROM node") == []
