"""The terms of a text are folded and stemmed by its language; ids, addresses and code are kept whole."""

import pytest

from gristmill.knowledge import terms_of
from gristmill.knowledge.terms import LONGEST, fold, query_words, words


@pytest.mark.parametrize(
    ("text", "language", "terms"),
    [
        ("Payments were PAID", "en", {"payment", "were", "paid"}),
        ("the patient's", "en", {"the", "patient"}),
        ("Häuser", "de", {"haus"}),
        ("Häuser", None, {"hauser"}),
        ("přepravní", "cs", {"prepravn"}),
        ("l’homme", "fr", {"l", "homm"}),
        ("ABC-123", None, {"abc-123", "abc", "123"}),
        ("v3.10.2", None, {"v3.10.2", "v3", "10", "2"}),
        ("3.10.2", None, {"3.10.2"}),
        ("1,000 or 2.5", None, {"1,000", "or", "2.5"}),
        ("jan.novak@acme.cz", None, {"jan.novak@acme.cz", "jan.novak", "acme.cz", "jan", "novak", "acme", "cz"}),
        ("https://x.org/a", None, {"https://x.org/a", "x.org", "https", "x", "org", "a"}),
        ("getUserName", "en", {"getusername", "get", "user", "name"}),
        ("max_payload", None, {"max_payload", "max", "payload"}),
        ("C++ and C#", None, {"c++", "and", "c#"}),
        ("日本語", None, {"日本", "本語", "日", "本", "語"}),
        ("水 x", None, {"水", "x"}),
        ("물은", None, {fold(one) for one in ("물은", "물", "은")}),
        ("ไทย", None, {"ไท", "ทย"}),
        ("Straße STRASSE", None, {"strasse"}),
        ("naïve Łódź", None, {"naive", "lodz"}),
        ("हिन्दी", None, {"हिन्दी"}),
        ("", "en", set()),
        ("?! – …", "en", set()),
    ],
)
def test_the_terms_of_a_text(text: str, language: str | None, terms: set[str]) -> None:
    assert set(terms_of(text, language).counts) == terms


def test_a_length_is_counted_in_words() -> None:
    assert terms_of("Ask jan@acme.cz twice", "en").length == 5


def test_the_characters_of_a_run_make_a_text_no_longer() -> None:
    assert terms_of("この水は冷たい", "ja").length == 6
    assert terms_of("水", "ja").length == 1


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("水", ["水"]),
        ("水 道", ["水", "道"]),
        ("水道", ["水道"]),
        ("水道水", ["水道", "道水"]),
        ("abc-1", ["abc-1", "abc", "1"]),
    ],
)
def test_a_character_is_asked_for_only_where_it_stands_alone(query: str, asked: list[str]) -> None:
    assert [word.terms for word in query_words(query, [None])] == [{one} for one in asked]
    assert all(word.terms & set(terms_of("この水道水は 道 abc-1", "ja").counts) for word in query_words(query, [None]))


def test_a_term_is_never_too_long_for_an_index_and_still_itself() -> None:
    one, two = ("x" * 5_000 + end for end in "ab")
    found = set(terms_of(f"{one} {two}", None).counts)
    assert len(found) == 2
    assert all(len(term) <= LONGEST for term in found)


@pytest.mark.parametrize("typed", ["přepravní", "prepravni", "Přepravní"])
def test_who_writes_without_accents_finds_the_same(typed: str) -> None:
    stored = terms_of("přepravní podmínky", "cs").counts
    (word,) = query_words(typed, ["cs", "en"])
    assert word.terms & set(stored)


def test_the_forms_of_one_word_in_several_languages_are_one_word() -> None:
    found = query_words("Häuser payments payments", ["de", "en", None])
    assert [(sorted(word.terms), word.times) for word in found] == [
        (["haus", "hauser"], 1),
        (["payment", "payments"], 2),
    ]


def test_every_word_says_where_it_stands() -> None:
    text = "Ask jan@acme.cz, 日本語 or getName."
    assert all(text[word.start : word.stop] == word.text for word in words(text))
