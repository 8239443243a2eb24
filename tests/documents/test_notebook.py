"""What agents write down is kept once, found at once, and stays with its client."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from gristmill.db import Database, Tx
from gristmill.documents import index_document, remove, store_chunk, written
from gristmill.documents.notebook import LENGTH, OVERLAP, divide
from gristmill.errors import Refused
from gristmill.knowledge import graph, search_hybrid
from gristmill.knowledge.lexicon import FEW
from gristmill.knowledge.windows import split_windows
from gristmill.models import FakeEmbedder
from gristmill.scopes import GLOBAL, Scope

ACME, OTHER = Scope("acme"), Scope("other")
EMBEDDER = FakeEmbedder()
pytestmark = pytest.mark.asyncio(loop_scope="session")
SOMEBODY_WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def rows(db: Database, query: str) -> list[object]:
    async with db.transaction() as tx:
        return [tuple(row) for row in await tx.all(query)]


async def test_a_chunk_is_kept_linked_and_found(db: Database) -> None:
    first = await store_chunk(
        db,
        EMBEDDER,
        "wiki:7",
        "The mill belongs to Ann.",
        "wiki::7",
        entity_types=["page"],
        graph_refs=["person::ann"],
        scope=ACME,
    )
    second = await store_chunk(db, EMBEDDER, "wiki:7", "It grinds at night.", "wiki::7", scope=ACME)
    again = await store_chunk(db, EMBEDDER, "wiki:7", "The mill belongs to Ann.", "wiki::7", scope=ACME)
    assert first == again != second
    hits = await search_hybrid(db, EMBEDDER, "mill", scope=ACME)
    assert hits[0].chunk == first
    assert hits[0].urn == "wiki:7"
    pages = "SELECT number, text FROM page ORDER BY number"
    assert await rows(db, pages) == [(1, "The mill belongs to Ann."), (2, "It grinds at night.")]
    assert await rows(
        db,
        "SELECT substr(p.text, c.start + 1, c.stop - c.start) = c.text AS text, p.key = sha256(p.text::bytea) AS key "
        "FROM chunk c JOIN page p ON p.document = c.document AND p.number = c.page",
    ) == [(True, True), (True, True)]
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


async def test_the_same_text_gets_what_else_is_told_of_it(db: Database) -> None:
    first = await index_document(db, EMBEDDER, "memo", "The mill.", "Memo", "desk")
    again = await index_document(
        db, EMBEDDER, "memo", "The mill.", "Memo", "shelf", knowledge_type="POLICY", related_docs=["a"]
    )
    told = await rows(db, "SELECT version, type, meta FROM document")
    assert (again, told) == (first, [(1, "policy", {"location": "shelf", "related": ["a"]})])
    await index_document(db, EMBEDDER, "memo", "The mill.", "Another title", "shelf")
    assert await rows(db, "SELECT d.title, c.heading FROM document d JOIN chunk c ON c.document = d.id") == [
        ("Another title", "Another title")
    ]


async def test_notes_stay_when_a_text_comes_under_their_urn(db: Database) -> None:
    note = await store_chunk(db, EMBEDDER, "wiki:7", "Ann knows more.", "person::ann")
    document = 0
    for text in ("The old mill.", "The new mill."):
        document = await index_document(db, EMBEDDER, "wiki:7", text, "Wiki", "x")
        assert await rows(db, "SELECT document, number, method, text FROM page ORDER BY number") == [
            (document, 1, "copied", text),
            (document, 2, "note", "Ann knows more."),
        ]
        assert [hit.chunk for hit in await search_hybrid(db, EMBEDDER, "ann knows", 0.0)] == [note]
    again = await store_chunk(db, EMBEDDER, "wiki:7", "Ann knows more.", "person::ann")
    await store_chunk(db, EMBEDDER, "wiki:7", "The new mill.", "person::ann")  # which the text may lose again
    assert (again, await rows(db, "SELECT id, pages FROM document")) == (note, [(document, 3)])
    assert await rows(db, "SELECT key, chunks FROM node") == [("person::ann", 2)]


async def test_two_texts_may_change_places(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await index_document(db, EMBEDDER, "a", "The first.", "T", "x")
    await index_document(db, EMBEDDER, "b", "The second.", "T", "x")
    drop = written._drop_older  # pyright: ignore[reportPrivateUsage]

    async def held(tx: Tx, *given: Any, **source: Any) -> None:
        monkeypatch.setattr(written, "_drop_older", drop)
        await tx.flush()
        async with await db.connect("test") as watching:
            while not await (await watching.execute(SOMEBODY_WAITS)).fetchone():  # noqa: ASYNC110 no event says so
                await asyncio.sleep(0.01)
        await drop(tx, *given, **source)

    monkeypatch.setattr(written, "_drop_older", held)
    await asyncio.gather(
        index_document(db, EMBEDDER, "a", "The second.", "T", "x"),
        index_document(db, EMBEDDER, "b", "The first.", "T", "x"),
    )
    texts = await rows(db, "SELECT d.urn, p.text FROM document d JOIN page p ON p.document = d.id ORDER BY 1")
    assert texts == [("a", "The second."), ("b", "The first.")]
    assert await rows(db, "SELECT count(*)::int FROM blob") == [(2,)]


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


@pytest.mark.parametrize("types", [None, ["DOCUMENT"], ["document", "MAIL"]])
async def test_types_change_nothing_of_the_order(db: Database, types: list[str] | None) -> None:
    await store_chunk(db, EMBEDDER, "1", "rye rye mill mill is is rye rye mill old old", "n::a")
    await store_chunk(db, EMBEDDER, "2", "long ago somebody wrote that the rye mill burnt to the ground", "n::a")
    embedder = FakeEmbedder()
    hits = await search_hybrid(db, embedder, '"rye mill burnt" mill is old', 0.5, 10, types)
    assert [hit.urn for hit in hits] == ["2", "1"]
    assert len(embedder.embedded) == 1


async def test_a_large_text_is_divided_by_length_with_some_overlap(db: Database) -> None:
    text = " ".join(f"word{n}" for n in range(8_000))
    spans = list(divide(text))
    assert all(stop - start <= LENGTH for start, stop in spans)
    assert all(before[1] - after[0] == OVERLAP for before, after in pairwise(spans))
    assert (spans[0][0], spans[-1][1]) == (0, len(text))
    await index_document(db, EMBEDDER, "large", text, "Large", "x")
    assert await rows(db, "SELECT count(*)::int FROM chunk") == [(len(spans),)]
    assert (await search_hybrid(db, EMBEDDER, "word7999"))[0].stop == len(text)


class ShortSighted(FakeEmbedder):
    """Sees no more of a text than real models do."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        return await super().embed([split_windows(text, self.window)[0] for text in texts])


async def test_all_of_a_long_text_counts_in_its_vector(db: Database) -> None:
    embedder = ShortSighted()
    for end in ("the quetzal", "the mill"):
        await store_chunk(db, embedder, "wiki:7", f"{'grain ' * 600}{end}", "wiki::7")
    assert await rows(db, "SELECT count(DISTINCT vector::text)::int FROM embedding") == [(2,)]
    for end in ("the quetzal", "the mill"):
        await index_document(db, embedder, end, f"{'grain ' * 8_000}{end}", "Large", "x")
    last = "SELECT DISTINCT ON (document) id FROM chunk WHERE document > 1 ORDER BY document, ordinal DESC"
    told = f"SELECT count(DISTINCT vector::text)::int FROM embedding WHERE chunk IN ({last})"
    assert await rows(db, told) == [(2,)]


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
