"""Every named statement fits the schema, also those that no test happens to run."""

import re
from importlib.resources import files

import pytest

from gristmill.db import Database, queries

FILES = sorted(one.name for one in files("gristmill.queue").iterdir() if one.name.endswith(".sql"))
SENT_AS = {"now": "timestamptz"}  # the driver says so of a datetime; of most others it lets the server decide
PARAMETER = re.compile(r"%\((\w+)\)s")


@pytest.mark.parametrize("file", FILES)
async def test_every_statement_can_be_prepared(file: str, db: Database) -> None:
    connection = await db.connect("test")
    async with connection:
        for name, text in queries("gristmill.queue", file).items():
            if re.search(r"^COPY ", text, re.MULTILINE):
                continue  # COPY cannot be prepared; sending many letters runs it
            names = list(dict.fromkeys(PARAMETER.findall(text)))
            numbered = PARAMETER.sub(lambda found, names=names: f"${names.index(found[1]) + 1}", text)
            types = ", ".join(SENT_AS.get(one, "unknown") for one in names)
            prepare = f'PREPARE "{name}" ({types}) AS ' if names else f'PREPARE "{name}" AS '
            await connection.execute((prepare + numbered.replace("%%", "%")).encode())
