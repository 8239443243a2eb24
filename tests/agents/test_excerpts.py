"""Of a long passage, the sentences are shown that fit the question."""

import pytest

from gristmill.agents.ask.excerpts import choose_excerpt

HEAD = "**From:** Dana Whitlock\n**To:** Priya Raman\n**Subject:** Site meeting\n\nDear Priya, thank you for coming. "
FILLING = "The weather was fine and the coffee was warm. " * 12
ANSWER = "Annex B changes to grease NLGI 3 every two weeks."
LETTER = f"{HEAD}{FILLING}{ANSWER} {FILLING}".strip()


def test_the_sentence_that_answers_is_shown_wherever_it_stands() -> None:
    shown = choose_excerpt("Which grease does the annex ask for?", LETTER, most=200, language="en")
    assert ANSWER in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert len(shown) <= 204


def test_a_short_passage_is_shown_whole() -> None:
    assert choose_excerpt("Which grease?", f"  {ANSWER}\n", most=200) == ANSWER


def test_a_number_is_not_cut() -> None:
    text = "x" * 10 + " costs EUR 9,600.00 a year and no more than that whatever happens to the price of rye"
    assert not choose_excerpt("price", text, most=26).rstrip(" …").endswith("9,600.0")


@pytest.mark.parametrize("question", ["", "Nothing of this stands there"])
def test_a_question_without_a_word_in_common_shows_the_beginning(question: str) -> None:
    assert choose_excerpt(question, LETTER, most=200).startswith("**From:** Dana Whitlock")
