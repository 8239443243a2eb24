"""Conventions that contradict each other are found before an item comes that fits both."""

import pytest

from gristmill.qualifier.conventions import parse_convention
from gristmill.qualifier.conventions.contradictions import Stated, can_hold_together, find_contradiction
from gristmill.scopes import Scope

ACME = Scope("acme")


def state(id_: int, text: str, scope: Scope = ACME) -> Stated:
    return Stated(id_, scope, parse_convention(text))


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ('sender is "*@a.example"', 'sender is "*@b.example"', False),
        ('sender is "*@a.example"', 'sender is "jana@*"', True),
        ('sender is "x*" or "y*"', 'sender is "z*" or "*y"', True),
        ('sender is "Jana*"', 'sender is "*@b.example"', True),  # a name and an address
        ('sender is "a@b.example"', 'sender is not "*@b.example"', False),
        ('sender is "*@b.example"', 'sender is not "a@b.example"', True),
        ('recipient is "a@x"', 'recipient is "b@x"', True),  # there may be several
        ('text has "final invoice"', 'text has not "invoice"', False),
        ('text has "invoices"', 'text has not "invoice"', True),
        ("type is email", "type is wiki", False),
        ("type is email or wiki", "type is wiki or git", True),
        ("type is email or wiki", "type is not email and type is not wiki", False),
        ("noise is newsletter", "noise is bounce", True),
        ("noise is newsletter", "noise is not newsletter", False),
        ("payment is due", "payment is not due", False),
        ("amount > 500 EUR", "amount < 100 EUR", False),
        ("amount > 500 EUR", "amount < 100 CZK", True),
        ("amount >= 500", "amount <= 500", True),
        ("amount > 500", "amount = 500", False),
        ("deadline < 3 days", "deadline > 4 days", False),
        ("deadline < 3 days", "deadline is not there", False),
        ("age > 3 days", "age < 4 days", True),
        ("not (type is email or amount > 5)", "type is email", False),
        ('not (type is email and text has "x")', "type is email", True),
    ],
)
def test_whether_one_item_may_fulfil_both(one: str, other: str, together: bool):
    conditions = [parse_convention(f"when {text} then now").condition for text in (one, other)]
    assert can_hold_together(*conditions) is together
    assert can_hold_together(*reversed(conditions)) is together


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        ("ignore", "now", "the outcome"),
        ("later by 2 days", "later by 3 days", "the outcome"),
        ("now, urgency high", "now, urgency low", "the urgency"),
        ('assign "a"', 'assign "b"', "who gets it"),
        ("ignore, lead 2 days", "now, lead 3 days", "the outcome and the lead"),
        ("now", "now", None),
        ("now", "urgency high", None),
        ("later", "later by 3 days", None),
    ],
)
def test_two_conventions_contradict_each_other_only_in_what_both_say(one: str, other: str, what: str | None):
    first = state(3, f"when type is email then {one}")
    second = state(7, f'when text has "x" then {other}')
    found = find_contradiction(first, second)
    if what is None:
        assert found is None
    else:
        assert found is not None
        assert found.sentence == (
            f"The conventions 3 and 7 may fit the same item and differ in {what}: 3 says {one}, 7 says {other}."
        )


@pytest.mark.parametrize(
    ("scope", "meets"),
    [(Scope(), True), (Scope("acme"), True), (Scope("acme", "web"), True), (Scope("beta"), False)],
)
def test_conventions_of_different_clients_never_meet(scope: Scope, meets: bool):
    first, second = state(1, "when type is email then ignore"), state(2, "when type is email then now", scope)
    assert (find_contradiction(first, second) is not None) is meets


def test_projects_of_one_client_do_not_meet():
    first = state(1, "when type is email then ignore", Scope("acme", "web"))
    assert find_contradiction(first, state(2, "when type is email then now", Scope("acme", "shop"))) is None


def test_a_condition_with_too_many_alternatives_is_taken_to_hold_with_others():
    many = " and ".join(f'(text has "a{n}" or text has "b{n}")' for n in range(10))
    assert can_hold_together(
        parse_convention(f"when {many} then now").condition, parse_convention("when type is email then now").condition
    )
