"""Raises an alarm when texts in which nothing is found become common: nobody else would notice."""

from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.db import Tx, queries
from gristmill.ids import ScopeId, WorkItemId
from gristmill.settings import Settings
from gristmill.telemetry import Finding

SQL = queries("gristmill.qualifier", "silence.sql")
SILENT_ITEMS = "silent-items"
FEWEST = 10  # decisions before the alarm may be raised
COMMON = 0.3  # the share of silent ones that raises it
ADVICE = "Look at one with gristmill item why: the text may be broken, in another language, or the LLM says nothing."


@dataclass(frozen=True)
class SilentShare:
    """How many of the newest decisions of a client found nothing."""

    scope: ScopeId
    n: int
    silent: int
    items: Sequence[WorkItemId] | None


async def find_silent_items(tx: Tx, settings: Settings) -> list[Finding]:
    """Clients of whose items of the last day many have a text, and nothing was found in it."""
    return [_describe(row) for row in await tx.all(SQL["silent_shares"], SilentShare) if is_common(row)]


def is_common(row: SilentShare) -> bool:
    return row.n >= FEWEST and row.silent > COMMON * row.n


def _describe(row: SilentShare) -> Finding:
    named = ", ".join(map(str, row.items or ()))
    sentence = f"Nothing was found in the texts of {row.silent} of the last {row.n} items: for example {named}."
    return Finding(SILENT_ITEMS, "qualifier", sentence, ADVICE, scope=row.scope)
