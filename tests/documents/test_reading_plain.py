"""Text, Markdown, tables and HTML: what they are is told by their content, and no encoding is fatal."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from documents.files import put, xlsx
from gristmill.documents.reading import Limits, inspect, read
from gristmill.errors import Permanent
from gristmill.processes import ProcessPool

LIMITS = Limits()
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy. Faktura č. 2026-117 je splatná do třiceti dnů od doručení.\n" * 3
GERMAN = "Die Mühle mahlt täglich größere Mengen Weizen; die Müllerin prüft den Rückstand äußerst gründlich.\n" * 3


def test_markdown_is_copied_and_titled_by_its_first_heading(tmp_path: Path) -> None:
    path = put(tmp_path, "notes.md", "# The *weir*\n\nWater is low.\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n")
    found = inspect(path, "notes.md", LIMITS)
    assert (found.type, found.pages, found.title) == ("markdown", 1, "The weir")
    page = read(path, found.type, 1, LIMITS)
    assert page.method == "copied"
    assert page.text == "# The *weir*\n\nWater is low.\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_markdown_is_known_without_its_suffix(tmp_path: Path) -> None:
    path = put(tmp_path, "README", "# Mill\n\ntext\n\n## Wheel\n\nmore\n")
    assert inspect(path, "README", LIMITS).type == "markdown"


def test_a_title_in_front_matter_goes_first(tmp_path: Path) -> None:
    path = put(tmp_path, "post.md", "---\ntitle: 'The flood'\n---\n# Chapter\n")
    assert inspect(path, "post.md", LIMITS).title == "The flood"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", CZECH),
        ("utf-8-sig", CZECH),
        ("utf-16", CZECH),
        ("utf-16-le", GERMAN),
        ("utf-16-be", GERMAN),
        ("utf-32", CZECH),
        ("cp1250", CZECH),
        ("cp1252", GERMAN),
        ("iso-8859-1", GERMAN),
    ],
)
def test_text_of_any_encoding_is_read(tmp_path: Path, encoding: str, text: str) -> None:
    path = put(tmp_path, "letter.txt", text.encode(encoding))
    found = inspect(path, "letter.txt", LIMITS)
    assert (found.type, found.title) == ("text", "letter")
    assert read(path, found.type, 1, LIMITS).text == text.strip()


def test_a_broken_byte_costs_one_letter(tmp_path: Path) -> None:
    path = put(tmp_path, "letter.txt", CZECH.encode() + b"\xff\n" + CZECH.encode())
    assert read(path, "text", 1, LIMITS).text == f"{CZECH}�\n{CZECH.strip()}"


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.eml"])
def test_a_stray_nul_costs_one_letter(tmp_path: Path, name: str) -> None:
    head = {"a.html": "<html><body>", "a.eml": "From: a@example.com\nSubject: Rye\n\n"}.get(name, "")
    path = put(tmp_path, name, f"{head}The wheel\0turns.")
    found = inspect(path, name, LIMITS)
    assert read(path, found.type, 1, LIMITS).text.endswith("The wheel�turns.")


def test_a_text_about_pdf_is_a_text(tmp_path: Path) -> None:
    path = put(tmp_path, "a.txt", "A PDF ends with\n\nstartxref\n123\n%%EOF\n")
    assert inspect(path, "a.txt", LIMITS).type == "text"


def test_text_holds_nothing_a_database_refuses(tmp_path: Path) -> None:
    path = put(tmp_path, "log.txt", "one\x0ctwo\x07\r\nthree\rfour\n\n\n\n\nfive\n")
    assert read(path, "text", 1, LIMITS).text == "onetwo\nthree\nfour\n\nfive"


def test_long_text_has_pages_that_end_between_paragraphs(tmp_path: Path) -> None:
    paragraphs = [f"Paragraph {number}. " + "The wheel turns. " * 40 for number in range(200)]
    path = put(tmp_path, "book.txt", "\n\n".join(paragraphs))
    found = inspect(path, "book.txt", LIMITS)
    texts = [read(path, "text", number, LIMITS).text for number in range(1, found.pages + 1)]
    assert found.pages > 2
    assert all(text.startswith("Paragraph ") and text.endswith(".") for text in texts)
    assert "\n\n".join(texts).split() == " ".join(paragraphs).split()


def test_there_is_no_page_beyond_the_last(tmp_path: Path) -> None:
    path = put(tmp_path, "a.txt", "text")
    with pytest.raises(Permanent, match="There is no page 2: the file has 1"):
        read(path, "text", 2, LIMITS)


def test_csv_becomes_a_table_whose_header_is_on_every_page(tmp_path: Path) -> None:
    rows = "".join(f'{number};"Flour; fine | white";{number}.50\n' for number in range(1000))
    path = put(tmp_path, "stock.csv", "id;item;price\n" + rows)
    found = inspect(path, "stock.csv", LIMITS)
    assert (found.type, found.pages) == ("csv", 3)
    last = read(path, "csv", 3, LIMITS)
    assert last.text.startswith("| id | item | price |\n| --- | --- | --- |\n| 800 | Flour; fine \\| white | 800.50 |")
    assert last.method == "text"


@pytest.mark.parametrize("name", ["wide.csv", "wide.xlsx"])
def test_no_page_of_a_table_is_larger_than_can_be_divided(tmp_path: Path, name: str) -> None:
    rows = [[f"cell {n}-{m}" for m in range(200)] for n in range(1_000)]
    data = xlsx({"Sheet": rows}) if name.endswith("xlsx") else "\n".join(map(",".join, rows))
    path = put(tmp_path, name, data)
    found = inspect(path, name, LIMITS)
    pages = [read(path, found.type, number + 1, LIMITS).text for number in range(found.pages)]
    assert max(map(len, pages)) < 500_000
    assert all("| cell 0-0 | cell 0-1 |" in page for page in pages)
    assert [sum(page.count(f"cell {n}-7 |") for page in pages) for n in (1, 500, 999)] == [1, 1, 1]


def test_a_row_that_nobody_could_read_as_one_is_read_as_text(tmp_path: Path) -> None:
    path = put(tmp_path, "line.csv", ",".join(f"cell{n}" for n in range(100_000)) + "\n1,2,3\n")
    found = inspect(path, "line.csv", LIMITS)
    pages = [read(path, found.type, number + 1, LIMITS).text for number in range(found.pages)]
    assert max(map(len, pages)) <= 40_000
    assert pages[-1].endswith("cell99999\n1,2,3")


HTML = """<!doctype html><html><head><meta charset="iso-8859-1"><title>Mill &amp; M\xfchle</title>
<style>p { color: red }</style><script>alert(1)</script></head>
<body><h1>Wheel</h1>
<p>It <b>turns</b> in M\xfchlbach.</p><table><tr><th>Part</th><th>Age</th></tr><tr><td>Axle</td><td>12</td></tr></table>
<ul><li>oak</li></ul></body></html>"""


def test_html_becomes_markdown_in_the_encoding_it_names(tmp_path: Path) -> None:
    path = put(tmp_path, "page.txt", HTML.encode("iso-8859-1"))
    found = inspect(path, "page.txt", LIMITS)
    assert (found.type, found.pages, found.title) == ("html", 1, "Mill & Mühle")
    page = read(path, found.type, 1, LIMITS)
    assert page.method == "text"
    assert page.text.startswith("# Wheel\n\nIt **turns** in Mühlbach.")
    assert "| Axle | 12" in page.text
    assert "- oak" in page.text
    assert "alert" not in page.text
    assert "color" not in page.text


def test_words_that_lie_too_deep_for_the_converter_are_read_all_the_same(tmp_path: Path) -> None:
    deep = "<div>" * 100_000 + "The wheel turns &amp; turns." + "</div>" * 100_000
    path = put(tmp_path, "deep.html", f"<html><body><p>Before.</p>{deep}<script>grind()</script></body></html>")
    assert read(path, "html", 1, LIMITS).text == "Before.\n\nThe wheel turns & turns."


def test_pictures_that_a_page_carries_as_text_are_no_text(tmp_path: Path) -> None:
    picture = '<img alt="mill" src="data:image/png;base64,iVBORw0KGgo=">'
    path = put(
        tmp_path, "a.html", f"<html><body><p>The wheel turns.</p>{picture}<svg><text>x</text></svg></body></html>"
    )
    assert read(path, "html", 1, LIMITS).text == "The wheel turns."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[ProcessPool]:
    """One child for all that may hang."""
    made = ProcessPool(1)
    yield made
    await made.close()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("opened", ["<title>", "<head>", "<meta ", "<!--", "<p ", "![", "<a href='", "<nav><"])
async def test_what_is_opened_often_and_never_closed_costs_a_page_no_time(
    pool: ProcessPool, tmp_path: Path, opened: str
) -> None:
    """Its child has as long as a worker gives it; it took hours."""
    path = put(tmp_path, "a.html", "<!doctype html><html><body><p>Toads live here.</p>" + opened * 200_000)
    found = await pool.run(inspect, path, "a.html", LIMITS, timeout=120.0, memory=2 << 30)
    page = await pool.run(read, path, found.type, 1, LIMITS, timeout=120.0, memory=2 << 30)
    assert "Toads live here." in page.text


def test_a_text_that_makes_too_many_pages_is_refused_as_too_long_and_names_the_setting(tmp_path: Path) -> None:
    path = put(tmp_path, "a.txt", "The mill grinds slowly.\n" * 20_000)
    with pytest.raises(Permanent, match=r"^The text is too long: it makes \d+ pages, and at most 2 are read \(setting"):
        inspect(path, "a.txt", Limits(pages=2))
