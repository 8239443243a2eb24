"""Categories, lists and exports: who is at the top, and what goes out as it came in."""

import csv
import io
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from tables import ACME, House, reviews, table

from gristmill.errors import Unknown
from gristmill.records import (
    RecordId,
    Rejected,
    export_records,
    export_rejected,
    find_project,
    list_columns,
    list_imports,
    list_records,
    list_rejected,
    load_record,
    remove_records,
)
from gristmill.records.guess import read_category
from gristmill.records.records import defuse
from gristmill.scopes import Scope


async def joined(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


@pytest.mark.parametrize(
    ("cell", "category"),
    [
        ("TOP_10", "TOP_10"),
        ("top 10", "TOP_10"),
        ("Top-10 %", "TOP_10"),
        ("TOP10PERCENT", "TOP_10"),
        ("top ten", "TOP_10"),
        ("bottom_10", "BOTTOM_10"),
        ("Bottom 10%", "BOTTOM_10"),
        ("bottom ten percent", "BOTTOM_10"),
        ("top 100", None),
        ("stop 10", None),
        ("", None),
    ],
)
def test_a_category_is_read_in_any_spelling(cell: str, category: str | None) -> None:
    assert read_category(cell) == category


async def test_a_column_that_says_the_category_is_found(house: House) -> None:
    rows = [
        ("id", "text", "tier"),
        (1, "first text", "top 10%"),
        (2, "second text", ""),
        (3, "third text", "Bottom_10"),
    ]
    report = await house.load(table(rows), embed=False)
    assert report.plan.category == "tier"
    assert await house.records("category") == ["TOP_10", None, "BOTTOM_10"]


async def test_the_top_and_bottom_tenth_are_ranked_by_a_column(house: House) -> None:
    rows = [("id", "text", "score"), *((n, f"text number {n}", n) for n in range(40)), (99, "no number", "many")]
    await house.load(table(rows), embed=False, rank_by="Score")
    found = dict(await house.records("external_id, category"))
    assert [n for n in range(40) if found[str(n)] == "TOP_10"] == [36, 37, 38, 39]
    assert [n for n in range(40) if found[str(n)] == "BOTTOM_10"] == [0, 1, 2, 3]
    assert found["99"] is None
    async with house.db.transaction() as tx:
        top = await list_records(tx, category="TOP_10")
    assert [one.external_id for one in top] == ["36", "37", "38", "39"]


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-x", "'-x"),
        ("@sum", "'@sum"),
        ("\t=1", "'\t=1"),
        (" =1", "' =1"),
        ("-5", "-5"),
        ("+49.5", "+49.5"),
        ("text", "text"),
    ],
)
def test_a_cell_that_a_spreadsheet_would_compute_is_defused(cell: str, safe: str) -> None:
    assert defuse(cell) == safe


async def test_formulas_are_kept_as_text_and_escaped_in_csv_alone(house: House) -> None:
    rows = [("id", "text", "note"), (1, '=HYPERLINK("http://evil")', "@x"), (2, "plain text", "-5")]
    report = await house.load(table(rows), embed=False)
    assert await house.records() == ['=HYPERLINK("http://evil")', "plain text"]
    out = await joined(export_records(house.db, document=report.id))
    assert list(csv.reader(io.StringIO(out.decode()))) == [
        ["id", "text", "note", "category"],
        ["1", '\'=HYPERLINK("http://evil")', "'@x", ""],
        ["2", "plain text", "-5", ""],
    ]
    lines = await joined(export_records(house.db, scope=ACME, format="jsonl"))
    assert orjson.loads(lines.splitlines()[0])["text"] == '=HYPERLINK("http://evil")'


async def test_an_export_can_be_imported_again_and_adds_nothing(house: House, tmp_path: Path) -> None:
    report = await house.load(reviews(2_500), embed=False)
    out = await joined(export_records(house.db, document=report.id))
    again = await house.load(out, name="export.csv", embed=False)
    assert (again.counts.loaded, again.counts.updated + again.counts.duplicate) == (0, 2_500)


async def test_texts_of_several_columns_are_one_text_and_are_written_out_apart(house: House) -> None:
    rows = [("id", "title", "body"), (1, "Damp", "The flour was damp"), (2, "", "Only a body")]
    report = await house.load(table(rows), embed=False, text=("title", "body"))
    assert await house.records() == ["Damp\nThe flour was damp", "Only a body"]
    out = await joined(export_records(house.db, document=report.id))
    assert list(csv.reader(io.StringIO(out.decode())))[1] == ["1", "Damp", "The flour was damp", ""]


async def test_rejected_rows_are_kept_up_to_a_bound(house: House) -> None:
    few = house.with_settings(keep_rejected=5, batch=3)
    report = await few.load(table([("id", "text"), *((n, "") for n in range(20)), (99, "a real text")]), embed=False)
    assert report.counts.invalid == 20
    async with few.db.transaction() as tx:
        kept = await list_rejected(tx, report.id)
    assert kept[0] == Rejected(2, "invalid", "its text is empty", ["0", ""])
    assert [one.row for one in kept] == [2, 3, 4, 5, 6]
    assert len((await joined(export_rejected(few.db, report.id))).splitlines()) == 6


async def test_single_records_are_shown_and_removed(house: House) -> None:
    report = await house.load(reviews(3))
    async with house.db.transaction() as tx:
        first, *_ = await list_records(tx, document=report.id)
        assert (await load_record(tx, first.id)).searchable
        assert await remove_records(tx, [first.id]) == 1
        with pytest.raises(Unknown, match="There is no record"):
            await load_record(tx, RecordId(first.id))
        assert await tx.value("SELECT count(*) FROM chunk") == 2


async def test_lists_show_what_their_client_may_see(house: House) -> None:
    await house.load(reviews(3), embed=False)
    beta = Scope("beta")
    async with house.db.transaction(seen_from=beta) as tx:
        assert await list_imports(tx) == []
        assert await list_records(tx) == []
        assert await list_columns(tx, beta) == []
        with pytest.raises(Unknown, match="There is nothing in acme/reviews"):
            await find_project(tx, ACME)
    async with house.db.transaction(seen_from=ACME) as tx:
        assert await list_columns(tx, ACME) == ["rating", "task_id", "text"]
    async with house.db.transaction() as tx:
        assert await list_columns(tx, None) == ["rating", "task_id", "text"]
