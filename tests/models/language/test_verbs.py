"""How a relation gets its name from a verb."""

import pytest

from gristmill.models import TextPassage
from gristmill.models.language.extraction import extract_passages
from gristmill.models.language.verbs import make_past_tense


@pytest.mark.parametrize(
    ("base", "name"),
    [
        ("sign", "signed"),
        ("hire", "hired"),
        ("agree", "agreed"),
        ("sue", "sued"),
        ("copy", "copied"),
        ("employ", "employed"),
        ("veto", "vetoed"),
        ("ship", "shipped"),
        ("plan", "planned"),
        ("quiz", "quizzed"),
        ("submit", "submitted"),
        ("transfer", "transferred"),
        ("control", "controlled"),
        ("cancel", "cancelled"),
        ("visit", "visited"),
        ("deliver", "delivered"),
        ("open", "opened"),
        ("email", "emailed"),
        ("review", "reviewed"),
        ("fix", "fixed"),
        ("clean", "cleaned"),
        ("meet", "met"),
        ("oversee", "oversaw"),
        ("withdraw", "withdrew"),
        ("repay", "repaid"),
        ("undertake", "undertook"),
        ("relay", "relayed"),
        ("report", "reported"),
        ("break", "broke"),
        ("do", "did"),
        ("have", "had"),
    ],
)
def test_a_relation_has_the_past_tense_of_its_verb_as_its_name(base: str, name: str) -> None:
    assert make_past_tense(base) == name


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("DROPPED", "drops dropping dropped"),
        ("SUED", "sues suing sued"),
        ("CONTROLLED", "controls controlling controlled"),
        ("BOUGHT", "buys buying bought"),
        ("OVERSAW", "oversees overseeing overseen"),
        ("USED", "uses using used"),
        ("PAID", "pays paying paid"),
        ("LEFT", "leaves leaving left"),
        ("FOUNDED", "founds founding founded"),
        ("CHOSE", "chooses choosing chosen"),
    ],
)
def test_all_forms_of_a_verb_give_one_relation(name: str, forms: str) -> None:
    finite, ongoing, done = forms.split()
    texts = [f"Acme Corp {verb} Globex Inc every year." for verb in (finite, f"is {ongoing}", f"has {done}")]
    drawn = extract_passages([TextPassage(text, language="en") for text in texts])
    assert [[one.type for one in each.relations] for each in drawn] == [[name]] * 3
