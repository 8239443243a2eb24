"""Reading order: rows, columns, paragraphs and divided words."""

from gristmill.models.ocr.layout import TextBox, arrange_text


def box(left: float, top: float, text: str, *, width: float | None = None, height: float = 20) -> TextBox:
    return TextBox(left, top, left + (width or 10 * len(text)), top + height, text)


def test_what_stands_side_by_side_is_one_row_from_left_to_right() -> None:
    found = [box(400, 103, "12.00"), box(0, 100, "Total"), box(0, 130, "Thank you")]
    assert arrange_text(found) == "Total 12.00\nThank you"


def test_a_wider_step_begins_a_paragraph() -> None:
    tops = [0, 30, 60, 130, 160]
    assert arrange_text([box(0, top, f"row {top}") for top in tops]) == "row 0\nrow 30\nrow 60\n\nrow 130\nrow 160"


def test_two_columns_are_read_one_after_the_other_and_titles_where_they_stand() -> None:
    columns = [
        box(left, 100 + 30 * row, f"{side} column, row {row} of its prose")
        for row in range(8)
        for left, side in ((0, "left"), (500, "right"))
    ]
    title = box(100, 20, "A title across both of the columns of this page", width=700)
    foot = box(100, 400, "A footer across both of the columns of this page", width=700)
    read = arrange_text([foot, *columns, title]).split()
    assert read[:2] == ["A", "title"]
    assert [word for word in read if word in ("left", "right")] == ["left"] * 8 + ["right"] * 8
    assert read[-10:][:2] == ["A", "footer"]


def test_columns_of_a_table_are_no_columns_of_prose() -> None:
    cells = [
        box(left, 30 * row, text)
        for row in range(6)
        for left, text in ((0, f"A thing with a name {row}"), (400, "2"), (500, f"{row}.00"))
    ]
    assert arrange_text(cells).splitlines()[1] == "A thing with a name 1 2 1.00"


def test_a_word_divided_at_the_end_of_a_line_is_whole_again() -> None:
    found = [
        box(0, 0, "The mill grinds docu-"),
        box(0, 30, "ments and mails."),
        box(0, 60, "Item-"),
        box(0, 90, "Y 3"),
    ]
    assert arrange_text(found) == "The mill grinds\ndocuments and mails.\nItem-\nY 3"


def test_nothing_is_nothing() -> None:
    assert arrange_text([]) == ""
