"""Single rules: amounts, numbers, requests, mentions, noise, payments and hints."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from gristmill.models import About, ClientIdentity, TextFacts, make_hints, read_facts
from gristmill.models.language.ibans import is_iban

WRITTEN = datetime(2026, 6, 1, 9, 0, tzinfo=UTC)  # a Monday
ME = ClientIdentity(("Anna Novak",), ("anna.novak@mill.example",))


def read(text: str, type: str = "email", **known: object) -> TextFacts:
    return read_facts(text, About(WRITTEN, type=type, me=ME, **known))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "value", "currency"),
    [
        ("Total 1.234,50 €", "1234.50", "EUR"),
        ("CHF 1’234.50", "1234.50", "CHF"),
        ("12 500 Kč", "12500", "CZK"),
        ("99,- Kč", "99", "CZK"),
        ("24.200,- Kč", "24200", "CZK"),
        ("1.250 kn", "1250", "HRK"),
        ("$1.2k", "1200", "USD"),
        ("EUR 12,50", "12.50", "EUR"),
        ("12.500,00 EUR", "12500.00", "EUR"),
        ("140 Euro", "140", "EUR"),
        ("500 korun", "500", "CZK"),
        ("3,4 Mio. €", "3400000", "EUR"),
        ("15 tis. Kč", "15000", "CZK"),
        ("25.– CHF", "25", "CHF"),
    ],
)
def test_an_amount_is_read_in_every_spelling(text: str, value: str, currency: str) -> None:
    assert [(one.value, one.currency) for one in read(text).amounts] == [(Decimal(value), currency)]


@pytest.mark.parametrize(
    "text", ["Euro 2024 was fun", "Fr. 5.6. um 9", "1.250 Besucher", "version 1.2.3 USD", "5 pounds"]
)
def test_other_numbers_are_no_amounts(text: str) -> None:
    assert read(text).amounts == ()


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Invoice no. 2026/118", "invoice", "2026/118"),
        ("Rechnung Nr. 4711", "invoice", "4711"),
        ("Rechnung 2026-0171", "invoice", "2026-0171"),
        ("faktura č. 20260171", "invoice", "20260171"),
        ("číslo faktury: 20260171", "invoice", "20260171"),
        ("račun br. 171-1-1", "invoice", "171-1-1"),
        ("variabilní symbol: 20260171", "invoice", "20260171"),
        ("Order number: 55122", "order", "55122"),
        ("PO 4500012345", "order", "4500012345"),
        ("objednávka č. 88-12", "order", "88-12"),
        ("narudžba br. 8812", "order", "8812"),
        ("Vertrag Nr. 2026-17", "contract", "2026-17"),
        ("smlouva č. 2026-17", "contract", "2026-17"),
        ("Ticket #55123", "case", "55123"),
        ("see MILL-231", "issue", "MILL-231"),
        ("fixes #42", "issue", "#42"),
        ("INV-2026-001", "invoice", "INV-2026-001"),
        ("DE89 3704 0044 0532 0130 00", "iban", "DE89370400440532013000"),
        ("HR12 1001 0051 8630 0016 0", "iban", "HR1210010051863000160"),
        ("CZ65 0800 0000 1920 0014 5399 BIC GIBACZPX", "iban", "CZ6508000000192000145399"),
    ],
)
def test_a_number_is_known_by_its_label(text: str, kind: str, value: str) -> None:
    assert (kind, value) in [(one.kind, one.value) for one in read(text).references]


@pytest.mark.parametrize(
    "text", ["the invoice 2026", "order by name", "UTF-8", "in order 3 of them", "case closed", "Re: 2026"]
)
def test_a_label_alone_is_no_reference(text: str) -> None:
    assert read(text).references == ()


def test_an_account_has_the_length_of_its_country() -> None:
    assert is_iban("DE89370400440532013000")
    assert not is_iban("DE88370400440532013000")
    assert not is_iban("DE8937040044053201300")
    assert not is_iban("XX89370400440532013000")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Could you send me the file?", "question"),
        ("Kannst du das bitte prüfen?", "question"),
        ("Pošlete mi to.", "request"),
        ("Možete li to provjeriti?", "question"),
        ("Let me know what you think.", "request"),
        ("Die Unterlagen müssen bis Freitag da sein.", "request"),
        ("TODO: write the guide (Petr)", "request"),
        ("Would be ideal if we can get this data on Thursday.", "request"),
    ],
)
def test_a_sentence_asks_for_something(text: str, kind: str) -> None:
    assert [one.kind for one in read(f"Info\n\n{text}").requests] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "Please do not hesitate to contact us if you have any questions.",
        "Bei Fragen stehen wir Ihnen gerne zur Verfügung.",
        "V případě dotazů nás neváhejte kontaktovat.",
        "Za sva pitanja stojimo vam na raspolaganju.",
        "Please find attached the minutes.",
        "Bitte antworten Sie nicht auf diese E-Mail.",
        "You do not need to do anything.",
        "Wir melden uns bis Freitag bei Ihnen.",
        "How are you?",
    ],
)
def test_mere_form_asks_for_nothing(text: str) -> None:
    assert read(f"Information\n\n{text}").requests == ()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("@anna.novak what do you think?", "mention"),
        ("@Anna please look", "mention"),
        ("[~anna.novak] please look", "mention"),
        ("Hi Anna,\n\nhello", "greeting"),
        ("Sehr geehrte Frau Novak,\n\nguten Tag", "greeting"),
        ("Ahoj Anno,\n\njak je", "greeting"),
        ("Vážená paní Nováková,\n\ndobrý den", "greeting"),
        ("Assignee: Anna Novak", "assignee"),
        ("Action: Anna to send the plan", "assignee"),
        ("This was assigned to you.", "assignee"),
        ("Answer to anna.novak@mill.example please", "address"),
    ],
)
def test_the_reader_is_named(text: str, kind: str) -> None:
    assert kind in [one.kind for one in read(text).mentions]


@pytest.mark.parametrize(
    "text",
    [
        "@petr look",
        "Hi Petr,\n\nAnna is ill",
        "mail@anna.example",
        "Sent to anna.novak@mill.example. Unsubscribe",
        "Annabel left",
    ],
)
def test_somebody_else_is_not_the_reader(text: str) -> None:
    assert read(text).mentions == ()


@pytest.mark.parametrize(
    ("text", "known", "kind"),
    [
        ("x", {"headers": {"auto-submitted": "auto-replied"}}, "auto_reply"),
        ("Abwesenheit: Angebot\n\nIch bin im Urlaub.", {}, "auto_reply"),
        ("Undeliverable: offer", {}, "bounce"),
        ("Přečteno: nabídka", {}, "read_receipt"),
        ("Prihvaćeno: sastanak", {}, "calendar_reply"),
        ("x", {"headers": {"content-type": 'text/calendar; method="REPLY"'}}, "calendar_reply"),
        ("Deals\n\nOnly today!", {"headers": {"list-unsubscribe": "<x>"}}, "newsletter"),
        ("Deals\n\nOnly today!\nUnsubscribe", {}, "newsletter"),
        ("x", {"headers": {"precedence": "bulk"}}, "newsletter"),
        ("x", {"sender": "no-reply@shop.example"}, "noise_sender"),
        ("Thanks!", {}, "acknowledgement"),
        ("Danke, passt", {}, "acknowledgement"),
        ("OK díky", {}, "acknowledgement"),
        ("Hvala, u redu", {}, "acknowledgement"),
    ],
)
def test_noise_is_known_by_header_subject_or_words(text: str, known: dict[str, object], kind: str) -> None:
    facts = read(text, subject=text.partition("\n")[0] if "\n" in text or ":" in text else "", **known)
    assert kind in [one.kind for one in facts.noise]


@pytest.mark.parametrize(
    "text", ["Thanks, but one page is missing.", "OK, can you send it?", "Danke, bitte auch Seite 3."]
)
def test_thanks_that_ask_for_more_are_no_acknowledgement(text: str) -> None:
    assert [one.kind for one in read(text).noise] == []


def test_a_bill_of_a_sender_that_takes_no_answer_is_still_a_payment() -> None:
    text = "Your bill\n\nYour invoice 2211 over €99.90 is due on 20 June 2026. Please do not reply."
    facts = read(text, sender="no-reply@telecom.example")
    assert facts.payment
    assert facts.payment.amount
    assert (facts.payment.amount.value, facts.payment.due) == (Decimal("99.90"), date(2026, 6, 20))
    assert make_hints(facts, About(WRITTEN, type="email", me=ME)).has_actionable_content.value


@pytest.mark.parametrize(
    "text",
    [
        "please-send-invoice.pdf",
        "Attached:\n- please-send-invoice.pdf\n- könnten_Sie_bitte_zahlen.xlsx\n- prosím-pošlete.docx",
        "The file please-send-me-that.pdf is here.",
        "I have saved “Please send the invoice.pdf” and 'could you call.txt'.",
        "src/could_you/please_send.py | 3 +-",
        "fehlt-noch.PDF, molim-pošaljite.zip",
    ],
)
@pytest.mark.parametrize("type", ["email", "document", "bugtracker", "git"])
def test_the_name_of_a_file_asks_for_nothing(text: str, type: str) -> None:
    subject = "Files of the mill"
    assert read(f"{subject}\n\n{text}", type, subject=subject).requests == ()


@pytest.mark.parametrize(
    "text",
    ["Please send invoice.pdf to Graz.", "Could you check please-send.pdf?", "Bitte prüfen: rechnung.pdf"],
)
def test_a_sentence_that_names_a_file_may_ask_for_something(text: str) -> None:
    assert len(read(text).requests) == 1


def test_a_place_that_is_known_to_be_the_name_of_a_file_asks_for_nothing_and_keeps_its_facts() -> None:
    text = "Please pay invoice 4711 until 30 June 2026"
    facts = read_facts(text, About(WRITTEN, type="document"), file_names=[(0, len(text))])
    assert facts.requests == ()
    assert (facts.references[0].value, facts.dates[0].day) == ("4711", date(2026, 6, 30))


def test_what_is_quoted_is_not_asked_again() -> None:
    text = "Yes, it arrived.\n\n> Has it arrived?\n> Please pay invoice 4711 over 50 EUR by Friday."
    facts = read_facts(text, About(WRITTEN, type="email", me=ME), new=[(0, 16)])
    assert (facts.requests, facts.payment, facts.dates, facts.references) == ((), None, (), ())


def test_the_subject_of_an_answer_is_not_new() -> None:
    subject = "Re: Can you send the file?"
    assert read(f"{subject}\n\nIt is attached.", subject=subject).requests == ()
    assert read("Can you send the file?\n\nRegards", subject="Can you send the file?").requests != ()


def test_the_due_date_of_a_tracker_is_a_deadline() -> None:
    facts = read("Prepare the review", type="bugtracker", fields={"due": "2026-06-26", "assignee": "Anna Novak"})
    assert facts.deadline
    assert facts.deadline.day == date(2026, 6, 26)


def test_urgency_follows_words_priority_and_delay() -> None:
    def judge(text: str, **fields: str) -> str:
        about = About(WRITTEN, type="email", fields=fields, me=ME)
        return make_hints(read_facts(text, about), about).urgency.value

    assert judge("Please send the file.") == "normal"
    assert judge("Bitte dringend zurückrufen.") == "high"
    assert judge("Production is down, please call.") == "critical"
    assert judge("It is not urgent, please send the file.") == "normal"
    assert judge("Please fix it.", priority="Blocker") == "critical"
    assert judge("The mill is red.") == "low"
    assert judge("Invoice 4711 over 50 EUR was due on 15 May 2026. Please pay it.") == "high"
