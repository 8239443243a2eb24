"""The difference between two versions of a text."""

from hypothesis import given
from hypothesis import strategies as st

from gristmill.web.console.differing import MOST_LINES, ComparedLine, Gap, LinePiece, VersionDifference, compare_texts


def told(difference: VersionDifference) -> list[str]:
    signs = {"same": " ", "gone": "-", "come": "+"}
    return [
        f"… {one.lines}" if isinstance(one, Gap) else signs[one.kind] + "".join(piece.text for piece in one.pieces)
        for one in difference.lines
    ]


def test_equal_texts_have_no_difference() -> None:
    difference = compare_texts("a\nb\nc", "a\nb\nc")
    assert difference.is_empty
    assert told(difference) == ["… 3"]


def test_a_changed_word_stands_out_in_both_versions_of_its_line() -> None:
    difference = compare_texts("Pay within 30 days.", "Pay within 14 days.")
    assert difference.lines == (
        ComparedLine("gone", (LinePiece("Pay within "), LinePiece("30", stands_out=True), LinePiece(" days."))),
        ComparedLine("come", (LinePiece("Pay within "), LinePiece("14", stands_out=True), LinePiece(" days."))),
    )


def test_lines_far_from_a_change_are_counted_and_left_out() -> None:
    before = "\n".join(f"line {n}" for n in range(20))
    after = before.replace("line 10\n", "")
    assert told(compare_texts(before, after)) == [
        "… 8",
        " line 8",
        " line 9",
        "-line 10",
        " line 11",
        " line 12",
        "… 7",
    ]


def test_lines_that_share_no_words_are_shown_as_they_are() -> None:
    difference = compare_texts("The bearing broke.", "x = 1")
    assert difference.lines == (
        ComparedLine("gone", (LinePiece("The bearing broke."),)),
        ComparedLine("come", (LinePiece("x = 1"),)),
    )


def test_a_text_that_is_too_long_is_compared_in_part_and_says_so() -> None:
    long = "\n".join(map(str, range(MOST_LINES + 10)))
    assert compare_texts(long, long).is_cut
    assert not compare_texts("a", "b").is_cut


@given(st.text("ab \n", max_size=60), st.text("ab \n", max_size=60))
def test_the_lines_of_each_side_are_those_of_its_text(before: str, after: str) -> None:
    difference = compare_texts(before, after)
    shown = [line for line in difference.lines if isinstance(line, ComparedLine)]
    left_out = sum(line.lines for line in difference.lines if isinstance(line, Gap))
    for text, kind in ((before, "gone"), (after, "come")):
        own = ["".join(piece.text for piece in line.pieces) for line in shown if line.kind in ("same", kind)]
        assert len(own) + left_out == len(text.splitlines())
        assert set(own) <= set(text.splitlines())
