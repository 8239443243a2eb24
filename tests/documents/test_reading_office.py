"""Office files: slides, sheets, tables and what the file says of itself."""

from datetime import UTC, datetime
from pathlib import Path

from documents.files import docx, pptx, put, xlsx
from gristmill.documents.reading import Limits, inspect, read

LIMITS = Limits()
WRITTEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def test_a_word_file_keeps_headings_and_tables(tmp_path: Path) -> None:
    data = docx("# Terms", "The mill pays.", table=[["Item", "Price"], ["Flour", "12 EUR"]], title="Contract")
    path = put(tmp_path, "contract.bin", data)
    found = inspect(path, "contract.bin", LIMITS)
    assert (found.type, found.pages, found.title, found.written_at) == ("docx", 1, "Contract", WRITTEN)
    assert found.meta == {"authors": ["Ada Miller"]}
    page = read(path, found.type, 1, LIMITS)
    assert page.text == "# Terms\n\nThe mill pays.\n\n| Item | Price |\n| --- | --- |\n| Flour | 12 EUR |"
    assert page.method == "text"


def test_a_word_file_without_a_title_is_called_by_its_first_heading(tmp_path: Path) -> None:
    path = put(tmp_path, "x.docx", docx("# Terms", "The mill pays."))
    assert inspect(path, "x.docx", LIMITS).title == "Terms"


def test_each_slide_is_a_page(tmp_path: Path) -> None:
    slides = [(f"Slide {number}", f"Point {number}") for number in range(1, 12)]
    path = put(tmp_path, "deck.pptx", pptx(*slides, title="Deck"))
    found = inspect(path, "deck.pptx", LIMITS)
    assert (found.type, found.pages, found.title) == ("pptx", 11, "Deck")
    assert read(path, found.type, 10, LIMITS).text == "## Slide 10\n\nPoint 10"


def test_each_sheet_is_a_page_and_long_ones_are_several(tmp_path: Path) -> None:
    stock = [["Item", "Sacks"], *([f"Flour {number}", float(number)] for number in range(500))]
    path = put(tmp_path, "book.xlsx", xlsx({"Prices": [["Item", "Price"], ["Flour", 12.5]], "Stock": stock}))
    found = inspect(path, "book.xlsx", LIMITS)
    assert (found.type, found.pages) == ("xlsx", 3)
    assert read(path, "xlsx", 1, LIMITS).text == "## Prices\n\n| Item | Price |\n| --- | --- |\n| Flour | 12.5 |"
    assert read(path, "xlsx", 3, LIMITS).text.startswith(
        "## Stock\n\n| Item | Sacks |\n| --- | --- |\n| Flour 400 | 400 |"
    )
