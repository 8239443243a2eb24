"""Removes what was made of an item: its document, its links; unless another item is the same thing."""

from dataclasses import asdict
from typing import NamedTuple

from gristmill.db import Tx
from gristmill.documents import lock_sources, remove_source
from gristmill.ids import ItemId, ScopeId
from gristmill.scopes import Scope
from gristmill.sources.link import LinkedDocument, note_links
from gristmill.sources.store import SQL

Report = dict[str, int | bool]


class _Named(NamedTuple):
    """The URN under which an item is known."""

    scope: ScopeId
    urn: str


async def lock_urn_of(tx: Tx, item: ItemId) -> str | None:
    """Lock the URN under which an item is known, if it is."""
    named = await tx.one(SQL["urn_of"], _Named, id=item)
    if named is None:
        return None
    await lock_sources(tx, [(named.scope, named.urn)])
    return named.urn


async def drop_document(tx: Tx, item: ItemId, urn: str, scope: Scope) -> Report:
    """Remove the document of an item, unless another item is the same thing; what went with it.

    Under the lock of its URN: else a twin that comes at this moment would be left without its document.
    """
    await lock_urn_of(tx, item)
    if await tx.value(SQL["has_twin"], id=item, urn=urn):
        return {"kept": True}
    await note_links(tx, [LinkedDocument(urn, scope)])
    return asdict(await remove_source(tx, scope, urn))
