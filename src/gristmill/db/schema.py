"""Reads the schema of the house: every room keeps its tables, functions, views and access rules in its folder `schema`.

Numbered files change tables; each is applied once and never edited afterwards. `functions.sql`, `views.sql` and
`access.sql` say how things are now; they are applied anew whenever one of them changes. A numbered file says in its
second line which rooms must be there before it: `-- needs: queue`.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

HOUSE = Path(__file__).parents[1]
NUMBERED = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
DEFINED = ("functions.sql", "views.sql", "access.sql")  # in this order
NEEDS = re.compile(r"^-- needs: ([a-z, ]+)$", re.MULTILINE)
FUNCTION = re.compile(r"^CREATE OR REPLACE FUNCTION (\w+)", re.MULTILINE)
VIEW = re.compile(r"^CREATE VIEW (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Migration:
    """A numbered file of a room, or its row in the database."""

    room: str
    number: int
    name: str
    checksum: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.room}/{self.name}"


@dataclass(frozen=True)
class Definition:
    """A file of functions, views or access rules of a room, or its row in the database."""

    room: str
    name: str
    checksum: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.room}/{self.name}"

    @property
    def views(self) -> list[str]:
        return VIEW.findall(self.text)

    @property
    def functions(self) -> list[str]:
        return FUNCTION.findall(self.text)


@dataclass(frozen=True)
class Schema:
    """All files of all rooms in the order in which they are applied: a room comes after those that it needs.

    Tables come first, then functions, then views, which may look at the tables of any room, and access rules last.
    """

    migrations: tuple[Migration, ...] = ()
    definitions: tuple[Definition, ...] = ()
    version: str = "0"  # of the program that has these files

    @property
    def checksum(self) -> str:
        """One value for the whole schema."""
        return checksum_of("".join(one.checksum for one in (*self.migrations, *self.definitions)))


def read_schema(house: Path = HOUSE) -> Schema:
    """The schema of the rooms in this folder."""
    folders = {folder.parent.name: folder for folder in house.glob("*/schema")}
    rooms = order_rooms({room: read_needs(folder) for room, folder in folders.items()})
    return Schema(
        tuple(one for room in rooms for one in read_migrations(room, folders[room])),
        tuple(one for file in DEFINED for room in rooms for one in read_definition(room, folders[room] / file)),
        metadata.version("gristmill"),
    )


def order_rooms(needs: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Every room behind those that it needs; otherwise by name, so that the order is always the same."""
    sorter = TopologicalSorter({room: sorted(needs[room]) for room in sorted(needs)})
    order = tuple(sorter.static_order())
    if missing := set(order) - set(needs):
        raise ValueError(f"a room needs the schema of {min(missing)}, which has none")
    return order


def read_needs(folder: Path) -> list[str]:
    """The rooms that any file of a room needs: its later files may need more than its first."""
    found = [NEEDS.search(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.sql"))]
    return list(dict.fromkeys(room.strip() for one in found if one for room in one[1].split(",")))


def read_migrations(room: str, folder: Path) -> Iterator[Migration]:
    for file in sorted(folder.glob("*.sql")):
        if file.name in DEFINED:
            continue
        named = NUMBERED.fullmatch(file.name)
        if named is None:
            raise ValueError(
                f"{room}/schema/{file.name} is no name for a migration: write NNNN_what_it_does.sql, or one of "
                f"{', '.join(DEFINED)}"
            )
        text = file.read_text(encoding="utf-8")
        yield Migration(room, int(named[1]), file.stem, checksum_of(text), text)


def read_definition(room: str, file: Path) -> Iterator[Definition]:
    """The file, if the room has it."""
    if file.exists():
        text = file.read_text(encoding="utf-8")
        yield Definition(room, file.stem, checksum_of(text), text)


def checksum_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
