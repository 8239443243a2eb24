"""Whether the evidence may answer a question at all: decided by rule, before any model is asked."""

from collections.abc import Sequence

import pytest
from tests.agents.evidence import passage

from gristmill.agents import Passage
from gristmill.agents.ask.abstaining import Grounds, may_answer, weigh_evidence
from gristmill.agents.ask.question import read_question
from gristmill.knowledge import WordWeight, fold, forms, words

ARTICLES = {
    "Velmar": "Velmar is a town on the river Osk with 18,200 inhabitants. It is known for its paper mill, which was "
    "founded in 1868 by Konrad Velt, and for its annual kite festival.",
    "Konrad Velt": "Konrad Velt (1821–1889) was an industrialist. He discovered a comet from a tower that he had built "
    "on the roof of his paper mill. He was born in Lindhausen.",
    "Lindhausen": "Lindhausen is a village in the hills, with an old church and fewer than six hundred inhabitants.",
    "Osk": "The Osk is a river of 214 kilometres. It rises on Mount Terrin and flows into the sea. Its largest "
    "tributary is the Little Marr.",
    "Static Meadow": "Static Meadow is a duo formed in 1998 by Joris Claes and Hanne Wouters.",
    "Hanne Wouters": "Hanne Wouters is a musician. She wrote her doctoral thesis on knots at the university of Leuven.",
    "Golden Heron": "The Golden Heron is a film prize that has been awarded in Leeuwarden since 1960. The jury "
    "consists of nine projectionists.",
    "Piet Haarsma": "Piet Haarsma (1928–1999) was an actor. He won the Golden Heron for his part in a film.",
}
MEETING = (
    "**Engineer:** The steel frame had no crack after 100,000 cycles. **Marketing:** Our survey had dark green first, "
    "then orange. **Project manager:** Dark green it is. The shops want forty percent of the price."
)


def weigh(question: str, *passages: Passage, before: Sequence[str] = ()) -> Grounds:
    """Every word is as rare as every other."""
    asked = read_question(question, before)
    weights = [
        WordWeight(one.text, one.start, one.stop, frozenset({fold(one.text), *forms(one.text, asked.language)}), 3, 4.0)
        for one in words(asked.complete)
    ]
    return weigh_evidence(asked, weights, passages, 0.5)


def weigh_articles(question: str) -> Grounds:
    articles = [passage(text, number, title=title) for number, (title, text) in enumerate(ARTICLES.items(), 1)]
    return weigh(question, *articles)


@pytest.mark.parametrize(
    "question",
    [
        "Who founded the paper mill of Velmar?",
        "What is the population of Velmar?",
        "Who established the paper mill of Velmar?",
        "When did Konrad Velt die?",
        "How old was Konrad Velt?",
        "How long is the Osk?",
        "How many inhabitants does Lindhausen have?",
        "How many people live in Velmar?",
        "Which is longer, the Osk or the Little Marr?",
        "Which prize did Piet Haarsma receive?",
    ],
)
def test_what_a_passage_says_in_these_or_other_words_is_asked(question: str) -> None:
    assert may_answer(weigh_articles(question))


@pytest.mark.parametrize(
    "question",
    [
        "Where was the founder of the paper mill in Velmar born?",
        "How many inhabitants does the birthplace of the founder of the paper mill in Velmar have?",
        "How long is the river on which Velmar lies?",
        "On what subject did one of the founders of Static Meadow write a doctoral thesis?",
        "Who sits on the jury of the prize that Piet Haarsma won?",
    ],
)
def test_a_question_that_leads_from_one_passage_to_the_next_is_asked(question: str) -> None:
    assert may_answer(weigh_articles(question))


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("Who is the mayor of Velmar?", "No passage about it has the word “mayor”."),
        (
            "When was the church of Lindhausen built?",
            "too few of them stand at one place",
        ),  # a tower was built elsewhere
        ("How long is the Little Marr?", "No passage about it has a measure"),  # that is said of the Osk
        ("How many children did Konrad Velt have?", "No passage about it has so many of these"),
        ("In which year was Lindhausen founded?", "No passage about it has a date"),
        ("How old is Hanne Wouters?", "No passage about it has an age"),
        ("Which film won the Golden Heron in 1974?", "No passage about it has “1974”"),
        ("How much did the kite festival of Velmar cost?", "No passage about it has an amount"),
        ("Who is Rosalind Farrow?", "No passage names “Rosalind Farrow”"),
    ],
)
def test_what_is_said_of_another_thing_or_not_at_all_is_not_asked(question: str, why: str) -> None:
    grounds = weigh_articles(question)
    assert not may_answer(grounds)
    assert why in grounds.reason


def test_of_a_question_with_several_parts_one_is_enough() -> None:
    """Sentences are checked one by one: what is not known of the other part is left out."""
    question = "Which battery was chosen, and what share of the price do the shops want?"
    assert may_answer(weigh(question, passage(MEETING)))
    assert not may_answer(weigh("Which battery was chosen by the board?", passage(MEETING)))


def test_without_a_name_more_of_the_words_must_stand_in_one_passage() -> None:
    assert may_answer(weigh("After how many cycles did the steel frame crack?", passage(MEETING)))
    assert not may_answer(weigh("Who paid for the steel frame of the bridge?", passage(MEETING)))


def test_words_that_are_scattered_over_passages_are_no_place() -> None:
    said = [passage(text, number) for number, text in enumerate(("A guard stood there.", "A gate of oak."), 1)]
    assert not may_answer(weigh("Which guard fell at the gate?", *said))


def test_why_nothing_is_known_is_said_in_words_of_the_question() -> None:
    guard, gate = passage("A guard stood there.", 1), passage("A gate of oak.", 2)
    assert weigh("Why was the crème sold with the lantern?", guard).reason == (
        "No passage about it has the words “crème”, “sold”, “lantern”."
    )
    assert weigh("Which guard stood at the oak gate?", guard, gate).reason == (
        "The words of the question stand in the passages, but too few of them stand at one place."
    )


def test_an_abbreviation_that_texts_have_in_full_is_no_strange_name() -> None:
    text = "The base lies in the desert of New Mexico."
    assert may_answer(weigh("In which state of the USA does the base lie?", passage(text, title="The base")))


def test_a_near_meaning_is_enough_whatever_the_words_are() -> None:
    asked = read_question("Wie viele Menschen leben dort?")
    assert may_answer(weigh_evidence(asked, [], [passage("Velmar has 18,200 inhabitants.", language="en")], 0.85))


def test_a_follow_up_needs_no_word_of_the_question_before_beside_its_date() -> None:
    text = "The price of the copper kettle is EUR 5,000.00. It was made in 1868 in Brno."
    before = ["What is the price of the copper kettle?"]
    assert may_answer(weigh("When was it made?", passage(text), before=before))
    assert not may_answer(weigh("When was it made?", passage("The copper kettle has a price."), before=before))
