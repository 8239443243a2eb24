"""Views of a list that people keep: a filter and an order under a name, shared by all keys of one scope."""

from dataclasses import dataclass

from gristmill.db import Tx, queries
from gristmill.errors import Refused, Unknown
from gristmill.scopes import Scope, find_scope, scope_id

SQL = queries("gristmill.web.console", "saved_views.sql")
LONGEST_NAME = 60
MOST = 50  # of one list and scope: more would be no help to anybody


@dataclass(frozen=True)
class SavedView:
    """A view of a list; `query` is the part of its address behind the question mark."""

    id: int
    name: str
    query: str


async def list_views(tx: Tx, scope: Scope, page: str) -> list[SavedView]:
    """The views of this very scope: the operator's are not those of any client."""
    own = await find_scope(tx, scope)
    return await tx.all(SQL["list_views"], SavedView, scope=own, page=page) if own is not None else []


async def save_view(tx: Tx, scope: Scope, page: str, name: str, query: str) -> SavedView:
    """Keep a view; one of the same name is replaced."""
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise Refused(f"A view needs a name of 1 to {LONGEST_NAME} printable characters.")
    own = await scope_id(tx, scope)
    if await tx.only_value(SQL["count_others"], int, scope=own, page=page, name=name) >= MOST:
        raise Refused(f"There are {MOST} views of this list: remove one first.")
    saved = await tx.one(SQL["save_view"], SavedView, scope=own, page=page, name=name, query=query)
    assert saved is not None
    return saved


async def remove_view(tx: Tx, scope: Scope, view: int) -> SavedView:
    own = await find_scope(tx, scope)
    gone = await tx.one(SQL["remove_view"], SavedView, scope=own, id=view)
    if gone is None:
        raise Unknown(f"There is no view {view}: somebody may have removed it.")
    return gone
