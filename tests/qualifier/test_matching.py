"""Whether a convention holds for an item, and by which words."""

from datetime import UTC, datetime, timedelta

import pytest
from cases import AMOUNT, INVOICE, NOISE, NOW, REQUEST, in_days, owe

from gristmill.models import About, FoundMention, TextEvidence, TextFacts
from gristmill.qualifier.casework import find_firings
from gristmill.qualifier.conventions import InForce, Material, match_condition, parse_convention
from gristmill.qualifier.reasons import ReasonWords

TEXT = "Invoice 2026-77\n\nDear all,\nplease find our  final\ninvoice attached.\n\n> the old reminder was quoted"
QUOTED = TEXT.index("> the old")


def make_material(**about):
    given = {
        "written_at": NOW - timedelta(days=10),
        "type": "email",
        "subject": "Invoice 2026-77",
        "sender": "Jana Nová <billing@acme.example>",
        "recipients": ("Office <office@us.example>", "ana@us.example"),
        "headers": {"list-id": "<news.acme.example>"},
        "fields": {"State": "Open"},
    }
    facts = TextFacts(
        language="en", amounts=(AMOUNT,), references=(INVOICE,), requests=(REQUEST,), noise=(NOISE,), payment=owe()
    )
    return Material(
        TEXT, [(0, QUOTED)], About(**{**given, **about}), facts, in_days(3), NOW, ["invoice.pdf", "terms.docx"]
    )


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ('sender is "*@acme.example"', [("billing@acme.example", "sender")]),
        ('sender is "jana nová"', [("Jana Nová", "sender")]),
        ('sender has "billing"', [("Jana Nová <billing@acme.example>", "sender")]),
        ('sender is "billing"', None),
        ('sender is not "*@beta.example"', []),
        ('recipient is "ana@us.example"', [("ana@us.example", "recipient")]),
        ('subject has "invoice"', [("Invoice 2026-77", "subject")]),
        ('text has "final invoice"', [("final\ninvoice", "text")]),
        ('text has "voice"', None),
        ('text has "voice" or "attached"', [("attached", "text")]),
        ('text has "pleas*"', [("please", "text")]),
        ('text has "reminder"', None),  # it is quoted
        ('attachment is "*.pdf"', [("invoice.pdf", "attachment")]),
        ('header "List-Id" has "news.acme.example"', [("<news.acme.example>", "header list-id")]),
        ('field "state" is "open"', [("Open", "field state")]),
        ('invoice is "2026-*"', [("2026-77", "text")]),
        ('order is "*"', None),
        ("type is email or wiki", [("email", "type")]),
        ("language is de", None),
        ("noise is newsletter", []),
        ("payment is due", [("1.240,00 €", "text")]),
        ("request is there", [("Please send the file", "text")]),
        ("mention is there", None),
        ("deadline is there", []),
        ("amount > 1000 EUR", [("1.240,00 €", "text")]),
        ("amount > 1000 CZK", None),
        ("amount = 1240", [("1.240,00 €", "text")]),
        ("deadline <= 3 days", []),
        ("deadline < 3 days", None),
        ("age > 9 days and age < 11 days", []),
        (
            'type is email and text has "attached" and amount > 5',
            [("email", "type"), ("attached", "text"), ("1.240,00 €", "text")],
        ),
        ('type is wiki or text has "attached"', [("attached", "text")]),
        ("not (type is wiki or language is en)", None),
    ],
)
def test_whether_a_condition_holds(condition, words):
    rule = parse_convention(f"when {condition} then now")
    found = match_condition(rule.condition, make_material())
    assert words == (None if found is None else [(one.words, one.where) for one in found])
    if condition.startswith("text has") and found:
        assert TEXT[found[0].start : found[0].stop] == found[0].words


def test_an_item_without_a_deadline_or_amount_fulfils_no_comparison():
    bare = Material("text", None, About(datetime(2026, 5, 4, tzinfo=UTC)), TextFacts(), None, NOW)
    for condition in ("deadline > 0 days", "deadline < 9 days", "amount < 5", "deadline is there"):
        assert match_condition(parse_convention(f"when {condition} then now").condition, bare) is None


def test_the_nearest_convention_comes_first_and_then_the_one_that_does_more():
    texts = {
        1: ("", "", "now"),
        2: ("acme", "", "ignore"),
        3: ("acme", "", "later by 2 days"),
        4: ("acme", "web", "handled"),
        5: ("acme", "", "urgency high"),
    }
    known = [
        InForce(id_, 7, f"when type is email then {then}", client, project)
        for id_, (client, project, then) in texts.items()
    ]
    assert [one.id for one in find_firings(known, make_material())] == [4, 3, 2, 5, 1]
    assert [one.id for one in known if one.is_seen_from("acme", "shop")] == [1, 2, 3, 5]


def test_words_of_mentions_are_named():
    mention = FoundMention("jana", "mention", TextEvidence(0, 5, "@jana"))
    material = Material("@jana", None, About(NOW), TextFacts(mentions=(mention,)), None, NOW)
    rule = parse_convention("when mention is there then now")
    assert match_condition(rule.condition, material) == (ReasonWords("@jana", 0, 5),)
