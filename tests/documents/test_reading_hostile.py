"""Files made to keep a reader busy: no pattern looks for the same thing again and again."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from documents.files import put
from gristmill.documents.reading import Limits, inspect, read, tidy
from gristmill.processes import ProcessPool

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIMITS = Limits()
MAIL = "From: ada@mill.example\nTo: ben@mill.example\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[ProcessPool]:
    """One child for all that may hang."""
    made = ProcessPool(1)
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("name", "text", "type"),
    [
        ("comments.md", "<!-- markdownlint-disable -->\n" * 2_000 + "# Toads\n", "markdown"),
        ("comments.txt", "<!-- a -->\n" * 6_000 + "Toads", "text"),
        ("comments.html", "<!-- a -->\n" * 5_000 + "<html><body>Toads</body></html>", "html"),
        ("envelope.txt", "From x" + " 00:00 1234" * 20_000, "text"),
        ("times.txt", "From x" + " 00:00" * 20_000 + "\nToads", "text"),
        ("box", f"From x 10:00 2026\n{MAIL}\nToads\n\nFrom x" + " 00:00 1234" * 400_000, "mailbox"),
        ("links.txt", "[\n" * 30_000 + "Toads", "text"),
        ("rules.txt", ("|" + "-" * 30_000 + "x\n") * 2 + "Toads", "text"),
        ("heading.md", "# Toads" + " #" * 19_000 + "x\n", "markdown"),
        ("spaces.md", "#" + " " * 39_000 + "\nToads\n", "markdown"),
        ("brackets.md", "# Toads " + "[" * 39_000 + "\n", "markdown"),
        ("front.md", "---\ntitle: Toads" + " " * 39_000 + "x\n---\n", "markdown"),
        ("underlined.md", "\n" * 30_000 + "Toads\n" + "-" * 9_000 + "x", "markdown"),
        ("open.csv", "id,size,text\n" + "".join(f'{n}, "unclosed\n' for n in range(6_000)), "csv"),
        ("quotes.csv", "a,b\n" + ',"x' * 20_000, "csv"),
        ("apostrophes.csv", "id,text\n" + "".join(f"{n},it's a dog's life and 'tis so\n" for n in range(3_000)), "csv"),
        ("accents.txt", "Toads " + "\u0301\u0327" * 300_000, "text"),
        ("words.eml", MAIL + "Subject: " + "=?a?q?x " * 200_000 + "\n\nToads\n", "mail"),
        ("lines.eml", MAIL + "Subject: " + "\n ".join(["=?a?q?x " * 900] * 200) + "\n\nToads\n", "mail"),
        ("parameters.eml", MAIL + "Content-Type: text/plain; x=" + ";" * 2_000_000 + "\n\nToads\n", "mail"),
        ("parameter.eml", MAIL + 'Content-Type: text/plain; x="' + ";" * 2_000_000 + "\n\nToads\n", "mail"),
        ("groups.eml", MAIL + "Cc: " + "a:b," * 200_000 + "\n\nToads\n", "mail"),
        ("references.eml", MAIL + "References: " + "<" * 900_000 + "\n\nToads\n", "mail"),
        ("blank.txt", "Toads" + ("\n" + " " * 1_000) * 2_000 + "x", "text"),
    ],
    ids=lambda one: one if len(one) < 20 else "",
)
async def test_a_hostile_text_takes_no_longer_than_it_is_long(
    pool: ProcessPool, tmp_path: Path, name: str, text: str, type: str
) -> None:
    path = put(tmp_path, name, text)
    found = await pool.run(inspect, path, name, LIMITS, timeout=30.0, memory=2 << 30)
    assert found.type == type
    for number in range(1, found.pages + 1):
        assert (await pool.run(read, path, found.type, number, LIMITS, timeout=30.0, memory=2 << 30)).text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("e\u0301", "é"),
        ("e" + "\u0301" * 30, "é" + "\u0301" * 29),
        ("e" + "\u0301" * 31, "é" + "\u0301" * 29 + "\u034f\u0301"),
        ("—" * 100, "—" * 100),
        ("plain", "plain"),
    ],
)
async def test_only_endless_runs_of_accents_are_divided(text: str, kept: str) -> None:
    assert tidy.tidy(text) == kept
