"""The page about the requirement documents: complete, countable, and true to the names in the program."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from gristmill.cli import main
from gristmill.db import Database

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
DOCUMENTS = ("000", "001", "002", "003", "004")
TO_COME = {"qualifier", "agents", "truth"}

Status = Literal["here", "differs", "not yet"]
NAME = re.compile(r"`([^`]+)`")
PATH = re.compile(r"(?:src|docs|tests)/[\w./-]+")
MISSING = re.compile(r"\*not there yet \((?:issues? 1[3-8](?:, 1[3-8])*|later)\)\*")
DIFFERENT = re.compile(r"\*differs: [^*]+\*")
RELATIONS = re.compile(r"\b(?:tables?|views?) (`\w+`(?:(?:, | and )`\w+`)*)")


@dataclass(frozen=True)
class Row:
    """One named thing of one requirement document."""

    document: str
    heading: str
    asked: str
    here: str
    where: str

    def __str__(self) -> str:
        return f"{self.document}, {self.heading}: {self.asked}"

    @property
    def status(self) -> Status | None:
        """None if the cell is none of the three kinds."""
        if MISSING.fullmatch(self.here):
            return "not yet"
        if DIFFERENT.fullmatch(self.here):
            return "differs"
        return "here" if NAME.search(self.here) and not self.here.startswith("*") else None

    @property
    def names(self) -> list[str]:
        """The names under which the thing lives in the program."""
        return [] if self.status == "not yet" else NAME.findall(self.here)


def parts(text: str, marks: str) -> dict[str, str]:
    """The text below each heading of this level."""
    found = re.split(rf"^{marks} (.+)$", text, flags=re.MULTILINE)
    names = found[1::2]
    assert len(names) == len(set(names)), f"a heading stands there twice: {Counter(names).most_common(1)}"
    return dict(zip(names, found[2::2], strict=True))


def sections() -> dict[str, str]:
    """The section of each requirement document, by the document's number."""
    return {name.partition(":")[0]: text for name, text in parts(PAGE, "##").items()}


def cells_of(text: str) -> list[list[str]]:
    """The rows of the table in this text, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


ROWS = [
    Row(document, heading, *cells)
    for document, section in sections().items()
    for heading, text in parts(section, "###").items()
    for cells in cells_of(text)
]


# --- the page itself


def test_every_document_has_its_section() -> None:
    assert tuple(sections()) == DOCUMENTS


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_section_has_the_headings_that_it_lists(document: str) -> None:
    section = sections()[document]
    (listed,) = re.findall(r"^Headings: ((?:.+\n)+)", section, re.MULTILINE)
    assert list(parts(section, "###")) == " ".join(listed.split()).split(" · ")


def test_every_row_is_of_one_of_the_three_kinds() -> None:
    assert [str(row) for row in ROWS if row.status is None] == []


def test_every_place_is_a_room_or_a_page() -> None:
    rooms = TO_COME | {path.name for path in (ROOT / "src" / "gristmill").iterdir() if path.is_dir()}
    for row in ROWS:
        places = NAME.findall(row.where)
        assert places, f"{row}: no place"
        assert all(place in rooms or PATH.fullmatch(place) for place in places), f"{row}: {row.where}"


def test_every_path_on_the_page_exists() -> None:
    paths = [name for name in NAME.findall(PAGE) if PATH.fullmatch(name)]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_counts_of_the_summary_are_right() -> None:
    """When this fails, its message is the table to write."""
    counts = {document: Counter(row.status for row in ROWS if row.document == document) for document in DOCUMENTS}
    counts["all"] = Counter(row.status for row in ROWS)
    counted = "\n".join(
        f"| {name} | {count.total()} | {count['here']} | {count['differs']} | {count['not yet']} |"
        for name, count in counts.items()
    )
    assert counted in PAGE, counted


# --- the names in the column "here"


def program() -> str:
    """The program, its schema and its settings, as one text."""
    files = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".sql")]
    return "\n".join(path.read_text(encoding="utf-8") for path in [*files, ROOT / "docs" / "settings.md"])


def test_every_name_is_in_the_program() -> None:
    """A name is looked up word by word, an option by the name of its parameter."""
    known = set(re.findall(r"\w+", program().casefold()))
    for row in ROWS:
        for name in row.names:
            if not PATH.fullmatch(name):
                missing = [word for word in name.casefold().split() if not is_known(word, known)]
                assert missing == [], f"{row}: {name}"


def is_known(word: str, known: set[str]) -> bool:
    return word.lstrip("-").replace("-", "_") in known or set(re.findall(r"\w+", word)) <= known


def test_every_command_takes_its_options(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = {name for row in ROWS for name in row.names if name.startswith("gristmill ")}
    assert lines
    for line in sorted(lines):
        _, *words = line.split()
        options = [word for word in words if word.startswith("--")]
        command = words[: words.index(options[0])] if options else words
        assert main([*command, "--help"]) == 0, f"there is no {line}"
        told = capsys.readouterr().out
        assert f"gristmill {' '.join(command)} " in told, f"there is no {line}"
        assert [option for option in options if option not in told] == [], line


async def test_every_table_and_column_is_in_the_schema(db: Database) -> None:
    async with db.reading() as tx:
        rows = await tx.all(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        )
    columns = {(row.table_name, row.column_name) for row in rows}
    tables = {table for table, _ in columns}
    text = program()
    for row in ROWS:
        if row.status == "not yet":
            continue
        for found in RELATIONS.findall(row.here):
            assert set(NAME.findall(found)) <= tables, f"{row}: no such table in {found}"
        for name in row.names:
            table, dot, column = name.partition(".")
            is_event = f'"{name}"' in text  # a letter or a line of the log may be called like a column
            assert not dot or table not in tables or is_event or (table, column) in columns, f"{row}: {name}"
