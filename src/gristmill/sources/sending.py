"""Which mails we sent ourselves, as their folders say."""

from collections.abc import Sequence
from typing import NamedTuple

from gristmill.db import Tx
from gristmill.ids import ScopeId
from gristmill.sources.store import SQL


class _Urn(NamedTuple):
    scope: ScopeId
    urn: str


async def find_sent(tx: Tx, urns: Sequence[tuple[ScopeId, str]]) -> set[tuple[ScopeId, str]]:
    """The mails, of these, that lie in a folder of sent mails."""
    scopes, names = [scope for scope, _ in urns], [urn for _, urn in urns]
    rows = await tx.all(SQL["find_sent"], _Urn, scopes=scopes, urns=names)
    return {(row.scope, row.urn) for row in rows}
