"""The named statements of the program, for tests that try each of them."""

import re
from collections.abc import Iterator
from pathlib import Path

from gristmill.db.sql import NAME

SRC = Path(__file__).parents[1] / "src" / "gristmill"
SQL = sorted(path for path in SRC.rglob("*.sql") if path.parent.name != "schema")
PARAMETER = re.compile(r"%\((\w+)\)[sb]")
PLACEHOLDER = re.compile(r"\{[a-z_]+\}")  # a number that is put in before the server sees the statement


def read_statements() -> Iterator[tuple[str, str]]:
    """Each with its file and name; those that copy rows from the program are left out."""
    for path in SQL:
        parts = NAME.split(path.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            yield f"{path.relative_to(SRC).as_posix()}:{name}", text.strip().rstrip(";")


def is_copy(text: str) -> bool:
    return re.search(r"^COPY ", text, re.MULTILINE) is not None


def parameters_of(text: str) -> list[str]:
    return list(dict.fromkeys(PARAMETER.findall(text)))


SENT_AS = {"now": "timestamptz"}  # the driver says so of a datetime; of most others it lets the server decide


def prepare_as(name: str, text: str) -> bytes:
    """The PREPARE of a statement: `$1` stands for its first parameter."""
    names = parameters_of(text)
    types = ", ".join(SENT_AS.get(one, "unknown") for one in names)
    numbered = PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", PLACEHOLDER.sub("3", text))
    return f"PREPARE {name} {f'({types})' if types else ''} AS {numbered.replace('%%', '%')}".encode()
