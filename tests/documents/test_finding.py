"""A search as a person asks it reads what its scope may see, from its first look on."""

from typing import Any, cast

import pytest

from gristmill.db import Database, Tx
from gristmill.documents import find_in_documents, finding
from gristmill.knowledge import Finder, Hits
from gristmill.scopes import Scope

pytestmark = pytest.mark.asyncio(loop_scope="session")
ACME = Scope("acme")


class Nothing:
    """A finder that finds nothing."""

    async def find(self, query: str, scope: Scope, **how: Any) -> Hits:
        return Hits()


async def test_the_checks_before_a_search_see_only_what_the_scope_may_see(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    users: list[str] = []

    async def look(tx: Tx, scope: Scope) -> Any:
        users.append(await tx.value("SELECT current_user::text || ' of ' || seen_from_client()"))
        return []

    monkeypatch.setattr(finding, "holds_anything", look)
    monkeypatch.setattr(finding, "list_types", look)
    hits = await find_in_documents(db, cast(Finder, Nothing()), "mill", ACME, type="pdf")
    assert users == ["gristmill_tenant of acme"] * 2
    assert hits.note == "Nothing belongs to acme: gristmill documents lists what there is, and whose it is."
