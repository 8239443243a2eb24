"""Entities and relations that are drawn from text without an LLM, by the real parser."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from gristmill.models import Extraction, RuleExtractor, TextPassage, make_entity_key
from gristmill.models.language.extraction import extract_passages, strip_markup
from gristmill.processes import ProcessPool

CORPORA = Path(os.environ.get("GRISTMILL_CORPORA", Path(__file__).parents[4] / "shared" / "corpora"))
DULCE = CORPORA / "operation-dulce" / "operation_dulce.md"


def draw(text: str, **more: Any) -> Extraction:
    return extract_passages([TextPassage(text, **({"language": "en"} | more))])[0]


def keys(drawn: Extraction) -> set[str]:
    return {one.key for one in drawn.entities}


def facts(drawn: Extraction) -> set[str]:
    return {f"{one.source} {one.type} {one.target}" for one in drawn.relations}


@pytest.mark.parametrize(
    ("namespace", "name", "key"),
    [
        ("Person", "Jane Doe", "person::jane doe"),
        ("Person", "person::Jane  Doe", "person::jane doe"),
        ("PERSON", "Person::Person::JANE\nDOE", "person::jane doe"),
        ("person", "Straße", "person::strasse"),
        ("person", "\ufb01nn", "person::finn"),
        ("id", "INV-2024-001", "id::INV-2024-001"),
        ("confluence page", "7", "confluence_page::7"),
        ("person", "a::b", "person::a::b"),
        ("person", "  ", ""),
        ("", "Jane", ""),
    ],
)
def test_one_thing_has_one_key(namespace: str, name: str, key: str) -> None:
    assert make_entity_key(namespace, name) == key


def test_long_names_that_share_their_beginning_are_kept_apart() -> None:
    shared = f"https://acme.example.com/sites/{'a' * 290}"
    one, two = (make_entity_key("url", f"{shared}/{name}") for name in ("one", "two"))
    assert one != two
    assert max(len(one), len(two)) <= 300
    assert make_entity_key("url", one) == one
    assert make_entity_key("url", f"{shared}/one") == one


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("See INV-2024-001.", "id::INV-2024-001"),
        ("Fixed in PROJ-123, at last", "id::PROJ-123"),
        ("Invoice No. 4711", "invoice::4711"),
        ("Invoice No. INV-2024-001", "id::INV-2024-001"),
        ("at https://Example.org/a_(b).", "url::https://example.org/a_(b)"),
        ("[here](https://example.org/x)", "url::https://example.org/x"),
        ("write to Jane.Doe@Acme.com.", "address::jane.doe@acme.com"),
        ("for €1,234.50", "amount::1234.50 EUR"),
        ("für 1.234,50 €", "amount::1234.50 EUR"),
        ("za 1 500 Kč", "amount::1500.00 CZK"),
        ("USD 3 million", "amount::3000000.00 USD"),
        ("$3.5 million", "amount::3500000.00 USD"),
        ("RM 12.90", "amount::12.90 MYR"),
        ("on 1 March 2024", "date::2024-03-01"),
        ("on March 1st, 2024", "date::2024-03-01"),
        ("am 3. März 2024", "date::2024-03-03"),
        ("dne 5. října 2023", "date::2023-10-05"),
        ("2024-03-01", "date::2024-03-01"),
        ("31.12.2024", "date::2024-12-31"),
        ("25/12/2024", "date::2024-12-25"),
        ("in March 2024", "date::2024-03"),
        ("call +49 (0)30 1234567", "phone::+49301234567"),
        ("DE89 3704 0044 0532 0130 00", "iban::DE89370400440532013000"),
    ],
)
def test_what_has_a_shape_is_found_in_any_language(text: str, key: str) -> None:
    assert key in keys(draw(text, language="xx"))


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        # a number before the sign that belongs to the next one
        ("In 2024 $500 was paid.", ["500.00 USD"]),
        ("Since 2023 EUR 1,200 are due", ["1200.00 EUR"]),
        ("In 2024 EUR 500 were due", ["500.00 EUR"]),
        ("Item 3 €20.00", ["20.00 EUR"]),
        ("Item 3 EUR 20", ["20.00 EUR"]),
        ("On page 12 £5 was noted", ["5.00 GBP"]),
        ("Q3 2024 €5m revenue", ["5000000.00 EUR"]),
        # a number after the sign that belongs to something else
        ("paid 500€ 3 days later", ["500.00 EUR"]),
        ("12.50 EUR 3 pieces", ["12.50 EUR"]),
        ("paid 500 EUR 2024", ["500.00 EUR"]),
        ("paid 500 EUR 1 March 2024", ["500.00 EUR"]),
        ("paid 500 EUR 2024-05-01", ["500.00 EUR"]),
        ("due are 500 EUR 30 days net", ["500.00 EUR"]),
        # several in a row
        ("10.00 EUR 20.00 EUR", ["10.00 EUR", "20.00 EUR"]),
        ("10 EUR 20.50 EUR 30 EUR", ["10.00 EUR", "20.50 EUR", "30.00 EUR"]),
        ("EUR 10 EUR 20.50", ["10.00 EUR", "20.50 EUR"]),
        ("2023 EUR 1,200 EUR 1,300", ["1200.00 EUR", "1300.00 EUR"]),
        ("$10 €20 £30", ["10.00 USD", "20.00 EUR", "30.00 GBP"]),
        ("20€ $30", ["20.00 EUR", "30.00 USD"]),
        ("between 10 and 12 EUR", ["12.00 EUR"]),
        # decimals of any length
        ("It costs $0.125 per call", ["0.125 USD"]),
        ("rate of 0,0035 EUR", ["0.0035 EUR"]),
        ("USD 3.1415", ["3.1415 USD"]),
        ("$0.5", ["0.50 USD"]),
        ("$1.2500", ["1.25 USD"]),
        ("$12,345.678", ["12345.678 USD"]),
        # thousands
        ("$1,234,567", ["1234567.00 USD"]),
        ("$1,234,567.89", ["1234567.89 USD"]),
        ("1.200,00 EUR", ["1200.00 EUR"]),
        ("1.200 EUR", ["1200.00 EUR"]),
        ("1.234.567,8 €", ["1234567.80 EUR"]),
        ("CHF 1'200.00", ["1200.00 CHF"]),
        ("1’234’567 CHF", ["1234567.00 CHF"]),
        ("2 000 000,00 EUR", ["2000000.00 EUR"]),
        ("12\u00a0500 Kč", ["12500.00 CZK"]),
        ("₹12,34,567.50", ["1234567.50 INR"]),
        ("1200 EUR", ["1200.00 EUR"]),
        # dollars of several countries
        ("A$5 and C$7 and US$9", ["5.00 AUD", "7.00 CAD", "9.00 USD"]),
        ("AU$5, CA$ 7", ["5.00 AUD", "7.00 CAD"]),
        ("USD$5, CAD$7", ["5.00 USD", "7.00 CAD"]),
        ("Total$5.90", ["5.90 USD"]),
        ("XY$5", []),
        # scales
        ("$1.5m and $12.5 million", ["1500000.00 USD", "12500000.00 USD"]),
        ("$2bn, £3 billion", ["2000000000.00 USD", "3000000000.00 GBP"]),
        ("€5 m, $3k", ["5000000.00 EUR", "3000.00 USD"]),
        ("5 million EUR", ["5000000.00 EUR"]),
        ("5 Mio. €", ["5000000.00 EUR"]),
        ("a fence of 5 m EUR", []),
        ("$5 monthly", ["5.00 USD"]),
        # codes beside their number
        ("EUR500", ["500.00 EUR"]),
        ("RM12.90", ["12.90 MYR"]),
        ("500EUR.", ["500.00 EUR"]),
        # no amounts
        ("EUR", []),
        ("NEUR 5", []),
        ("version 1.2.3 USD", []),
        ("$1.2.3", []),
        ("x500 EUR", []),
        (f"USD {'9' * 40}", []),
    ],
)
def test_amounts_are_what_somebody_would_have_to_pay(text: str, amounts: list[str]) -> None:
    found = [one.key for one in draw(text, language="xx").entities if one.type == "amount"]
    assert found == [f"amount::{one}" for one in amounts]


@pytest.mark.parametrize(
    "text", ["UTF-8", "COVID-19", "on 03/04/2024", "30.02.2024", "DE00 3704 0044 0532 0130 00", "1.2.3.4"]
)
def test_what_only_looks_so_is_not(text: str) -> None:
    assert keys(draw(text, language="xx")) == set()


def test_a_verb_names_the_relation() -> None:
    drawn = draw("Jane Doe signed the contract INV-2024-001 with Acme Corp. in Berlin on 1 March 2024.")
    assert {"person::jane doe SIGNED id::INV-2024-001", "person::jane doe SIGNED_IN place::berlin"} <= facts(drawn)
    assert "organisation::acme corp" in keys(drawn)


def test_the_passive_is_turned_around() -> None:
    assert "organisation::google ACQUIRED organisation::youtube" in facts(
        draw("YouTube was acquired by Google in 2006.")
    )


def test_a_role_names_the_relation() -> None:
    drawn = draw("Satya Nadella, CEO of Microsoft, met Nat Friedman. Tim Cook is the director of Apple.")
    assert "person::satya nadella CEO_OF organisation::microsoft" in facts(drawn)
    assert "person::satya nadella MET person::nat friedman" in facts(drawn)
    assert "person::tim cook DIRECTOR_OF organisation::apple" in facts(drawn)


def test_who_stands_in_one_sentence_is_related() -> None:
    drawn = draw("After lunch in Berlin there was a call from Jane Doe.\n\nBob Miller was ill.")
    assert any({"person::jane doe", "place::berlin"} == {one.source, one.target} for one in drawn.relations)
    assert not any("bob" in fact for fact in facts(drawn))


def test_a_long_list_of_names_gives_a_bounded_number_of_relations() -> None:
    people = [
        f"{first} {last}"
        for first in ("Anna", "Peter", "Maria", "John")
        for last in ("Smith", "Miller", "Brown", "King")
    ]
    drawn = draw(f"Invited were {', '.join(people)} and Bob Dylan.")
    assert len(drawn.entities) > 8
    assert len(drawn.relations) <= 2 * len(drawn.entities)


def test_a_greeting_is_no_name() -> None:
    drawn = draw("Dear John,\n\nplease find it attached. We met Alice Cooper's brother.\n\nBest regards,\nJane Doe")
    assert not any("dear" in key or "regards" in key or "\n" in one.name for one in drawn.entities for key in [one.key])
    assert {"person::jane doe", "person::alice cooper"} <= keys(drawn)


def test_a_surname_alone_is_the_person_named_in_full_nearby() -> None:
    drawn = draw("Alex Mercer entered the room. Later Mercer met Taylor Cruz, and Cruz thanked Alex.")
    assert {key for key in keys(drawn) if key.startswith("person")} == {"person::alex mercer", "person::taylor cruz"}


@pytest.mark.parametrize(
    ("text", "language", "named"),
    [
        ("The agreement Between Brunhild Okafor and Jonas Petersen is signed.", "en", "person::brunhild okafor"),
        ("It was sent by Hausmeister Jürgen Größmann to the office.", "en", "person::jürgen grössmann"),
        ("Dabei war auch der Hausmeister Jürgen Größmann.", "de", "name::jürgen grössmann"),
        ("Dabei war auch die Abteilungsleiterin Anna Kraus.", "de", "name::anna kraus"),
        ("Dabei war auch Herr Dr. Weber.", "de", "person::weber"),
        ("Den Schlüssel hat Frau Anna Kraus noch.", "de", "person::anna kraus"),
        ("Dabei war auch Anna Hofmeister.", "de", "name::anna hofmeister"),
    ],
)
def test_what_stands_before_a_name_is_no_part_of_it(text: str, language: str, named: str) -> None:
    found = keys(draw(text, language=language))
    assert named in found
    assert not any(key.endswith(f" {named.partition('::')[2]}") for key in found)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("The Corvane Bearings catalogue says so, and Corvane told us.", "organisation::corvane bearings"),
        ("The Harrow Trust, 4 Chapel Row, Aldermoor, is represented by its chair.", "place::aldermoor"),
        ("# Site meeting Aldermoor, 26 May 2026", "place::aldermoor"),
    ],
)
def test_a_single_word_is_no_person_where_its_surroundings_say_what_it_is(text: str, named: str) -> None:
    found = keys(draw(text))
    assert named in found
    assert not any(key.startswith("person") for key in found)


def test_a_person_with_a_title_is_not_the_company_of_that_name() -> None:
    drawn = draw("Mr. Miller of Miller & Sons Ltd paid. Miller was late.")
    assert [one.count for one in drawn.entities if one.key == "person::miller"] == [2]


def test_a_company_does_not_begin_in_the_paragraph_before() -> None:
    drawn = draw("4 Chapel Row, Aldermoor\n\nWeir & Wheel Ltd\n17 Sluice Lane", language="xx")
    assert {one.key for one in drawn.entities if one.type == "organisation"} == {"organisation::weir & wheel ltd"}


TRANSCRIPT = """
    Anna Weber: Hat Jana Nováková den Vertrag PROJ-123 schon unterschrieben?
    Chidi Okafor: Ja, gestern.
    Anna Weber: Sehr gut.
"""


@pytest.mark.parametrize(
    ("text", "people"),
    [
        (TRANSCRIPT, {"anna weber", "chidi okafor"}),
        (f"{TRANSCRIPT}Action Items: Vertrag senden.\nTODO: Termin.\nDatum: 5. Mai.", {"anna weber", "chidi okafor"}),
        ("[10:02] Anna: hallo zusammen\n[10:03] Chidi: moin", {"anna", "chidi"}),
        ("[00:00:02] Dr. Anna Weber (Acme): hallo\n[00:00:09] Note: Ende", {"anna weber"}),
        ("12/05/2026, 10:02 - Anna: hallo\n12/05/2026, 10:03 - Jan van der Berg: moin", {"anna", "jan van der berg"}),
        ("**Anna Weber** (10:02)\nHallo zusammen\n\n**Chidi Okafor** (10:03)\nMoin", {"anna weber", "chidi okafor"}),
        ("- **Anna Weber:** Und?\n- **Chidi Okafor:** Ja.\n- **Anna Weber:** Gut.", {"anna weber", "chidi okafor"}),
    ],
)
def test_whoever_speaks_is_a_person_in_any_language(text: str, people: set[str]) -> None:
    drawn = draw(text, language="de")
    assert {one.key for one in drawn.entities if one.type == "person"} == {f"person::{one}" for one in people}


@pytest.mark.parametrize(
    "text",
    [
        "Note: Es geht los.\nSummary: Alles gut.\nTODO: Mehr davon.\nAction items: Keine.\nDate: Montag.",
        "Zahlung Netto: 30 Tage\nErste Rate: 5 Prozent\nZahlung Netto: 10 Tage\nErste Rate: 2 Prozent",
        "Name: Anna\nAlter: 5\nName: Chidi\nAlter: 6",
        "10:00 Willkommen: im Saal\n10:30 Kaffee: im Foyer",
        "**Kaffee Trinken** (10:30)\n\n**Mittag Essen** (12:30)",
        "[10:02] ERROR: nichts geht\n[10:03] Warning: gar nichts",
        "Gewählter Gerichtsstand: Es gilt das Recht von Brünn.\n\nSchriftliche Form: Änderungen sind zu schreiben.",
    ],
)
def test_what_merely_stands_before_a_colon_is_nobody(text: str) -> None:
    assert not [one.key for one in draw(text, language="de").entities if one.type == "person"]


def test_what_one_says_is_no_sentence_of_another() -> None:
    drawn = draw("[10:02] Anna: has anybody seen PROJ-123?\n[10:03] Chidi: Jane Doe paid Acme Ltd for it")
    assert {"person::anna RELATED_TO id::PROJ-123", "person::jane doe PAID organisation::acme ltd"} <= facts(drawn)
    assert not any({"id::PROJ-123", "person::chidi"} == {one.source, one.target} for one in drawn.relations)


def test_other_languages_are_not_read_by_the_english_model() -> None:
    drawn = draw("Die Müller GmbH hat den Vertrag mit Jana Nováková unterschrieben.", language="de")
    assert keys(drawn) == {"organisation::müller gmbh", "name::jana nováková"}
    assert facts(drawn) == {"organisation::müller gmbh RELATED_TO name::jana nováková"}


def test_a_table_is_related_row_by_row() -> None:
    drawn = draw("| id | sum |\n|---|---|\n| INV-2024-001 | €50 |\n| INV-2024-002 | €60 |", kind="table")
    assert facts(drawn) == {
        "id::INV-2024-001 RELATED_TO amount::50.00 EUR",
        "id::INV-2024-002 RELATED_TO amount::60.00 EUR",
    }


def test_the_headers_of_a_mail_say_who_wrote_to_whom() -> None:
    meta = {
        "From": "Jane Doe <jane@acme.com>",
        "To": ["Bob Ray <bob@acme.com>", "al@acme.com"],
        "Cc": "Eve <eve@acme.com>",
        "Date": "Fri, 01 Mar 2024 10:00:00 +0100",
        "Subject": "Re: PROJ-123",
        "Message-ID": "<2@acme>",
        "In-Reply-To": "<1@acme>",
    }
    drawn = draw("It is done.", context={"type": "mail", "title": "Re: PROJ-123", "meta": meta})
    assert facts(drawn) >= {
        "person::jane doe SENT email::2@acme",
        "person::jane doe HAS_ADDRESS address::jane@acme.com",
        "email::2@acme SENT_TO person::bob ray",
        "email::2@acme SENT_TO address::al@acme.com",
        "email::2@acme COPIED_TO person::eve",
        "email::2@acme REPLIES_TO email::1@acme",
        "email::2@acme DATED date::2024-03-01",
        "email::2@acme MENTIONS id::PROJ-123",
    }


def test_markup_is_no_part_of_a_name() -> None:
    text, starts = strip_markup("# Minutes\n\n- **Jane Doe** met\n  _Bob_\n- [Acme](https://a.org/x_y) `code`")
    assert text == "Minutes Jane Doe met Bob Acme https://a.org/x_y code"
    assert [text[start : start + 4] for start in sorted(starts)] == ["Minu", "Jane", "Acme"]


def test_a_passage_gives_the_same_whatever_stands_beside_it() -> None:
    passages = [
        TextPassage("Jane Doe signed the contract with Acme Corp in Berlin.", language="en"),
        TextPassage("Later Bob Miller visited the European Commission, and Microsoft acquired GitHub.", language="en"),
    ]
    assert extract_passages(passages) == [extract_passages([one])[0] for one in passages]


@pytest.mark.parametrize("text", ["", " \n\n ", "***", "# \n- \n", "\ufffd" * 500, "A" * 30_000, "a " * 20_000])
def test_nothing_comes_of_nothing(text: str) -> None:
    assert draw(text) == Extraction()


async def test_rules_run_in_a_child_process() -> None:
    pool = ProcessPool(1)
    try:
        answers = await asyncio.wait_for(
            RuleExtractor(pool).extract(
                [TextPassage("Jane Doe met Bob Ray in Paris.", language="en"), TextPassage("", language="en")]
            ),
            120,
        )
    finally:
        await pool.close()
    assert "person::jane doe MET person::bob ray" in facts(answers[0])
    assert answers[1] == Extraction()


@pytest.mark.skipif(not DULCE.exists(), reason="the corpus is not on this machine")
def test_the_people_of_a_novel_are_found() -> None:
    paragraphs = DULCE.read_text(encoding="utf-8").split("\n\n")
    passages = [TextPassage("\n\n".join(paragraphs[at : at + 4]), language="en") for at in range(0, 80, 4)]
    found = set[str]().union(*(keys(one) for one in extract_passages(passages)))
    assert {"person::alex mercer", "person::taylor cruz", "person::jordan hayes", "person::sam rivera"} <= found
    assert not any("’s" in key or "'s" in key or "agent" in key for key in found)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Jane Doe met John Smith in Berlin.", {"person::jane doe", "person::john smith", "place::berlin"}),
        ("Anna Berg works for Nordwind GmbH.", {"person::anna berg", "organisation::nordwind gmbh"}),
        ("Nordwind GmbH paid Acme Ltd yesterday.", {"organisation::nordwind gmbh", "organisation::acme ltd"}),
        ("Receipt: Miller & Sons Ltd, London", {"organisation::miller & sons ltd", "place::london"}),
    ],
)
def test_short_sentences_are_english_by_their_words_and_companies_are_no_people(text: str, keys: set[str]) -> None:
    (found,) = extract_passages([TextPassage(text)])
    assert {one.key for one in found.entities} == keys
