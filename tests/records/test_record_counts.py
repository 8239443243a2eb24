"""How many records there are is counted as they change, and what a list costs does not grow with them."""

from tables import ACME, House, reviews

from gristmill.db import Tx
from gristmill.ids import DocumentId
from gristmill.records import list_records, load_embedding_progress, remove_import, remove_records
from gristmill.records.records import SQL, EmbeddingProgress, fold_tally
from gristmill.scopes import find_scope
from plans import count_rows

SCAN = """
SELECT count(chunk) AS searchable, count(*) FILTER (WHERE chunk IS NULL AND embed AND trouble IS NULL) AS waiting,
       count(trouble) AS troubled
  FROM data_records WHERE import = %(document)s
"""


async def check_counts(tx: Tx, document: DocumentId) -> EmbeddingProgress:
    """The counters say what a scan says."""
    counted = await load_embedding_progress(tx, document)
    assert counted == await tx.one(SCAN, EmbeddingProgress, document=document)
    return counted


async def test_records_are_counted_whatever_is_done_with_them(house: House) -> None:
    first = await house.load(reviews(40), embed=False)
    async with house.db.transaction() as tx:
        assert await check_counts(tx, first.id) == EmbeddingProgress(0, 0, 0)
    second = await house.load(reviews(60).replace("sacks", "bags"))
    async with house.db.transaction() as tx:
        assert (await check_counts(tx, first.id), (await check_counts(tx, second.id)).searchable) == (
            EmbeddingProgress(0, 0, 0),
            60,
        )
        await tx.execute("UPDATE data_records SET chunk = NULL, trouble = 'refused' WHERE row < 10")
        await tx.execute("UPDATE data_records SET chunk = NULL WHERE row BETWEEN 10 AND 14")
        assert await check_counts(tx, second.id) == EmbeddingProgress(47, 5, 8)  # the header is the first row
        found = await list_records(tx, document=second.id, most=3)
        await remove_records(tx, [one.id for one in found])
        await check_counts(tx, second.id)
        await fold_tally(tx, second.id, most=1)
        assert await tx.value("SELECT count(*) FROM data_tally WHERE import = %(id)s", id=second.id) == 1
        await check_counts(tx, second.id)
    await remove_import(house.db, second.id)
    async with house.db.transaction() as tx:
        assert await tx.value("SELECT count(*) FROM data_tally WHERE import = %(id)s", id=second.id) == 0


async def test_what_a_list_costs_does_not_grow_with_the_records(house: House) -> None:
    report = await house.load(reviews(3), embed=False)
    async with house.db.transaction() as tx:
        own = await find_scope(tx, ACME)
        await tx.execute(MANY, document=report.id, scope=own)
        await tx.execute("ANALYZE data_records, data_import, data_tally, scope, document")
        asked = {"after": 0, "most": 50, "document": report.id, "scopes": [1, own], "category": "TOP_10"}
        for name in (
            "oldest_of_all",
            "oldest_of_scopes",
            "oldest_of_category",
            "rows_of_import",
            "rows_of_category",
            "embedding_progress",
        ):
            plan = await tx.value("EXPLAIN (ANALYZE, FORMAT JSON) " + SQL[name], **asked)
            assert count_rows(plan[0]["Plan"]) < 600, name


MANY = """
INSERT INTO data_records (scope, import, row, hash, whole, category, content, columns, embed, created_at, updated_at)
SELECT %(scope)s, %(document)s, 10 + n, gen_random_uuid(), gen_random_uuid(), CASE WHEN n %% 500 = 0 THEN 'TOP_10' END,
       'Review ' || n, '{}', false, clock(), clock()
  FROM generate_series(1, 30000) n
"""
