"""Loading: rows become records once, and the report says what became of every row."""

from pathlib import Path

from tables import ACME, House, open_house, reviews, table

from gristmill.db import Database
from gristmill.records import RowCounts, remove_import


async def test_rows_become_records_with_their_text_id_and_columns(house: House) -> None:
    report = await house.load(reviews(3))
    assert report.state == "loaded"
    assert report.counts == RowCounts(loaded=3)
    assert (report.plan.text, report.plan.id) == (("text",), "task_id")
    assert await house.records("row, external_id, content, columns") == [
        (2, "r1", "Review number 1: the mill grinds 1 sacks of grain", {"task_id": "r1", "rating": "2"}),
        (3, "r2", "Review number 2: the mill grinds 2 sacks of grain", {"task_id": "r2", "rating": "3"}),
        (4, "r3", "Review number 3: the mill grinds 3 sacks of grain", {"task_id": "r3", "rating": "4"}),
    ]


async def test_the_same_file_twice_adds_nothing(house: House) -> None:
    await house.load(reviews(50))
    again = await house.load(reviews(50))
    assert again.counts == RowCounts(duplicate=50)
    assert len(await house.records()) == 50
    assert again.examples["duplicate"][0] == "row 2: the record of this id is the same"


async def test_a_changed_row_under_a_known_id_is_an_update(house: House) -> None:
    await house.load(reviews(3))
    changed = reviews(3).replace("grinds 2 sacks", "grinds nothing").replace("r3,", "r3,").replace(",4\r\n", ",1\r\n")
    report = await house.load(changed)
    assert report.counts == RowCounts(updated=2, duplicate=1)
    assert await house.records("import AS document, content, columns ->> 'rating'") == [
        (report.id - 1, "Review number 1: the mill grinds 1 sacks of grain", "2"),
        (report.id, "Review number 2: the mill grinds nothing of grain", "3"),
        (report.id, "Review number 3: the mill grinds 3 sacks of grain", "1"),
    ]


async def test_duplicates_within_a_file_are_found_across_portions(house: House) -> None:
    small = house.with_settings(batch=2)
    rows = [("id", "text"), *((i % 3, f"text {i % 3} of the mill") for i in range(7)), (9, "text 0 of the mill")]
    report = await small.load(table(rows))
    assert report.counts == RowCounts(loaded=3, duplicate=5)


async def test_the_same_text_under_another_id_is_a_duplicate_unless_texts_may_repeat(house: House) -> None:
    content = table([("id", "text"), (1, "Great mill"), (2, "Great mill"), (3, "Slow mill")])
    assert (await house.load(content)).counts == RowCounts(loaded=2, duplicate=1)
    assert (await house.load(content, unique_text=False)).counts == RowCounts(loaded=1, duplicate=2)


async def test_the_report_counts_filtered_and_invalid_rows_with_examples(house: House) -> None:
    content = table([("id", "text"), (1, "late delivery"), (2, "all good"), (3, ""), (4, "---"), (5, "late SPAM")])
    report = await house.load(content, words=("late", "-spam"), min_length=3)
    assert report.counts == RowCounts(loaded=1, filtered=2, invalid=2)
    assert report.examples == {
        "invalid": ["row 4: its text is empty", "row 5: there is no word in its text"],
        "filtered": ["row 3: it has none of the words: late", "row 6: it has the word “spam”"],
    }


async def test_two_clients_may_have_the_same_ids(house: House) -> None:
    await house.load(reviews(5), ACME)
    other = await house.load(reviews(5), type(ACME)("beta", "reviews"))
    assert other.counts == RowCounts(loaded=5)
    assert len(await house.records()) == 10


async def test_a_table_that_was_emptied_is_not_read_whole_for_each_row_of_the_next(
    db: Database, url: str, tmp_path: Path
) -> None:
    async with Database(url) as own, open_house(own, tmp_path) as opened:  # a connection tells its counts when it ends
        house = opened.with_settings(batch=20)
        first = await house.load(reviews(1_000), embed=False)
        await remove_import(own, first.id)
        async with await db.connect("analyses") as connection:
            await connection.set_autocommit(True)
            await connection.execute("VACUUM ANALYZE data_records")
        assert (await house.load(reviews(1_000), embed=False)).counts == RowCounts(loaded=1_000)
    async with db.transaction() as tx:
        read = await tx.value("SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'data_records'")
    assert read < 10_000
