"""Numbers that items are about: an open item with the same invoice, order or issue number is about the same thing."""

from collections.abc import Sequence
from typing import NamedTuple

from gristmill.db import Tx, queries
from gristmill.ids import WorkItemId
from gristmill.qualifier.model import OPEN, Identifier, WorkItem

SQL = queries("gristmill.qualifier", "identifiers.sql")
MOST = 50  # numbers of one item that are kept: a price list is about nothing in particular


class _Found(NamedTuple):
    item: WorkItemId
    kind: str
    value: str


async def hold_numbers(tx: Tx, item: WorkItem, identifiers: Sequence[Identifier]) -> None:
    """Let nobody else decide about an item with these numbers before this transaction ends."""
    if identifiers:
        kinds, values = [one.kind for one in identifiers], [one.value for one in identifiers]
        await tx.execute(SQL["hold_numbers"], scope=item.scope, kinds=kinds, values=values)


async def note_identifiers(tx: Tx, item: WorkItemId, identifiers: Sequence[Identifier]) -> None:
    """Write down what an item is about."""
    some = list(dict.fromkeys(identifiers))[:MOST]
    if some:
        kinds, values = [one.kind for one in some], [one.value for one in some]
        await tx.execute(SQL["note_identifiers"], item=item, kinds=kinds, values=values)


async def find_items_about(
    tx: Tx, item: WorkItem, identifiers: Sequence[Identifier]
) -> list[tuple[WorkItemId, Identifier]]:
    """The open items of the same client and project that have one of these numbers, the oldest first."""
    kinds, values = [one.kind for one in identifiers], [one.value for one in identifiers]
    rows = await tx.all(
        SQL["find_items_about"],
        _Found,
        scope=item.scope,
        item=item.id,
        kinds=kinds,
        values=values,
        states=list(OPEN),
    )
    return [(row.item, Identifier(row.kind, row.value)) for row in rows]


async def copy_identifiers(tx: Tx, item: WorkItemId, copy: WorkItemId) -> None:
    """A copy is about the same numbers."""
    await tx.execute(SQL["copy_identifiers"], item=item, copy=copy)
