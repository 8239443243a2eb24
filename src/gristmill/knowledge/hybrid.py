"""Search as agents ask for it: hybrid, of all types of knowledge or of some."""

from collections.abc import Sequence

from gristmill.db import Database
from gristmill.knowledge.search import Hits, search
from gristmill.knowledge.vectors import Embedders
from gristmill.scopes import GLOBAL, Scope


async def search_hybrid(
    db: Database,
    embedder: Embedders,
    query: str,
    alpha: float = 0.5,
    max_results: int = 10,
    knowledge_types: Sequence[str] | None = None,
    *,
    scope: Scope = GLOBAL,
) -> Hits:
    """The hits of `search`, of all types or of these."""
    types = [type.casefold() for type in knowledge_types or ()]
    return await search(db, embedder, query, scope, alpha=alpha, limit=max_results, type=types)
