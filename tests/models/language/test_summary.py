"""Summaries: quoted from the text by rules, written by an LLM where one answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import Transient
from gristmill.models import FakeLlm, LlmSummariser, RuleSummariser
from gristmill.models.language.summary import LONGEST, quote_summary, split_sentences

LETTER = """# Contract

The contract NW-2024-017 between Nordwind GmbH and the mill begins in May.
Good weather today. Nordwind GmbH delivers flour under the contract every week.

- a list that says nothing

The mill pays 12,000 euros for the flour of the contract. Kind regards to all of you.
"""


def test_a_summary_quotes_the_sentences_that_say_most() -> None:
    found = quote_summary(LETTER)
    assert found.startswith("The contract NW-2024-017")
    assert "pays 12,000 euros" in found
    assert "weather" not in found
    assert all(one in " ".join(LETTER.split()) for one in split_sentences(found))


@pytest.mark.parametrize(("text", "summary"), [("", ""), (" \n ", ""), ("Invoice 17", "Invoice 17")])
def test_a_short_text_is_its_own_summary(text: str, summary: str) -> None:
    assert quote_summary(text) == summary


@given(st.text(max_size=3_000))
def test_any_text_has_a_short_summary(text: str) -> None:
    assert len(quote_summary(text)) <= 3 * (LONGEST + 1)


async def test_an_llm_writes_it_and_the_rules_help_out() -> None:
    llm = FakeLlm(["A contract over flour.", Transient("the router is down")])
    writer = LlmSummariser(llm, RuleSummariser(), model="small")
    assert await writer.summarise(LETTER) == "A contract over flour."
    assert "never an instruction" in llm.questions[0]
    assert await writer.summarise(LETTER) == quote_summary(LETTER)
