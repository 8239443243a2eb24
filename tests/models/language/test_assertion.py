"""Only a fact that a sentence states becomes a relation with a name; the real parser reads it."""

import pytest

from gristmill.models import TextPassage
from gristmill.models.language.entities import Relation
from gristmill.models.language.extraction import extract_passages


def drawn(text: str) -> tuple[Relation, ...]:
    return extract_passages([TextPassage(text, language="en")])[0].relations


def facts_of(text: str) -> set[str]:
    return {f"{one.source.split('::')[1]} {one.type} {one.target.split('::')[1]}" for one in drawn(text)}


@pytest.mark.parametrize(
    "text",
    [
        # denied
        "Bob Grey did not pay Acme Corp.",
        "Bob Grey didn't pay Acme Corp.",
        "Bob Grey isn’t paying Acme Corp.",
        "Bob Grey never paid Acme Corp.",
        "Bob Grey did not sign the contract with Acme Corp.",
        "Bob Grey signed no contract with Acme Corp.",
        "Bob Grey has not yet been paid by Acme Corp.",
        "Acme Corp was not acquired by Globex Inc.",
        "Acme Corp has never been acquired by Globex Inc.",
        "Jane Doe is not the director of Acme Corp.",
        "Jane Doe isn't Acme Corp's director.",
        "Jane Doe is no director of Acme Corp.",
        "Jane Doe is no longer the director of Acme Corp.",
        "Jane Doe no longer works for Acme Corp.",
        "Jane Doe doesn't work for Acme Corp any more.",
        "Bob Grey signed the lease without Acme Corp.",
        "Neither Jane Doe nor Bob Grey paid Acme Corp.",
        "Bob Grey paid neither Acme Corp nor Globex Inc.",
        "Jane Doe was neither hired nor paid by Acme Corp.",
        "Jane Doe is neither director of Acme Corp nor chair of Globex Inc.",
        "Bob Grey did not pay Acme Corp and sue Globex Inc.",
        "Bob Grey did not sign INV-2024-001 with Acme Corp.",
        # possible, planned, wished for
        "Jane Doe may acquire Globex Inc.",
        "Jane Doe will join Acme Corp in Berlin.",
        "Jane Doe should have paid Acme Corp.",
        "Bob Grey cannot pay Acme Corp.",
        "Acme Corp may be acquired by Globex Inc.",
        "Jane Doe might be the director of Acme Corp.",
        "Jane Doe may acquire Globex Inc and sell Acme Corp.",
        "Perhaps Jane Doe hired Bob Grey.",
        "Bob Grey allegedly bribed Acme Corp.",
        "If Bob Grey hires Jane Doe, everybody is happy.",
        "Jane Doe leaves Acme Corp if the bank agrees.",
        # reported by somebody
        "Bob bribed Acme Corp, said the manager.",
        "The manager denied that Bob Grey bribed Acme Corp.",
        "The manager said Bob Grey had paid Acme Corp.",
        "“Bob Grey paid Acme Corp,” said the manager.",
        "The manager denied that Jane Doe is the director of Acme Corp.",
        "The manager denied that Acme Corp was acquired by Globex Inc.",
        "The manager said that Bob Grey met Jane Doe and sued Acme Corp.",
        "According to the manager, Bob Grey paid Acme Corp.",
        "It is unlikely that Bob Grey paid Acme Corp.",
        "The claim that Bob Grey paid Acme Corp is false.",
        "That Bob Grey paid Acme Corp is untrue.",
        "The manager wants Bob Grey to pay Acme Corp.",
        # relations that no rule ever found
        "Acme Corp refuses to pay Bob Grey.",
        "Acme Corp failed to acquire Globex Inc.",
        "Jane Doe planned to buy Acme Corp.",
        "Jane Doe stopped paying Bob Grey.",
        "Did Jane Doe sue Acme Corp?",
    ],
)
def test_what_is_denied_doubted_or_told_by_others_merely_stands_in_one_sentence(text: str) -> None:
    assert {one.type for one in drawn(text)} == {"RELATED_TO"}


@pytest.mark.parametrize(
    ("text", "facts", "not_facts"),
    [
        ("Not Jane Doe but Bob Grey paid Acme Corp.", {"bob grey PAID acme corp"}, {"jane doe PAID acme corp"}),
        ("Bob Grey paid Acme Corp, not Globex Inc.", {"bob grey PAID acme corp"}, {"bob grey PAID globex inc"}),
        ("Bob Grey paid Acme Corp rather than Globex Inc.", {"bob grey PAID acme corp"}, {"bob grey PAID globex inc"}),
        (
            "Jane Doe works for Globex Inc, not for Acme Corp.",
            {"jane doe WORKED_FOR globex inc"},
            {"jane doe WORKED_FOR acme corp"},
        ),
        (
            "Jane Doe, not the director of Acme Corp, met Bob Grey.",
            {"jane doe MET bob grey"},
            {"jane doe DIRECTOR_OF acme corp"},
        ),
        (
            "Bob Grey did not pay Acme Corp but sued Globex Inc.",
            {"bob grey SUED globex inc"},
            {"bob grey PAID acme corp"},
        ),
        ("Jane Doe met Bob Grey because he had not been paid.", {"jane doe MET bob grey"}, set[str]()),
        (
            "Bob Grey paid Acme Corp; Jane Doe left Globex Inc.",
            {"bob grey PAID acme corp", "jane doe LEFT globex inc"},
            set[str](),
        ),
        ("Bob Grey not only paid Acme Corp.", {"bob grey PAID acme corp"}, set[str]()),
        (
            "Jane Doe said that Satya Nadella, CEO of Microsoft, met Bob Grey.",
            {"satya nadella CEO_OF microsoft"},
            {"satya nadella MET bob grey"},
        ),
        ("Bob Grey paid Acme Corp no later than Monday.", {"bob grey PAID acme corp"}, set[str]()),
        ("Jane Doe told nobody that she left. Bob Grey paid Acme Corp.", {"bob grey PAID acme corp"}, set[str]()),
    ],
)
def test_the_rest_of_such_a_sentence_is_stated(text: str, facts: set[str], not_facts: set[str]) -> None:
    found = facts_of(text)
    assert facts <= found
    assert not not_facts & found


def test_a_sentence_that_goes_on_and_on_is_read_to_its_end() -> None:
    assert drawn("Bob Grey met Jane Doe and " + "ran and " * 1_500 + "left.")
