"""Opens a source: its kind, its options as they were checked, its connector."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from gristmill.db import Database
from gristmill.errors import Permanent
from gristmill.settings import Slice, explain_reason
from gristmill.sources.model import Connector, ConnectorContext, Kind, Source
from gristmill.sources.store import KnownItems


@dataclass(frozen=True)
class Opener:
    """Opens the sources of one machine."""

    db: Database
    kinds: Mapping[str, Kind]
    folder: Path  # where connectors keep copies: clones of repositories
    max_bytes: int

    def find_kind(self, source: Source) -> Kind:
        if source.kind not in self.kinds:
            raise Permanent(f"This version of Gristmill knows no sources of the kind {source.kind}.")
        return self.kinds[source.kind]

    @asynccontextmanager
    async def open(self, source: Source) -> AsyncGenerator[Connector]:
        """The connector of a source; it is closed at the end."""
        kind = self.find_kind(source)
        context = ConnectorContext(
            source.id, source.name, KnownItems(self.db, source), self.folder / str(source.id), self.max_bytes
        )
        async with kind.open(read_options(kind, source), context) as connector:
            yield connector


def read_options(kind: Kind, source: Source) -> Slice:
    try:
        return kind.options.model_validate(dict(source.options))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        what = f"The option {name}" if name else "Something about the options"
        raise Permanent(f"{what} of the source {source.name} is wrong: {explain_reason(first)}.") from error
