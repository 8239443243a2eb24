"""What the doctor and alarms ask about knowledge: whether the LLM still finds something in chunks."""

from typing import NamedTuple

from gristmill.db import Tx, queries
from gristmill.settings import Settings
from gristmill.telemetry import Check, Finding, find_by_check

SQL = queries("gristmill.knowledge", "checks.sql")
SILENT = 0.3  # the share of chunks in which an LLM may find nothing
FEWEST_ANSWERS = 10
EMPTY_EXTRACTIONS = "empty-extractions"


class Answers(NamedTuple):
    """About how many of the last chunks an LLM was asked, and in how many it found nothing."""

    asked: int
    silent: int


async def check_extraction(tx: Tx, settings: Settings) -> Check:
    (answers,) = await tx.all(SQL["extraction"], Answers)
    return judge_extraction(answers)


async def find_empty_extractions(tx: Tx, settings: Settings) -> list[Finding]:
    return find_by_check(EMPTY_EXTRACTIONS, await check_extraction(tx, settings))


def judge_extraction(row: Answers) -> Check:
    """A model that answers with nothing fails silently: nobody else would notice."""
    if not row.asked:
        return Check("extraction", "ok", "No LLM was asked about chunks; rules draw the graph.")
    sentence = f"The LLM found nothing in {row.silent} of the last {row.asked} chunks it was asked about."
    if row.asked >= FEWEST_ANSWERS and row.silent > row.asked * SILENT:
        advice = "Try gristmill router with that model by hand: it may be too small, or answer in the wrong form."
        return Check("extraction", "warn", sentence, advice)
    return Check("extraction", "ok", sentence)
