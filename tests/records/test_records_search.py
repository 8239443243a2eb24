"""Records are found by words, by meaning and by their columns, together with everything else."""

from tables import ACME, House, reviews, table

from gristmill.documents import remove
from gristmill.knowledge import Hits, search
from gristmill.records import embed_records, find_project, remove_import
from gristmill.scopes import Scope

OPINIONS = [
    ("id", "text", "rating", "region"),
    (1, "The miller delivered late and the flour was damp", 1, "north"),
    (2, "Fine flour, quick delivery", 5, "south"),
    (3, "The flour was damp", 1, "south"),
]


async def found(house: House, query: str, scope: Scope = ACME, **how: object) -> Hits:
    return await search(house.db, house.embedder, query, scope, **how)  # type: ignore[arg-type]


async def test_records_are_found_by_words_and_meaning_and_say_which_row_they_are(house: House) -> None:
    await house.load(table(OPINIONS))
    hits = await found(house, "damp flour", type="record")
    assert [(hit.page, hit.name, hit.type) for hit in hits[:2]] == [
        (4, "reviews.csv", "record"),
        (2, "reviews.csv", "record"),
    ]
    assert hits[0].columns == {"id": "3", "rating": "1", "region": "south"}
    assert hits[0].similarity is not None


async def test_a_search_is_filtered_by_columns(house: House) -> None:
    await house.load(table(OPINIONS))
    assert [hit.page for hit in await found(house, "flour", columns={"region": "south"})] == [4, 3]
    assert [hit.page for hit in await found(house, "flour", columns={"region": "south", "rating": "5"})] == [3]
    assert [hit.page for hit in await found(house, "flour", columns={"region": "south"}, alpha=1)] == [4]
    assert not await found(house, "flour", columns={"region": "west"})


async def test_more_than_three_rows_of_one_table_are_found(house: House) -> None:
    await house.load(reviews(30))
    assert len(await found(house, "the mill grinds grain", limit=10)) == 10


async def test_no_other_client_finds_them(house: House) -> None:
    await house.load(table(OPINIONS))
    for scope in (Scope("beta"), Scope("acme", "other")):
        assert not await found(house, "damp flour", scope)
        assert not await found(house, "damp flour", scope, columns={"region": "south"})
    assert await found(house, "damp flour", Scope("acme"))


async def test_a_changed_record_is_found_by_its_new_text_alone(house: House) -> None:
    await house.load(table(OPINIONS))
    await house.load(table([("id", "text", "rating", "region"), (3, "Excellent bread", 5, "south")]))
    assert [hit.text for hit in await found(house, "bread", alpha=0)] == ["Excellent bread"]
    assert [hit.page for hit in await found(house, "damp flour", alpha=0)] == [2, 3]


async def test_a_record_with_changed_columns_keeps_its_vector_and_moves_to_the_new_import(house: House) -> None:
    first = await house.load(table(OPINIONS))
    embedded = len(house.embedder.embedded)  # type: ignore[attr-defined]
    second = await house.load(table([("id", "text", "rating", "region"), (3, "The flour was damp", 4, "south")]))
    assert len(house.embedder.embedded) == embedded  # type: ignore[attr-defined]
    await remove_import(house.db, first.id)
    (hit,) = await found(house, "damp flour", alpha=0)
    assert (hit.document, hit.page, hit.columns) == (second.id, 2, {"id": "3", "rating": "4", "region": "south"})


async def test_records_loaded_without_vectors_get_them_when_somebody_asks(house: House) -> None:
    await house.load(table(OPINIONS), embed=False)
    assert not await found(house, "damp flour")
    async with house.db.transaction() as tx:
        assert await embed_records(tx, await find_project(tx, ACME)) == 3
    await house.work()
    assert len(await found(house, "damp flour", limit=2)) == 2


async def test_removing_an_import_removes_its_records_vectors_and_terms_and_says_so(house: House) -> None:
    report = await house.load(reviews(30))
    gone = await remove_import(house.db, report.id)
    assert (gone.records, gone.chunks) == (30, 30)
    assert not await house.records()
    assert not await found(house, "the mill grinds grain")
    async with house.db.transaction() as tx:
        for table_ in ("chunk", "embedding", "fresh_terms", "document", "data_import", "data_rejected"):
            assert await tx.value(f"SELECT count(*) FROM {table_}") == 0, table_  # pyright: ignore[reportArgumentType]


async def test_removing_the_document_of_an_import_removes_its_records_too(house: House) -> None:
    report = await house.load(reviews(3))
    async with house.db.transaction() as tx:
        await remove(tx, [report.id])
    assert not await house.records()
