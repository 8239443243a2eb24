"""What a run knows at each level: a step in full, a goal and an epic as much as is needed above them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gristmill.agents.runs.keeping import clean_text
from gristmill.agents.runs.store import SQL
from gristmill.db import Tx
from gristmill.ids import RunId

Level = Literal["step", "goal", "epic"]


@dataclass(frozen=True)
class Context:
    """What came of one place in the plan: `2.1` is the first step of the second goal."""

    level: Level
    place: str
    summary: str
    detail: str
    updated_at: datetime


async def put_context(tx: Tx, run: RunId, level: Level, place: str, summary: str, detail: str = "") -> None:
    """Keep what came of a place in the plan, instead of what was kept before."""
    kept = {"summary": clean_text(summary), "detail": clean_text(detail)}
    await tx.execute(SQL["put_context"], run=run, level=level, place=place, **kept)


async def load_contexts(tx: Tx, run: RunId, level: Level | None = None) -> list[Context]:
    """The oldest first."""
    return await tx.all(SQL["load_contexts"], Context, run=run, level=level)
