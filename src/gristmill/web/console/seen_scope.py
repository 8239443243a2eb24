"""Whose knowledge a page shows: the client that the address names, else the one that the caller looks at."""

from fastapi import Request

from gristmill.scopes import Scope
from gristmill.serving import Caller


def read_scope(request: Request, caller: Caller) -> Scope:
    """A client that is not the caller's is answered like one that does not exist."""
    given = request.query_params
    return caller.choose_scope(given.get("client") or None, given.get("project") or None)


def read_view(request: Request, caller: Caller) -> Scope | None:
    """The same for a page that can show everything: to an operator who names no client, it does (None)."""
    given = request.query_params
    return caller.choose_view(given.get("client") or None, given.get("project") or None)
