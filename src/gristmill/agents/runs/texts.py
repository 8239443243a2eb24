"""What a run has read: texts that no person said to it, each with the place that it came from."""

from hashlib import sha256
from typing import NamedTuple

from gristmill.agents.runs.keeping import clean_text
from gristmill.agents.runs.store import SQL
from gristmill.db import Tx
from gristmill.ids import RunId

LONGEST = 400_000  # characters of one text that are kept
MOST_FORGOTTEN = 1_000  # texts that are removed at once


class ReadText(NamedTuple):
    """A text that was read, and where it came from."""

    source: str
    text: str


async def keep_text(tx: Tx, run: RunId, read: ReadText) -> None:
    """Remember that a text was read; the same one from the same place only once."""
    text = clean_text(read.text)[:LONGEST]
    source = clean_text(read.source)[:500]
    await tx.execute(SQL["keep_text"], run=run, source=source, text=text, hash=sha256(text.encode()).digest())


async def forget_texts(tx: Tx, run: RunId) -> None:
    """Nothing is compared with them once the run is over."""
    await tx.execute(SQL["forget_texts"], run=run)


async def forget_ended_texts(tx: Tx) -> None:
    """As `forget_texts`, for runs that ended in any other way."""
    await tx.execute(SQL["forget_ended_texts"], most=MOST_FORGOTTEN)


async def load_texts(tx: Tx, run: RunId) -> list[ReadText]:
    return await tx.all(SQL["load_texts"], ReadText, run=run)
