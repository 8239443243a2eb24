"""The second opinion on whole mails: it hears wishes and bills that no rule knows, and can only raise."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from gristmill.models import About, ClientIdentity, Hints, TextFacts, make_hints, read_facts
from gristmill.models.language.hints.concepts import find_concepts
from gristmill.models.language.hints.opinion import BILL, WISH, weigh_wish
from gristmill.models.language.hints.weights import load_weights

EXAMPLES = Path(__file__).parents[4] / "examples" / "inbox"
WRITTEN = datetime(2026, 11, 18, 9, tzinfo=UTC)


def read(subject: str, body: str, sender: str = "") -> tuple[TextFacts, Hints]:
    about = About(WRITTEN, type="email", subject=subject, sender=sender, me=ClientIdentity(("Anna Novak",)))
    facts = read_facts(f"{subject}\n\n{body}", about)
    return facts, make_hints(facts, about)


@pytest.mark.parametrize(
    ("subject", "body"),
    [
        ("Signature page", "Dear Ms Novak,\n\nWe are still short of your signature on page 14 of the lease."),
        ("Ausfertigung", "Das Amt verlangt von Ihnen eine weitere Ausfertigung des Plans."),
        ("naložení", "Nikdo mi nebere telefon, auto stojí před vraty a čeká."),
        ("Nalazi", "Poštovana gospođo Novak, nalazi su gotovi i možete ih podići na šalteru 3."),
    ],
)
def test_a_wish_is_heard_in_words_of_no_rule(subject: str, body: str) -> None:
    _, hints = read(subject, body)
    assert hints.has_actionable_content.value
    assert hints.has_actionable_content.evidence[0].words in f"{subject}\n\n{body}"


@pytest.mark.parametrize(
    "body",
    [
        "Ihr Paket ist unterwegs und kommt am Mittwoch an.",
        "Roba je stigla, sve u redu.",
        "Všechny hodnoty jsou v normě, výsledky posíláme v příloze.",
        "FYI, we are still short of your signature on page 14.",
        "We offer 200 m of cable, EUR 840.00 in total.",
    ],
)
def test_information_stays_information(body: str) -> None:
    _, hints = read("Our offer" if "offer" in body else "Nachricht", body)
    assert not hints.has_actionable_content.value


def test_a_bill_is_heard_in_words_of_no_rule_and_is_due_on_the_day_beside_the_amount() -> None:
    body = "Wir erinnern daran, dass am 10.12.2026 die Vorauszahlung in Höhe von 2.150,00 € ansteht."
    facts, hints = read("Einkommensteuer", body)
    assert facts.payment is not None
    assert facts.payment.due == date(2026, 12, 10)
    assert hints.suggested_deadline.value is not None
    assert hints.suggested_deadline.value.date() == date(2026, 12, 10)


def test_a_receipt_is_no_bill() -> None:
    assert read("Doklad o zaplacení", "Potvrzujeme přijetí platby 890 Kč za objednávku 55120.")[0].payment is None


def test_an_amount_that_nobody_asks_for_is_no_bill() -> None:
    minutes = (EXAMPLES / "meeting-2026-05-26.md").read_text()
    price = "The factor is larger than the price of the better grease, which is about EUR 140 a year for each mill."
    for text in (minutes, price):
        assert "EUR" in text
        assert read_facts(text, About(WRITTEN, type="document")).payment is None
    bought = "I bought a replacement at their counter (receipt 88-20417, EUR 468.30) and will fit it tomorrow."
    assert read("Re: bearing broke", f"The bearing broke this morning.\n{bought}")[0].payment is None


def test_a_machine_that_says_it_is_broken_is_heard() -> None:
    said = "Backup job nightly-full failed with exit code 2."
    _, hints = read("CRITICAL: backup failed on db-1", said, sender="alerts@monitor.example")
    assert hints.has_actionable_content.value
    _, hints = read("RESOLVED: disk usage", "The disk is back to normal.", sender="alerts@monitor.example")
    assert not hints.has_actionable_content.value


def test_words_of_four_languages_mean_the_same() -> None:
    assert {find_concepts(one)[0] for one in ("please", "bitte", "prosim", "molim")} == {"please"}


def test_the_weights_fit_the_code_and_nothing_wants_nothing() -> None:
    assert all(load_weights(path).step > 0 and path.stat().st_size < 100_000 for path in (WISH, BILL))
    assert weigh_wish([]) == (-1.0, None)
