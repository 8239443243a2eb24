"""What of a document is said to its reader: not the lines of code in it."""

from datetime import UTC, datetime

import pytest

from gristmill.models import About, read_facts
from gristmill.qualifier.texts import find_prose

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
