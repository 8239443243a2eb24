"""Sentences are checked by rule: what a passage supports, contradicts, or does not say."""

import pytest
from evidence import passage

from gristmill.agents.ask.checking import check_sentence

LETTER = passage(
    "Dear Mr Lindqvist, we received your invoice INV-2026-058 of 4 May 2026 over EUR 73,800.00. "
    "The wheel was hung on 7 May 2026, one week late. We therefore reduce the amount by EUR 1,200.00. "
    "Margaret Oakes did not sign the second contract. Please send us a corrected invoice."
)
DIARY = passage("Two bearings broke in the first warm week. Priya Raman replaced the bearing with Jonas Petersen.", 2)
PAPER = passage("Sound may warn of a break. The play grew by 210 micrometres a year. Sales increased in spring.", 3)
PACK = (LETTER, DIARY, PAPER)

SUPPORTED = [
    "The amount was reduced by EUR 1,200.00.",
    "They reduce the amount by €1,200.",
    "The invoice INV-2026-058 of 4 May 2026 was over 73,800 euros.",
    "The wheel was hung on 2026-05-07, one week late.",
    "Margaret Oakes did not sign the second contract.",
    "Two bearings broke in the first warm week.",
    "Priya Raman replaced the bearing together with Jonas Petersen.",
    "Raman replaced the bearing.",
    "The play grew by 210 micrometres a year.",
    "The letter says “one week late”.",
]
CONTRADICTED = [
    ("The amount was reduced by EUR 1,500.00.", "1,200.00"),
    ("The wheel was hung on 9 May 2026, one week late.", "7 May 2026"),
    ("Margaret Oakes did sign the second contract.", "opposite"),
    ("Margaret Oakes signed the second contract.", "opposite"),
    ("Three bearings broke in the first warm week.", "Two"),
    ("Sales decreased in spring.", "increased"),
]
UNSUPPORTED = [
    ("The wheel was painted green by the apprentices.", ""),
    ("The amount was reduced by EUR 1,200.00 after a meeting with Gerald Finch.", "Gerald Finch"),
    ("The moon is made of 4,711 green cheeses.", ""),
    ("The letter says “we will never pay this invoice”.", "quotes"),
    ("Sound warns of a break.", "may be so"),
    ("Sure!", "nothing that can be checked"),
]


@pytest.mark.parametrize("text", SUPPORTED)
def test_a_sentence_that_a_passage_says_is_supported_by_its_exact_words(text: str) -> None:
    sentence, _ = check_sentence(text, (), PACK, language="en")
    assert (sentence.verdict, sentence.reason) == ("supported", "")
    for cited in sentence.citations:
        whole = next(one for one in PACK if one.number == cited.number)
        assert whole.text[cited.start : cited.stop] == cited.quote


@pytest.mark.parametrize(("text", "reason"), CONTRADICTED)
def test_a_sentence_that_says_something_else_of_the_same_thing_is_contradicted(text: str, reason: str) -> None:
    sentence, _ = check_sentence(text, (), PACK, language="en")
    assert (sentence.verdict, reason in sentence.reason) == ("contradicted", True), sentence


@pytest.mark.parametrize(("text", "reason"), UNSUPPORTED)
def test_a_sentence_that_no_passage_says_is_not_supported(text: str, reason: str) -> None:
    sentence, _ = check_sentence(text, (1,), PACK, language="en")
    assert (sentence.verdict, reason in sentence.reason) == ("unsupported", True), sentence


def test_the_passage_that_the_model_names_is_asked_first() -> None:
    twin = passage("The wheel was hung on 7 May 2026, one week late.", 4)
    sentence, _ = check_sentence("The wheel was hung one week late.", (4,), (*PACK, twin), language="en")
    assert [one.number for one in sentence.citations] == [4]


def test_a_wrong_number_does_not_keep_a_sentence_from_its_passage() -> None:
    sentence, _ = check_sentence("Two bearings broke in the first warm week.", (1,), PACK, language="en")
    assert (sentence.verdict, [one.number for one in sentence.citations]) == ("supported", [2])


def test_offsets_are_those_of_the_page_and_not_of_the_passage() -> None:
    page = "Some words before it. The wheel was hung on 7 May 2026, one week late. More words."
    start = page.index("The wheel")
    piece = passage(page[start:], start=start)
    sentence, _ = check_sentence("The wheel was hung on 7 May 2026.", (1,), [piece], language="en")
    (cited,) = sentence.citations
    assert page[cited.start : cited.stop] == cited.quote == "The wheel was hung on 7 May 2026, one week late."


def test_two_passages_support_what_neither_says_alone() -> None:
    one = passage("Dorn Lake has a greatest depth of 171 metres.", 1, title="Dorn Lake")
    other = passage("Lake Averil is at most 92 metres deep.", 2, title="Lake Averil")
    text = "Dorn Lake has a depth of 171 metres, and Lake Averil is 92 metres deep."
    sentence, _ = check_sentence(text, (1, 2), (one, other), language="en", question="Which lake is deeper?")
    assert (sentence.verdict, {cited.number for cited in sentence.citations}) == ("supported", {1, 2})


def test_an_answer_in_another_language_stands_on_its_names_and_values() -> None:
    sentence, _ = check_sentence("Der Betrag wurde um 1.200,00 EUR gekürzt.", (1,), PACK, language="de")
    assert sentence.verdict == "supported"
    wrong, _ = check_sentence("Der Betrag wurde um 1.700,00 EUR gekürzt.", (1,), PACK, language="de")
    assert wrong.verdict != "supported"


@pytest.mark.parametrize(
    ("answer", "verdict"), [("Yes.", "supported"), ("Yes [1]", "supported"), ("No.", "contradicted")]
)
def test_a_bare_yes_or_no_is_checked_by_the_question(answer: str, verdict: str) -> None:
    asked = "Did Priya Raman replace the bearing with Jonas Petersen?"
    sentence, _ = check_sentence(answer.removesuffix(" [1]"), (), PACK, language="en", question=asked)
    assert sentence.verdict == verdict


def test_czech_negation_is_part_of_the_verb() -> None:
    said = passage("Smlouvu pan Novák nepodepsal.", language="cs")
    sentence, _ = check_sentence("Smlouvu pan Novák podepsal.", (1,), [said], language="cs")
    assert sentence.verdict == "contradicted"


OTHERWISE = [
    ("The tablet contains 5 g of iron.", "The tablet contains 5 mg of iron.", "contradicted"),
    ("The dose is 500 mg a day.", "The dose is 500 micrograms a day.", "contradicted"),
    ("The way is 5 km long.", "The way is 5 miles long.", "contradicted"),
    ("It was 5 degrees at night.", "It was -5 degrees at night.", "contradicted"),
    ("The town has 5 billion inhabitants.", "The town has 5 million inhabitants.", "contradicted"),
    ("The company delivered the goods.", "The company failed to deliver the goods.", "contradicted"),
    ("The board approved the plan.", "The board declined to approve the plan.", "contradicted"),
    ("Anna signed the contract.", "Anna denied having signed the contract.", "contradicted"),
    ("Smoking causes cancer.", "It is false that smoking causes cancer.", "contradicted"),
    ("All employees signed the letter.", "Few employees signed the letter.", "unsupported"),
    ("All employees signed the letter.", "Some employees signed the letter.", "unsupported"),
    ("At least ten people came to the mill.", "At most ten people came to the mill.", "unsupported"),
    ("Aspirin prevents headaches.", "Aspirin rarely prevents headaches.", "unsupported"),
    ("Smoking caused the fire.", "If smoking caused the fire, the insurance does not pay.", "unsupported"),
    ("Anna is 42 years old.", "Anna is a painter. Bob is 42 years old.", "unsupported"),
    ("Acme acquired Globex.", "Globex acquired Acme.", "contradicted"),
]
THE_SAME = [
    ("The way is 5 km long.", "The way is 5,000 m long."),
    ("It was minus 5 °C at night.", "It was −5 °C at night."),
    ("The town has 5 million inhabitants.", "The town has 5,000,000 inhabitants."),
    ("The contract runs for three years.", "It is a 3-year contract, and it runs from May."),
    ("The board refused to approve the plan.", "The board declined to approve the plan."),
    ("The offer was refused by Anna.", "Anna refused the offer."),
    ("A few employees signed the letter.", "Some employees signed the letter."),
    ("The miller pays the repair.", "If the bearing fails, the miller pays the repair."),
    ("Anna is 42 years old.", "Anna is a painter. She is 42 years old."),
    ("Acme made sales of 42 million.", "Acme grew fast. Sales were 42 million."),
    ("Acme acquired Globex.", "Globex was acquired by Acme."),
    ("Anna met Bob in Vienna.", "Bob met Anna in Vienna."),
]
DENIED = [
    ("de", "Die Firma lieferte die Ware.", "Die Firma lieferte die Ware nicht."),
    ("de", "Anna weigerte sich, den Vertrag zu unterschreiben.", "Anna hat den Vertrag unterschrieben."),
    ("nl", "Het bedrijf leverde de goederen.", "Het bedrijf leverde de goederen niet."),
    ("fr", "La société a livré la marchandise.", "La société n'a pas livré la marchandise."),
    ("es", "La empresa entregó la mercancía.", "La empresa no entregó la mercancía."),
    ("cs", "Firma zboží dodala.", "Firma zboží nedodala."),
    ("hr", "Tvrtka je isporučila robu.", "Tvrtka nije isporučila robu."),
]


@pytest.mark.parametrize(("text", "said", "verdict"), OTHERWISE)
def test_words_in_common_do_not_support_what_the_passage_says_otherwise(text: str, said: str, verdict: str) -> None:
    sentence, _ = check_sentence(text, (), [passage(said)], language="en")
    assert sentence.verdict == verdict, sentence


@pytest.mark.parametrize(("text", "said"), THE_SAME)
def test_the_same_in_other_units_or_another_order_is_supported(text: str, said: str) -> None:
    sentence, _ = check_sentence(text, (), [passage(said)], language="en")
    assert sentence.verdict == "supported", sentence


@pytest.mark.parametrize(("language", "text", "said"), DENIED)
def test_a_negation_is_seen_wherever_its_language_puts_it(language: str, text: str, said: str) -> None:
    sentence, _ = check_sentence(text, (), [passage(said, language=language)], language=language)
    assert sentence.verdict == "contradicted", sentence


def test_a_number_of_the_question_is_not_confirmed_by_the_question() -> None:
    said = passage("The company had many employees in 2019.")
    asked = "Did the company have 500 employees in 2019?"
    sentence, _ = check_sentence("The company had 500 employees in 2019.", (), [said], language="en", question=asked)
    assert (sentence.verdict, "500" in sentence.reason) == ("unsupported", True)


@pytest.mark.parametrize(
    "text",
    [
        "The furrows are 9 mm deep.",  # a clock
        "The furrows are 7 mm deep.",  # a count
        "The furrows are 20 mm deep.",  # a day
        "The furrows are 20 km wide.",
        "The furrows are 4,820 mm deep.",  # a price
        "The furrows of a millstone are 9 mm deep.",
        "The furrows are 17 deep.",
    ],
)
@pytest.mark.parametrize("cited", [[1], []])
def test_a_clock_a_day_a_price_or_a_count_is_no_length(text: str, cited: list[int]) -> None:
    passages = [
        passage("A stone is dressed every 120 hours. The furrows are 6 mm deep.", 1),
        passage("Our offer for the millstone is EUR 4,820.00. Please confirm by Friday, 20 November 2026.", 2),
        passage("Date: Tue, 17 Nov 2026 09:00:00 +0000\n\nCan you deliver the millstone on 30 November?", 3),
        passage("Seven were greased with the usual lithium grease. The bearing of the millstone failed.", 4),
    ]
    question = "How deep are the furrows of a millstone?"
    checked, _ = check_sentence(text, cited, passages, question=question, language="en")
    assert checked.verdict in ("contradicted", "unsupported")


def test_a_figure_stands_for_a_length_where_its_unit_stands_in_the_head_of_its_table() -> None:
    table = passage("| part | depth in mm |\n|---|---|\n| furrow | 6 |\n| eye | 9 |")
    checked, _ = check_sentence("The furrow is 6 mm deep.", [1], [table], language="en")
    assert checked.verdict == "supported"
