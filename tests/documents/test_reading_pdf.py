"""PDF: every page by itself, its own text where it has some, its picture where it has not."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from documents.files import assembled, pdf, put, scan
from gristmill.documents.reading import Limits, inspect, read
from gristmill.documents.reading.layout import PageLine, markdown
from gristmill.errors import Permanent

LIMITS = Limits()
PROSE = (
    "# The weir\n\nThe water comes down from the hills in spring and turns the wheel until the stones run hot. "
    "Nobody in the village remembers a year without it.\n\nIn summer the millers mend their sacks (all 40) and wait."
)


def test_headings_and_paragraphs_are_told_by_size_and_distance(tmp_path: Path) -> None:
    path = put(tmp_path, "a.pdf", pdf([PROSE]))
    page = read(path, "pdf", 1, LIMITS)
    assert page.method == "text"
    assert page.text.startswith("# The weir\n\nThe water comes down")
    assert page.text.endswith("without it.\n\nIn summer the millers mend their sacks (all 40) and wait.")


def test_a_pdf_says_what_it_is(tmp_path: Path) -> None:
    info = "/Title(Weirs)/Author(Ada Miller)/CreationDate(D:20260304050607+02'00')"
    path = put(tmp_path, "a.txt", pdf([PROSE, PROSE], info))
    found = inspect(path, "a.txt", LIMITS)
    assert (found.type, found.pages, found.title) == ("pdf", 2, "Weirs")
    assert found.written_at == datetime(2026, 3, 4, 3, 6, 7, tzinfo=UTC)
    assert found.meta == {"author": "Ada Miller"}


@pytest.mark.parametrize("said", ["", "untitled", "report.docx"])
def test_a_title_that_is_none_gives_way_to_the_first_heading(tmp_path: Path, said: str) -> None:
    path = put(tmp_path, "a.pdf", pdf([PROSE], f"/Title({said})"))
    assert inspect(path, "a.pdf", LIMITS).title == "The weir"


def test_a_mixed_pdf_is_decided_page_by_page(tmp_path: Path) -> None:
    picture = scan("The bearing broke on Thursday", "and Priya Raman bought another")
    path = put(tmp_path, "a.pdf", pdf([PROSE, picture, PROSE]))
    pages = [read(path, "pdf", number, LIMITS) for number in (1, 2, 3)]
    assert [page.method for page in pages] == ["text", "ocr", "text"]
    assert "bearing broke" in pages[1].text


def test_a_short_page_keeps_the_text_it_has(tmp_path: Path) -> None:
    path = put(tmp_path, "a.pdf", pdf(["Annex B"]))
    assert "Annex B" in read(path, "pdf", 1, LIMITS).text


def test_a_page_of_nothing_but_a_few_letters_is_not_looked_at_as_a_picture(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("gristmill.documents.reading.pdf._picture", None)
    path = put(tmp_path, "a.pdf", pdf(["Part two"]))
    assert read(path, "pdf", 1, LIMITS).text == "Part two"


def test_a_blank_page_is_blank(tmp_path: Path) -> None:
    path = put(tmp_path, "a.pdf", pdf([""]))
    assert read(path, "pdf", 1, LIMITS).text == ""


def test_a_broken_page_costs_only_itself(tmp_path: Path) -> None:
    data = pdf([PROSE, PROSE])
    path = put(tmp_path, "a.pdf", data.replace(b"/Type/Page/Parent 2 0 R", b"/Type/Wage/Parent 2 0 R", 1))
    found = inspect(path, "a.pdf", LIMITS)
    assert read(path, "pdf", found.pages, LIMITS).text.startswith("# The weir")


def test_what_was_filled_into_a_form_is_part_of_the_page(tmp_path: Path) -> None:
    look = b"BT /F 11 Tf 2 4 Td (Margaret Oakes signed for the Harrow Trust in Aldermoor) Tj ET"
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    form = (
        b"<</Type/XObject/Subtype/Form/BBox[0 0 340 20]/Resources<</Font<</F 5 0 R>>>>/Length %d>>stream\n%b\nendstream"
    )
    field = b"<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(x)/F 4/Rect[10 300 350 320]/AP<</N 6 0 R>>/P 3 0 R>>"
    data = assembled(
        [
            b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[4 0 R]>>>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 360 360]/Annots[4 0 R]>>",
            field,
            font,
            form % (len(look), look),
            b"<<>>",
        ]
    )
    assert "Margaret Oakes signed" in read(put(tmp_path, "form.pdf", data), "pdf", 1, LIMITS).text


def test_too_many_pages_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "a.pdf", pdf(["x"] * 12))
    with pytest.raises(
        Permanent, match=r"The file has 12 pages; at most 10 are read \(setting documents.max_pages\)\."
    ):
        inspect(path, "a.pdf", Limits(pages=10))


def lines(*texts: str, left: float = 50, top: float = 700, **more: bool) -> list[PageLine]:
    return [PageLine(text, left, top - 12 * number, 10, **more) for number, text in enumerate(texts)]


def test_divided_words_are_whole_again() -> None:
    found = markdown([PageLine("the resto", 50, 700, 10, hyphen=True), *lines("ration of the mill", top=688)])
    assert found == "the restoration of the mill"
    assert markdown([PageLine("the CB", 50, 700, 10, hyphen=True), *lines("410", top=688)]) == "the CB-410"


def test_a_sentence_goes_on_in_the_next_column() -> None:
    text = markdown([*lines("The wheel", "turns in"), *lines("the other column.", "It ends.", left=300)])
    assert text == "The wheel\nturns in\nthe other column.\nIt ends."


def test_bullets_are_list_items() -> None:
    assert markdown(lines("• oak", "• iron")) == "- oak\n- iron"
