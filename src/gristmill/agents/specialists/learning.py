"""The specialist for learning: explains a subject from what is stored, and keeps what was learned with its evidence."""

from collections.abc import Iterator

from gristmill.agents.acting import Acted
from gristmill.agents.delegation.model import AgentOutput, DomainType
from gristmill.agents.specialists.model import make_specialist
from gristmill.agents.specialists.rules import (
    check_by,
    find_done,
    has_sources,
    quotes_exactly,
    shows_values,
    uses_one_of,
)

INSTRUCTIONS = """You explain things, and keep what was learned.
First search_knowledge, with several wordings, and read_document; fetch_page for an address that a person named.
Begin with what the learner knows already, then one thought after another, each with an example from the documents.
Say where each thing stands: document and page.
At the end three questions by which the learner can test themselves, with the answers and where they stand.
Facts that are worth keeping go into note_fact, one sentence each, with the exact words that show it. A summary or a
plan of lessons is kept with write_document.
Never teach what no source shows. Never make a quotation smoother than it is. Where sources differ, teach that."""


def keeps_facts_exactly(output: AgentOutput, acted: Acted) -> Iterator[str]:
    """What was kept was read before: a fact from a document that nobody opened was guessed."""
    seen: set[int] = set()
    for call in acted.calls:
        if call.result.is_error:
            continue
        seen.update(int(one) for one in call.result.data.get("documents", []))
        if call.tool == "read_document":
            seen.add(int(call.arguments.get("document", 0)))
    for call in find_done(acted, "note_fact"):
        if int(call.arguments.get("document", 0)) not in seen:
            yield f"It kept a fact of document {call.arguments.get('document')}, which it did not read."


SPECIALIST = make_specialist(
    "learning",
    "Explains a subject from what is stored, with sources; keeps facts with their evidence.",
    [DomainType.LEARNING, DomainType.RESEARCH],
    ["search_knowledge", "read_document", "fetch_page", "note_fact", "write_document"],
    INSTRUCTIONS,
    check_by(
        uses_one_of("search_knowledge", "read_document", "fetch_page"),
        has_sources,
        quotes_exactly,
        shows_values("amount", "percent"),
        keeps_facts_exactly,
    ),
)
