"""What the doctor asks about knowledge: whether the LLM still finds something in chunks."""

from typing import Any

from gristmill.db import Tx, queries
from gristmill.settings import Settings
from gristmill.telemetry import Check

SQL = queries("gristmill.knowledge", "checks.sql")
SILENT = 0.3  # the share of chunks in which an LLM may find nothing
FEWEST_ANSWERS = 10


async def check_extraction(tx: Tx, settings: Settings) -> Check:
    return judge_extraction(await tx.one(SQL["extraction"]))


def judge_extraction(row: Any) -> Check:
    """A model that answers with nothing fails silently: nobody else would notice."""
    if not row.asked:
        return Check("extraction", "ok", "No LLM was asked about chunks; rules draw the graph.")
    sentence = f"The LLM found nothing in {row.silent} of the last {row.asked} chunks it was asked about."
    if row.asked >= FEWEST_ANSWERS and row.silent > row.asked * SILENT:
        advice = "Try gristmill router with that model by hand: it may be too small, or answer in the wrong form."
        return Check("extraction", "warn", sentence, advice)
    return Check("extraction", "ok", sentence)
