"""Quoted text: what a mail says itself is told from what it repeats, in the languages of our users."""

import time

import pytest

from gristmill.documents import split_quoted

OLD = "Can you send the offer?"


@pytest.mark.parametrize(
    "introduction",
    [
        "On Mon, 2 Mar 2026 at 10:00, Anna <anna@acme.test> wrote:",
        "Dne 2. 3. 2026 v 10:00 Anna Nováková napsal(a):",
        "Dne po 2. 3. 2026 10:00 uživatel Anna <anna@acme.test> napsala:",
        "Dana 2. ožujka 2026. u 10:00 Anna Horvat je napisala:",
        "Am 02.03.2026 um 10:00 schrieb Anna Müller:",
        "Am Mo., 2. März 2026 um 10:00 Uhr schrieb Anna Müller\n<anna@acme.test>:",
        "Le lun. 2 mars 2026 à 10:00, Anna <anna@acme.test> a écrit :",
        "-----Original Message-----",
        "-----Ursprüngliche Nachricht-----",
        "-----Původní zpráva-----",
        "----- Izvorna poruka -----",
        "From: Anna\nSent: Monday\nTo: Bob\nSubject: Offer",
        "Von: Anna\nGesendet: Montag\nAn: Bob\nBetreff: Angebot",
        "Od: Anna\nOdesláno: pondělí\nKomu: Bob\nPředmět: Nabídka",
        "Od: Anna\nPoslano: ponedjeljak\nPrima: Bob\nPredmet: Ponuda",
    ],
)
def test_what_stands_below_an_introduction_is_quoted(introduction: str) -> None:
    found = split_quoted(f"Here it is.\n\n{introduction}\n\n{OLD}\n")
    assert found.new == "Here it is."
    assert OLD in found.quoted


def test_answers_between_the_lines_of_a_quote_are_new() -> None:
    found = split_quoted(f"Hello,\n\nOn Mon, 2 Mar 2026, Anna wrote:\n> {OLD}\nYes.\n> And the plan?\nTomorrow.\n")
    assert found.new.split() == ["Hello,", "Yes.", "Tomorrow."]
    assert found.quoted.count(">") == 2


@pytest.mark.parametrize(
    "text",
    [
        "On Monday we meet.\nCan you come?",
        "He wrote: nothing.",
        "From: here to there it is far.\nCan you drive?",
        "Dana is on leave.\nWhat now?",
        "",
    ],
)
def test_ordinary_text_is_all_new(text: str) -> None:
    assert split_quoted(text).new == text


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 200_000,
        "> " * 200_000,
        "On 1 " * 100_000,
        "Am 1 schrieb\n" * 30_000,
        "Dne 1 napsal " * 50_000 + ":",
        "From: a\n" * 50_000,
        "-" * 500_000,
        "x napsal 1" * 60_000,
    ],
    ids=["newlines", "marks", "on", "am", "dne", "from", "dashes", "napsal"],
)
def test_a_hostile_text_takes_no_longer_than_its_length(text: str) -> None:
    began = time.process_time()
    split_quoted(text)
    assert time.process_time() - began < 5  # the square of these lengths would take minutes
