"""Hostile and odd tables: a bad row costs itself, a bad file is refused with one sentence."""

import io
from pathlib import Path

import pytest
from tables import House, reviews, table

from gristmill.errors import Refused
from gristmill.records import Options, RowCounts
from gristmill.records.model import FilePlace
from gristmill.records.reading import preview, read_portion
from gristmill.records.shaping import Owner, RowPortion

OWNER = Owner(1, 1, "2026-01-01T00:00:00+00:00")


def read(folder: Path, content: bytes | str, most: int = 100, **options: object) -> list[RowPortion]:
    """All portions of a table, each read by a process that has nothing open: by its place in the file alone."""
    path = folder / "table.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    plan = preview(str(path), path.name, Options(**options), 1_000_000).plan  # type: ignore[arg-type]
    portions, place = list[RowPortion](), FilePlace()
    while not portions or not portions[-1].is_last:
        portion = read_portion(str(path), plan, place, OWNER, most)
        read_portion(str(path), plan, FilePlace(10**9, 1), OWNER, most)  # closes what was open
        portions.append(portion)
        place = portion.place
    return portions


def texts(portions: list[RowPortion]) -> list[str]:
    return [line.split(b"\t")[7].decode() for portion in portions for line in portion.lines]


def rejects(portions: list[RowPortion]) -> list[tuple[int, str]]:
    return [(one.row, one.reason) for portion in portions for one in portion.rejected]


# --- encodings and line ends

CZECH = "id;text\n1;Žluťoučký kůň úpěl ďábelské ódy\n2;Příliš žluté světlo\n"
GERMAN = "id;text\n1;Größe und Übermut tun selten gut\n2;Die Mühle läßt grüßen\n"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", CZECH),
        ("utf-8-sig", CZECH),
        ("utf-16", CZECH),
        ("utf-16-le", GERMAN),
        ("utf-16-be", GERMAN),
        ("cp1250", CZECH),
        ("cp1252", GERMAN),
    ],
)
def test_an_encoding_is_found_and_every_place_in_the_file_is_exact(tmp_path: Path, encoding: str, text: str) -> None:
    expected = [line.partition(";")[2] for line in text.splitlines()[1:]]
    assert texts(read(tmp_path, text.encode(encoding), most=1)) == expected


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r", "\r\n\n"])
def test_line_ends_of_every_kind_divide_rows(tmp_path: Path, ends: str) -> None:
    rows = [f"{n},the mill {n}" for n in range(5)]
    assert len(texts(read(tmp_path, ends.join(["id,text", *rows]) + ends, most=2))) == 5


def test_mixed_line_ends_and_line_breaks_within_cells(tmp_path: Path) -> None:
    content = 'id,text\r\n1,"two\nlines"\n2,one line\r3,"three\r\nmore\nlines"\r\n'
    assert texts(read(tmp_path, content, most=1)) == ["two\\nlines", "one line", "three\\r\\nmore\\nlines"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_delimiter_is_found(tmp_path: Path, delimiter: str) -> None:
    content = table([("id", "text", "n"), *((n, f"the mill, and {n} more", n) for n in range(20))], delimiter=delimiter)
    assert texts(read(tmp_path, content))[3] == "the mill, and 3 more"


def test_quotes_are_found_also_where_most_texts_have_a_comma(tmp_path: Path) -> None:
    rows = "".join(f'u{n},"Mend the {n}. wheel, and oil it",{n}\n' for n in range(30))
    assert texts(read(tmp_path, "uuid,text,n\n" + rows))[4] == "Mend the 4. wheel, and oil it"
    assert texts(read(tmp_path, ("uuid,text,n\n" + rows).replace('"', "'")))[4] == "Mend the 4. wheel, and oil it"


def test_apostrophes_within_texts_are_no_quotes(tmp_path: Path) -> None:
    rows = "".join(f"{n},it's the miller's {n}. wheel\n" for n in range(9))
    assert texts(read(tmp_path, "id,text\n" + rows))[4] == "it's the miller's 4. wheel"


def test_a_file_without_a_header_has_numbered_columns(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("1,the first text\n2,the second text\n3,the third text\n")
    plan = preview(str(path), path.name, Options(), 1_000).plan
    assert (plan.columns, plan.text, plan.dialect.header) == (("column_1", "column_2"), ("column_2",), False)


# --- rows


def test_bytes_that_are_no_text_cost_their_row_alone(tmp_path: Path) -> None:
    content = b"id,text\n1,fine\n2,bro\xffken\n3,fine again\n" + b"4,more text\n" * 1
    found = read(tmp_path, content + "5,Žluť\n".encode() * 30, most=2, encoding="utf-8", unique_text=False)
    assert rejects(found)[0] == (3, "it holds bytes that are no text in the encoding of the file")
    assert texts(found)[:3] == ["fine", "fine again", "more text"]


def test_a_nul_costs_its_row(tmp_path: Path) -> None:
    found = read(tmp_path, b"id,text\n1,a\0b\n2,fine text\n3,more fine text\n")
    assert (rejects(found), texts(found)) == ([(2, "it holds a NUL character")], ["fine text", "more fine text"])


def test_short_rows_are_filled_and_long_rows_are_invalid(tmp_path: Path) -> None:
    content = "id,text,n\n1,first text,5\n2,second text\n3,third text,5,6,7\n4,fourth text,5,,\n5,fifth text,1\n"
    found = read(tmp_path, content)
    assert texts(found) == ["first text", "second text", "fourth text", "fifth text"]
    assert rejects(found) == [(4, "it has 5 cells, and there are 3 columns")]


def test_a_cell_of_ten_megabytes_costs_its_row(tmp_path: Path) -> None:
    content = "id,text\n1,fine text\n2," + "x" * 10_000_000 + "\n3,more fine text\n"
    found = read(tmp_path, content)
    assert rejects(found) == [(3, "it has 10,000,002 characters, and 1,000,000 are the most")]
    assert texts(found) == ["fine text", "more fine text"]


def test_a_quote_that_never_closes_costs_its_row_alone(tmp_path: Path) -> None:
    rows = [f'{n},"text number {n}"' for n in range(1, 9)]
    rows[3] = '4,"never closed'
    found = read(tmp_path, "id,text\n" + "\n".join(rows) + "\n", most=2)
    assert rejects(found) == [(5, "a quote opens in it and never closes")]
    assert texts(found) == [f"text number {n}" for n in (1, 2, 3, 5, 6, 7, 8)]


def test_a_quote_that_never_closes_in_the_last_row(tmp_path: Path) -> None:
    found = read(tmp_path, 'id,text\n1,fine text\n2,"never closed\n')
    assert (texts(found), rejects(found)) == (["fine text"], [(3, "a quote opens in it and never closes")])


def test_a_quote_that_swallows_more_than_a_cell_may_hold(tmp_path: Path) -> None:
    rows = "".join(f"{n},text number {n} {'x' * 1_000}\n" for n in range(3, 18_000))
    found = read(tmp_path, f'id,text\n1,fine text\n2,"never closed\n{rows}', most=5_000)
    assert rejects(found) == [(3, "a quote opens in it and never closes")]
    assert len(texts(found)) == 17_998


def test_rows_of_json_lines_have_names_and_bad_lines_cost_themselves(tmp_path: Path) -> None:
    lines = [
        '{"uuid": "a", "text": "the first text", "tags": ["x"]}',
        "no json",
        "[1]",
        '{"uuid": "b", "text": "the second"}',
    ]
    content = "\n".join(lines) + "\n"
    found = read(tmp_path, content, most=1)
    assert texts(found) == ["the first text", "the second"]
    assert rejects(found) == [(2, "it is no JSON"), (3, "it is no JSON object")]
    assert [one.cells for one in (*found[1].rejected, *found[2].rejected)] == [["no json"], ["[1]"]]
    assert b'"tags":"[\\\\"x\\\\"]"' in found[0].lines[0]
    assert found[3].ids == ["b"]


def test_an_id_is_found_by_its_name_also_where_rows_were_sent_twice(tmp_path: Path) -> None:
    rows = ["a,one text", "b,another text", "a,one text again", "c,the last text"]
    for name, found in (("task_id", "task_id"), ("UUID", "UUID"), ("key", None)):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join([f"{name},text", *rows]))
        assert preview(str(path), path.name, Options(), 1_000_000).plan.id == found


# --- files


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "The file is empty: there are no rows in it."),
        (b"\n\n \n", "The file is empty: there are no rows in it."),
        (bytes(range(256)) * 40, "It is not text: import CSV, JSON lines or XLSX."),
        (b"id,text\n", "There are no rows in it, only a header."),
        (b"PK\x03\x04 a zip that is none", "It is no text and no workbook: import CSV, JSON lines or XLSX."),
        (b"1\n2\n3\n", "No column holds text: name the one that does with --text."),
        (
            b",".join(b"c%d" % n for n in range(1_000_000)) + b"\n" + b",".join([b"text"] * 1_000_000) + b"\n",
            "It has 1,000,000 columns, and 2,000 are the most: is the delimiter right?",
        ),
    ],
    ids=["empty", "blank", "binary", "header", "zip", "numbers", "columns"],
)
async def test_a_bad_file_is_refused_with_a_sentence_and_nothing_is_lost(
    house: House, content: bytes, sentence: str
) -> None:
    await house.load(reviews(3))
    with pytest.raises(Refused) as refused:
        await house.add(content, name="bad.csv")
    assert str(refused.value) == f"bad.csv cannot be imported. {sentence}"
    assert len(await house.records()) == 3


async def test_a_workbook_that_is_none_and_one_that_is(house: House) -> None:
    with pytest.raises(Refused, match=r"bad\.xlsx cannot be imported\. The workbook cannot be read"):
        await house.add(b"PK\x03\x04 a zip that is none", name="bad.xlsx")
    report = await house.load(make_workbook(), name="tasks.xlsx", embed=False)
    assert report.counts == RowCounts(loaded=2)
    assert await house.records("external_id, content, columns") == [
        ("1", "Mend the wheel", {"task_id": "1", "due": "2026-12-01", "hours": "2.5"}),
        ("2", "Oil the stones", {"task_id": "2", "due": "2026-12-02", "hours": "3"}),
    ]


def make_workbook() -> bytes:
    """A workbook of two tasks, written as XLSX is: a zip of XML."""
    from zipfile import ZipFile  # noqa: PLC0415 for this one test

    cells = [
        ["task_id", "text", "due", "hours"],
        ["1", "Mend the wheel", "2026-12-01", 2.5],
        ["2", "Oil the stones", "2026-12-02", 3.0],
    ]
    rows = "".join(
        f'<row r="{r}">' + "".join(write_cell(f"{'ABCD'[c]}{r}", value) for c, value in enumerate(row)) + "</row>"
        for r, row in enumerate(cells, 1)
    )
    main, office = "http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://schemas.openxmlformats.org"
    relations = f"{office}/officeDocument/2006/relationships"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{office}/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{office}/package/2006/relationships"><Relationship Id="r1" '
        f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>'
        '<sheet name="Tasks" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{office}/package/2006/relationships"><Relationship '
        f'Id="r1" Type="{relations}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
    }
    file = io.BytesIO()
    with ZipFile(file, "w") as book:
        for name, text in parts.items():
            book.writestr(name, '<?xml version="1.0" encoding="UTF-8"?>' + text)
    return file.getvalue()


def write_cell(place: str, value: str | float) -> str:
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


async def test_quotes_that_are_broken_everywhere_fail_the_import_and_lose_nothing(house: House) -> None:
    await house.load(reviews(3))
    rows = "".join(f'{n},"never closed {n}\n' for n in range(1, 300))
    started = await house.add(f"id,text\n{'0,fine text'}\n" * 1 + "a,fine text too\n" * 250 + rows, unique_text=False)
    await house.work()
    report = await house.report(started.document)
    assert report.state == "failed"
    assert "beyond repair" in (report.error or "")
    assert len(await house.records()) >= 3
