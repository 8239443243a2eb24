"""Whatever a text is, its facts point into it, and reading it takes time in proportion to its length."""

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.models import About, ClientIdentity, TextEvidence, TextFacts, make_hints, read_facts

WRITTEN = datetime(2026, 6, 1, 9, 0, tzinfo=UTC)  # a Monday
ME = ClientIdentity(("Anna Novak", "Anna"), ("anna@mill.example",))
PIECES = (
    "by Friday", "bis zum 15.6.", "do 3. května", "u roku od 14 dana", "1.234,50 €", "Kč 99,-", "Rechnung Nr. 4711",
    "@anna", "Hi Anna,", "?", "could you", "prosím", "molim", "-- ", "> ", "\n\n", "\n", " ", "5pm", "10:30",
    "2026-02-30", "3.5.", "KW 23", "DE89 3704 0044 0532 0130 00", "end of", "Ende", "net 30", "within",
    "9999999999999999", "31.", "the 31st", "…", "İ", "ß", "splatnost", "za", "týden", "unsubscribe", "Thanks",
    "September", "May", "Q3", "12/31", "24:00", "29 February", "PROJ-123", "'",
)  # fmt: skip
TEXTS = st.text() | st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=25).map(" ".join)
TYPES = st.sampled_from(["email", "bugtracker", "wiki", "git", "meeting", "user_input", "document"])
DAYS = st.integers(0, 7_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


def find_evidence(value: Any) -> list[TextEvidence]:
    if isinstance(value, TextEvidence):
        return [value]
    if isinstance(value, tuple):
        return [found for one in value for found in find_evidence(one)]
    if is_dataclass(value):
        return [found for field in fields(value) for found in find_evidence(getattr(value, field.name))]
    return []


@given(TEXTS, TYPES, DAYS)
def test_every_fact_and_hint_quotes_the_text(text: str, type: str, written: datetime) -> None:
    about = About(written, type=type, subject=text.partition("\n")[0], me=ME)
    facts = read_facts(text, about)
    for one in find_evidence((facts, make_hints(facts, about))):
        assert text[one.start : one.stop] == one.words


@given(TEXTS, st.lists(st.tuples(st.integers(-5, 80), st.integers(-5, 80)), max_size=4))
def test_only_the_new_text_is_read(text: str, new: list[tuple[int, int]]) -> None:
    facts = read_facts(text, About(WRITTEN, type="email", subject="Hello", me=ME), new=new)
    for one in find_evidence((facts.dates, facts.amounts, facts.references)):
        assert any(start <= one.start for start, stop in new if start < stop), one


@given(TEXTS)
def test_facts_are_stored_and_read_again(text: str) -> None:
    facts = read_facts(text, About(WRITTEN, type="email", me=ME))
    assert TextFacts.from_json(facts.as_json()) == facts


HOSTILE = (
    "1.", "1 111 ", "1,11,", "a ", "do ", "of the ", "@a", "?", "please ", "[ ] ", "\n", ">", "$1", "DE89 ", "a@b.",
    "č. ", "10:", "Assignee:", "3 to ", "AB-1-", "x/", "the next ", "if you have any ", "…", "invoice no. no. ",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_line_of_anything_is_read(piece: str) -> None:
    """A pattern that needs time in proportion to the square of the length would not come back."""
    text = piece * (1_000_000 // len(piece))
    read_facts(text, About(WRITTEN, type="email", subject=text[:100], me=ME))
