"""Text, Markdown, tables and HTML: what they are is told by their content, and no encoding is fatal."""

from pathlib import Path

import pytest

from documents.files import put
from gristmill.documents.reading import Limits, inspect, read
from gristmill.errors import Permanent

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
