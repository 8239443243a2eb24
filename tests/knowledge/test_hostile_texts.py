"""Dividing a text or reading its words takes time in proportion to its length, whatever it contains."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gristmill.knowledge import blocks, terms_of
from gristmill.knowledge.terms import words

LONG = 40_000  # characters: no page has more
AMPLE = 5  # seconds; in proportion it takes some hundredths, and with the square of the length twenty
SIGNS = " \t\n.!?…。|#-=*`~:;,_'’\"()[]{}<>@&%+•/\\0aAह水ัက\u0301"
PAIRS = (". ", "| ", " #", "- ", "; ", "=;", ".)", "a.", "1.", "A ", "Aa", "a(", "::", "ह.", ":-", "[1")
LINES = (
    "{0}b",
    "b{0}",
    "# a{0}b",
    "a|b\n{0}x|",
    "a | b\n|-{0}|x\n",
    "a {0}b",
    "a.{0}b",
    "- {0}",
    "for {0}b\n" * 3,
    "10:00:00 A{0}b\n" * 3,
    "2026-01-05 10:00:00{0}b\n" * 3,
    "a\n{0}b",
    "@{0}b\n" * 3,
)
WORDS = ("a{0}", "{0}-x", "1.{0}x", "aB{0}_", "ह{0}.", "a{0} é")


@contextmanager
def ample_time() -> Iterator[None]:
    """The time of this process alone, whatever else the machine does."""

    def refuse(*_: object) -> None:
        raise AssertionError("it tries the same place again and again")

    before = signal.signal(signal.SIGVTALRM, refuse)
    signal.setitimer(signal.ITIMER_VIRTUAL, AMPLE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def hostile(shape: str) -> Iterator[str]:
    for sign in (*SIGNS, *PAIRS):
        yield shape.format(sign * (LONG // len(sign) // shape.count("{0}")))


@pytest.mark.parametrize("shape", LINES)
def test_a_run_of_signs_is_divided_in_one_pass(shape: str) -> None:
    for text in hostile(shape):
        with ample_time():
            found = "".join(text[one.start : one.stop] for one in blocks.units(text))
        assert "".join(found.split()) == "".join(text.split())


@pytest.mark.parametrize("shape", WORDS)
def test_a_run_of_signs_is_looked_up_in_one_pass(shape: str) -> None:
    for text in hostile(shape):
        with ample_time():
            assert all(text[word.start : word.stop] == word.text for word in words(text))
            assert terms_of(text, "en").length <= len(text)
