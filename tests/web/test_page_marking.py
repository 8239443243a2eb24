"""The text of a page with its chunks and marks."""

from hypothesis import given
from hypothesis import strategies as st

from gristmill.web.console.marking import ChunkSpan, MarkedRun, PagePassage, TextSpan, cut_text, join_spans

SPANS = st.tuples(st.integers(-5, 60), st.integers(-5, 60)).map(lambda one: TextSpan(*one))


def test_chunks_and_the_text_between_them_are_the_whole_text() -> None:
    passages = cut_text("# Mill\n\nIt turns.\n", [ChunkSpan(0, 0, 6), ChunkSpan(1, 8, 17)])
    assert [(one.chunk, "".join(run.text for run in one.runs)) for one in passages] == [
        (0, "# Mill"),
        (None, "\n\n"),
        (1, "It turns."),
        (None, "\n"),
    ]


def test_a_mark_that_crosses_the_end_of_a_chunk_is_marked_on_both_sides() -> None:
    first, second = cut_text("abcdef", [ChunkSpan(0, 0, 3), ChunkSpan(1, 3, 6)], [TextSpan(2, 4)])
    assert first.runs == (MarkedRun("ab", 0, is_marked=False), MarkedRun("c", 2, is_marked=True))
    assert second.runs == (MarkedRun("d", 3, is_marked=True), MarkedRun("ef", 4, is_marked=False))


def test_of_two_chunks_that_overlap_the_first_keeps_its_part() -> None:
    passages = cut_text("abcdef", [ChunkSpan(0, 0, 4), ChunkSpan(1, 2, 6)])
    assert [(one.chunk, one.start, one.stop) for one in passages] == [(0, 0, 4), (1, 4, 6)]


def test_marks_outside_of_the_text_or_without_length_are_left_out() -> None:
    assert join_spans([TextSpan(9, 20), TextSpan(3, 3), TextSpan(-4, 2), TextSpan(1, 4)], 5) == [TextSpan(0, 4)]


def test_an_empty_text_has_no_passages() -> None:
    assert cut_text("", [ChunkSpan(0, 0, 10)], [TextSpan(0, 3)]) == []


@given(st.text(max_size=50), st.lists(SPANS, max_size=8), st.lists(SPANS, max_size=8))
def test_whatever_chunks_and_marks_say_no_character_is_lost_or_shown_twice(
    text: str, chunks: list[TextSpan], marks: list[TextSpan]
) -> None:
    passages = cut_text(text, [ChunkSpan(n, *span) for n, span in enumerate(chunks)], marks)
    runs = [run for one in passages for run in one.runs]
    assert "".join(run.text for run in runs) == text
    assert all(text[run.at : run.at + len(run.text)] == run.text for run in runs)
    marked = {at for run in runs if run.is_marked for at in range(run.at, run.at + len(run.text))}
    assert marked == {at for span in marks for at in range(*span) if 0 <= at < len(text)}
    assert all(isinstance(one, PagePassage) and one.start < one.stop for one in passages)
