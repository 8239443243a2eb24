"""The language of conventions: what it understands, how it is written back, and what it says when it does not."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import Refused
from gristmill.qualifier.conventions import format_convention, parse_convention
from gristmill.qualifier.conventions.model import (
    CHOICES,
    AllOf,
    AmountTest,
    AnyOf,
    ChoiceTest,
    Consequence,
    ConventionRule,
    DaysTest,
    Negation,
    TextTest,
)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            'when sender is "*@news.example" then ignore',
            ConventionRule(TextTest("sender", "is", ("*@news.example",)), Consequence("ignore")),
        ),
        (
            'when type is email and text has "invoice" and amount > 500 EUR '
            'then now, urgency high, assign "accounting"',
            ConventionRule(
                AllOf(
                    (
                        ChoiceTest("type", ("email",)),
                        TextTest("text", "has", ("invoice",)),
                        AmountTest(">", Decimal(500), "EUR"),
                    )
                ),
                Consequence("now", urgency="high", assign="accounting"),
            ),
        ),
        (
            'WHEN Subject has not "re:" or "fwd:" THEN later by 3 days',
            ConventionRule(
                Negation(TextTest("subject", "has", ("re:", "fwd:"))), Consequence("later", timedelta(days=3))
            ),
        ),
        (
            "when not (type is wiki or git and age > 2 weeks) then handled, lead 5 days",
            ConventionRule(
                Negation(AllOf((ChoiceTest("type", ("wiki", "git")), DaysTest("age", ">", timedelta(weeks=2))))),
                Consequence("handled", lead=timedelta(days=5)),
            ),
        ),
        (
            'when header "List-Id" has "„news”" or deadline is there then urgency low',
            ConventionRule(
                AnyOf((TextTest("header", "has", ("„news”",), "list-id"), ChoiceTest("deadline", ("there",)))),
                Consequence(urgency="low"),
            ),
        ),
        (
            "when deadline < 36 hours then now",
            ConventionRule(DaysTest("deadline", "<", timedelta(hours=36)), Consequence("now")),
        ),
        ("when payment is due then now", ConventionRule(ChoiceTest("payment", ("due",)), Consequence("now"))),
    ],
)
def test_a_convention_is_understood(text: str, rule: ConventionRule):
    assert parse_convention(text) == rule
    assert parse_convention(format_convention(rule)) == rule


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The end is not expected: a convention begins with “when”"),
        ('if sender is "a" then ignore', "“if” (character 1) is not expected: a convention begins with “when”"),
        (
            'when sendr is "a" then ignore',
            "“sendr” (character 6) is nothing that a convention can test: did you mean sender?",
        ),
        (
            'when sender like "a" then ignore',
            "“like” (character 13) does not fit behind “sender”: is or has may stand here.",
        ),
        ("when sender is a then ignore", 'a text in quotation marks stands here, for example sender is "…"'),
        ('when sender is "a then ignore', "this quotation has no end"),
        ('when sender is "  " then ignore', "The quotation at character 16 is empty"),
        ('when sender is "a"', "The end is not expected: “and”, “or” or “then” may stand here."),
        (
            'when sender is "a" then',
            "The end is nothing that can be done: ignore, handled, later, now, urgency, assign or lead may",
        ),
        ('when sender is "a" then ignor', "did you mean ignore?"),
        (
            'when sender is "a" then ignore now',
            "“now” (character 32) is not expected: what is to be done is separated by commas.",
        ),
        ('when sender is "a" then ignore, now', "“now” (character 33) says a second time what is to be done"),
        ("when type is mail then ignore", "“mail” (character 14) is no type: did you mean email?"),
        ("when amount is 5 then now", "write for example amount > 500 EUR"),
        ("when amount > much then now", "“much” (character 15) is no number"),
        ("when age > 5 then now", "“then” (character 14) is no unit of time: write hours, days or weeks"),
        ('when (sender is "a" then now', "a bracket was opened before and must be closed"),
        ('when sender is "a" then later by 99999 weeks', "99999 weeks are too long"),
        ('when sender is "a" then ignore; drop', "“;"),
        ("when " + "not " * 20 + 'sender is "a" then now', "at most 8 brackets and negations"),
        ("when " + 'text has "a" and ' * 30 + 'text has "b" then now', "at most 24 tests"),
        ("x" * 3_000, "at most 2,000 characters"),
    ],
)
def test_a_wrong_convention_is_refused_with_its_place_and_advice(text: str, sentence: str):
    with pytest.raises(Refused) as refused:
        parse_convention(text)
    assert sentence in str(refused.value)


values = st.text(min_size=1, max_size=12).map(lambda one: " ".join(one.split())).filter(bool)
spans = st.integers(0, 300).map(lambda n: timedelta(hours=n))
comparisons = st.sampled_from(["<", "<=", "=", ">=", ">"])
tests = st.one_of(
    st.builds(
        TextTest,
        st.sampled_from(["sender", "subject", "text", "invoice"]),
        st.sampled_from(["is", "has"]),
        st.lists(values, min_size=1, max_size=3).map(tuple),
    ),
    st.sampled_from(sorted(CHOICES)).flatmap(
        lambda field: st.builds(
            ChoiceTest,
            st.just(field),
            st.lists(st.sampled_from(CHOICES[field]), min_size=1, max_size=2, unique=True).map(tuple),
        )
    ),
    st.builds(AmountTest, comparisons, st.integers(0, 10**6).map(Decimal), st.sampled_from(["", "EUR", "CZK"])),
    st.builds(DaysTest, st.sampled_from(["deadline", "age"]), comparisons, spans),
)
conditions = st.recursive(
    tests,
    lambda inner: st.one_of(
        inner.filter(lambda one: not isinstance(one, Negation)).map(Negation),
        st.lists(inner.filter(lambda one: not isinstance(one, AllOf)), min_size=2, max_size=3).map(
            lambda some: AllOf(tuple(some))
        ),
        st.lists(inner.filter(lambda one: not isinstance(one, AnyOf)), min_size=2, max_size=3).map(
            lambda some: AnyOf(tuple(some))
        ),
    ),
    max_leaves=6,
)


@given(conditions, st.sampled_from([Consequence("now"), Consequence("later", timedelta(days=2), "high", "x y")]))
def test_what_is_written_is_read_back(condition, consequence):
    rule = ConventionRule(condition, consequence)
    assert parse_convention(format_convention(rule)) == rule
