"""Which texts fall into pieces of work, and which are answered as a whole."""

from datetime import UTC, date, datetime

import pytest

from gristmill.models import About, FoundDate, FoundRequest, TextEvidence, TextFacts, read_facts
from gristmill.qualifier.dividing import find_children
from gristmill.qualifier.explaining import mark_text
from gristmill.qualifier.reasons import DecisionStep, ReasonWords

MINUTES = """Weekly meeting

We spoke about the launch.

## Action items
- Jana: send the offer to Beta by Friday
- [ ] Petr updates the price list
- [x] order the chairs
* Ana books the room

Next meeting in May.
- this is no action item
"""


def titles(text, facts=None, new=None):
    return [one.title for one in find_children(text, facts or TextFacts(), new)]


def test_entries_under_a_heading_are_pieces_of_work():
    assert titles(MINUTES) == [
        "Jana: send the offer to Beta by Friday",
        "Petr updates the price list",
        "Ana books the room",
    ]


@pytest.mark.parametrize("heading", ["Aufgaben:", "Úkoly", "**Zadaci**", "TODO:", "Next steps:"])
def test_the_heading_may_be_in_four_languages(heading):
    assert len(titles(f"{heading}\n1. first piece of work\n2. second piece of work\n")) == 2


def test_a_single_entry_and_more_than_six_stay_one_item():
    assert titles("Tasks:\n- only this piece of work\n") == []
    assert titles("Tasks:\n" + "".join(f"- piece of work {n}\n" for n in range(7))) == []


def test_what_is_quoted_is_not_divided():
    quoted = MINUTES.index("## Action")
    assert titles(MINUTES, new=[(0, quoted)]) == []


def ask(text, sentence, kind="request"):
    start = text.index(sentence)
    return FoundRequest(kind, 0.9, TextEvidence(start, start + len(sentence), sentence))


def test_requests_of_a_list_with_dates_of_their_own_are_pieces_of_work():
    text = "Hi,\n- please send A by 3 May\n- please send B by 9 June\nThanks"
    asked = (ask(text, "please send A by 3 May"), ask(text, "please send B by 9 June"))
    days = tuple(
        FoundDate(date(2026, 5, 3), None, TextEvidence(text.index(one), text.index(one) + 5, one), True)
        for one in ("3 May", "9 June")
    )
    assert titles(text, TextFacts(requests=asked, dates=days)) == ["please send A by 3 May", "please send B by 9 June"]
    assert titles(text, TextFacts(requests=asked)) == []  # one reply does


def test_questions_of_one_mail_want_one_reply():
    text = "- when is it on 3 May?\n- who comes on 4 May?"
    asked = tuple(ask(text, one, "question") for one in ("when is it on 3 May?", "who comes on 4 May?"))
    days = tuple(FoundDate(date(2026, 5, 3), None, TextEvidence(one, one + 5, ""), False) for one in (14, 36))
    assert titles(text, TextFacts(requests=asked, dates=days)) == []


# --- marked words


def test_words_are_marked_with_the_numbers_of_their_steps():
    text = "x" * 300 + " please pay 5 EUR by Friday " + "y" * 300
    at = text.index("please")
    steps = [
        DecisionStep("a", "A.", (ReasonWords("pay 5 EUR", at + 7, at + 16),)),
        DecisionStep(
            "b",
            "B.",
            (ReasonWords("5 EUR", at + 11, at + 16), ReasonWords("not there", 5, 14), ReasonWords("x", where="sender")),
        ),
    ]
    (excerpt,) = mark_text(text, steps)
    assert excerpt.is_cut_before
    assert excerpt.is_cut_after
    assert [(one.text, one.steps) for one in excerpt.pieces if one.steps] == [("pay ", (1,)), ("5 EUR", (1, 2))]
    assert "".join(one.text for one in excerpt.pieces) == text[excerpt.start : excerpt.start + 249]


def test_far_words_stand_in_excerpts_of_their_own():
    text = "first " + "-" * 1_000 + " last"
    steps = [DecisionStep("a", "A.", (ReasonWords("first", 0, 5), ReasonWords("last", 1007, 1011)))]
    assert [one.is_cut_before for one in mark_text(text, steps)] == [False, True]
    assert mark_text("", steps) == []


def test_a_part_that_names_a_day_has_that_deadline():
    text = "Actions\n- Petr: order the chains by 29 May\n- Jana: send the letter by 5 June\n- Ana books the room\n"
    facts = read_facts(text, About(datetime(2026, 5, 18, 9, tzinfo=UTC), type="meeting"))
    children = find_children(text, facts, zone=UTC)
    assert [one.deadline and one.deadline.date() for one in children] == [date(2026, 5, 29), date(2026, 6, 5), None]
