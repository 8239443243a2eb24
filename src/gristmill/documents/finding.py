"""A search as a person asks it: a mistake in the question is answered with what there is instead."""

from collections.abc import Sequence
from typing import Any

from gristmill.db import Database, Tx
from gristmill.documents.progress import holds_anything, list_types
from gristmill.errors import Refused
from gristmill.knowledge import Finder, Hits
from gristmill.scopes import GLOBAL, Scope


async def find_in_documents(
    db: Database,
    finder: Finder,
    query: str,
    scope: Scope | None,
    *,
    type: str | Sequence[str] | None = None,
    **how: Any,
) -> Hits:
    """The hits; a type that no document has is refused, and a client that has nothing is named in the note.

    Without a scope everything is searched, of all clients: that is for the operator alone.
    """
    async with db.transaction(seen_from=scope) as tx:
        for one in (type,) if isinstance(type, str) else type or ():
            await _refuse_unknown_type(tx, scope, one)
        lack = await explain_lack(tx, scope) if scope else None
    hits = await finder.find(query, scope, type=type, **how)
    hits.note = " ".join(one for one in (lack, hits.note) if one) or None
    return hits


async def explain_lack(tx: Tx, scope: Scope) -> str | None:
    """The sentence that nothing belongs to a scope: a client that is misspelt looks like one without any hit."""
    if scope == GLOBAL or await holds_anything(tx, scope):
        return None
    return f"Nothing belongs to {scope}: gristmill documents lists what there is, and whose it is."


async def _refuse_unknown_type(tx: Tx, scope: Scope | None, type: str) -> None:
    """Before a model is loaded that could find nothing."""
    known = await list_types(tx, scope)
    if known and type not in known:
        raise Refused(f"No document is of the type “{type}”: there are {', '.join(known)}.")
