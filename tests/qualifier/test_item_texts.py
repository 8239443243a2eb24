"""What of a document is said to its reader: not the lines of code in it."""

from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from workroom import Workroom

from gristmill.models import About, read_facts
from gristmill.qualifier.qualification import qualify_many
from gristmill.qualifier.texts import find_prose
from gristmill.rooms import Tools
from gristmill.settings import Settings

COMMIT = """# Name tasks

Every task has a name now.

## src/tasks.py

````diff
+task: int | None
+Please pay invoice 2026-0077 over 1,240.00 EUR until 30 June 2026.
+```
+TODO: call the bank
````
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain words", ["plain words"]),
        ("before\n```py\ncode\n```\nafter", ["before\n", "\nafter"]),
        ("before\n~~~\ncode\n```\nmore\n~~~\nafter", ["before\n", "\nafter"]),
        ("````\n```diff\ncode\n```\n````\nafter", ["\nafter"]),
        ("```\na\n```py\nb\n```\nafter", ["\nafter"]),
        ("words\n```\nnever closed", ["words\n"]),
        ("say `code` in a line", ["say `code` in a line"]),
        ("```\nonly code\n```", []),
        ("", []),
    ],
)
def test_blocks_of_code_are_not_said_to_the_reader(text: str, said: list[str]) -> None:
    assert [text[start:stop] for start, stop in find_prose(text)] == said


def test_the_lines_of_a_diff_ask_for_nothing() -> None:
    about = About(written_at=datetime(2026, 5, 4, tzinfo=UTC), type="git")
    assert read_facts(COMMIT, about).payment
    facts = read_facts(COMMIT, about, new=find_prose(COMMIT))
    assert (facts.requests, facts.payment) == ((), None)


@pytest.fixture
def office(room: Workroom) -> Workroom:
    """A room in which items are decided by their words, as everywhere."""
    models: Any = SimpleNamespace(llm=None)
    room.qualify = partial(qualify_many, Tools(room.db, Settings(), models))
    return room


NEWS = "Our office has a new coffee machine.\n"


@pytest.mark.parametrize("name", ["please-send-invoice.pdf", "Please send the invoice.pdf", "Could you call us"])
async def test_the_name_of_an_attachment_asks_for_nothing(office: Workroom, name: str) -> None:
    mail = await office.mail(NEWS, "m1", tell=False)
    await office.come("The mill has two wheels.", name=name, urn="email::m1#attachment=1", type="pdf", container=mail)
    await office.decide()
    assert await office.states() == ["done: info_only"]


@pytest.mark.parametrize("name", ["please-send-invoice.txt", "Please send the invoice.txt"])
async def test_a_document_that_is_named_after_its_file_asks_for_nothing(office: Workroom, name: str) -> None:
    await office.come("The mill has two wheels.", name=name)
    await office.decide()
    assert await office.states() == ["done: info_only"]


async def test_the_title_of_a_document_may_ask_for_something(office: Workroom) -> None:
    await office.come("The mill has two wheels.", name="scan-17.pdf", title="Please return this form")
    await office.decide()
    assert await office.states() == ["ready_for_execution"]


@pytest.mark.parametrize("urn", ["email::m1", "file:///m1.eml"])
async def test_the_subject_of_a_mail_may_ask_for_something(office: Workroom, urn: str) -> None:
    subject = "Please send the invoice"
    await office.mail(NEWS, "m1", urn=urn, subject=subject, name=f"{subject}.eml")
    await office.decide()
    assert await office.states() == ["ready_for_execution"]


async def test_the_subject_of_a_mail_in_a_mail_may_ask_for_something(office: Workroom) -> None:
    mail = await office.mail(NEWS, "m1", tell=False)
    name = "Please send the invoice.eml"
    await office.come(NEWS, name=name, urn="email::m1#attachment=1", type="mail", container=mail)
    await office.decide()
    assert await office.states() == ["ready_for_execution"]
